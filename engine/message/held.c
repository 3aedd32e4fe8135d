/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Messages that are held: they have no receive yet, or came before their turn. With them the
 * queues in which receives and messages meet. The caller holds the domain.
 */
#include "peer.h"
#include "recv.h"
#include "send.h"

int engine_rxq_init(struct engine_rxq *q, bool shared)
{
	q->tagged = match_create();
	q->msg = match_create();
	if (!q->tagged || !q->msg) {
		match_destroy(q->tagged);
		match_destroy(q->msg);
		q->tagged = q->msg = NULL;
		return -FI_ENOMEM;
	}
	list_init(&q->posted);
	list_init(&q->claimed);
	q->shared = shared;
	return 0;
}

void engine_rxq_unpost(struct engine_domain *domain, struct engine_rxq *q)
{
	struct list *node;

	while ((node = list_pop(&q->posted))) {
		struct engine_rx *rx = container_of(node, struct engine_rx, link);

		match_cancel(engine_matcher(q, rx->flags), &rx->match);
		if (rx->flags & ENGINE_MULTI && rx->parts_cnt)
			rx->spent = true; /* goes with the last message in it */
		else
			engine_rx_free(domain, rx);
	}
}

void engine_rxq_fini(struct engine_domain *domain, struct engine_rxq *q)
{
	struct list *node;

	if (!q->tagged)
		return;
	while ((node = list_pop(&q->posted)))
		engine_rx_free(domain, container_of(node, struct engine_rx, link));
	match_destroy(q->tagged);
	match_destroy(q->msg);
	q->tagged = q->msg = NULL;
}

static void engine_matcher_drop(struct engine_ep *ep, struct match *m)
{
	struct match_msg *msg, *after;

	for (msg = match_next_msg(m, NULL); msg; msg = after) {
		struct engine_held *held = container_of(msg, struct engine_held, match);

		after = match_next_msg(m, msg);
		if (held->peer->ep != ep)
			continue;
		match_take(m, msg);
		engine_held_free(ep, held);
	}
}

void engine_rxq_drop(struct engine_ep *ep, struct engine_rxq *q)
{
	struct list *node, *after;

	if (!q->tagged)
		return;
	engine_matcher_drop(ep, q->tagged);
	engine_matcher_drop(ep, q->msg);
	list_for_each(node, after, &q->claimed) {
		struct engine_held *held = container_of(node, struct engine_held, link);

		if (held->peer->ep != ep)
			continue;
		list_remove(&held->link);
		engine_held_free(ep, held);
	}
}

static struct engine_held *engine_held_new(struct engine_rx_ctx *ctx, struct engine_peer *peer,
					   const struct packet *packet)
{
	struct engine_ep *ep = peer->ep;
	struct engine_held *held;
	bool pooled = packet->len <= ENGINE_HELD_SMALL;

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
	list_init(&held->link);
	list_init(&held->arriving);
	return held;
}

void engine_held_free(struct engine_ep *ep, struct engine_held *held)
{
	list_remove(&held->arriving);
	held->peer->held_cnt--;
	if (held->pooled)
		pool_put(&ep->held_pool, held);
	else
		platform_free(held);
}

/*
 * Delivery of a message is told once it is whole and in its place, whether or not there is a receive.
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

	if (held->packet.flags & PACKET_COLL && engine_coll_stray(held->peer, &held->packet)) {
		engine_held_drop(held->peer->ep, held);
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
		list_push(&peer->arriving, &held->arriving);
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
		engine_owe(held->peer, held->packet.len);
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
		list_push(&peer->receiving, &rx->link);
	}
}

/* The receive that waits for a message of that source, taken out; or NULL. */
static struct engine_rx *engine_held_met(struct engine_rxq *q, struct match *m,
					 const struct engine_held *held)
{
	struct match_recv *recv = match_arrive(m, held->match.source, held->packet.tag);

	return recv ? engine_recv_met(held->peer->ep->domain, q, recv, engine_held_len(held))
		    : NULL;
}

/* A message that is stored has a source that receives may name. */
static void engine_held_renamed(struct engine_rxq *q, struct match *m, struct engine_held *held)
{
	struct engine_rx *rx;

	match_rename(m, &held->match, engine_source_id(q, held->peer));
	rx = engine_held_met(q, m, held);
	if (!rx)
		return;
	match_take(m, &held->match);
	engine_held_receive(held, rx);
}

void engine_rxq_hand(struct engine_rxq *from, struct engine_rxq *to)
{
	struct match *out[] = { from->tagged, from->msg }, *in[] = { to->tagged, to->msg };
	struct match_msg *msg;
	struct engine_rx *rx;

	for (int i = 0; i < 2; i++) {
		while ((msg = match_next_msg(out[i], NULL))) {
			struct engine_held *held = container_of(msg, struct engine_held, match);

			match_take(out[i], msg);
			msg->source = engine_source_id(to, held->peer);
			rx = engine_held_met(to, in[i], held);
			if (rx)
				engine_held_receive(held, rx);
			else
				match_store(in[i], msg);
		}
	}
}

void engine_rxq_rename(struct engine_rxq *q, struct engine_peer *peer)
{
	struct match *matchers[] = { q->tagged, q->msg };
	struct match_msg *msg, *after;

	for (int i = 0; i < 2; i++) {
		for (msg = match_next_msg(matchers[i], NULL); msg; msg = after) {
			struct engine_held *held = container_of(msg, struct engine_held, match);

			after = match_next_msg(matchers[i], msg);
			if (held->peer == peer)
				engine_held_renamed(q, matchers[i], held);
		}
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
		engine_owe(held->peer, held->packet.len);
	engine_held_free(ep, held);
}
