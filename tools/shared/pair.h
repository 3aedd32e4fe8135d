/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Two local processes that measure each other: forked from this one, each
 * pinned on a core of its own, joined by a socket pair and a shared cache
 * line. Forked before libfabric is touched, which does not survive a fork.
 */
#ifndef WEFT_TOOLS_PAIR_H
#define WEFT_TOOLS_PAIR_H

#include <stdbool.h>

#include "cacheline.h"
#include "oob.h"

/* One side of a measurement, wherever the other one runs. */
struct side {
	/* 0 starts and prints, 1 answers */
	int rank;
	struct oob oob;
	/* NULL when not local, or on one core only */
	struct cacheline *line;
	/* the other side is our own child */
	bool local;
	/* both sides share one core */
	bool crowded;
	/* ... as there is no other: waits give it away, whatever the provider does */
	bool yields;
};

/*
 * pair_cpus_parse - read "A,B", two CPU numbers
 *
 * Returns 0, or -EINVAL with @cpus untouched.
 */
int pair_cpus_parse(const char *text, int cpus[2]);

/*
 * pair_run - run a function as two pinned processes
 * @cpus:  the two cores, or NULL for the first two this process may use
 * @realtime: under SCHED_FIFO, where that is allowed
 * @body:  called on both sides; its result becomes the exit status of its side
 *
 * Side 0 runs in this process, side 1 in a child that exits after @body. A child
 * that dies is reported; when this process dies the child is killed.
 * Returns an exit status: side 0's, or side 1's when side 0 succeeded.
 */
int pair_run(const int cpus[2], bool realtime, int (*body)(struct side *side, void *arg),
	     void *arg);

#endif
