/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Shared contexts. Receives are posted to a shared receive context, and messages wait in it; each
 * message is reported in the queue of the endpoint at which it arrived. Endpoints take the
 * completion level of a shared transmit context, and send on their own. Calls hold the domain.
 */
#include <rdma/fi_errno.h>
#include "cntr.h"
#include "cntr_fid.h"
#include "ctx.h"
#include "forked.h"
#include "guard.h"
#include "no_call.h"
#include "nosys.h"
#include "recv.h"
#include "refs.h"
#include "refuse.h"
#include "srx_fid.h"

static struct engine_srx *srx_of(struct engine_ctx *ctx)
{
	return container_of(ctx->base, struct engine_srx, ctx);
}

void engine_srx_choose_cq(struct engine_srx *srx)
{
	struct engine_ep *ep;

	srx->rx.cq = srx->cq;
	list_for_each_entry(ep, &srx->eps, srx_link)
		if (!srx->rx.cq)
			srx->rx.cq = ep->rx.cq;
}

/* Endpoints */

#define BIND_SHARED "fi_ep_bind of a shared context"

static int engine_shared_refuse(const struct engine_ep *ep, int err, const char *why)
{
	return engine_refuse(ep->family, FI_LOG_EP_CTRL, err, BIND_SHARED, why);
}

/* Endpoints of a shared transmit context send on their own: it may be bound at any time. */
static int engine_stx_bind(struct engine_ep *ep, struct engine_stx *stx)
{
	if (stx->domain != ep->domain)
		return engine_shared_refuse(ep, -FI_EINVAL, "it is of another domain");
	if (ep->stx == stx)
		return 0;
	if (ep->stx)
		return engine_shared_refuse(
			ep, -FI_EINVAL, "another transmit context is bound to the endpoint");
	ep->stx = stx;
	list_add_tail(&stx->eps, &ep->stx_link);
	if (!(ep->ctx.tx_op_flags & ENGINE_TX_LEVELS)) {
		ep->ctx.tx_op_flags |= stx->level;
		engine_ctx_bound(&ep->ctx);
	}
	return 0;
}

/*
 * The counter of the shared context counts the receives of an endpoint that has none for them.
 * @before: the context's counter until now, or NULL
 */
static void engine_srx_count(struct engine_ep *ep, struct engine_cntr *cntr,
			     const struct engine_cntr *before)
{
	if (ep->rx.cntr[ENGINE_CNTR_RECV] && ep->rx.cntr[ENGINE_CNTR_RECV] != before)
		return;
	engine_cntr_bind(NULL, &ep->rx, ep->domain, &cntr->fid.fid, FI_RECV);
	engine_ctx_bound(&ep->ctx);
}

#define ONE_AV "endpoints that share a receive context have one address vector"

/*
 * Returns true if an endpoint of the context has another address vector: a source is one fi_addr_t
 * for all.
 */
static bool engine_srx_other_av(const struct engine_ep *ep, const struct engine_srx *srx)
{
	const struct engine_ep *other;

	list_for_each_entry(other, &srx->eps, srx_link) {
		if (other->enabled && other->av != ep->av)
			return true;
	}
	return false;
}

/*
 * Joins an enabled endpoint: messages that wait move to the shared queue, and receives are posted
 * there.
 */
static void engine_srx_join(struct engine_ep *ep, struct engine_srx *srx)
{
	engine_srx_choose_cq(srx);
	engine_ctx_bound(&ep->ctx);
	engine_rxq_hand(&ep->rx.own, &srx->rx.own);
}

