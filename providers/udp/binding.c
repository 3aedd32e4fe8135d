/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What is bound to an endpoint before it is enabled. Called by programs, on any thread.
 * Source: fi_endpoint(3).
 */
#include "endpoint.h"

#define EP_BIND "fi_ep_bind"

static int bind_refuse(const char *why)
{
	return udp_refuse(FI_LOG_EP_CTRL, -FI_EINVAL, EP_BIND, why);
}

static int bind_cq(struct udp_ep *ep, struct udp_cq *cq, uint64_t flags)
{
	if (flags & ~(FI_TRANSMIT | FI_RECV | FI_SELECTIVE_COMPLETION) ||
	    !(flags & (FI_TRANSMIT | FI_RECV)))
		return udp_refuse(
			FI_LOG_EP_CTRL, -FI_EBADFLAGS, EP_BIND,
			"a completion queue is bound with FI_TRANSMIT, FI_RECV or both, "
			"and FI_SELECTIVE_COMPLETION");
	if (cq->wait.domain != ep->domain || (flags & FI_TRANSMIT && ep->tx_cq) ||
	    (flags & FI_RECV && ep->rx_cq))
		return bind_refuse("a queue of another domain, or one is bound already");
	if (flags & FI_TRANSMIT) {
		ep->tx_cq = cq;
		ep->tx_selective = flags & FI_SELECTIVE_COMPLETION;
		udp_ref(&cq->refs);
	}
	if (flags & FI_RECV) {
		ep->rx_cq = cq;
		ep->rx_selective = flags & FI_SELECTIVE_COMPLETION;
		udp_ref(&cq->refs);
	}
	return 0;
}

static int bind_cntr(struct udp_ep *ep, struct udp_cntr *cntr, uint64_t flags)
{
	if (flags & ~(FI_SEND | FI_RECV) || !flags)
		return udp_refuse(FI_LOG_EP_CTRL, -FI_EBADFLAGS, EP_BIND,
				  "a counter is bound with FI_SEND, FI_RECV or both");
	if (cntr->wait.domain != ep->domain || (flags & FI_SEND && ep->tx_cntr) ||
	    (flags & FI_RECV && ep->rx_cntr))
		return bind_refuse("a counter of another domain, or one is bound already");
	if (flags & FI_SEND) {
		ep->tx_cntr = cntr;
		udp_ref(&cntr->refs);
	}
	if (flags & FI_RECV) {
		ep->rx_cntr = cntr;
		udp_ref(&cntr->refs);
	}
	return 0;
}

static int bind_av(struct udp_ep *ep, struct udp_av *av)
{
	if (av->domain != ep->domain || ep->av)
		return bind_refuse("a vector of another domain, or one is bound already");
	ep->av = av;
	udp_ref(&av->refs);
	return 0;
}

static int bind_eq(struct udp_ep *ep, struct udp_eq *eq)
{
	if (eq->fabric != ep->domain->fabric || ep->eq)
		return bind_refuse("a queue of another fabric, or one is bound already");
	ep->eq = eq;
	udp_ref(&eq->refs);
	return 0;
}

int udp_ep_bind_object(struct fid *fid, struct fid *target, uint64_t flags)
{
	struct udp_ep *ep = container_of(fid, struct udp_ep, fid.fid);
	int ret;

	if (!target)
		return bind_refuse("NULL for what is to be bound");
	if (!udp_enter(ep->domain))
		return -FI_EOPBADSTATE;
	if (ep->enabled)
		ret = udp_refuse(FI_LOG_EP_CTRL, -FI_EOPBADSTATE, EP_BIND,
				 "the endpoint is enabled");
	else if (target->fclass == FI_CLASS_CQ)
		ret = bind_cq(ep, container_of(target, struct udp_cq, fid.fid), flags);
	else if (target->fclass == FI_CLASS_CNTR)
		ret = bind_cntr(ep, container_of(target, struct udp_cntr, fid.fid), flags);
	else if (target->fclass == FI_CLASS_AV)
		ret = bind_av(ep, container_of(target, struct udp_av, fid.fid));
	else if (target->fclass == FI_CLASS_EQ)
		ret = bind_eq(ep, container_of(target, struct udp_eq, fid.fid));
	else
		ret = bind_refuse("completion and event queues, counters and vectors are bound");
	udp_leave(ep->domain);
	return ret;
}
