/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What is said of a setting; setting.h has the contract. */
#include "setting.h"

#include <string.h>
#include <unistd.h>
#include "descriptor.h"

/* So much of a value is enough to find it. */
#define TEXT_LEN 64u
#define LINE_LEN 320u

struct line {
	char text[LINE_LEN];
	size_t len;
};

/* Adds what there is room for, and leaves some for the end of the line. */
static void add(struct line *line, const char *text, size_t most)
{
	size_t len = strnlen(text, most), room = LINE_LEN - 1 - line->len;

	len = len < room ? len : room;
	memcpy(line->text + line->len, text, len);
	line->len += len;
}

void setting_ignored(const char *name, const char *text, const char *takes)
{
	struct line line = { .len = 0 };

	add(&line, "weft: ", LINE_LEN);
	add(&line, name, LINE_LEN);
	add(&line, "=", 1);
	add(&line, text, TEXT_LEN);
	add(&line, " is ignored: it takes ", LINE_LEN);
	add(&line, takes, LINE_LEN);
	line.text[line.len++] = '\n';
	sys_descriptor_write(STDERR_FILENO, line.text, line.len);
}
