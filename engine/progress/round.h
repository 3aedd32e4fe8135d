/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A round of progress, inline: fi_cq_read() makes one in every call that finds its queue empty, and most
 * of those move nothing. Others call engine_domain_round(). The caller holds the domain.
 */
#ifndef WEFT_ROUND_H
#define WEFT_ROUND_H

#include "access.h"
#include "arm.h"
#include "cntr.h"
#include "flush.h"
#include "progress.h"
#include "tasks.h"

#define ENGINE_BUSY_TICKS \
	4096u /* rounds that idle wires are left out while the first one is busy, */
#define ENGINE_CLOCK_TICKS 16u /* and between looks at the clock; powers of two */

/* engine_poll_others - poll the wires but the first. Returns whether one moved anything */
bool engine_poll_others(struct engine_ep *ep);

/* engine_clock - what an endpoint does once in a while */
void engine_clock(struct engine_ep *ep);

/*
 * While the first wire is busy the others wait longer. A program that seldom comes by waits for
 * none.
 */
static inline bool engine_others_due(struct engine_ep *ep, bool busy)
{
	if (unlikely(!ep->others_wait || ep->slow))
		return true;
	if (!busy)
		ep->others_wait--;
	else if (likely(ep->tick % ENGINE_BUSY_TICKS))
		ep->others_wait = ep->others_full;
	else
		ep->others_wait = 0;
	return false;
}

/* engine_progress - one round for one endpoint; did its wires move anything? */
static inline bool engine_progress(struct engine_ep *ep)
{
	struct engine_wire *w = &ep->wires[0];
	bool moved = false;

	if (likely(w->wire != NULL))
		moved = w->ops->poll(w->wire);
	if (unlikely(engine_others_due(ep, moved)))
		moved |= engine_poll_others(ep);
	if (unlikely(!list_empty(&ep->acks)))
		engine_acks_send(ep);
	if (unlikely(!list_empty(&ep->blocked)))
		engine_peers_service(ep);
	if (unlikely(!(++ep->tick % ENGINE_CLOCK_TICKS)))
		engine_clock(ep);
	return moved;
}

/* engine_round - engine_domain_round() within its caller */
static inline bool engine_round(struct engine_domain *domain)
{
	struct list *node, *after;
	bool moved = false;

	domain->gathered = false;
	list_for_each(node, after, &domain->eps)
		moved |= engine_progress(container_of(node, struct engine_ep, domain_link));
	if (unlikely(!list_empty(&domain->tasks)))
		engine_tasks_run(domain);
	if (unlikely(!list_empty(&domain->due)))
		engine_due_run(domain);
	if (unlikely(!list_empty(&domain->armed)))
		engine_armed_round(domain);
	return moved;
}

#endif
