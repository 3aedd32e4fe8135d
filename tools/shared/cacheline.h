/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The raw latency of one cache line between two cores: the floor under every
 * small message inside a host. Virtual machines move their cores, and this
 * figure moves by five times within minutes; a latency means little without
 * the raw one of the same moment beside it.
 */
#ifndef WEFT_TOOLS_CACHELINE_H
#define WEFT_TOOLS_CACHELINE_H

struct cacheline;

/*
 * cacheline_create - a line in memory shared over fork
 *
 * Call it before fork. Returns it owned, or NULL without memory.
 */
struct cacheline *cacheline_create(void);

void cacheline_destroy(struct cacheline *line);

/*
 * cacheline_measure - one-way time of the line, seen by side 0
 * @side:  0 or 1; the two processes call it at the same time, and as often
 *
 * Takes some 50 microseconds with two cores that are free. Spins: the caller has
 * pinned both sides to different cores. Gives up when the other side does not
 * answer for a second, and then for good.
 * Returns nanoseconds on side 0 and 0 on side 1, NAN when it gave up.
 */
double cacheline_measure(struct cacheline *line, int side);

#endif
