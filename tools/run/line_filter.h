/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A stream of a program's stderr, from which the route reports are taken out.
 * Everything else passes byte for byte, and at once: only the beginning of a line that may
 * still become a report is held back, until line_filter_tick. One thread.
 *
 * A launcher may put a tag before each line ("[1,0]<stderr>:" from mpirun's
 * --tag-output, a date with --timestamp-output); the tag of a report goes with it.
 * Other text before a report on the same line stays.
 */
#ifndef WEFT_TOOLS_LINE_FILTER_H
#define WEFT_TOOLS_LINE_FILTER_H

#include <stdbool.h>
#include <stddef.h>

#include "route_report.h"

struct line_filter {
	struct route_table *table;
	void (*pass)(void *arg, const char *data, size_t len);
	void *arg;
	char held[2 * ROUTE_LINE_MAX];
	size_t held_len;
	/* the part of the line before held[] has been passed */
	bool mid_line;
};

/*
 * line_filter_init
 * @table:  receives the reports; borrowed
 * @pass:   receives all other bytes, in order
 */
void line_filter_init(struct line_filter *filter, struct route_table *table,
		      void (*pass)(void *arg, const char *data, size_t len), void *arg);

/* line_filter_feed - filter bytes that were read */
void line_filter_feed(struct line_filter *filter, const char *data, size_t len);

/*
 * line_filter_holds - whether something is held back that line_filter_tick may free
 */
bool line_filter_holds(const struct line_filter *filter);

/*
 * line_filter_tick - nothing was read for a while
 * Passes on the bytes that were held back, unless they have the beginning of a report.
 */
void line_filter_tick(struct line_filter *filter);

/*
 * line_filter_finish - the stream has ended: pass what is held back
 */
void line_filter_finish(struct line_filter *filter);

#endif
