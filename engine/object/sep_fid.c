/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Scalable endpoints: one address with several contexts of each kind, which are allocated with the
 * endpoint and opened one by one. Messages for a receive context that is not open wait in it.
 * Calls hold the domain.
 */
#include <rdma/fi_errno.h>
#include "cntr.h"
#include "cntr_fid.h"
#include "conns.h"
#include "ctx.h"
#include "ep_fid.h"
#include "forked.h"
#include "guard.h"
#include "no_call.h"
#include "peer.h"
#include "progress.h"
#include "recv.h"
#include "refuse.h"
#include "sep_fid.h"

static struct engine_sep_ctx *sep_ctx_of(struct engine_ctx *ctx)
{
	return container_of(ctx->base, struct engine_sep_ctx, ctx);
}

/* Returns the context with index @i, transmit contexts first; NULL behind the last. */
static struct engine_sep_ctx *engine_sep_ctx_nth(const struct engine_ep *ep, uint32_t i)
{
	if (!ep->sep_txs || !ep->sep_rxs)
		return NULL;
	if (i < ep->tx_cnt)
		return &ep->sep_txs[i].of;
	i -= ep->tx_cnt;
	return i < ep->rx_cnt ? &ep->sep_rxs[i].of : NULL;
}

bool engine_sep_busy(const struct engine_ep *ep)
{
	const struct engine_sep_ctx *c;

	for (uint32_t i = 0; (c = engine_sep_ctx_nth(ep, i)); i++)
		if (c->open)
			return true;
	return false;
}

