/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The receives of a channel (tools/shared/channel.h) over a stream of the kernel's, weft-pipe and
 * weft-socket: messages come in the order in which they were sent, so that the receive posted first
 * takes the next one. One thread.
 */
#ifndef WEFT_BENCH_POSTED_H
#define WEFT_BENCH_POSTED_H

#include <rdma/fi_errno.h>

#include "channel.h"

/* Receive n is at n % CHANNEL_RX_LOG; channel.rx_done of them have completed. */
struct posted {
	struct channel_buf *bufs[CHANNEL_RX_LOG];
	size_t lens[CHANNEL_RX_LOG];
	uint64_t cnt;
};

/* posted_add - what channel_recv() does */
static inline int posted_add(struct posted *p, const struct channel *ch,
			     struct channel_buf *buf, size_t len)
{
	if (p->cnt - ch->rx_done == CHANNEL_RX_LOG)
		return -FI_EAGAIN;
	buf->op.is_recv = buf->op.busy = true;
	p->bufs[p->cnt % CHANNEL_RX_LOG] = buf;
	p->lens[p->cnt++ % CHANNEL_RX_LOG] = len;
	return 0;
}

/* posted_first - returns the buffer that the next message goes to, or NULL; @len: out: its length */
static inline struct channel_buf *posted_first(const struct posted *p, const struct channel *ch,
					       size_t *len)
{
	uint64_t nth = ch->rx_done % CHANNEL_RX_LOG;

	*len = p->lens[nth];
	return ch->rx_done == p->cnt ? NULL : p->bufs[nth];
}

/* posted_done - @buf, which was the first one, has a message of @len bytes */
static inline void posted_done(struct channel *ch, struct channel_buf *buf, size_t len)
{
	buf->op.busy = false;
	ch->rx_log[ch->rx_done++ % CHANNEL_RX_LOG] =
		(struct channel_message){ .len = len, .slot = buf->op.slot };
}

#endif
