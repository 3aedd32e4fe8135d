/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The loss of a peer: all operations under way with it complete with an error. Called with the
 * domain held, by engine_peer_lost() once the conns of the peer have ended.
 */
#include "fail.h"
#include "access.h"
#include "quiet.h"
#include "recv.h"
#include "reorder.h"

/* End all sends and one-sided operations of the list @sends with the error @err. */
static void engine_fail_sends(struct list *sends, int err)
{
	struct list *node;

	while ((node = list_pop(sends)))
		engine_tx_end(container_of(node, struct engine_tx, link), err);
}

/* Detach a held message from its sender, if that is @peer. Whole messages can still be received. */
static void engine_lose(struct engine_peer *peer, struct engine_held *held)
{
	if (held->peer != peer)
		return;
	/* The next connection begins with a full window: this payload uses none of it. */
	held->counted = false;
	/* The sender has failed the operation, and no longer waits for PACKET_FIN. */
	held->packet.flags &= (uint8_t)~PACKET_DELIVERY;
	if (held->packet.op == PACKET_RTS)
		held->lost = true;
}

static void engine_lose_stored(struct engine_peer *peer, struct match *m)
{
	struct match_msg *msg = NULL;

	while ((msg = match_next_msg(m, msg)))
		engine_lose(peer, container_of(msg, struct engine_held, match));
}

/*
 * Drop the messages and requests of the peer that wait for packets before them, and those that are
 * matched while payload is missing. The others whose payload will not arrive are marked as lost.
 */
static void engine_fail_held(struct engine_peer *peer)
{
	struct engine_ep *ep = peer->ep;
	struct engine_held *held;
	struct list *node;

	engine_reorder_drop(peer);
	while ((node = list_pop(&peer->arriving))) {
		held = container_of(node, struct engine_held, arriving);
		if (held->state == HELD_MATCHED) {
			engine_held_free(ep, held);
		} else {
			held->whole = true;
			held->lost = true;
		}
	}
	for (uint32_t i = 0; i <= ep->rx_cnt; i++) {
		struct engine_rxq *q = engine_rxq_at(ep, i);

		if (!q)
			continue;
		engine_lose_stored(peer, q->tagged);
		engine_lose_stored(peer, q->msg);
		list_for_each_entry(held, &q->claimed, link)
			engine_lose(peer, held);
	}
}

/* Fail the posted receives that name this peer as their source, in the order of posting. */
static void engine_fail_directed(struct engine_peer *peer, struct engine_rxq *q, int err)
{
	uint64_t source = engine_source_id(q, peer);
	struct engine_rx *rx, *after;
	struct list *node, failed;

	/* The end of a receive of a group may end others: all are moved to a local list first. */
	list_init(&failed);
	for (rx = engine_rxq_next(q, NULL); rx; rx = after) {
		after = engine_rxq_next(q, rx);
		if (rx->match.source != source)
			continue;
		match_unpost(engine_matcher(q, rx->flags), &rx->match);
		list_add_tail(&failed, &rx->link);
	}
	while ((node = list_pop(&failed))) {
		rx = container_of(node, struct engine_rx, link);
		rx->peer = peer;
		if (!rx->ctx->ep && !(rx->flags & ENGINE_MULTI))
			rx->ctx = peer->ep->rx0; /* shared: this endpoint reports the end */
		engine_recv_error(peer->ep->domain, rx, err);
	}
}

void engine_peer_fail(struct engine_peer *peer, int err, bool orderly)
{
	struct engine_ep *ep = peer->ep;
	struct list *node;

	engine_fail_held(peer);
	engine_replies_drop(peer);
	list_remove(&peer->ack_link);
	peer->ack_due = ACK_NONE;
	list_init(&peer->filling);
	peer->leaving_cnt = 0;
	engine_quiet_lost(peer, err);
	engine_fail_sends(&peer->unacked, err);
	engine_fail_sends(&peer->started, err);
	engine_fail_sends(&peer->pushing, err);
	engine_fail_sends(&peer->queued, err);
	while ((node = list_pop(&peer->receiving)))
		engine_recv_error(ep->domain, container_of(node, struct engine_rx, link), err);
	for (uint32_t i = 0; i <= ep->rx_cnt; i++) {
		struct engine_rxq *q = engine_rxq_at(ep, i);

		/* Receives of a group fail even then: a member that has closed does not return. */
		if (!q || (orderly && i < ep->rx_cnt))
			continue;
		engine_fail_directed(peer, q, err);
	}
	if (ep->group_rx)
		ep->group_ops->peer_lost(peer, !orderly);
}
