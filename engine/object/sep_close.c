/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What a context of a scalable endpoint has under way ends before it is closed. Calls hold the domain.
 */
#include "conns.h"
#include "ctx.h"
#include "peer.h"
#include "progress.h"
#include "recv.h"
#include "sep_fid.h"
#include "tx.h"

#define QUIET_NS 1000000000u /* time that close of a context waits for operations, ns */

/* Returns a peer that still reads or writes memory that belongs to the context, or NULL. */
static struct engine_peer *engine_sep_rx_peer(struct engine_ep *ep,
					      const struct engine_rx_ctx *rx)
{
	struct engine_peer *peer;
	const struct engine_rx *under_way;

	list_for_each_entry(peer, &ep->all, all) {
		list_for_each_entry(under_way, &peer->receiving, link) {
			if (under_way->ctx == rx && !under_way->landing)
				return peer;
		}
	}
	return NULL;
}

/* Returns true if the operation uses buffers of the program: an injected one only for results. */
static bool engine_sep_tx_uses(const struct engine_tx *tx)
{
	return (tx->kind == PACKET_ATOMIC && tx->update.result_cnt) || (!tx->copy && tx->len);
}

static struct engine_peer *engine_sep_tx_peer(struct engine_ep *ep,
					      const struct engine_tx_ctx *tx)
{
	struct engine_tx *under_way;
	uint32_t i = 0;

	while ((under_way = pool_each(&ep->tx_pool, &i)))
		if (under_way->ctx == tx && engine_sep_tx_uses(under_way))
			return under_way->peer;
	return NULL;
}

/* Waits for operations under way; those that do not end in time are ended with their conn. */
static void engine_sep_quiet(struct engine_ep *ep, const struct engine_tx_ctx *tx,
			     const struct engine_rx_ctx *rx)
{
	uint64_t end = platform_now_ns() + QUIET_NS;
	struct engine_peer *peer;

	while ((peer = tx ? engine_sep_tx_peer(ep, tx) : engine_sep_rx_peer(ep, rx))) {
		if (platform_now_ns() >= end)
			engine_conn_broken(peer, -FI_ECONNABORTED);
		engine_domain_progress(ep->domain);
		platform_yield();
	}
}

/* No operation is reported any more. Those that have not begun are dropped, except injected ones. */
static void engine_sep_tx_discard(struct engine_ep *ep, const struct engine_tx_ctx *ctx)
{
	struct engine_tx *tx;
	uint32_t i = 0;

	while ((tx = pool_each(&ep->tx_pool, &i))) {
		if (tx->ctx != ctx)
			continue;
		tx->flags &= ~ENGINE_COMPLETE;
		if (tx->state != TX_QUEUED || tx->flags & ENGINE_INJECT)
			continue;
		list_remove(&tx->link);
		/* Work that is dropped is not done: what waits for its counter does not begin. */
		if (tx->flags & ENGINE_DEFERRED) {
			engine_cntr_release(tx->work_cntr);
			tx->work_cntr = NULL;
		}
		engine_tx_end(tx, 0);
	}
}

/*
 * What is left of the closed context is without buffers of the program. It ends in the endpoint's
 * own context, which has no queue and no counters: those of a context that is opened in this place
 * are not for it.
 */
static void engine_sep_tx_detach(struct engine_ep *ep, const struct engine_tx_ctx *ctx)
{
	struct engine_peer *peer;
	struct engine_tx *tx;
	uint32_t i = 0;

	while ((tx = pool_each(&ep->tx_pool, &i)))
		if (tx->ctx == ctx)
			tx->ctx = &ep->tx;
	list_for_each_entry(peer, &ep->all, all)
		if (peer->quiet_ctx == ctx)
			peer->quiet_ctx = &ep->tx;
}

static void engine_sep_claims_drop(struct engine_rxq *q)
{
	struct list *node;

	while ((node = list_pop(&q->claimed))) {
		struct engine_held *held = container_of(node, struct engine_held, link);

		engine_held_drop(held->peer->ep, held);
	}
}

void engine_sep_tx_end(struct engine_ep *ep, struct engine_tx_ctx *tx)
{
	engine_tx_release(tx);
	engine_sep_tx_discard(ep, tx);
	engine_sep_quiet(ep, tx, NULL);
	engine_sep_tx_detach(ep, tx);
}

void engine_sep_rx_end(struct engine_ep *ep, struct engine_rx_ctx *rx)
{
	engine_rxq_unpost(ep->domain, rx->q);
	engine_sep_claims_drop(rx->q);
	engine_sep_quiet(ep, NULL, rx);
	engine_rx_release(rx);
	rx->own.min_multi_recv = ep->min_multi_recv;
}
