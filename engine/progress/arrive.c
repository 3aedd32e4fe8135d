/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Arriving packets other than the common case of arrive.h. Messages and requests are handled in the
 * sequence of their sender; those that arrive before their turn are held. Called by wires from
 * their poll(), with the domain held.
 */
#include "arrive.h"
#include "access.h"
#include "conns.h"
#include "in_order.h"
#include "reorder.h"
#include "send.h"

/* Most eager payload of a packet that is accepted, bytes */
#define EAGER_LIMIT (1u << 20)

/* Returns true for a request that is too large to be held without credit, and uses none. */
static bool engine_is_large(const struct packet *packet)
{
	return engine_is_request(packet) && packet->len > ENGINE_REORDER_MAX &&
	       !(packet->flags & PACKET_COUNTED);
}

/*
 * The turn of a held request has come: carry it out, or leave that to engine_held_arrived() while
 * payload is missing. Takes @held. Returns 0 or the error of engine_request().
 */
static int engine_held_request(struct engine_held *held)
{
	struct engine_peer *peer = held->peer;
	int ret;

	if (!held->whole) {
		held->state = HELD_MATCHED;
		return 0;
	}
	ret = engine_request(held->ctx, peer, &held->packet, held->bytes);
	engine_held_free(peer->ep, held);
	return ret;
}

/*
 * The turn of a held message or request has come: match the message, or carry the request out.
 * Returns 0 or -FI_E*.
 */
static int engine_reorder_turn(struct engine_ep *ep, struct engine_held *held)
{
	struct engine_peer *peer = held->peer;
	struct engine_rxq *q = held->ctx->q;
	struct match_recv *recv;
	struct engine_rx *rx;

	engine_reorder_remove(peer, held);
	peer->rx_seq++;
	if (engine_is_request(&held->packet)) {
		peer->reorder_large -= engine_is_large(&held->packet);
		return engine_held_request(held);
	}
	if (held->packet.op == PACKET_EAGER && held->packet.flags & PACKET_ACKED)
		engine_ack_due(peer, PACKET_ACKED);
	recv = match_arrive(engine_matcher(q, held->packet.flags), engine_source_id(q, peer),
			    held->packet.tag);
	if (!recv) {
		engine_held_store(held);
		return 0;
	}
	rx = engine_recv_matched(ep->domain, q, recv, engine_held_len(held));
	if (!rx) {
		engine_held_store(held);
		return -FI_ENOMEM;
	}
	engine_held_receive(held, rx);
	return 0;
}

/*
 * Returns true if this request must not arrive before its turn. A sender lets a large request
 * overtake nothing on its route. After a change of route it may overtake packets on the old one;
 * then up to ENGINE_REQUESTS_MAX such requests are held.
 */
static bool engine_reorder_refused(struct engine_peer *peer, const struct packet *packet)
{
	if (!engine_is_large(packet))
		return false;
	return !peer->multi_conn || peer->reorder_large >= ENGINE_REQUESTS_MAX;
}

/*
 * Hold a message or request that has arrived before its turn. Returns 0, -FI_EINVAL: it has no
 * place there, or -FI_ENOMEM.
 */
static int engine_reorder(struct engine_rx_ctx *ctx, struct engine_peer *peer,
			  const struct packet *packet, const void *payload, size_t avail,
			  struct wire_dest *dest)
{
	struct engine_held *held;

	if ((int32_t)(packet->seq - peer->rx_seq) < 0 || engine_reorder_at(peer, packet->seq))
		return -FI_EINVAL;
	if (engine_reorder_refused(peer, packet))
		return -FI_EINVAL;
	held = engine_hold(ctx, peer, packet, payload, avail, dest);
	if (!held)
		return -FI_ENOMEM;
	held->state = HELD_REORDER;
	if (engine_reorder_add(peer, held)) {
		engine_held_free(peer->ep, held);
		return -FI_ENOMEM;
	}
	peer->reorder_large += engine_is_large(packet);
	return 0;
}

/*
 * Receive a message with the receive that it matches. Parameters otherwise as for engine_packet().
 * Returns 0 or -FI_ENOMEM.
 */
