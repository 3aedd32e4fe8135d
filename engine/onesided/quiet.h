/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Quiet requests: writes and atomics without results that are complete, for the program, as soon as the wire
 * has what they carry (no completion level, FI_INJECT_COMPLETE; where what the wire has arrives by itself
 * also FI_TRANSMIT_COMPLETE). Nothing is kept of each: a peer has the place behind its last one, and how
 * many may be without an answer. A NAK is an error that belongs to no operation; an ACK tells how far the
 * target has come. Few of these requests ask for one: some of many, so that their number stays below its
 * bound, and what waits for them all asks then (engine_ask()). Else the target tells in time: every 1 ms
 * while it makes progress, before it sleeps and before it closes.
 *
 * The caller holds the domain.
 */
#ifndef WEFT_QUIET_H
#define WEFT_QUIET_H

#include "cntr.h"
#include "unanswered.h"

/* engine_is_quiet - is a request with these flags complete once the wire has it? */
static inline bool engine_is_quiet(uint32_t flags, const struct wire_ops *wire)
{
	return !(flags & ENGINE_DELIVERED) && (!(flags & ENGINE_ARRIVED) || wire->arrives);
}

/* engine_quiet_end - the program's completion of a small request of kind @op; see engine_send_done() */
static inline void engine_quiet_end(struct engine_tx_ctx *ctx, void *context, uint8_t op,
				    uint32_t flags, size_t len)
{
	struct cq_entry *e;

	engine_count(ctx->cntr[ENGINE_CNTR_WRITE], 0, len);
	if (!(flags & ENGINE_COMPLETE))
		return;
	e = cq_slot(&ctx->cq->queue);
	if (unlikely(!e))
		return;
	*e = (struct cq_entry){
		.context = context,
		.flags = (op == PACKET_ATOMIC ? FI_ATOMIC : FI_RMA) | FI_WRITE,
		.src = FI_ADDR_NOTAVAIL,
	};
	cq_push(&ctx->cq->queue);
}

/* engine_quiet_refused - the peer has refused the one at @seq. 0, or -FI_EINVAL: there is none */
int engine_quiet_refused(struct engine_peer *peer, uint32_t seq, int err);

/* engine_quiet_lost - the peer is gone: tell of those that it has not answered */
void engine_quiet_lost(struct engine_peer *peer, int err);

#endif
