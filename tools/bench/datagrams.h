/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Ping-pong over a channel that may lose messages (FI_EP_DGRAM). Side 0 sends a message again that has no answer,
 * and side 1 answers it again; both know by the first byte, its number, what is new. Both sides call the same
 * functions with the same arguments. One thread on each.
 */
#ifndef WEFT_TOOLS_DATAGRAMS_H
#define WEFT_TOOLS_DATAGRAMS_H

#include "channel.h"

#define DATAGRAMS_IN 4 /* receives that are posted */

struct datagrams {
	struct channel *ch;
	/* bytes of the longest message */
	size_t room;
	bool verify;
	struct channel_buf out, in[DATAGRAMS_IN];
	/* of ch->rx_done: messages that were looked at */
	uint64_t seen;
};

/*
 * datagrams_open - allocate the buffers, and post receives
 * @room:   bytes of the longest message
 * @verify: fill every message and check every byte that arrives
 *
 * Prints the reason of a failure. Returns 0 or a negative fi_errno, with nothing held.
 */
int datagrams_open(struct datagrams *d, struct channel *ch, size_t room, bool verify);

/* datagrams_close - take back what datagrams_open() has posted and allocated */
void datagrams_close(struct datagrams *d);

/*
 * datagrams_bounce - exchange @cnt messages of @size bytes, one after the other
 * @taken:  side 0: nanoseconds for all of them
 * @again:  side 0: how many were sent again, since no answer came
 *
 * An empty message has no number: one that is lost, or its answer, is an error after the channel's timeout.
 * Returns 0 or a negative fi_errno; -FI_EIO for bytes that differ (reported). Both sides return the error of either.
 */
int datagrams_bounce(struct datagrams *d, size_t size, uint32_t cnt, uint64_t *taken,
		     uint32_t *again);

#endif