static int engine_in_turn_receive(struct engine_rx_ctx *ctx, struct engine_peer *peer,
				  struct match_recv *recv, const struct packet *packet,
				  const void *payload, size_t avail, struct wire_dest *dest)
{
	bool is_rts = packet->op == PACKET_RTS;
	struct packet_rts rts;
	struct engine_rx *rx;

	if (is_rts)
		memcpy(&rts, payload, sizeof(rts));
	rx = engine_recv_take(recv, ctx, peer, packet, is_rts ? rts.len : packet->len);
	if (!rx)
		return -FI_ENOMEM;
	engine_recv_sender(rx, packet);
	if (is_rts) {
		engine_rndv_receive(peer->ep, peer, rx, packet, &rts);
	} else if (avail == packet->len) {
		engine_recv_copy(rx, payload, avail);
		engine_credit_return(peer, avail);
		engine_recv_finish(peer->ep->domain, rx);
	} else {
		list_add_tail(&peer->filling, &rx->filling);
		rx->got = 0;
		rx->incoming = packet->len;
		list_add_tail(&peer->receiving, &rx->link);
		engine_rx_order(rx);
		dest->iov_cnt = (uint32_t)iov_slice(rx->iov, rx->iov_cnt, 0, packet->len,
						    dest->iov);
		dest->cookie = rx;
	}
	return 0;
}

/*
 * Handle a message or request whose turn has come. Parameters as for engine_packet(). Returns 0 or
 * -FI_E*.
 */
static int engine_in_turn(struct engine_rx_ctx *ctx, struct engine_peer *peer,
			  const struct packet *packet, const void *payload, size_t avail,
			  struct wire_dest *dest)
{
	struct engine_rxq *q = ctx->q;
	struct match_recv *recv;
	struct engine_held *held;

	peer->rx_seq++;
	if (engine_is_request(packet) && avail < packet->len)
		return engine_request_stream(ctx, peer, packet, dest);
	if (engine_is_request(packet))
		return engine_request(ctx, peer, packet, payload);
	if (packet->op == PACKET_EAGER && packet->flags & PACKET_ACKED)
		engine_ack_due(peer, PACKET_ACKED);
	recv = match_arrive(engine_matcher(q, packet->flags), engine_source_id(q, peer),
			    packet->tag);
	if (recv)
		return engine_in_turn_receive(ctx, peer, recv, packet, payload, avail, dest);
	held = engine_hold(ctx, peer, packet, payload, avail, dest);
	if (!held)
		return -FI_ENOMEM;
	engine_held_store(held);
	return 0;
}

/* Handle the held messages and requests whose turn has come. Returns 0 or -FI_E*. */
static int engine_reorder_turns(struct engine_peer *peer)
{
	struct engine_held *held;
	int ret = 0;

	while (!ret && (held = engine_reorder_at(peer, peer->rx_seq)))
		ret = engine_reorder_turn(peer->ep, held);
	return ret;
}

/*
 * Find the receive context that a message or request is for. Returns 0, -FI_EINVAL: there is none,
 * or -FI_ENOMEM.
 */
static int engine_message_ctx(struct engine_ep *ep, const struct packet *packet,
			      struct engine_rx_ctx **ctx)
{
	if (PACKET_RX_IDX(packet->epoch) >= ep->rx_cnt)
		return -FI_EINVAL;
	*ctx = ep->rxs[PACKET_RX_IDX(packet->epoch)];
	if (!(packet->flags & PACKET_GROUP))
		return 0;
	if (engine_is_request(packet) || !(packet->flags & PACKET_TAGGED))
		return -FI_EINVAL;
	*ctx = ep->group_ops->rx(ep);
	return *ctx ? 0 : -FI_ENOMEM;
}

/* Handle a message or request, and then the held ones whose turn has come. Returns 0 or -FI_E*. */
static int engine_message(struct engine_ep *ep, struct wire_conn *conn,
			  const struct packet *packet, const void *payload, size_t avail,
			  struct wire_dest *dest)
{
	struct engine_peer *peer = conn->peer;
	bool eager = packet->op == PACKET_EAGER;
	struct engine_rx_ctx *ctx;
	int ret;

