/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * An endpoint that is not enabled uses nothing yet: an object that is bound to such endpoints
 * alone may be closed, and is unbound from them. Called with the domain held when queues, counters
 * and vectors are closed.
 */
#include "cntr.h"
#include "ctx.h"
#include "ep_early.h"
#include "refs.h"
#include "srx_fid.h"

static int early_queues(struct engine_ep *ep, const struct fid *fid, bool drop)
{
	bool sends = ep->tx.cq && &ep->tx.cq->fid.fid == fid;
	bool receives = ep->rx.cq && &ep->rx.cq->fid.fid == fid;

	if (drop && sends) {
		engine_unref(&ep->tx.cq->refs);
		ep->tx.cq = NULL;
		ep->tx.selective = false;
	}
	if (drop && receives) {
		engine_unref(&ep->rx.cq->refs);
		ep->rx.cq = NULL;
		ep->rx.selective = false;
		if (ep->srx)
			engine_srx_choose_cq(ep->srx);
	}
	return sends + receives;
}

static int early_slots(struct engine_cntr **slots, int cnt, const struct fid *fid, bool drop)
{
	int found = 0;

	for (int i = 0; i < cnt; i++) {
		if (!slots[i] || &slots[i]->fid.fid != fid)
			continue;
		found++;
		if (!drop)
			continue;
		engine_cntr_release(slots[i]);
		slots[i] = NULL;
	}
	return found;
}

/*
 * Returns the number of times that @fid is bound to endpoints that are not enabled; @drop: unbinds
 * it.
 */
static int early_binds(struct engine_domain *domain, const struct fid *fid, bool drop)
{
	struct engine_ep *ep;
	int found = 0;

	list_for_each_entry(ep, &domain->not_enabled, domain_link) {
		found += fid->fclass == FI_CLASS_CQ
				 ? early_queues(ep, fid, drop)
				 : early_slots(ep->tx.cntr, ENGINE_TX_CNTRS, fid, drop) +
					   early_slots(ep->rx.cntr, ENGINE_RX_CNTRS, fid, drop);
	}
	return found;
}

void engine_early_part(struct engine_domain *domain, const struct fid *fid, _Atomic int *refs)
{
	int users = atomic_load_explicit(refs, memory_order_relaxed);

	if (users && early_binds(domain, fid, false) == users)
		early_binds(domain, fid, true);
}

void engine_early_part_av(struct engine_av *av)
{
	struct engine_ep *ep;
	struct list *node;

	list_for_each_entry(ep, &av->eps, av_link) {
		if (ep->enabled)
			return;
	}
	while ((node = list_pop(&av->eps)))
		container_of(node, struct engine_ep, av_link)->av = NULL;
}