static int engine_srx_share(struct engine_ep *ep, struct engine_srx *srx)
{
	if (srx->ctx.domain != ep->domain || srx->closed)
		return engine_shared_refuse(ep, -FI_EINVAL,
					    "it is of another domain, or closed");
	if (ep->srx == srx)
		return 0;
	if (ep->srx)
		return engine_shared_refuse(ep, -FI_EINVAL,
					    "another receive context is bound to the endpoint");
	if (ep->enabled &&
	    (engine_rxq_next(&ep->rx.own, NULL) || !list_empty(&ep->rx.own.claimed)))
		return engine_shared_refuse(
			ep, -FI_EOPBADSTATE,
			"receives of the endpoint's own wait for messages; cancel them first");
	if (ep->enabled && engine_srx_other_av(ep, srx))
		return engine_shared_refuse(ep, -FI_EINVAL, ONE_AV);
	if (srx->rx.cntr[ENGINE_CNTR_RECV])
		engine_srx_count(ep, srx->rx.cntr[ENGINE_CNTR_RECV], NULL);
	ep->srx = srx;
	ep->rx.q = &srx->rx.own;
	list_add_tail(&srx->eps, &ep->srx_link);
	if (ep->enabled)
		engine_srx_join(ep, srx);
	return 0;
}

int engine_shared_bind(struct engine_ep *ep, struct fid *target, uint64_t flags)
{
	if (ep->sep_rxs)
		return engine_shared_refuse(
			ep, -FI_EINVAL,
			"a scalable endpoint has contexts of its own and shares none");
	if (flags)
		return engine_refuse_value(ep->family, FI_LOG_EP_CTRL, -FI_EBADFLAGS,
					   BIND_SHARED, "no flags are valid", flags);
	if (target->fclass == FI_CLASS_STX_CTX)
		return engine_stx_bind(ep, container_of(target, struct engine_stx, fid.fid));
	return engine_srx_share(ep, srx_of(engine_ctx_at(target)));
}

static void engine_srx_free(struct engine_srx *srx)
{
	struct engine_domain *domain = srx->ctx.domain;

	engine_rxq_fini(domain, &srx->rx.own);
	platform_free(srx);
	engine_unref(&domain->refs);
}

void engine_shared_unbind(struct engine_ep *ep)
{
	list_remove(&ep->stx_link);
	if (!ep->srx)
		return;
	list_remove(&ep->srx_link);
	engine_srx_choose_cq(ep->srx);
}

void engine_srx_left(struct engine_srx *srx)
{
	if (srx->closed && list_empty(&srx->eps))
		engine_srx_free(srx);
}

int engine_shared_check(const struct engine_ep *ep)
{
	if (!ep->srx)
		return 0;
	if (engine_srx_other_av(ep, ep->srx))
		return engine_refuse(ep->family, FI_LOG_EP_CTRL, -FI_EINVAL, "fi_enable",
				     ONE_AV);
	engine_srx_choose_cq(ep->srx);
	return 0;
}

/* Shared receive contexts */

/*
 * The program closes a context that endpoints use: receives without a message end, those that have
 * one complete as usual, and messages stay until their endpoint is closed.
 */
static void engine_srx_end(struct engine_srx *srx)
{
	engine_ctx_close_tables(&srx->ctx);
	engine_rxq_unpost(srx->ctx.domain, &srx->rx.own);
	engine_rx_unbind(&srx->rx);
	if (srx->cq)
		engine_unref(&srx->cq->refs);
	srx->cq = NULL;
	engine_srx_choose_cq(srx);
	srx->closed = true;
	engine_srx_left(srx);
}

static int engine_srx_close(struct fid *fid)
{
	struct engine_srx *srx = srx_of(engine_ctx_at(fid));
	struct engine_domain *domain = srx->ctx.domain;
	int ret = engine_left(domain, FI_LOG_EP_CTRL, "fi_close of a shared receive context");
	bool busy;

	if (ret)
		return ret;
	engine_ref(&domain->refs); /* until engine_srx_left() */
	engine_enter(domain);
	busy = !list_empty(&srx->ctx.aliases);
	if (!busy)
		engine_srx_end(srx);
	engine_leave(domain);
	engine_unref(&domain->refs);
	return busy ? engine_refuse(domain->family, FI_LOG_EP_CTRL, -FI_EBUSY,
				    "fi_close of a shared receive context",
				    "it has aliases; close those first")
		    : 0;
}

