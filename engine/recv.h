/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Receiving: the fast path that a wire's poll() instantiates for each packet, and what it
 * shares with recv.c. A small message that is the next of its sender and finds a posted
 * receive goes straight to the user's buffer and the completion queue; everything else goes
 * to engine_packet() in recv.c.
 *
 * The caller holds the domain.
 */
#ifndef WEFT_RECV_H
#define WEFT_RECV_H

#include "copy.h"
#include "engine.h"

/* engine_recv_error - end a receive with a completion error; takes rx, which is linked nowhere */
void engine_recv_error(struct engine_ep *ep, struct engine_rx *rx, int err);

/* engine_owe - payload of a message from this peer was freed: grant it again, now or later */
void engine_owe(struct engine_peer *peer, size_t len);

/* engine_hold_stored - keep a whole message for which there is no receive. 0 or -FI_ENOMEM */
int engine_hold_stored(struct engine_ep *ep, struct engine_peer *peer, const struct packet *packet,
		       const void *payload);

/* engine_recv_done - the message of a receive is there whole; takes rx, which is linked nowhere */
static inline void engine_recv_done(struct engine_ep *ep, struct engine_rx *rx)
{
	struct cq_entry *e;

	if (unlikely(rx->len > rx->cap)) {
		engine_recv_error(ep, rx, -FI_ETRUNC);
		return;
	}
	if (rx->flags & ENGINE_COMPLETE) {
		e = cq_slot(&ep->rx_cq->queue);
		if (likely(e != NULL)) {
			*e = (struct cq_entry){
				.context = rx->context,
				.flags = FI_RECV | (rx->flags & PACKET_TAGGED ? FI_TAGGED : FI_MSG) |
					 (rx->flags & PACKET_CQ_DATA ? FI_REMOTE_CQ_DATA : 0),
				.len = rx->len,
				.buf = rx->iov[0].iov_base,
				.data = rx->data,
				.tag = rx->tag,
				.src = rx->peer->addr,
			};
			cq_push(&ep->rx_cq->queue);
		}
	}
	pool_put(&ep->rx_pool, rx);
}

/* engine_recv_take - a posted receive has its message: what the completion will say of it */
static inline struct engine_rx *engine_recv_take(struct match_recv *recv, struct engine_peer *peer,
						 const struct packet *packet, size_t len)
{
	struct engine_rx *rx = container_of(recv, struct engine_rx, match);

	list_remove(&rx->link);
	rx->peer = peer;
	rx->tag = packet->tag;
	rx->data = packet->data;
	rx->len = len;
	rx->flags |= packet->flags & PACKET_CQ_DATA;
	return rx;
}

static inline void engine_recv_copy(struct engine_rx *rx, const void *payload, size_t len)
{
	size_t take = len < rx->cap ? len : rx->cap;

	if (likely(rx->iov_cnt == 1))
		copy_bytes(rx->iov[0].iov_base, payload, take);
	else
		copy_to_iov(rx->iov, rx->iov_cnt, 0, payload, take);
}

/* engine_packet_on - engine_packet() with the common case inline; @wire: constant ops of the caller */
static inline int engine_packet_on(struct engine_ep *ep, struct wire_conn *conn, const struct packet *packet,
				   const void *payload, size_t avail, struct wire_dest *dest,
				   const struct wire_ops *wire)
{
	struct engine_peer *peer = conn->peer;
	struct match_recv *recv;
	struct engine_rx *rx;

	if (unlikely(packet->op != PACKET_EAGER || packet->seq != peer->rx_seq || peer->early_cnt ||
		     avail != packet->len || packet->credits || packet->epoch != peer->rx_epoch ||
		     (packet->flags & ~(PACKET_TAGGED | PACKET_CQ_DATA)) || avail > wire->claim_max))
		return engine_packet(ep, conn, packet, payload, avail, dest);

	if (avail > ENGINE_INJECT_MAX) {
		if (unlikely(avail > peer->allowed))
			return -FI_EINVAL;
		peer->allowed -= (uint32_t)avail;
	}
	peer->rx_seq++;
	conn->rx_msgs++;
	conn->rx_bytes += avail;
	recv = match_arrive(packet->flags & PACKET_TAGGED ? ep->tagged : ep->msg, (uintptr_t)peer, packet->tag);
	if (unlikely(!recv))
		return engine_hold_stored(ep, peer, packet, payload);
	rx = engine_recv_take(recv, peer, packet, avail);
	engine_recv_copy(rx, payload, avail);
	if (avail > ENGINE_INJECT_MAX)
		engine_owe(peer, avail);
	engine_recv_done(ep, rx);
	return 0;
}

/* From rndv.c, for recv.c: a receive has met an RTS. Takes rx, linked nowhere. */
void engine_rndv_receive(struct engine_ep *ep, struct engine_peer *peer, struct engine_rx *rx,
			 const struct packet *packet, const struct packet_rts *rts);

/* From rndv.c, for engine_packet(): the other packets of a rendezvous. 0 or -FI_E* to end the conn. */
int engine_rndv_cts(struct engine_peer *peer, const struct packet *packet, const struct packet_cts *cts);
int engine_rndv_data(struct engine_peer *peer, const struct packet *packet, const void *payload, size_t avail,
		     struct wire_dest *dest);
int engine_rndv_fin(struct wire_conn *conn, const struct packet *packet);

/* From rndv.c: what the wire was writing for @rx is there */
void engine_rndv_arrived(struct engine_rx *rx);

/* From rndv.c, for peer.c: send payload that waits for room; false when there is none still */
bool engine_rndv_push(struct engine_tx *tx);

/* From send.c, for peer.c: start a queued send. 0 or -FI_EAGAIN */
int engine_tx_start(struct engine_peer *peer, struct engine_tx *tx);
/* From send.c: end a send with 0 or -FI_E*; takes tx, linked nowhere */
void engine_tx_end(struct engine_tx *tx, int status);

/* engine_cancel - end the receive or unsent send with that context. -FI_ENOENT: none. Source: fi_endpoint(3) */
int engine_cancel(struct engine_ep *ep, void *context);

/* From recv.c, for peer.c: release a held message */
void engine_held_free(struct engine_ep *ep, struct engine_held *held);

#endif
