/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The line of progress; progress.h has the contract. Called by 'weft bench' between
 * measurements.
 */
#define _GNU_SOURCE
#include "progress.h"
#include "clock.h"

#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define SHOW_EVERY_NS 100000000ull
#define WIDTH_DEFAULT 80
#define LINE_MAX_LEN  256
#define ERASE	      "\r\033[K"

void progress_start(struct progress *progress, int fd, uint64_t total)
{
	memset(progress, 0, sizeof(*progress));
	progress->fd = isatty(fd) ? fd : -1;
	progress->began_ns = clock_ns();
	progress->total = total;
}

char *progress_format(char *line, size_t len, const char *what, uint64_t elapsed_ns,
		      uint64_t done, uint64_t total)
{
	unsigned percent, left_s;
	char left[48] = "";

	if (done > total)
		done = total;
	percent = (unsigned)(100 * done / total);
	if (done) {
		left_s = (unsigned)((double)elapsed_ns / (double)done * (double)(total - done) /
					    1e9 +
				    0.5);
		if (left_s >= 60)
			snprintf(left, sizeof(left), ", %u min %u s left", left_s / 60,
				 left_s % 60);
		else
			snprintf(left, sizeof(left), ", %u s left", left_s);
	}
	snprintf(line, len, "%s, %u%%%s", what, percent, left);
	return line;
}

/* A line that wraps could not be rewritten; the last column may wrap as well. */
static size_t room_for_text(int fd)
{
	struct winsize size;
	size_t room = WIDTH_DEFAULT;

	if (!ioctl(fd, TIOCGWINSZ, &size) && size.ws_col > 1)
		room = size.ws_col;
	return room < LINE_MAX_LEN ? room : LINE_MAX_LEN;
}

static void put(int fd, const char *text)
{
	/* An error of a terminal that was closed does not end the measurement. */
	if (write(fd, text, strlen(text)) < 0)
		return;
}

void progress_show(struct progress *progress, uint64_t done, const char *what)
{
	uint64_t now;
	char line[LINE_MAX_LEN], whole[LINE_MAX_LEN + sizeof(ERASE) + 1];

	if (progress->fd < 0)
		return;
	now = clock_ns();
	if (progress->shown_ns && now - progress->shown_ns < SHOW_EVERY_NS)
		return;
	progress->shown_ns = now;
	progress_format(line, room_for_text(progress->fd), what, now - progress->began_ns, done,
			progress->total);
	/*
	 * The cursor is left in the first column, so that a message written meanwhile is readable.
	 */
	snprintf(whole, sizeof(whole), ERASE "%s\r", line);
	put(progress->fd, whole);
}

void progress_end(struct progress *progress)
{
	if (progress->fd >= 0 && progress->shown_ns)
		put(progress->fd, ERASE);
	progress->fd = -1;
}