bool engine_sep_awaits(const struct engine_ep *ep)
{
	const struct engine_sep_ctx *c;

	if (ep->enabled || !ep->av)
		return false;
	for (uint32_t i = 0; (c = engine_sep_ctx_nth(ep, i)); i++)
		if (c->open && c->ctx.enabled)
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

static int engine_sep_ctx_close(struct fid *fid)
{
	struct engine_ctx *ctx = engine_ctx_at(fid);
	struct engine_domain *domain = ctx->domain;
	int ret = engine_left(domain, FI_LOG_EP_CTRL, "fi_close of a context");
	bool busy;

	if (ret)
		return ret;
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
	return busy ? engine_refuse(domain->family, FI_LOG_EP_CTRL, -FI_EBUSY,
				    "fi_close of a context", "it has aliases; close those first")
		    : 0;
}

/* Bind and enable */

#define CTX_BIND "fi_ep_bind of a context"

/* Binds to the directions given; with neither it only checks @target and @flags. */
static int engine_sep_take(struct engine_domain *domain, struct engine_tx_ctx *tx,
			   struct engine_rx_ctx *rx, struct fid *target, uint64_t flags)
{
	return target->fclass == FI_CLASS_CQ ? engine_ctx_bind_cq(domain, tx, rx, target, flags)
					     : engine_cntr_bind(tx, rx, domain, target, flags);
}

static int engine_sep_ctx_take(struct engine_ctx *ctx, struct fid *target, uint64_t flags)
{
	int ret = engine_sep_take(ctx->domain, ctx->tx, ctx->rx, target, flags);

	if (!ret)
		engine_ctx_bound(ctx);
	return ret;
}

static int engine_sep_ctx_bind_held(struct engine_ctx *ctx, struct fid *target, uint64_t flags)
{
	const struct engine_family *family = ctx->domain->family;

	if (ctx->copied)
		return engine_refuse(family, FI_LOG_EP_CTRL, -FI_EOPBADSTATE, CTX_BIND,
				     "the context is that of the process that forked");
	switch (target->fclass) {
	case FI_CLASS_CQ:
	case FI_CLASS_CNTR:
		return engine_sep_ctx_take(ctx, target, flags);
	case FI_CLASS_EQ: /* contexts have no events */
	case FI_CLASS_MR: /* regions are bound to the endpoint or belong to the domain */
		return 0;
	case FI_CLASS_AV:
		if (ctx->ep->av && &ctx->ep->av->fid.fid == target)
			return 0;
		return engine_refuse(family, FI_LOG_EP_CTRL, -FI_EINVAL, CTX_BIND,
				     "address vectors are bound to the scalable endpoint");
	default:
		return engine_refuse_value(family, FI_LOG_EP_CTRL, -FI_EINVAL, CTX_BIND,
					   "no object of that class is bound to a context",
					   target->fclass);
	}
}

static int engine_sep_ctx_bind(struct fid *fid, struct fid *target, uint64_t flags)
{
	struct engine_ctx *ctx = engine_ctx_at(fid);
	int ret;

	if (!target)
		return engine_refuse(ctx->domain->family, FI_LOG_EP_CTRL, -FI_EINVAL, CTX_BIND,
				     "NULL");
	engine_enter(ctx->domain);
	ret = engine_sep_ctx_bind_held(ctx, target, flags);
	engine_leave(ctx->domain);
	return ret;
}

int engine_sep_bind(struct engine_ep *ep, struct fid *target, uint64_t flags)
{
	struct engine_sep_ctx *c;
	/*
	 * Checked once for all contexts, open or not: either every context accepts it, or none
	 * gets it.
	 */
	int ret = engine_sep_take(ep->domain, NULL, NULL, target, flags);

	for (uint32_t i = 0; !ret && (c = engine_sep_ctx_nth(ep, i)); i++)
		if (c->open)
			ret = engine_sep_ctx_take(&c->ctx, target, flags);
	return ret;
}

/* Refuses a context that the parent of a fork opened. */
static int engine_sep_ctx_ready(const struct engine_ctx *ctx)
{
	const struct engine_family *family = ctx->domain->family;

	if (ctx->ep->ctx.copied || ctx->copied)
		return engine_refuse(family, FI_LOG_EP_CTRL, -FI_EOPBADSTATE,
				     "fi_enable of a context",
				     "the context is that of the process that forked");
	return 0;
}

/* Enabling a context enables the endpoint too, once that has an address vector. */
static int engine_sep_ctx_enable(struct engine_ctx *ctx)
{
	bool awaits;
	int ret;

	engine_enter(ctx->domain);
	ret = engine_sep_ctx_ready(ctx);
	if (!ret && !ctx->enabled)
		engine_ctx_enable(ctx);
	awaits = engine_sep_awaits(ctx->ep);
	engine_leave(ctx->domain);
	return !ret && awaits ? engine_ep_enable(ctx->ep) : ret;
}

static int engine_sep_ctx_control(struct fid *fid, int command, void *arg)
{
	struct engine_ctx *ctx = engine_ctx_at(fid);

	return command == FI_ENABLE ? engine_sep_ctx_enable(ctx)
				    : engine_ctx_control(fid, command, arg);
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

/* Returns true if a context of the endpoint may ask for these capabilities. */
static bool engine_sep_offers(const struct engine_ep *ep, uint64_t caps)
{
	return !(caps & ~(ep->caps | ENGINE_SIDE_CAPS | FI_SEND | FI_RECV));
}

/* The caller holds the domain, and sets the direction. Returns 0 or -FI_EBUSY. */
static int engine_sep_ctx_open(struct engine_sep_ctx *c, struct engine_ep *ep, size_t fclass,
			       void *context)
{
	if (c->open)
		return engine_refuse(ep->family, FI_LOG_EP_CTRL, -FI_EBUSY,
				     "fi_tx_context or fi_rx_context",
				     "the context of that index is open already");
	c->ctx = (struct engine_ctx){ .ep = ep };
	engine_ctx_init(&c->ctx, ep->domain, &c->ctx);
	c->ctx.options = ep->ctx.options;
	c->ctx.fid.fid.fclass = fclass;
	c->ctx.fid.fid.context = context;
	c->ctx.fid.fid.ops = &engine_sep_ctx_fi_ops;
	c->open = true;
	return 0;
}

/* Checks what was asked of fi_tx_context() or fi_rx_context(), @call; @cnt: contexts of that kind. */
static int engine_sep_ctx_check(const struct engine_ep *ep, const char *call, int index,
				uint32_t cnt, uint64_t caps, struct fid_ep **out)
{
	if (index < 0 || (uint32_t)index >= cnt || !out)
		return engine_refuse_value(
			ep->family, FI_LOG_EP_CTRL, -FI_EINVAL, call,
			"an index beyond their number in ep_attr, or NULL where the context is to go",
			(uint64_t)index);
	if (!engine_sep_offers(ep, caps))
		return engine_refuse_value(ep->family, FI_LOG_EP_CTRL, -FI_EINVAL, call,
					   "capabilities that the endpoint was opened without",
					   caps);
	return 0;
}

static int engine_sep_tx_ctx(struct fid_ep *fid, int index, struct fi_tx_attr *attr,
			     struct fid_ep **out, void *context)
{
	struct engine_ep *ep = engine_ctx_of(fid)->ep;
	struct engine_sep_tx *t;
	int ret;

	ret = engine_tx_attr_check(ep->domain, "fi_tx_context", attr);
	if (!ret)
		ret = engine_sep_ctx_check(ep, "fi_tx_context", index, ep->tx_cnt,
					   attr ? attr->caps : 0, out);
	if (ret)
		return ret;
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

	ret = engine_rx_attr_check(ep->domain, "fi_rx_context", attr);
	if (!ret)
		ret = engine_sep_ctx_check(ep, "fi_rx_context", index, ep->rx_cnt,
					   attr ? attr->caps : 0, out);
	if (ret)
		return ret;
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

/* Allocates all contexts, with queues in which messages can wait. Returns 0 or -FI_ENOMEM. */
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
	ep->min_multi_recv = ENGINE_MIN_MULTI_RECV;
	ep->rx0 = ep->rxs[0];
	return 0;
}

static void engine_sep_undo(struct engine_ep *ep)
{
	struct engine_domain *domain = ep->domain;

	/* What was not allocated is NULL. */
	if (!ep->sep_txs || !ep->sep_rxs || !ep->rxs) {
		platform_free(ep->sep_txs);
		platform_free(ep->sep_rxs);
		platform_free(ep->rxs);
		ep->sep_txs = NULL;
		ep->sep_rxs = NULL;
		ep->rxs = NULL;
	}
	engine_enter(domain);
	engine_ep_end(ep);
	engine_leave(domain);
}

#define SEP_OPEN "fi_scalable_ep"

static int engine_sep_cnt(const struct engine_domain *domain, size_t asked, uint32_t *cnt)
{
	*cnt = asked ? (uint32_t)asked : 1;
	if (asked <= PACKET_RX_MAX)
		return 0;
	return engine_refuse_value(domain->family, FI_LOG_EP_CTRL, -FI_EINVAL, SEP_OPEN,
				   "more contexts than an endpoint can have; see "
				   "domain_attr.max_ep_tx_ctx and max_ep_rx_ctx",
				   asked);
}

int engine_sep_open(struct fid_domain *fid, struct fi_info *info, struct fid_ep **out,
		    void *context)
{
	struct engine_domain *domain = container_of(fid, struct engine_domain, fid);
	static const struct fi_ep_attr none;
	const struct fi_ep_attr *attr;
	uint32_t tx_cnt, rx_cnt;
	struct engine_ep *ep;
	int ret;

	if (!info || !out)
		return engine_refuse(domain->family, FI_LOG_EP_CTRL, -FI_EINVAL, SEP_OPEN,
				     "NULL for the fi_info, or where the endpoint is to go");
	attr = info->ep_attr ? info->ep_attr : &none;
	ret = engine_sep_cnt(domain, attr->tx_ctx_cnt, &tx_cnt);
	if (!ret)
		ret = engine_sep_cnt(domain, attr->rx_ctx_cnt, &rx_cnt);
	if (ret)
		return ret;
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
