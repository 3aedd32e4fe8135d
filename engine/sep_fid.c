/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Scalable endpoints: one address, several contexts of each kind, which are made with the
 * endpoint and handed out one by one. Messages for a receive context that is not open wait in
 * it. Calls hold the domain.
 */
#include <rdma/fi_errno.h>
#include "cntr.h"
#include "ctx.h"
#include "fids.h"
#include "peer.h"
#include "progress.h"
#include "recv.h"

#define QUIET_NS 1000000000u /* for what is under way in a context that is closed, ns */

static struct engine_sep_ctx *sep_ctx_of(struct engine_ctx *ctx)
{
	return container_of(ctx->base, struct engine_sep_ctx, ctx);
}

bool engine_sep_busy(const struct engine_ep *ep)
{
	for (uint32_t i = 0; ep->sep_txs && i < ep->tx_cnt; i++)
		if (ep->sep_txs[i].of.open)
			return true;
	for (uint32_t i = 0; ep->sep_rxs && i < ep->rx_cnt; i++)
		if (ep->sep_rxs[i].of.open)
			return true;
	return false;
}

void engine_sep_free(struct engine_ep *ep)
{
	if (!ep->sep_rxs)
		return;
	for (uint32_t i = 0; i < ep->rx_cnt; i++)
		engine_rxq_fini(ep->domain, &ep->sep_rxs[i].rx.own);
	platform_free(ep->rxs);
	platform_free(ep->sep_rxs);
	platform_free(ep->sep_txs);
}

/* Closing a context */

/* A peer that still reads or writes memory that belongs to the context. */
static struct engine_peer *engine_sep_rx_peer(struct engine_ep *ep,
					      const struct engine_rx_ctx *rx)
{
	struct list *node, *after, *rnode, *rafter;

	list_for_each(node, after, &ep->all) {
		struct engine_peer *peer = container_of(node, struct engine_peer, all);

		list_for_each(rnode, rafter, &peer->receiving) {
			const struct engine_rx *under_way = container_of(
				rnode, struct engine_rx, link);

			if (under_way->ctx == rx && !under_way->landing)
				return peer;
		}
	}
	return NULL;
}

/* What was injected is a copy, but where results go is not. */
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

/* Wait for what is under way; what does not end in time ends with its connection. */
static void engine_sep_quiet(struct engine_ep *ep, const struct engine_tx_ctx *tx,
			     const struct engine_rx_ctx *rx)
{
	uint64_t end = platform_now_ns() + QUIET_NS;
	struct engine_peer *peer;

	while ((peer = tx ? engine_sep_tx_peer(ep, tx) : engine_sep_rx_peer(ep, rx))) {
		if (platform_now_ns() >= end)
			engine_peer_fail(peer, -FI_ECONNABORTED, false);
		engine_domain_progress(ep->domain);
		platform_yield();
	}
}

/* Nobody is told any more; what has not begun never does, but for what was injected. */
static void engine_sep_tx_discard(struct engine_ep *ep, const struct engine_tx_ctx *ctx)
{
	struct engine_tx *tx;
	uint32_t i = 0;

	while ((tx = pool_each(&ep->tx_pool, &i))) {
		if (tx->ctx != ctx)
			continue;
		tx->flags &= ~ENGINE_COMPLETE;
		if (tx->state != TX_QUEUED || tx->copy)
			continue;
		list_remove(&tx->link);
		engine_tx_end(tx, 0);
	}
}

static void engine_sep_claims_drop(struct engine_rxq *q)
{
	struct list *node;

	while ((node = list_pop(&q->claimed))) {
		struct engine_held *held = container_of(node, struct engine_held, link);

		engine_held_drop(held->peer->ep, held);
	}
}

static void engine_sep_tx_end(struct engine_ep *ep, struct engine_tx_ctx *tx)
{
	engine_tx_release(tx);
	engine_sep_tx_discard(ep, tx);
	engine_sep_quiet(ep, tx, NULL);
}

static void engine_sep_rx_end(struct engine_ep *ep, struct engine_rx_ctx *rx)
{
	engine_rxq_unpost(ep->domain, rx->q);
	engine_sep_claims_drop(rx->q);
	engine_sep_quiet(ep, NULL, rx);
	engine_rx_release(rx);
}

static int engine_sep_ctx_close(struct fid *fid)
{
	struct engine_ctx *ctx = engine_ctx_at(fid);
	struct engine_domain *domain = ctx->domain;
	bool busy;

	engine_enter(domain);
	busy = !list_empty(&ctx->aliases);
	if (!busy) {
		engine_ctx_close_tables(ctx);
		if (ctx->tx)
			engine_sep_tx_end(ctx->ep, ctx->tx);
		else
			engine_sep_rx_end(ctx->ep, ctx->rx);
		sep_ctx_of(ctx)->open = false;
	}
	engine_leave(domain);
	return busy ? -FI_EBUSY : 0;
}

