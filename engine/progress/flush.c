/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Sending what is queued for a peer: first control packets, then replies to its reads, then payload
 * that it asked for, and then new messages and requests in the order of the calls. Called with the
 * domain held, from sends and from progress.
 */
#include "flush.h"
#include "access.h"
#include "conns.h"
#include "control.h"
#include "in_order.h"
#include "recv.h"
#include "send.h"

/* Start a queued message or one-sided operation. Returns 0 or -FI_EAGAIN. */
static int engine_start(struct engine_peer *peer, struct engine_tx *tx)
{
	return tx->kind == PACKET_EAGER ? engine_tx_start(peer, tx)
					: engine_access_start(peer, tx);
}

void engine_peer_flush(struct engine_peer *peer)
{
	bool replied, empty;

	if (peer->state != PEER_UP || !engine_flush_ctl(peer))
		return;
	replied = engine_replies_push(peer);
	while (!list_empty(&peer->pushing))
		if (!engine_rndv_push(container_of(peer->pushing.next, struct engine_tx, link)))
			break;
	while (!list_empty(&peer->queued))
		if (engine_start(peer, container_of(peer->queued.next, struct engine_tx, link)))
			break;
	empty = list_empty(&peer->queued);
	peer->ready = engine_peer_ready(peer);
	if (empty && replied && list_empty(&peer->pushing))
		list_remove(&peer->blocked);
}

/* Nothing is left to send to a peer that is not connected: stop the attempts to connect. */
static void engine_peer_rest(struct engine_peer *peer)
{
	list_remove(&peer->blocked);
	if (list_empty(&peer->conns))
		peer->state = PEER_IDLE;
}

void engine_peers_service(struct engine_ep *ep)
{
	struct list turn, *node;

	/* Flushing may add any peer to ep->blocked or remove it: they are moved to a local list. */
	list_init(&turn);
	while ((node = list_pop(&ep->blocked)))
		list_add_tail(&turn, node);
	while ((node = list_pop(&turn))) {
		struct engine_peer *peer = container_of(node, struct engine_peer, blocked);

		list_add_tail(&ep->blocked, &peer->blocked);
		if (peer->state == PEER_UP)
			engine_peer_flush(peer);
		else if (engine_work_pending(peer))
			engine_peer_connect(peer);
		else if (!peer->up_cnt)
			engine_peer_rest(peer);
	}
}