/* The caller holds the domain. */
static int engine_srx_bind_cq(struct engine_srx *srx, struct fid *target, uint64_t flags)
{
	struct engine_rx_ctx own = { .cq = srx->cq };
	int ret = engine_ctx_bind_cq(srx->ctx.domain, NULL, &own, target, flags);

	if (ret)
		return ret;
	srx->cq = own.cq;
	engine_srx_choose_cq(srx);
	return 0;
}

/*
 * The caller holds the domain. Source: libfabric's tcp provider, which counts receives of such a
 * context.
 */
static int engine_srx_bind_cntr(struct engine_srx *srx, struct fid *target, uint64_t flags)
{
	const struct engine_cntr *before = srx->rx.cntr[ENGINE_CNTR_RECV];
	struct engine_domain *domain = srx->ctx.domain;
	struct engine_ep *ep;
	int ret;

	if (flags != FI_RECV)
		return engine_refuse_value(domain->family, FI_LOG_EP_CTRL, -FI_EBADFLAGS,
					   BIND_SHARED, "a counter counts FI_RECV there", flags);
	ret = engine_cntr_bind(NULL, &srx->rx, domain, target, flags);
	if (ret)
		return ret;
	engine_ctx_bound(&srx->ctx);
	list_for_each_entry(ep, &srx->eps, srx_link)
		engine_srx_count(ep, srx->rx.cntr[ENGINE_CNTR_RECV], before);
	return 0;
}

/*
 * Receives are reported by the endpoints: the context needs no queue, and selective completion is
 * ignored.
 */
static int engine_srx_bind(struct fid *fid, struct fid *target, uint64_t flags)
{
	struct engine_srx *srx = srx_of(engine_ctx_at(fid));
	struct engine_domain *domain = srx->ctx.domain;
	int ret;

	if (!target || (target->fclass != FI_CLASS_CQ && target->fclass != FI_CLASS_CNTR))
		return engine_refuse_value(domain->family, FI_LOG_EP_CTRL, -FI_EINVAL,
					   BIND_SHARED,
					   "completion queues and counters are bound to it",
					   target ? target->fclass : 0);
	if (flags & FI_SELECTIVE_COMPLETION)
		return engine_refuse(
			domain->family, FI_LOG_EP_CTRL, -FI_EBADFLAGS, BIND_SHARED,
			"FI_SELECTIVE_COMPLETION is a flag of its endpoints' binds");
	engine_enter(domain);
	ret = target->fclass == FI_CLASS_CQ ? engine_srx_bind_cq(srx, target, flags)
					    : engine_srx_bind_cntr(srx, target, flags);
	engine_leave(domain);
	return ret;
}

/* The context is usable from the beginning; fi_enable succeeds without effect. */
static int engine_srx_control(struct fid *fid, int command, void *arg)
{
	return command == FI_ENABLE ? 0 : engine_ctx_control(fid, command, arg);
}

static struct fi_ops engine_srx_fi_ops = {
	.size = sizeof(struct fi_ops),
	.close = engine_srx_close,
	.bind = engine_srx_bind,
	.control = engine_srx_control,
	.ops_open = engine_no_ops_open,
	.tostr = engine_no_tostr,
	.ops_set = engine_no_ops_set,
};

int engine_srx_open(struct fid_domain *fid, struct fi_rx_attr *attr, struct fid_ep **out,
		    void *context)
{
	struct engine_domain *domain = container_of(fid, struct engine_domain, fid);
	struct engine_srx *srx;
	int ret;

	if (!out)
		return engine_refuse(domain->family, FI_LOG_EP_CTRL, -FI_EINVAL,
				     "fi_srx_context", "NULL where the context is to go");
	ret = engine_rx_attr_check(domain, "fi_srx_context", attr);
	if (ret)
		return ret;
	srx = platform_alloc(sizeof(*srx));
	if (!srx)
		return -FI_ENOMEM;
	ret = engine_rxq_init(&srx->rx.own, true);
	if (ret) {
		platform_free(srx);
		return ret;
	}
	srx->rx.q = &srx->rx.own;
	srx->rx.own.min_multi_recv = ENGINE_MIN_MULTI_RECV;
	list_init(&srx->eps);
	engine_ctx_init(&srx->ctx, domain, &srx->ctx);
	engine_options_init(&srx->ctx.options, NULL);
	srx->ctx.rx = &srx->rx;
	srx->ctx.rx_caps = engine_part_caps(attr ? attr->caps : 0, ENGINE_CAPS);
	srx->ctx.rx_op_flags = attr ? attr->op_flags : 0;
	srx->ctx.directed_recv = !domain->connects && srx->ctx.rx_caps & FI_DIRECTED_RECV;
	srx->ctx.fid.fid.fclass = FI_CLASS_SRX_CTX;
	srx->ctx.fid.fid.context = context;
	srx->ctx.fid.fid.ops = &engine_srx_fi_ops;
	srx->ctx.fid.cm = &engine_no_cm_ops;
	engine_ctx_enable(&srx->ctx);
	engine_ref(&domain->refs);
	*out = &srx->ctx.fid;
	return 0;
}