	ret = engine_message_ctx(ep, packet, &ctx);
	if (ret)
		return ret;
	if ((eager && packet->len > ENGINE_FREE_MAX) || packet->flags & PACKET_COUNTED) {
		if (packet->len > EAGER_LIMIT || packet->len > peer->rx_window)
			return -FI_EINVAL;
		peer->rx_window -= packet->len;
	}
	if (packet->seq != peer->rx_seq) {
		ret = engine_reorder(ctx, peer, packet, payload, avail, dest);
	} else {
		ret = engine_in_turn(ctx, peer, packet, payload, avail, dest);
		if (!ret)
			ret = engine_reorder_turns(peer);
	}
	if (!ret) {
		conn->rx_msgs++;
		conn->rx_bytes += eager ? packet->len : 0;
	}
	return ret;
}

/*
 * Take the credits that a header carries. Returns false if the header is not valid for its kind of
 * packet, or not of the present incarnation.
 */
static bool engine_header_take(struct engine_peer *peer, const struct packet *packet)
{
	if (PACKET_INCARNATION(packet->epoch) != peer->rx_epoch)
		return false;
	if (packet->flags & PACKET_COUNTED &&
	    (packet->op != PACKET_WRITE || packet->flags & ~(PACKET_COUNTED | PACKET_ACKED)))
		return false;
	if (packet->credits && !engine_credited(peer, packet->credits))
		return false;
	return !PACKET_RX_IDX(packet->epoch) || packet->op == PACKET_EAGER ||
	       packet->op == PACKET_RTS || engine_is_request(packet);
}

/*
 * Returns true for a write to one target that uses no credit, because it may wait on the wire for
 * its turn (wire_ops.waits_min).
 */
static bool engine_write_large(const struct wire_conn *conn, const struct packet *packet)
{
	uint32_t least = conn->wire->ops->waits_min;

	return least && packet->len >= least && packet->op == PACKET_WRITE &&
	       !(packet->flags & ~PACKET_ACKED);
}

/* Returns true for such a write whose turn has not come. */
static bool engine_reorder_write(const struct wire_conn *conn, const struct packet *packet)
{
	const struct engine_peer *peer = conn->peer;

	return engine_write_large(conn, packet) &&
	       PACKET_INCARNATION(packet->epoch) == peer->rx_epoch &&
	       (int32_t)(packet->seq - peer->rx_seq) > 0;
}

/* Returns true if the payload of a message or request arrives as its kind requires. */
static bool engine_message_fits(const struct wire_conn *conn, const struct packet *packet,
				size_t avail)
{
	switch (packet->op) {
	case PACKET_EAGER:
		return !(packet->flags & PACKET_TARGETS) &&
		       (!(packet->flags & PACKET_MATCH) || packet->flags & PACKET_DELIVERY);
	case PACKET_RTS:
		return (packet->len == sizeof(struct packet_rts) ||
			packet->flags & PACKET_TARGETS) &&
		       avail == packet->len;
	default:
		return avail == packet->len || packet->flags & PACKET_COUNTED ||
		       engine_write_large(conn, packet);
	}
}

/* Handle a packet whose header was taken. As engine_packet() otherwise. Returns 0 or -FI_E*. */
static int engine_packet_dispatch(struct engine_ep *ep, struct wire_conn *conn,
				  const struct packet *packet, const void *payload,
				  size_t avail, struct wire_dest *dest)
{
	struct engine_peer *peer = conn->peer;
	struct packet_cts cts;

	switch (packet->op) {
	case PACKET_EAGER:
	case PACKET_RTS:
	case PACKET_WRITE:
	case PACKET_READ:
	case PACKET_ATOMIC:
		return engine_message_fits(conn, packet, avail)
			       ? engine_message(ep, conn, packet, payload, avail, dest)
			       : -FI_EINVAL;
	case PACKET_RESPONSE:
		conn->rx_bytes += packet->len;
		return engine_response(peer, packet, payload, avail, dest);
	case PACKET_ACK:
		return engine_acked(peer, packet);
	case PACKET_NAK:
		return engine_nacked(peer, packet);
	case PACKET_CTS:
		if (packet->len != sizeof(cts) || avail != packet->len)
			return -FI_EINVAL;
		memcpy(&cts, payload, sizeof(cts));
		return engine_rndv_cts(peer, packet, &cts);
	case PACKET_DATA:
		conn->rx_bytes += packet->len;
		return engine_rndv_data(peer, packet, payload, avail, dest);
	case PACKET_FIN:
		return packet->len ? -FI_EINVAL : engine_rndv_fin(conn, packet);
	case PACKET_CREDIT:
		if (packet->flags & PACKET_ACKED)
			engine_ack_due(peer, PACKET_ACKED);
		return packet->len ? -FI_EINVAL : 0;
	default:
		return -FI_EINVAL;
	}
}

