/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Two local processes that exchange messages for a measurement: this one and a child, each pinned to
 * a core of its own, connected by a socket pair and a shared cache line. The fork comes before any call
 * of libfabric, whose state does not survive a fork.
 */
#ifndef WEFT_TOOLS_PAIR_H
#define WEFT_TOOLS_PAIR_H

#include <stdbool.h>

#include "cacheline.h"
#include "oob.h"

/* One side of a measurement; the other one runs on this host or another. */
struct side {
	/* 0: starts each exchange and prints the results; 1: answers */
	int rank;
	struct oob oob;
	/* NULL if the sides are on two hosts or on one core */
	struct cacheline *line;
	/* the other side is a process of this host, parent or child of this one */
	bool local;
	/* both sides share one core */
	bool shares_core;
	/* waits call sched_yield(): both sides share a core because there is no other */
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
 * @cpus:  the two cores, or NULL for the first two this process may use; one that it may not use
 *         ends the process
 * @realtime: under SCHED_FIFO, where that is allowed
 * @body:  called on both sides; returns the exit status of its side
 *
 * Side 0 runs in this process, side 1 in a child that exits after @body. A child
 * that dies is reported; the child is killed when this process dies.
 * Returns an exit status: side 0's, or side 1's when side 0 succeeded.
 */
int pair_run(const int cpus[2], bool realtime, int (*body)(struct side *side, void *arg),
	     void *arg);

#endif