/* Bind and enable */

static int engine_sep_ctx_bind(struct fid *fid, struct fid *target, uint64_t flags)
{
	struct engine_ctx *ctx = engine_ctx_at(fid);
	int ret = -FI_EINVAL;

	if (!target)
		return -FI_EINVAL;
	engine_enter(ctx->domain);
	if (ctx->enabled)
		ret = -FI_EOPBADSTATE;
	else if (target->fclass == FI_CLASS_CQ)
		ret = engine_ctx_bind_cq(ctx->domain, ctx->tx, ctx->rx, target, flags);
	else if (target->fclass == FI_CLASS_CNTR)
		ret = engine_cntr_bind(ctx->tx, ctx->rx, ctx->domain, target, flags);
	else if (target->fclass == FI_CLASS_EQ)
		ret = 0; /* no events of its own */
	else if (target->fclass == FI_CLASS_AV && ctx->ep->av)
		ret = &ctx->ep->av->fid.fid == target ? 0 : -FI_EINVAL; /* by the endpoint */
	engine_leave(ctx->domain);
	return ret;
}

static int engine_sep_ctx_enable(struct engine_ctx *ctx)
{
	if (ctx->enabled || ctx->ep->ctx.copied)
		return -FI_EOPBADSTATE;
	if (ctx->tx && ctx->tx_caps & FI_SEND && !ctx->tx->cq && !engine_tx_counted(ctx->tx))
		return -FI_ENOCQ;
	if (ctx->rx && ctx->rx_caps & FI_RECV && !ctx->rx->cq && !engine_rx_counted(ctx->rx))
		return -FI_ENOCQ;
	engine_ctx_enable(ctx);
	return 0;
}

static int engine_sep_ctx_control(struct fid *fid, int command, void *arg)
{
	struct engine_ctx *ctx = engine_ctx_at(fid);
	int ret;

	if (command != FI_ENABLE)
		return engine_ctx_control(fid, command, arg);
	engine_enter(ctx->domain);
	ret = engine_sep_ctx_enable(ctx);
	engine_leave(ctx->domain);
	return ret;
}

static struct fi_ops engine_sep_ctx_fi_ops = {
	.size = sizeof(struct fi_ops),
	.close = engine_sep_ctx_close,
	.bind = engine_sep_ctx_bind,
	.control = engine_sep_ctx_control,
	.ops_open = engine_no_ops_open,
	.tostr = engine_no_tostr,
	.ops_set = engine_no_ops_set,
};

/* Contexts */

/* Are these capabilities that a context of it may ask for? */
static bool engine_sep_offers(const struct engine_ep *ep, uint64_t caps)
{
	return !(caps & ~(ep->caps | ENGINE_SIDE_CAPS | FI_SEND | FI_RECV));
}

/* The caller holds the domain, and gives it its direction. 0 or -FI_EBUSY */
static int engine_sep_ctx_open(struct engine_sep_ctx *c, struct engine_ep *ep, size_t fclass,
			       void *context)
{
	if (c->open)
		return -FI_EBUSY;
	c->ctx = (struct engine_ctx){ .ep = ep };
	engine_ctx_init(&c->ctx, ep->domain, &c->ctx);
	c->ctx.options = ep->ctx.options;
	c->ctx.fid.fid.fclass = fclass;
	c->ctx.fid.fid.context = context;
	c->ctx.fid.fid.ops = &engine_sep_ctx_fi_ops;
	c->open = true;
	return 0;
}

static int engine_sep_tx_ctx(struct fid_ep *fid, int index, struct fi_tx_attr *attr,
			     struct fid_ep **out, void *context)
{
	struct engine_ep *ep = engine_ctx_of(fid)->ep;
	struct engine_sep_tx *t;
	int ret;

	if (index < 0 || (uint32_t)index >= ep->tx_cnt || !out)
		return -FI_EINVAL;
	if (engine_tx_attr_check(attr) || (attr && !engine_sep_offers(ep, attr->caps)))
		return -FI_EINVAL;
	t = &ep->sep_txs[index];
	engine_enter(ep->domain);
	ret = engine_sep_ctx_open(&t->of, ep, FI_CLASS_TX_CTX, context);
	if (!ret) {
		t->of.ctx.tx = &t->tx;
		t->of.ctx.tx_caps = engine_part_caps(attr ? attr->caps : 0, ep->ctx.tx_caps);
		t->of.ctx.tx_op_flags = attr ? attr->op_flags : ep->ctx.tx_op_flags;
		*out = &t->of.ctx.fid;
	}
	engine_leave(ep->domain);
	return ret;
}

