/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The order of completions at connected endpoints, see in_order.h. Payload of several messages may be
 * under way on two sockets, and a small message may pass a large one that waits for its receiver:
 * they do not end in order by themselves.
 */
#include "in_order.h"
#include "recv.h"

static bool engine_keeps_order(const struct engine_peer *peer, uint32_t flags)
{
	return peer->ep->kind == ENGINE_EP_MSG && !(flags & (PACKET_TAGGED | PACKET_GROUP));
}

void engine_tx_order(struct engine_tx *tx)
{
	if (!engine_keeps_order(tx->peer, tx->flags))
		return;
	tx->flags |= ENGINE_ORDERED;
	list_add_tail(&tx->peer->tx_order, &tx->order);
}

static void engine_tx_unorder(struct engine_tx *tx)
{
	list_remove(&tx->order);
	tx->flags &= ~ENGINE_ORDERED;
}

/* Completes the sends whose turn has come. */
static void engine_tx_turns(struct engine_peer *peer,
			    void (*report)(struct engine_tx *tx, int status))
{
	while (!list_empty(&peer->tx_order)) {
		struct engine_tx *tx = container_of(peer->tx_order.next, struct engine_tx,
						    order);

		if (tx->state != TX_ENDED)
			return;
		engine_tx_unorder(tx);
		report(tx, 0);
	}
	if (peer->state == PEER_UP)
		peer->ready = engine_peer_ready(peer);
}

void engine_tx_in_turn(struct engine_tx *tx, int status,
		       void (*report)(struct engine_tx *tx, int status))
{
	struct engine_peer *peer = tx->peer;

	if (status) {
		engine_tx_unorder(tx);
		report(tx, status);
	} else {
		/* tx_size bounds what was not sent. */
		peer->ep->queued_cnt -= tx->state == TX_QUEUED;
		tx->state = TX_ENDED;
	}
	engine_tx_turns(peer, report);
}

void engine_rx_order(struct engine_rx *rx)
{
	struct engine_peer *peer = rx->peer;

	if (rx->landing || rx->flags & ENGINE_ORDERED || !engine_keeps_order(peer, rx->flags))
		return;
	rx->flags |= ENGINE_ORDERED;
	list_add_tail(&peer->rx_order, &rx->order);
	engine_rx_head_set(peer);
}

void engine_rx_unorder(struct engine_rx *rx)
{
	list_remove(&rx->order);
	rx->flags &= ~(ENGINE_ORDERED | ENGINE_FINISHED);
	engine_rx_head_set(rx->peer);
}

/* Completes the receives whose turn has come. */
static void engine_rx_turns(struct engine_domain *domain, struct engine_peer *peer)
{
	while (!list_empty(&peer->rx_order)) {
		struct engine_rx *rx = container_of(peer->rx_order.next, struct engine_rx,
						    order);

		if (!(rx->flags & ENGINE_FINISHED))
			return;
		engine_rx_unorder(rx);
		engine_recv_done(domain, rx);
	}
}

void engine_rx_in_turn(struct engine_domain *domain, struct engine_rx *rx)
{
	rx->flags |= ENGINE_FINISHED;
	engine_rx_turns(domain, rx->peer);
}

void engine_rx_out_of_turn(struct engine_domain *domain, struct engine_rx *rx, int err)
{
	struct engine_peer *peer = rx->peer;

	engine_rx_unorder(rx);
	engine_recv_error(domain, rx, err);
	engine_rx_turns(domain, peer);
}
