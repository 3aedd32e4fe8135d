/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_ep_bind: queues, counters, an address vector, shared contexts and memory regions, before the
 * endpoint is enabled and again later. Calls hold the domain.
 */
#include <rdma/fi_errno.h>
#include "cm.h"
#include "cntr_fid.h"
#include "ctx.h"
#include "domain_fid.h"
#include "ep_fid.h"
#include "ep_wires.h"
#include "eq_fid.h"
#include "guard.h"
#include "mr_fid.h"
#include "refuse.h"
#include "sep_fid.h"
#include "srx_fid.h"

#define EP_BIND "fi_ep_bind"

static int engine_bind_refuse(const struct engine_ep *ep, int err, const char *why)
{
	return engine_refuse(ep->family, FI_LOG_EP_CTRL, err, EP_BIND, why);
}

static int engine_ep_bind_av(struct engine_ep *ep, struct engine_av *av)
{
	if (av->domain != ep->domain)
		return engine_bind_refuse(ep, -FI_EINVAL,
					  "an address vector of another domain; open one in the "
					  "endpoint's");
	if (ep->kind != ENGINE_EP_RDM)
		return engine_bind_refuse(
			ep, -FI_EINVAL, "a connected endpoint has one peer, and no addresses");
	if (ep->av == av)
		return 0;
	if (ep->av)
		return engine_bind_refuse(
			ep, -FI_EINVAL,
			"another address vector is bound, which the endpoint keeps");
	ep->av = av;
	list_add_tail(&av->eps, &ep->av_link);
	return 0;
}

/*
 * The queue reports the end of fi_join_collective, and connections; it replaces the one bound
 * before, unless that has connections. It may give the domain a thread. Takes the domain itself: the lock of the queue comes first.
 */
static int engine_ep_bind_eq(struct engine_ep *ep, struct fid *target, uint64_t flags)
{
	struct engine_eq *eq = container_of(target, struct engine_eq, fid.fid), *drop;
	int ret;

	if (flags)
		return engine_refuse_value(ep->family, FI_LOG_EP_CTRL, -FI_EBADFLAGS, EP_BIND,
					   "an event queue has no flags", flags);
	if (eq->fabric != ep->domain->fabric)
		return engine_bind_refuse(ep, -FI_EINVAL, "an event queue of another fabric");
	if (ep->kind != ENGINE_EP_RDM && ep->enabled && ep->eq && ep->eq != eq)
		return engine_bind_refuse(ep, -FI_EOPBADSTATE,
					  "another event queue has its connections");
	ret = engine_eq_watch(eq, ep->domain);
	if (ret)
		return ret;
	engine_enter(ep->domain);
	drop = ep->eq;
	engine_cm_report_to(ep, eq);
	ep->eq = eq;
	engine_leave(ep->domain);
	if (drop)
		engine_eq_drop(drop, ep->domain);
	return 0;
}

/* With FI_MR_ENDPOINT this binds the region to the endpoint; without it a bind has no effect. */
static int engine_ep_bind_mr(struct engine_ep *ep, struct fid *target, uint64_t flags)
{
	if (container_of(target, struct engine_mr, fid.fid)->domain != ep->domain)
		return engine_bind_refuse(ep, -FI_EINVAL, "a memory region of another domain");
	if (!(ep->domain->mr->mode & FI_MR_ENDPOINT))
		return 0;
	return target->ops->bind(target, &ep->ctx.fid.fid, flags);
}

/*
 * Counters of remote events that are bound after the wires were opened: peers use packets from now
 * on.
 */
static void engine_ep_bound(struct engine_ep *ep)
{
	engine_ctx_bound(&ep->ctx);
	if (ep->srx)
		engine_srx_choose_cq(ep->srx);
	if (ep->enabled && engine_wires_remote_events(ep))
		engine_mrs_notify(ep->domain);
}

static int engine_ep_bind_held(struct engine_ep *ep, struct fid *target, uint64_t flags)
{
	int ret;

	if (ep->ctx.copied)
		return engine_bind_refuse(ep, -FI_EOPBADSTATE,
					  "the endpoint is that of the process that forked");
	switch (target->fclass) {
	case FI_CLASS_AV:
		return engine_ep_bind_av(ep, container_of(target, struct engine_av, fid.fid));
	case FI_CLASS_STX_CTX:
	case FI_CLASS_SRX_CTX:
		return engine_shared_bind(ep, target, flags);
	case FI_CLASS_CQ:
	case FI_CLASS_CNTR:
		if (ep->sep_rxs)
			return engine_sep_bind(ep, target, flags);
		break;
	default:
		return engine_refuse_value(ep->family, FI_LOG_EP_CTRL, -FI_EINVAL, EP_BIND,
					   "no object of that class is bound to an endpoint",
					   target->fclass);
	}
	ret = target->fclass == FI_CLASS_CQ
		      ? engine_ctx_bind_cq(ep->domain, &ep->tx, &ep->rx, target, flags)
		      : engine_cntr_bind(&ep->tx, &ep->rx, ep->domain, target, flags);
	if (!ret)
		engine_ep_bound(ep);
	return ret;
}

int engine_ep_bind(struct fid *fid, struct fid *target, uint64_t flags)
{
	struct engine_ep *ep = engine_ctx_at(fid)->ep;
	bool awaits;
	int ret;

	if (!target)
		return engine_bind_refuse(ep, -FI_EINVAL, "NULL");
	if (target->fclass == FI_CLASS_EQ)
		return engine_ep_bind_eq(ep, target, flags);
	if (target->fclass == FI_CLASS_MR)
		return engine_ep_bind_mr(ep, target, flags);
	engine_enter(ep->domain);
	ret = engine_ep_bind_held(ep, target, flags);
	awaits = engine_sep_awaits(ep);
	engine_leave(ep->domain);
	return !ret && awaits ? engine_ep_enable(ep) : ret;
}
