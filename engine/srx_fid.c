/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Contexts that endpoints share. A shared receive context is where receives are posted and
 * messages wait; each message is told of in the queue of the endpoint that it came to. A shared
 * transmit context is a mere object: its endpoints send on their own. Calls hold the domain.
 */
#include <rdma/fi_errno.h>
#include "ctx.h"
#include "fids.h"
#include "nosys.h"
#include "recv.h"

static struct engine_srx *srx_of(struct engine_ctx *ctx)
{
	return container_of(ctx->base, struct engine_srx, ctx);
}

/* What is no endpoint's is told in the queue bound to it, else in that of the first endpoint. */
static void engine_srx_choose_cq(struct engine_srx *srx)
{
	struct list *node, *after;

	srx->rx.cq = srx->cq;
	list_for_each(node, after, &srx->eps)
		if (!srx->rx.cq)
			srx->rx.cq = container_of(node, struct engine_ep, srx_link)->rx.cq;
}

/* Endpoints */

int engine_shared_bind(struct engine_ep *ep, struct fid *target, uint64_t flags)
{
	struct engine_stx *stx = container_of(target, struct engine_stx, fid.fid);
	struct engine_srx *srx = container_of(target, struct engine_srx, ctx.fid.fid);

	if (ep->sep_rxs ||
	    (target->fclass != FI_CLASS_SRX_CTX && target->fclass != FI_CLASS_STX_CTX))
		return -FI_EINVAL;
	if (flags)
		return -FI_EBADFLAGS;
	if (target->fclass == FI_CLASS_STX_CTX) {
		if (ep->stx || stx->domain != ep->domain)
			return -FI_EINVAL;
		ep->stx = stx;
		engine_ref(&stx->refs);
		return 0;
	}
	srx = srx_of(&srx->ctx);
	if (ep->srx || srx->ctx.domain != ep->domain)
		return -FI_EINVAL;
	ep->srx = srx;
	ep->rx.q = &srx->rx.own;
	list_push(&srx->eps, &ep->srx_link);
	return 0;
}

void engine_shared_unbind(struct engine_ep *ep)
{
	if (ep->stx)
		engine_unref(&ep->stx->refs);
	if (!ep->srx)
		return;
	list_remove(&ep->srx_link);
	engine_srx_choose_cq(ep->srx);
}

int engine_shared_check(const struct engine_ep *ep)
{
	struct list *node, *after;

	if ((ep->wants_srx && !ep->srx) || (ep->wants_stx && !ep->stx))
		return -FI_EOPBADSTATE;
	if (!ep->srx)
		return 0;
	/* A source is the same for all of them. */
	list_for_each(node, after, &ep->srx->eps) {
		const struct engine_ep *other = container_of(node, struct engine_ep, srx_link);

		if (other->enabled && other->av != ep->av)
			return -FI_EINVAL;
	}
	engine_srx_choose_cq(ep->srx);
	return 0;
}

/* Shared receive contexts */

static int engine_srx_close(struct fid *fid)
{
	struct engine_srx *srx = srx_of(engine_ctx_at(fid));
	struct engine_domain *domain = srx->ctx.domain;
	bool busy;

	engine_enter(domain);
	busy = !list_empty(&srx->eps) || !list_empty(&srx->ctx.aliases);
	if (!busy) {
		engine_ctx_close_tables(&srx->ctx);
		engine_rxq_fini(domain, &srx->rx.own);
		if (srx->cq)
			engine_unref(&srx->cq->refs);
		platform_free(srx);
	}
	engine_leave(domain);
	if (busy)
		return -FI_EBUSY;
	engine_unref(&domain->refs);
	return 0;
}

static int engine_srx_bind(struct fid *fid, struct fid *target, uint64_t flags)
{
	struct engine_srx *srx = srx_of(engine_ctx_at(fid));
	struct engine_rx_ctx own = { 0 };
	int ret = -FI_EINVAL;

	if (!target)
		return -FI_EINVAL;
	engine_enter(srx->ctx.domain);
	own.cq = srx->cq;
	if (target->fclass == FI_CLASS_CQ && flags & FI_SELECTIVE_COMPLETION)
		ret = -FI_EBADFLAGS; /* that is for endpoints to say */
	else if (target->fclass == FI_CLASS_CQ)
		ret = engine_ctx_bind_cq(srx->ctx.domain, NULL, &own, target, flags);
	if (!ret) {
		srx->cq = own.cq;
		engine_srx_choose_cq(srx);
	}
	engine_leave(srx->ctx.domain);
	return ret;
}

/* It can be called from the beginning; fi_enable says so once more. */
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
		return -FI_EINVAL;
	ret = engine_rx_attr_check(attr);
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
	srx->ctx.directed_recv = srx->ctx.rx_caps & FI_DIRECTED_RECV;
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

	if (engine_in_use(&stx->refs))
		return -FI_EBUSY;
	engine_unref(&stx->domain->refs);
	platform_free(stx);
	return 0;
}

static ssize_t engine_stx_no_cancel(struct fid *fid, void *context)
{
	return -FI_ENOSYS; /* nothing is posted here */
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

static int engine_stx_no_tx(struct fid_ep *sep, int index, struct fi_tx_attr *attr,
			    struct fid_ep **ep, void *context)
{
	return -FI_ENOSYS;
}

static int engine_stx_no_rx(struct fid_ep *sep, int index, struct fi_rx_attr *attr,
			    struct fid_ep **ep, void *context)
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
	.tx_ctx = engine_stx_no_tx,
	.rx_ctx = engine_stx_no_rx,
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
		return -FI_EINVAL;
	ret = engine_tx_attr_check(attr);
	if (ret)
		return ret;
	stx = platform_alloc(sizeof(*stx));
	if (!stx)
		return -FI_ENOMEM;
	if (attr)
		stx->attr = *attr;
	stx->domain = domain;
	stx->fid.fid.fclass = FI_CLASS_STX_CTX;
	stx->fid.fid.context = context;
	stx->fid.fid.ops = &engine_stx_fi_ops;
	stx->fid.ops = &engine_stx_ops;
	engine_ref(&domain->refs);
	*out = &stx->fid;
	return 0;
}
