/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The end of an endpoint: queued sends leave, and what it holds is released. Called with the
 * domain held, except for the slot of fi_close, which takes it.
 */
#include <rdma/fi_errno.h>
#include "access.h"
#include "cm.h"
#include "cntr.h"
#include "coll.h"
#include "ctx.h"
#include "ep_fid.h"
#include "ep_wires.h"
#include "eq_fid.h"
#include "events.h"
#include "forked.h"
#include "guard.h"
#include "mr_fid.h"
#include "peer.h"
#include "progress.h"
#include "recv.h"
#include "refs.h"
#include "refuse.h"
#include "reorder.h"
#include "routes.h"
#include "sep_fid.h"
#include "srx_fid.h"
#include "waiting.h"

#define DRAIN_NS 1000000000u /* time that close waits for queued sends to leave, ns */

/* Returns true if a send whose success was reported has not been passed to a wire. */
static bool engine_unsent(struct engine_ep *ep)
{
	struct engine_peer *peer;
	struct engine_tx *tx;

	list_for_each_entry(peer, &ep->blocked, blocked) {
		if (!list_empty(&peer->ctl))
			return true;
		list_for_each_entry(tx, &peer->queued, link)
			if (tx->flags & ENGINE_INJECT)
				return true;
	}
	return false;
}

/* Returns true while peers read memory that was lent to them. */
static bool engine_lent(const struct engine_ep *ep)
{
	for (uint32_t i = 0; i < ep->wire_cnt; i++) {
		const struct engine_wire *w = &ep->wires[i];

		if (w->wire && w->ops->lent && w->ops->lent(w->wire))
			return true;
	}
	return false;
}

void engine_ep_drain(struct engine_ep *ep)
{
	uint64_t end = platform_now_ns() + DRAIN_NS;

	engine_acks_hurry(ep); /* or peers would take operations that were carried out for lost */
	while ((engine_unsent(ep) || engine_lent(ep)) && platform_now_ns() < end) {
		engine_domain_progress(ep->domain); /* of the peer too, if it is in this domain */
		platform_yield();
	}
}

static void engine_ep_free_held(struct engine_ep *ep)
{
	struct engine_peer *peer;

	list_for_each_entry(peer, &ep->all, all)
		engine_reorder_drop(peer);
	for (uint32_t i = 0; i <= ep->rx_cnt; i++)
		if (engine_rxq_at(ep, i))
			engine_rxq_drop(ep, engine_rxq_at(ep, i));
	/* The remaining messages have a receive, and their payload still arrives. */
	list_for_each_entry(peer, &ep->all, all) {
		while (!list_empty(&peer->arriving))
			engine_held_free(ep, container_of(peer->arriving.next,
							  struct engine_held, arriving));
	}
}

void engine_ep_free(struct engine_ep *ep)
{
	struct engine_tx *tx;
	uint32_t i = 0;

	while ((tx = pool_each(&ep->tx_pool, &i))) {
		platform_free(tx->copy);
		if (tx->flags & ENGINE_DEFERRED)
			engine_cntr_release(tx->work_cntr);
	}
	while (!list_empty(&ep->all)) {
		struct engine_peer *peer = container_of(ep->all.next, struct engine_peer, all);
		struct list *node;

		while ((node = list_pop(&peer->receiving)))
			engine_rx_drop(ep->domain, container_of(node, struct engine_rx, link));
		while (!list_empty(&peer->rx_order)) /* whole, but not in turn */
			engine_rx_drop(ep->domain, container_of(peer->rx_order.next,
								struct engine_rx, order));
		engine_replies_drop(peer);
		engine_peer_free(peer);
	}
	engine_coll_free(ep);
	engine_cm_free(ep);
	engine_rxq_fini(ep->domain, &ep->rx.own);
	engine_sep_free(ep);
	pool_fini(&ep->tx_pool);
	pool_fini(&ep->reply_pool);
	pool_fini(&ep->landing_pool);
	pool_fini(&ep->ctl_pool);
	pool_fini(&ep->held_pool);
	platform_free(ep->peers);
	platform_free(ep);
}

void engine_ep_report(struct engine_ep *ep)
{
	struct weft_route routes[ENGINE_WIRE_MAX];
	size_t cnt = ENGINE_WIRE_MAX;

	if (ep->family->closing && !engine_routes(ep, routes, &cnt))
		ep->family->closing(ep->family->provider, routes, cnt);
}

void engine_ep_end(struct engine_ep *ep)
{
	struct engine_domain *domain = ep->domain;
	struct engine_srx *srx = ep->srx;

	if (ep->enabled) {
		engine_ep_drain(ep);
		if (ep->wire_cnt)
			engine_ep_report(ep);
		engine_ctx_close_tables(&ep->ctx);
		engine_bells_part(ep);
	}
	engine_domain_unlink(ep);
	/* The wires first: payload arrives in the buffers of held messages. */
	engine_wires_close(ep);
	if (ep->enabled)
		engine_ep_free_held(ep);
	platform_copy_unwatch(&ep->ctx.copy);
	if (ep->av)
		list_remove(&ep->av_link);
	engine_shared_unbind(ep);
	engine_tx_release(&ep->tx);
	engine_rx_release(&ep->rx);
	engine_ep_free(ep);
	if (srx)
		engine_srx_left(srx);
	engine_unref(&domain->refs);
}

int engine_ep_close(struct fid *fid)
{
	struct engine_ctx *ctx = engine_ctx_at(fid);
	struct engine_domain *domain = ctx->domain;
	struct engine_eq *eq = ctx->ep->eq;
	int ret = engine_left(domain, FI_LOG_EP_CTRL, "fi_close of an endpoint");
	bool busy;

	if (ret)
		return ret;
	engine_enter(domain);
	busy = !list_empty(&ctx->aliases) || engine_sep_busy(ctx->ep) ||
	       engine_mr_bound(domain, ctx->ep) || engine_coll_busy(ctx->ep);
	if (!busy && eq)
		engine_ref(&domain->refs); /* until engine_eq_drop() */
	if (!busy) {
		engine_cm_report_to(ctx->ep, NULL);
		engine_ep_end(ctx->ep);
	}
	engine_leave(domain);
	if (!busy && eq) {
		engine_eq_drop(eq, domain);
		engine_unref(&domain->refs);
	}
	return busy ? engine_refuse(
			      domain->family, FI_LOG_EP_CTRL, -FI_EBUSY,
			      "fi_close of an endpoint",
			      "it has aliases, contexts, collective groups or memory regions "
			      "that are bound to it; close those first")
		    : 0;
}
