/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * One line on a terminal that is rewritten during a long run: what runs, how much of it is done,
 * and how long the rest will take. Writes nothing where the output is not a terminal, so that logs
 * and pipes stay clean. One thread.
 */
#ifndef WEFT_TOOLS_PROGRESS_H
#define WEFT_TOOLS_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct progress {
	/* the terminal, -1 for none */
	int fd;
	uint64_t began_ns;
	/* when the line was last written, 0 before that */
	uint64_t shown_ns;
	uint64_t total;
};

/*
 * progress_start - begin
 * @fd:     borrowed; written to only if it is a terminal
 * @total:  steps that there will be; at least 1
 */
void progress_start(struct progress *progress, int fd, uint64_t total);

/*
 * progress_show - show the progress
 * @done: steps that are complete
 * @what: what runs now; the line is cut at the terminal's width
 * Writes at most about ten times a second, and never within a step: callers call it between the
 * steps that they time.
 */
void progress_show(struct progress *progress, uint64_t done, const char *what);

/* progress_end - remove the line */
void progress_end(struct progress *progress);

/*
 * progress_format - the line's text
 * @elapsed_ns:  since the start
 * @done:        of @total steps; the time left is known from the first on
 * @len:         bytes of @line
 *
 * Returns @line: "WHAT, 25%, 1 min 40 s left".
 */
char *progress_format(char *line, size_t len, const char *what, uint64_t elapsed_ns,
		      uint64_t done, uint64_t total);

#endif
