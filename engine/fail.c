/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The end of a peer's connections: everything that was under way with it completes with an
 * error and its source. Called with the domain held.
 */
#include "peer.h"
#include "recv.h"

static void engine_fail_sends(struct list *sends, int err)
{
	struct list *node;

	while ((node = list_pop(sends)))
		engine_tx_end(container_of(node, struct engine_tx, link), err);
}

static void engine_lose(struct engine_peer *peer, struct engine_held *held)
{
	if (held->peer != peer)
		return;
	/* The next connection begins with a whole window, whatever of the last one is still here. */
	held->counted = false;
	if (held->packet.op == PACKET_RTS)
		held->lost = true;
}

static void engine_lose_stored(struct engine_peer *peer, struct match *m)
{
	struct match_msg *msg = NULL;

	while ((msg = match_next_msg(m, msg)))
		engine_lose(peer, container_of(msg, struct engine_held, match));
}

/* Messages of a peer whose payload will not come. */
static void engine_fail_held(struct engine_peer *peer)
{
	struct engine_ep *ep = peer->ep;
	struct engine_held *held;
	struct list *node, *after;

	while ((node = list_pop(&peer->early))) {
		engine_held_free(ep, container_of(node, struct engine_held, link));
	}
	peer->early_cnt = 0;
	while ((node = list_pop(&peer->arriving))) {
		held = container_of(node, struct engine_held, arriving);
		if (held->state == HELD_MATCHED) {
			engine_held_free(ep, held);
		} else {
			held->whole = true;
			held->lost = true;
		}
	}
	engine_lose_stored(peer, ep->tagged);
	engine_lose_stored(peer, ep->msg);
	list_for_each(node, after, &ep->claimed)
		engine_lose(peer, container_of(node, struct engine_held, link));
}

static void engine_fail_directed(struct engine_peer *peer, struct match *m, int err)
{
	struct match_recv *recv;
	struct engine_rx *rx;

	while ((recv = match_recv_from(m, (uintptr_t)peer))) {
		match_cancel(m, recv);
		rx = container_of(recv, struct engine_rx, match);
		list_remove(&rx->link);
		rx->peer = peer;
		engine_recv_error(peer->ep, rx, err);
	}
}

void engine_peer_fail(struct engine_peer *peer, int err, bool keep_directed)
{
	struct engine_ep *ep = peer->ep;
	struct list *node;

	for (uint32_t i = 0; i < ep->wire_cnt; i++)
		if (peer->conns[i])
			engine_conn_end(peer, i);
	peer->state = PEER_IDLE;
	peer->life = ++ep->life;
	peer->ready = 0;
	peer->unreachable = 0;
	ep->budget += peer->window;
	peer->window = 0;
	peer->greeted = peer->gone = false;
	list_remove(&peer->blocked);
	while ((node = list_pop(&peer->ctl)))
		pool_put(&ep->ctl_pool, container_of(node, struct engine_ctl, link));
	engine_fail_held(peer);
	engine_fail_sends(&peer->started, err);
	engine_fail_sends(&peer->pushing, err);
	engine_fail_sends(&peer->queued, err);
	while ((node = list_pop(&peer->receiving)))
		engine_recv_error(ep, container_of(node, struct engine_rx, link), err);
	if (!keep_directed) {
		engine_fail_directed(peer, ep->tagged, err);
		engine_fail_directed(peer, ep->msg, err);
	}
}
