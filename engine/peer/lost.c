/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Giving a peer up: its conns end, and its credit and control packets are reset for the next
 * incarnation. progress/ fails the operations under way (domain->ops->lost). Called with the domain
 * held.
 */
#include <rdma/fi_errno.h>
#include "lost.h"
#include "conns.h"
#include "endpoint.h"
#include "peer.h"

void engine_peer_lost(struct engine_peer *peer, int err, bool orderly)
{
	struct engine_ep *ep = peer->ep;
	struct list *node;

	while (!list_empty(&peer->conns))
		engine_conn_end(container_of(peer->conns.next, struct wire_conn, link));
	peer->state = PEER_IDLE;
	peer->incarnation = ++ep->incarnation;
	peer->ready = 0;
	peer->unreachable = 0;
	ep->budget += peer->window;
	peer->window = 0;
	peer->greeted = peer->dead = peer->wanted = false;
	list_remove(&peer->blocked);
	peer->nak_cnt = 0;
	while ((node = list_pop(&peer->ctl)))
		pool_put(&ep->ctl_pool, container_of(node, struct engine_ctl, link));
	if (ep->cm_ops) /* first: whatever begins from here on would be under way with nobody */
		engine_only_close(ep);
	ep->domain->ops->lost(peer, ep->cm_ops ? -FI_ECANCELED : err, orderly);
	if (ep->cm_ops)
		ep->cm_ops->lost(peer, err);
}