/* engine_packet() for any packet. */
static __attribute__((noinline)) int engine_packet_any(struct engine_ep *ep,
						       struct wire_conn *conn,
						       const struct packet *packet,
						       const void *payload, size_t avail,
						       struct wire_dest *dest)
{
	dest->iov_cnt = 0;
	dest->cookie = NULL;
	if (unlikely(engine_reorder_write(conn, packet)))
		return -FI_EAGAIN;
	if (!engine_header_take(conn->peer, packet))
		return -FI_EINVAL;
	return engine_packet_dispatch(ep, conn, packet, payload, avail, dest);
}

/*
 * Returns true for a write or atomic whose turn has come, with its whole payload, for receive
 * context 0 and for one target, which its header names.
 */
static inline bool engine_request_due(const struct engine_peer *peer,
				      const struct packet *packet, size_t avail)
{
	return (packet->op == PACKET_WRITE || packet->op == PACKET_ATOMIC) &&
	       !(packet->flags & ~PACKET_ACKED) && packet->len && avail == packet->len &&
	       packet->seq == peer->rx_seq && !peer->reorder_cnt &&
	       packet->epoch == peer->rx_epoch && !packet->credits;
}

int engine_packet(struct engine_ep *ep, struct wire_conn *conn, const struct packet *packet,
		  const void *payload, size_t avail, struct wire_dest *dest)
{
	struct engine_peer *peer = conn->peer;

	if (unlikely(!engine_request_due(peer, packet, avail)))
		return engine_packet_any(ep, conn, packet, payload, avail, dest);
	peer->rx_seq++;
	conn->rx_msgs++;
	if (packet->op == PACKET_WRITE)
		return engine_request_write(ep->rx0, peer, packet, payload);
	return engine_request_atomic(ep->rx0, peer, packet, payload);
}

/* The whole payload of a held message or request has arrived. */
static void engine_held_arrived(struct engine_held *held)
{
	struct engine_peer *peer = held->peer;
	int ret;

	held->whole = true;
	list_remove(&held->arriving);
	if (held->state != HELD_MATCHED) {
		if (held->state != HELD_REORDER)
			engine_held_deliver(held);
		return;
	}
	if (engine_is_request(&held->packet)) {
		ret = engine_held_request(held);
		if (ret)
			engine_conn_broken(peer, ret);
		return;
	}
	if (!held->rx) {
		engine_held_drop(held->peer->ep, held);
		return;
	}
	list_remove(&held->rx->link);
	engine_held_fill(held, held->rx);
}

void engine_payload_done(struct engine_ep *ep, struct wire_conn *conn, void *cookie)
{
	void *object = (void *)((uintptr_t)cookie & ~(ENGINE_COOKIE_TX | ENGINE_COOKIE_HELD));
	struct engine_rx *rx = object;

	if ((uintptr_t)cookie & ENGINE_COOKIE_TX) {
		engine_response_arrived(object);
	} else if ((uintptr_t)cookie & ENGINE_COOKIE_HELD) {
		engine_held_arrived(object);
	} else if (rx->flags & ENGINE_CTS_SENT) {
		engine_rndv_arrived(rx);
	} else {
		list_remove(&rx->link);
		list_remove(&rx->filling);
		if (!rx->landing || rx->flags & PACKET_COUNTED)
			engine_credit_return(rx->peer, rx->incoming);
		if (rx->landing)
			engine_landed(rx);
		else
			engine_recv_finish(ep->domain, rx);
	}
}
