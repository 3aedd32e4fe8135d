/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The patterns of one-sided traffic that 'weft bench' times over a channel: RMA writes that a
 * polling target sees, RMA reads, both as streams, and fetching atomics. Both sides call the
 * same function with the same arguments; side 0 initiates (and in a ping-pong side 1 as well).
 *
 * Each side registers two regions for a size: one to transfer from and into, one that the
 * peer accesses. Both hold as many slots as transfers rotate through, which together exceed
 * the second-level cache from TRAFFIC_LARGE bytes up. Every written slot ends in its number:
 * that is what a target polls for, after which it counts as visible, and what shows at the end
 * of a stream that all of it has arrived, whatever the provider says of order.
 */
#ifndef WEFT_TOOLS_ONESIDED_H
#define WEFT_TOOLS_ONESIDED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "region.h"

/* The regions of one size on one side. */
struct onesided {
	struct channel *ch;
	size_t size;
	/* distance of two slots, bytes */
	size_t stride;
	bool verify;
	/* stream: transfers in flight */
	uint32_t window;
	/* number of slots */
	uint32_t cnt;
	struct region local;
	struct region target;
	/* the peer's target region */
	struct remote_region remote;
	/* one operation per slot */
	struct channel_op *ops;
	/* receive buffer of the message that ends a run */
	struct channel_buf ack;
	/* the last ones of a run, out and in */
	struct channel_buf bye[2];
	/* writes of this side since onesided_init() */
	uint64_t written;
	/* writes of the peer that this side has seen */
	uint64_t seen;
	/* sum of the additions to the peer's atomic word */
	uint64_t added;
	/* number of runs in which side 1 made no calls */
	uint64_t rests;
};

/*
 * onesided_init - allocate and register the regions, and exchange their keys
 * @size:    1 or more
 * @verify:  fill every write and check every byte of what arrives; figures of ping-pong and
 *           reads then include that work
 *
 * Both sides call it, even after one of them has failed. Prints the reason of a failure.
 * Returns 0 or a negative fi_errno, with nothing held.
 */
int onesided_init(struct onesided *os, struct channel *ch, size_t size, bool verify);

/* onesided_fini - deregister and free; the sides have passed a barrier since the last run */
void onesided_fini(struct onesided *os);

/*
 * onesided_write_pingpong - the two sides write to each other in turns
 * @cnt:    round trips
 * @taken:  receives nanoseconds for all of them
 *
 * Returns 0 or a negative fi_errno; -FI_EIO for bytes that differ (reported).
 */
int onesided_write_pingpong(struct onesided *os, uint32_t cnt, uint64_t *taken);

/*
 * onesided_read - read one after the other
 * @passive: side 1 makes no calls until it sees a word written; it needs automatic progress
 * @cnt:    reads
 * @taken:  receives nanoseconds for all of them, on side 0
 */
int onesided_read(struct onesided *os, bool passive, uint32_t cnt, uint64_t *taken);

/*
 * onesided_stream - write or read with a window under way
 * @reads: read rather than write
 * @cnt: transfers
 * @taken: receives nanoseconds, on side 0: until the last read completed, or until the target
 *         reported that all writes are visible
 */
int onesided_stream(struct onesided *os, bool reads, uint32_t cnt, uint64_t *taken);

/*
 * onesided_fetch_add - add 1 to a 64-bit word of the peer, one after the other
 * @cnt:    additions; each result is checked
 * @taken:  receives nanoseconds for all of them, on side 0
 */
int onesided_fetch_add(struct onesided *os, uint32_t cnt, uint64_t *taken);

/*
 * onesided_add - add 1 to the same word as fast as possible
 * @cnt: additions; the sum is checked
 * @taken: receives nanoseconds until all of them are visible, on side 0
 */
int onesided_add(struct onesided *os, uint32_t cnt, uint64_t *taken);

/*
 * What both files of one-sided traffic use.
 *
 * onesided_serve - side 1's part of a run that side 0 drives: make progress until a message reports the end
 * onesided_end_serving - send that message
 * onesided_free_slot - wait until the previous transfer of a slot has left it
 * onesided_word_at - offset of the word that is added to
 *
 * The first three return 0 or a negative fi_errno.
 */
int onesided_serve(struct onesided *os);
int onesided_end_serving(struct onesided *os);
int onesided_free_slot(struct onesided *os, uint64_t number);
size_t onesided_word_at(const struct onesided *os);

#endif