/* Shared transmit contexts */

static int engine_stx_close(struct fid *fid)
{
	struct engine_stx *stx = container_of(fid, struct engine_stx, fid.fid);
	struct engine_domain *domain = stx->domain;
	int ret = engine_left(domain, FI_LOG_EP_CTRL, "fi_close of a shared transmit context");
	struct list *node;

	if (ret)
		return ret;
	engine_enter(domain);
	while ((node = list_pop(&stx->eps)))
		container_of(node, struct engine_ep, stx_link)->stx = NULL;
	engine_leave(domain);
	platform_free(stx);
	engine_unref(&domain->refs);
	return 0;
}

static ssize_t engine_stx_no_cancel(struct fid *fid, void *context)
{
	return -FI_ENOSYS; /* receives can't be posted to a transmit context */
}

static int engine_stx_no_getopt(struct fid *fid, int level, int name, void *val, size_t *len)
{
	return -FI_ENOSYS;
}

static int engine_stx_no_setopt(struct fid *fid, int level, int name, const void *val,
				size_t len)
{
	return -FI_ENOSYS;
}

static ssize_t engine_stx_no_left(struct fid_ep *ep)
{
	return -FI_ENOSYS;
}

static struct fi_ops_ep engine_stx_ops = {
	.size = sizeof(struct fi_ops_ep),
	.cancel = engine_stx_no_cancel,
	.getopt = engine_stx_no_getopt,
	.setopt = engine_stx_no_setopt,
	.tx_ctx = engine_no_tx_ctx,
	.rx_ctx = engine_no_rx_ctx,
	.rx_size_left = engine_stx_no_left,
	.tx_size_left = engine_stx_no_left,
	.export_xpu = engine_no_export,
};

static struct fi_ops engine_stx_fi_ops = {
	.size = sizeof(struct fi_ops),
	.close = engine_stx_close,
	.bind = engine_no_bind,
	.control = engine_no_control,
	.ops_open = engine_no_ops_open,
	.tostr = engine_no_tostr,
	.ops_set = engine_no_ops_set,
};

int engine_stx_open(struct fid_domain *fid, struct fi_tx_attr *attr, struct fid_stx **out,
		    void *context)
{
	struct engine_domain *domain = container_of(fid, struct engine_domain, fid);
	struct engine_stx *stx;
	int ret;

	if (!out)
		return engine_refuse(domain->family, FI_LOG_EP_CTRL, -FI_EINVAL,
				     "fi_stx_context", "NULL where the context is to go");
	ret = engine_tx_attr_check(domain, "fi_stx_context", attr);
	if (ret)
		return ret;
	stx = platform_alloc(sizeof(*stx));
	if (!stx)
		return -FI_ENOMEM;
	stx->level = attr ? attr->op_flags & ENGINE_TX_LEVELS : domain->tx_level;
	stx->domain = domain;
	list_init(&stx->eps);
	stx->fid.fid.fclass = FI_CLASS_STX_CTX;
	stx->fid.fid.context = context;
	stx->fid.fid.ops = &engine_stx_fi_ops;
	stx->fid.ops = &engine_stx_ops;
	engine_ref(&domain->refs);
	*out = &stx->fid;
	return 0;
}