static int engine_sep_rx_ctx(struct fid_ep *fid, int index, struct fi_rx_attr *attr,
			     struct fid_ep **out, void *context)
{
	struct engine_ep *ep = engine_ctx_of(fid)->ep;
	struct engine_sep_rx *r;
	int ret;

	if (index < 0 || (uint32_t)index >= ep->rx_cnt || !out)
		return -FI_EINVAL;
	if (engine_rx_attr_check(attr) || (attr && !engine_sep_offers(ep, attr->caps)))
		return -FI_EINVAL;
	r = &ep->sep_rxs[index];
	engine_enter(ep->domain);
	ret = engine_sep_ctx_open(&r->of, ep, FI_CLASS_RX_CTX, context);
	if (!ret) {
		r->of.ctx.rx = &r->rx;
		r->of.ctx.rx_caps = engine_part_caps(attr ? attr->caps : 0, ep->ctx.rx_caps);
		r->of.ctx.rx_op_flags = attr ? attr->op_flags : ep->ctx.rx_op_flags;
		r->of.ctx.directed_recv = r->of.ctx.rx_caps & FI_DIRECTED_RECV;
		*out = &r->of.ctx.fid;
	}
	engine_leave(ep->domain);
	return ret;
}

/* The endpoint */

static struct fi_ops_ep engine_sep_ops = {
	.size = sizeof(struct fi_ops_ep),
	.cancel = engine_ctx_cancel,
	.getopt = engine_ctx_getopt,
	.setopt = engine_ctx_setopt,
	.tx_ctx = engine_sep_tx_ctx,
	.rx_ctx = engine_sep_rx_ctx,
	.rx_size_left = engine_ctx_rx_left,
	.tx_size_left = engine_ctx_tx_left,
	.export_xpu = engine_no_export,
};

/* All contexts, with queues that messages can wait in. 0 or -FI_ENOMEM */
static int engine_sep_fill(struct engine_ep *ep)
{
	int ret;

	ep->sep_txs = platform_alloc(ep->tx_cnt * sizeof(*ep->sep_txs));
	ep->sep_rxs = platform_alloc(ep->rx_cnt * sizeof(*ep->sep_rxs));
	ep->rxs = platform_alloc(ep->rx_cnt * sizeof(struct engine_rx_ctx *));
	if (!ep->sep_txs || !ep->sep_rxs || !ep->rxs)
		return -FI_ENOMEM;
	for (uint32_t i = 0; i < ep->rx_cnt; i++) {
		struct engine_rx_ctx *rx = &ep->sep_rxs[i].rx;

		ep->rxs[i] = rx;
		rx->q = &rx->own;
		rx->ep = ep;
		rx->idx = i;
		rx->own.min_multi_recv = ENGINE_MIN_MULTI_RECV;
		ret = engine_rxq_init(&rx->own, false);
		if (ret)
			return ret;
	}
	ep->rx0 = ep->rxs[0];
	return 0;
}

static void engine_sep_undo(struct engine_ep *ep)
{
	/* What was not made is zero. */
	if (!ep->sep_txs || !ep->sep_rxs || !ep->rxs) {
		platform_free(ep->sep_txs);
		platform_free(ep->sep_rxs);
		platform_free(ep->rxs);
		ep->sep_txs = NULL;
		ep->sep_rxs = NULL;
		ep->rxs = NULL;
	}
	engine_ep_end(ep);
}

static bool engine_sep_cnt(size_t asked, uint32_t *cnt)
{
	*cnt = asked ? (uint32_t)asked : 1;
	return asked <= PACKET_RX_MAX;
}

int engine_sep_open(struct fid_domain *fid, struct fi_info *info, struct fid_ep **out,
		    void *context)
{
	struct engine_domain *domain = container_of(fid, struct engine_domain, fid);
	uint32_t tx_cnt = 1, rx_cnt = 1;
	struct engine_ep *ep;
	int ret;

	if (!info || !out)
		return -FI_EINVAL;
	if (info->ep_attr && (!engine_sep_cnt(info->ep_attr->tx_ctx_cnt, &tx_cnt) ||
			      !engine_sep_cnt(info->ep_attr->rx_ctx_cnt, &rx_cnt)))
		return -FI_EINVAL;
	ret = engine_ep_create(domain, info, FI_CLASS_SEP, context, &ep);
	if (ret)
		return ret;
	ep->tx_cnt = tx_cnt;
	ep->rx_cnt = rx_cnt;
	ret = engine_sep_fill(ep);
	if (ret) {
		engine_sep_undo(ep);
		return ret;
	}
	ep->ctx.fid.ops = &engine_sep_ops;
	*out = &ep->ctx.fid;
	return 0;
}
