/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * An arriving packet, inline: the wire that instantiates this over its ops hands a message that is
 * the next of its sender, and has a receive, straight to it. All others go to engine_packet().
 *
 * Called by wires from within their poll(). The caller holds the domain.
 */
#ifndef WEFT_ARRIVE_H
#define WEFT_ARRIVE_H

#include "recv.h"

/* engine_packet_on - engine_packet() with the common case inline; @wire: constant ops of the caller */
static inline int engine_packet_on(struct engine_ep *ep, struct wire_conn *conn,
				   const struct packet *packet, const void *payload,
				   size_t avail, struct wire_dest *dest,
				   const struct wire_ops *wire)
{
	struct engine_peer *peer = conn->peer;
	struct engine_rx_ctx *ctx;
	struct engine_rxq *q;
	struct match_recv *recv;
	struct engine_rx *rx;

	if (unlikely(packet->op != PACKET_EAGER || packet->seq != peer->rx_seq ||
		     peer->reorder_cnt || avail != packet->len ||
		     packet->epoch != peer->rx_epoch ||
		     (packet->flags & ~(PACKET_TAGGED | PACKET_CQ_DATA)) ||
		     avail > wire->claim_max))
		return engine_packet(ep, conn, packet, payload, avail, dest);

	if (packet->credits && unlikely(!engine_credited(peer, packet->credits)))
		return -FI_EINVAL;
	if (avail > ENGINE_FREE_MAX) {
		if (unlikely(avail > peer->rx_window))
			return -FI_EINVAL;
		peer->rx_window -= (uint32_t)avail;
	}
	peer->rx_seq++;
	conn->rx_msgs++;
	conn->rx_bytes += avail;
	ctx = ep->rx0;
	q = ctx->q;
	recv = match_arrive(engine_matcher(q, packet->flags), engine_source_id(q, peer),
			    packet->tag);
	if (unlikely(!recv))
		return engine_hold_stored(ctx, peer, packet, payload);
	rx = engine_recv_take(recv, ctx, peer, packet, avail);
	if (unlikely(!rx))
		return -FI_ENOMEM;
	engine_recv_copy_on(rx, payload, avail, wire);
	if (avail > ENGINE_FREE_MAX)
		engine_owe(peer, avail);
	engine_recv_done(ep->domain, rx);
	return 0;
}

#endif
