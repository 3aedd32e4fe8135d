/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Liveness checks: find peers that have died, and free those that nothing refers to any more. Peers
 * with work pending are checked before others. Called with the domain held, from progress, about
 * once a millisecond.
 */
#include "liveness.h"
#include "conns.h"
#include "follow.h"
#include "peer.h"
#include "recv.h"

/* Peers that are examined per check that is due */
#define CHECKS_LOOK 128u
/* Peers without work pending that are checked, of those */
#define CHECKS_IDLE 16u
/* Most checks that are made up for after a sleep */
#define CHECKS_TIMES 50u

/*
 * Returns true if a posted receive names this peer. Receives of a shared queue name addresses, not
 * peers.
 */
static bool engine_peer_named_in(const struct engine_rxq *q, const struct engine_peer *peer)
{
	const struct engine_rx *rx;

	if (!q || q->shared)
		return false;
	for (rx = engine_rxq_next(q, NULL); rx; rx = engine_rxq_next(q, rx))
		if (rx->match.source == (uintptr_t)peer)
			return true;
	return false;
}

static bool engine_peer_expected(const struct engine_peer *peer)
{
	const struct engine_ep *ep = peer->ep;

	for (uint32_t i = 0; i <= ep->rx_cnt; i++)
		if (engine_peer_named_in(engine_rxq_at(ep, i), peer))
			return true;
	return false;
}

bool engine_conn_busy(const struct wire_conn *conn)
{
	return engine_work_pending(conn->peer);
}

bool engine_conn_awaited(const struct wire_conn *conn)
{
	return engine_peer_expected(conn->peer);
}

/* Returns true if nothing refers to this peer, and nothing that it sent is held. */
static bool engine_peer_gone(struct engine_peer *peer)
{
	if (peer->slots || peer->state != PEER_IDLE || peer->held_cnt ||
	    !list_empty(&peer->conns) || !list_empty(&peer->blocked))
		return false;
	return !engine_peer_expected(peer);
}

/* Check the conns of a peer that are up, until one has failed. */
static void engine_peer_check(struct engine_peer *peer)
{
	struct wire_conn *conn;

	list_for_each_entry(conn, &peer->conns, link) {
		const struct wire_ops *ops = conn->wire->ops;
		int err = conn->joined && ops->check ? ops->check(conn) : 0;

		if (err) {
			engine_conn_failed(conn, err);
			return;
		}
	}
}

/* A pass over all peers has ended: begin the next one. */
static void engine_checks_lap(struct engine_ep *ep)
{
	ep->checks += !ep->checks_skipped;
	ep->checks_skipped = false;
	ep->checks_left = ep->peer_cnt[0] + ep->peer_cnt[1];
}

/*
 * Returns true if a peer without work pending is to be checked now. Each such peer is checked once
 * before any of them is checked again.
 * @idle: in, out: number of such peers that may still be checked in this call
 */
static bool engine_check_turn(struct engine_peer *peer, uint32_t *idle)
{
	struct engine_ep *ep = peer->ep;

	if (peer->checked == ep->checks)
		return false;
	if (!*idle) {
		ep->checks_skipped = true;
		return false;
	}
	--*idle;
	peer->checked = ep->checks;
	return true;
}

void engine_peers_check(struct engine_ep *ep, uint64_t rounds)
{
	uint32_t times = rounds < CHECKS_TIMES ? (uint32_t)rounds : CHECKS_TIMES;
	uint32_t looks = times * CHECKS_LOOK, idle = times * CHECKS_IDLE;
	struct list *node = NULL, *last = ep->all.prev;

	if (ep->av)
		engine_av_follow(ep->av);
	while (looks-- && node != last && !list_empty(&ep->all)) {
		struct engine_peer *peer;

		if (!ep->checks_left)
			engine_checks_lap(ep);
		ep->checks_left--;
		/* The peer goes to the end of the list: the next call begins with others. */
		node = list_pop(&ep->all);
		list_add_tail(&ep->all, node);
		peer = container_of(node, struct engine_peer, all);
		if (!engine_work_pending(peer) && !engine_check_turn(peer, &idle))
			continue;
		if (engine_peer_gone(peer))
			engine_peer_free(peer);
		else
			engine_peer_check(peer);
	}
}
