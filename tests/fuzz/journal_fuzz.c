/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Fuzz target: the files of a lender's state, which may have been cut off, or written by anybody who may write there. An
 * input is a journal of leases.
 *
 * Checked: nothing crashes, a journal that was read is the same when it was written and is read again, and a number of a
 * host that is none is refused.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "fuzz.h"
#include "input.h"
#include "journal.h"
#include "log.h"

#define LEASES 9u
#define DEVICE 0x0123456789abcdefULL

static char folder[] = "/tmp/weft-journal.XXXXXX";

/* In the place of the lender's. */
void lender_log(const char *format, ...)
{
}

static void leave(void)
{
	char path[64];

	snprintf(path, sizeof(path), "%s/leases-0123456789abcdef.json", folder);
	unlink(path);
	snprintf(path, sizeof(path), "%s/node", folder);
	unlink(path);
	rmdir(folder);
}

static void put(const char *name, const uint8_t *data, size_t len)
{
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	f = fopen(path, "we");
	MUST(f && fwrite(data, 1, len, f) == len && !fclose(f));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static struct journal_lease first[LEASES], again[LEASES];
	static bool begun;
	uint64_t node;
	uint32_t i;
	int err;

	if (!begun) {
		MUST(mkdtemp(folder));
		MUST(!atexit(leave));
		begun = true;
	}
	put("leases-0123456789abcdef.json", data, len);
	journal_read(folder, DEVICE, first, LEASES);
	MUST(!journal_write(folder, DEVICE, first, LEASES));
	journal_read(folder, DEVICE, again, LEASES);
	for (i = 0; i < LEASES; i++)
		if (first[i].generation)
			MUST(!memcmp(&first[i], &again[i], sizeof(first[i])));
	put("node", data, len);
	err = journal_node(folder, &node);
	MUST(err ? err == -EILSEQ : node);
	return 0;
}
