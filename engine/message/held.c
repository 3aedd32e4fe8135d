/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Held messages: they have no receive yet, or have arrived before their turn. Called from receive
 * calls and from progress; the caller holds the domain.
 */
#include "in_order.h"
#include "peer.h"
#include "recv.h"
#include "send.h"

/*
 * Returns true if the endpoint holds as many messages as it may, and its part of these is the peer's: who fills them is
 * the one whose connection ends, and nobody who sends little.
 */
static bool engine_held_full(const struct engine_peer *peer)
{
	const struct engine_ep *ep = peer->ep;

	return unlikely(ep->held_cnt >= ep->held_max) &&
	       peer->held_cnt >= ep->held_max / (ep->peer_cnt[0] + ep->peer_cnt[1]);
}

static struct engine_held *engine_held_new(struct engine_rx_ctx *ctx, struct engine_peer *peer,
					   const struct packet *packet)
{
	struct engine_ep *ep = peer->ep;
	struct engine_held *held;
	bool pooled = packet->len <= ENGINE_HELD_SMALL;

	if (engine_held_full(peer))
		return NULL;
	held = pooled ? pool_get(&ep->held_pool) : platform_alloc(sizeof(*held) + packet->len);
	if (!held)
		return NULL;
	held->peer = peer;
	held->ctx = ctx;
	held->packet = *packet;
	held->rx = NULL;
	held->claim = NULL;
	held->whole = true;
	held->pooled = pooled;
	held->lost = false;
	held->counted = true;
	peer->held_cnt++;
	ep->held_cnt++;
	list_init(&held->link);
	list_init(&held->arriving);
	return held;
}

void engine_held_free(struct engine_ep *ep, struct engine_held *held)
{
	list_remove(&held->arriving);
	held->peer->held_cnt--;
	ep->held_cnt--;
	if (held->pooled)
		pool_put(&ep->held_pool, held);
	else
		platform_free(held);
}

/*
 * A message counts as delivered once it is whole and in its turn, whether or not it matches a
 * receive; with PACKET_MATCH it has to match one.
 * Source: fi_cq(3), FI_DELIVERY_COMPLETE and FI_MATCH_COMPLETE.
 */
void engine_held_deliver(struct engine_held *held)
{
	uint8_t level = held->packet.flags & (PACKET_DELIVERY | PACKET_MATCH);

	if (held->packet.op != PACKET_EAGER || level != PACKET_DELIVERY || !held->whole)
		return;
	held->packet.flags &= (uint8_t)~PACKET_DELIVERY;
	engine_ctl(held->peer, PACKET_FIN, held->packet.seq, 0, NULL);
}

void engine_held_store(struct engine_held *held)
{
	struct engine_rxq *q = held->ctx->q;
	struct engine_ep *ep = held->peer->ep;

	if (held->packet.flags & PACKET_GROUP &&
	    ep->group_ops->stray(held->peer, &held->packet)) {
		engine_held_drop(ep, held);
		return;
	}
	held->state = HELD_STORED;
	held->match.source = engine_source_id(q, held->peer);
	held->match.tag = held->packet.tag;
	match_store(engine_matcher(q, held->packet.flags), &held->match);
	engine_held_deliver(held);
}

int engine_hold_stored(struct engine_rx_ctx *ctx, struct engine_peer *peer,
		       const struct packet *packet, const void *payload)
{
	struct engine_held *held = engine_held_new(ctx, peer, packet);

	if (!held)
		return -FI_ENOMEM;
	copy_bytes(held->bytes, payload, packet->len);
	engine_held_store(held);
	return 0;
}

struct engine_held *engine_hold(struct engine_rx_ctx *ctx, struct engine_peer *peer,
				const struct packet *packet, const void *payload, size_t avail,
				struct wire_dest *dest)
{
	struct engine_held *held = engine_held_new(ctx, peer, packet);

	if (!held)
		return NULL;
	if (packet->op == PACKET_RTS && !(packet->flags & PACKET_TARGETS)) {
		memcpy(&held->rts, payload, sizeof(held->rts));
	} else if (avail == packet->len) {
		memcpy(held->bytes, payload, avail);
	} else {
		held->whole = false;
		list_add_tail(&peer->arriving, &held->arriving);
		dest->iov[0] = (struct iovec){ held->bytes, packet->len };
		dest->iov_cnt = 1;
		dest->cookie = (void *)((uintptr_t)held | ENGINE_COOKIE_HELD);
	}
	return held;
}

void engine_held_fill(struct engine_held *held, struct engine_rx *rx)
{
	struct engine_ep *ep = held->peer->ep;

	engine_recv_copy(rx, held->bytes, held->packet.len);
	if (held->counted)
		engine_credit_return(held->peer, held->packet.len);
	engine_held_free(ep, held);
	engine_recv_finish(ep->domain, rx);
}

void engine_held_receive(struct engine_held *held, struct engine_rx *rx)
{
	struct engine_peer *peer = held->peer;
	struct engine_ep *ep = peer->ep;

	if (rx->ctx != held->ctx)
		engine_recv_move(rx, held->ctx);
	rx->peer = peer;
	rx->tag = held->packet.tag;
	rx->data = held->packet.data;
	rx->len = engine_held_len(held);
	rx->flags |= held->packet.flags & PACKET_CQ_DATA;
	engine_recv_sender(rx, &held->packet);
	if (held->lost) {
		engine_held_free(ep, held);
		engine_recv_error(ep->domain, rx, -FI_ECONNRESET);
	} else if (held->packet.op == PACKET_RTS) {
		engine_rndv_receive(ep, peer, rx, &held->packet, &held->rts);
		engine_held_free(ep, held);
	} else if (held->whole) {
		engine_held_fill(held, rx);
	} else {
		held->state = HELD_MATCHED;
		held->rx = rx;
		list_add_tail(&peer->receiving, &rx->link);
		engine_rx_order(rx);
	}
}

void engine_held_drop(struct engine_ep *ep, struct engine_held *held)
{
	if (!held->whole) {
		held->state = HELD_MATCHED;
		held->rx = NULL;
		return;
	}
	if (held->packet.op == PACKET_RTS && !held->lost)
		engine_ctl(held->peer, PACKET_FIN, held->rts.id, 0, NULL);
	else if (held->packet.flags & PACKET_DELIVERY && !held->lost)
		engine_ctl(held->peer, PACKET_FIN, held->packet.seq, 0, NULL);
	if (held->packet.op == PACKET_EAGER && held->counted)
		engine_credit_return(held->peer, held->packet.len);
	engine_held_free(ep, held);
}
