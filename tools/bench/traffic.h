/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The two patterns of traffic that the tools time over a channel: ping-pong
 * (latency) and stream (bandwidth and message rate). Both sides call the same
 * function with the same arguments.
 *
 * Every receive is posted before its message may be sent, so that what is timed is
 * never the handling of unexpected messages. From TRAFFIC_LARGE bytes up,
 * messages rotate through buffers that together exceed the second-level cache;
 * all buffers are ordinary malloc memory, or registered memory with --mem.
 */
#ifndef WEFT_TOOLS_TRAFFIC_H
#define WEFT_TOOLS_TRAFFIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "channel.h"

#define TRAFFIC_LARGE	   65536
#define TRAFFIC_WINDOW_MAX 64

/* The buffers of one message size on one side. */
struct traffic {
	struct channel *ch;
	size_t size;
	bool verify;
	/* stream: messages per acknowledgement */
	uint32_t window;
	/* buffers in each direction, and how many of them messages rotate through */
	uint32_t cnt, turns;
	/* ping-pong uses one in each direction, which stays in the caches; the caller sets it */
	bool warm;
	struct channel_buf *out;
	struct channel_buf *in;
	/* messages since the start: their number is in the pattern */
	uint64_t sent;
	/* receives for them */
	uint64_t posted;
};

/* How much is under way at a time, and in how many buffers. */
struct traffic_shape {
	uint32_t window;
	uint32_t bufs;
};

/*
 * traffic_shape - what suits a size: no more than the provider's queues hold with room to
 * spare, no more bytes than are useful, and large buffers that outgrow the cache
 */
struct traffic_shape traffic_shape(const struct channel *ch, size_t size);

/*
 * traffic_init - allocate, touch and register the buffers
 * @verify:  fill every message and check every byte that arrives; figures
 *           then include that work
 *
 * Prints the reason of a failure. Returns 0 or a negative fi_errno, with nothing held.
 */
int traffic_init(struct traffic *tr, struct channel *ch, size_t size, bool verify);

void traffic_fini(struct traffic *tr);

/*
 * traffic_pingpong - bounce messages
 * @cnt:    round trips
 * @away:   nanoseconds for which each side computes, without progress, once it has sent
 * @taken:  receives nanoseconds for all of them
 *
 * Side 0 serves. The sides should have met at a barrier before.
 * Returns 0 or a negative fi_errno; -FI_EIO for bytes that differ (reported).
 */
int traffic_pingpong(struct traffic *tr, uint32_t cnt, uint64_t away, uint64_t *taken);

/*
 * traffic_stream - send from side 0 to side 1, two windows ahead
 * @windows:  how many windows of tr->window messages
 * @taken:    receives nanoseconds from the first send to the last acknowledgement,
 *            meaningful on side 0
 *
 * Returns as traffic_pingpong.
 */
int traffic_stream(struct traffic *tr, uint32_t windows, uint64_t *taken);

/*
 * traffic_fill, traffic_check - the pattern of message @number
 *
 * The pattern depends on the number and the length, so that a message that is swapped,
 * repeated or cut shows. traffic_check returns the offset of the first byte that is
 * wrong, or @len.
 */
void traffic_fill(void *buf, size_t len, uint64_t number);
size_t traffic_check(const void *buf, size_t len, uint64_t number);

#endif
