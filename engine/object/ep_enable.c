/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_enable of an endpoint: its wires are opened (ep_wires.c), its op tables are chosen, and
 * rounds of progress poll it. engine_ep_enable() takes the domain; its callers do not hold it.
 */
#include <rdma/fi_errno.h>
#include "auto.h"
#include "cm.h"
#include "ctx.h"
#include "domain_fid.h"
#include "ep_fid.h"
#include "ep_wires.h"
#include "eq_fid.h"
#include "guard.h"
#include "mr_fid.h"
#include "progress.h"
#include "recv.h"
#include "refuse.h"
#include "srx_fid.h"
#include "waiting.h"

static void engine_ep_budget(struct engine_ep *ep)
{
	size_t budget = ENGINE_BUDGET;

	fi_param_get_size_t((struct fi_provider *)ep->family->provider, ENGINE_PARAM_BUDGET,
			    &budget);
	ep->budget = budget;
}

/*
 * Returns 0 if the endpoint has what it needs, or -FI_E*. Queues and counters may be bound later,
 * or never: operations that begin without them end without a report.
 */
static int engine_ep_ready(const struct engine_ep *ep)
{
	if (!ep->av && ep->kind == ENGINE_EP_RDM)
		return engine_refuse(ep->family, FI_LOG_EP_CTRL, -FI_ENOAV, "fi_enable",
				     "no address vector is bound");
	return ep->sep_rxs ? 0 : engine_shared_check(ep);
}

static bool engine_reports(const struct engine_cq *cq, struct engine_cntr *const *cntr,
			   size_t cnt)
{
	bool reports = cq != NULL;

	for (size_t i = 0; i < cnt; i++)
		reports |= cntr[i] != NULL;
	return reports;
}

/*
 * Logs once that the endpoint reports nothing. libfabric's sockets provider accepts that; others
 * refuse it.
 */
static void engine_ep_warn_unbound(struct engine_ep *ep)
{
	static const char *const what[][2] = {
		{ "sends", "FI_TRANSMIT" },
		{ "receives", "FI_RECV" },
		{ "sends and receives", "FI_TRANSMIT and FI_RECV" },
	};
	const struct engine_tx_ctx *tx = ep->ctx.tx_caps ? ep->ctx.tx : NULL;
	const struct engine_rx_ctx *rx = ep->ctx.rx_caps & (FI_MSG | FI_TAGGED) ? ep->ctx.rx
										: NULL;
	bool sends = tx && !engine_reports(tx->cq, tx->cntr, ENGINE_TX_CNTRS);
	bool receives = rx && !engine_reports(rx->cq, rx->cntr, ENGINE_RX_CNTRS);
	int which = sends + 2 * receives - 1;

	if (ep->domain->warned_unbound || ep->sep_rxs || ep->kind == ENGINE_EP_PASSIVE ||
	    which < 0)
		return;
	ep->domain->warned_unbound = true;
	FI_WARN(ep->family->provider, FI_LOG_EP_CTRL,
		"fi_enable: the endpoint %s, and no completion queue or counter reports it; bind one "
		"with %s, as other providers require (%s). Logged once for each domain\n",
		what[which][0], what[which][1], fi_strerror(FI_ENOCQ));
}

/* Enables the endpoint. With the domain held. */
static int engine_ep_start(struct engine_ep *ep)
{
	bool own = !ep->sep_rxs && !ep->srx, named = ep->wire_cnt;
	int ret;

	ret = engine_ep_ready(ep);
	if (!ret)
		ret = engine_auto_enable(ep->domain);
	if (ret)
		return ret;
	engine_ep_budget(ep);
	while (!ep->epoch)
		if (platform_random(&ep->epoch, sizeof(ep->epoch)))
			return -FI_EIO;
	ret = own ? engine_rxq_init(&ep->rx.own, false) : 0;
	if (ret)
		return ret;
	ret = engine_wires_open(ep);
	if (ret) {
		if (own)
			engine_rxq_fini(ep->domain, &ep->rx.own);
		return ret;
	}
	if (named &&
	    engine_wires_remote_events(ep)) /* the wires did not know of these counters */
		engine_mrs_notify(ep->domain);
	engine_ctx_enable(&ep->ctx);
	ep->enabled = true;
	list_remove(&ep->domain_link);
	engine_domain_link(ep);
	ep->domain->pending = true; /* it may have waited for that */
	engine_bells_join(ep);
	engine_ep_warn_unbound(ep);
	return 0;
}

int engine_ep_enable(struct engine_ep *ep)
{
	struct engine_eq *eq = engine_domain_eq(ep->domain);
	int ret = eq ? engine_eq_watch(eq, ep->domain) : 0;

	if (ret)
		return ret;
	engine_enter(ep->domain);
	if (ep->ctx.copied)
		ret = engine_refuse(ep->family, FI_LOG_EP_CTRL, -FI_EOPBADSTATE, "fi_enable",
				    "the endpoint is that of the process that forked");
	else if (!ep->enabled)
		ret = engine_ep_start(ep);
	if (!ret && !ep->eq) {
		engine_cm_report_to(ep, eq);
		ep->eq = eq;
		eq = NULL;
	}
	engine_leave(ep->domain);
	if (eq)
		engine_eq_drop(eq, ep->domain);
	return ret;
}
