/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * An arriving packet, inlined into the wire that instantiates this over its ops. The whole payload
 * of the next message of a sender goes straight to its receive, or is held without one. All other
 * packets go to engine_packet().
 *
 * Called by wires from within their poll(). The caller holds the domain.
 */
#ifndef WEFT_ARRIVE_H
#define WEFT_ARRIVE_H

#include "recv.h"

/*
 * engine_packet_plain - returns true if the packet is a plain message whose turn has come
 * @avail: bytes of its payload that are present
 *
 * A plain message is PACKET_EAGER for receive context 0, with its whole payload, no credits, and no
 * flags but PACKET_TAGGED and PACKET_CQ_DATA. Returns false while packets of the peer wait for
 * their turn.
 */
static inline bool engine_packet_plain(const struct engine_peer *peer,
				       const struct packet *packet, size_t avail)
{
	const struct packet may_have = { .flags = PACKET_TAGGED | PACKET_CQ_DATA };

	return (packet_head(packet) & ~packet_head(&may_have)) == peer->rx_head &&
	       packet->seq == peer->rx_seq && avail == packet->len && !packet->credits;
}

/*
 * engine_packet_on - engine_packet() with the common case inline
 * @wire: ops of the caller, a constant
 * Parameters and return value otherwise as for engine_packet() (wire.h).
 */
static inline __attribute__((always_inline)) int engine_packet_on(
	struct engine_ep *ep, struct wire_conn *conn, const struct packet *packet,
	const void *payload, size_t avail, struct wire_dest *dest, const struct wire_ops *wire)
{
	struct engine_peer *peer = conn->peer;
	struct engine_rx_ctx *ctx = ep->rx0;
	struct match_recv *recv;
	struct engine_rx *rx;
	struct match *m;

	if (unlikely(!engine_packet_plain(peer, packet, avail) || avail > wire->claim_max))
		return engine_packet(ep, conn, packet, payload, avail, dest);
	m = engine_matcher(ctx->q, packet->flags);
	recv = match_arrive(m, engine_source_id(ctx->q, peer), packet->tag);
	rx = recv ? container_of(recv, struct engine_rx, match) : NULL;
	if (unlikely(rx && !engine_recv_plain(rx, ctx, avail)))
		return engine_packet(ep, conn, packet, payload, avail, dest);

	if (avail > ENGINE_FREE_MAX) {
		if (unlikely(avail > peer->rx_window))
			return -FI_EINVAL;
		peer->rx_window -= (uint32_t)avail;
	}
	peer->rx_seq++;
	conn->rx_msgs++;
	conn->rx_bytes += avail;
	if (unlikely(!rx))
		return engine_hold_stored(ctx, peer, packet, payload);
	match_unpost(m, recv);
	if (wire->payload_local && avail >= COPY_WIDE_MIN)
		engine_recv_copy(rx, payload, avail);
	else
		copy_bytes(rx->iov[0].iov_base, payload, avail);
	if (avail > ENGINE_FREE_MAX)
		engine_credit_return(peer, avail);
	engine_recv_plain_done(rx, ctx, peer, packet);
	return 0;
}

#endif
