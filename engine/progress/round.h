/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A round of progress, inline for fi_cq_read(): each call that finds the queue empty makes one, and
 * most of them move nothing. Other callers use engine_domain_round().
 *
 * The caller holds the domain.
 */
#ifndef WEFT_ROUND_H
#define WEFT_ROUND_H

#include "access.h"
#include "arm.h"
#include "cntr.h"
#include "flush.h"
#include "progress.h"
#include "tasks.h"

/*
 * engine_ep_look - read the clock, and poll the wires other than the first, each if it is due
 * Called when ep->look_wait has reached 0, which the call sets again. Returns true if a poll moved
 * something.
 */
bool engine_ep_look(struct engine_ep *ep);

/*
 * engine_round_rest - the second part of a round: ACKs, blocked peers, tasks, triggered work that
 * is due, woken sleepers
 * Called while domain->pending is set; clears it when nothing is left.
 */
void engine_round_rest(struct engine_domain *domain);

/* engine_single_more - what engine_single_rest() does rarely */
void engine_single_more(struct engine_domain *domain);

/*
 * engine_ep_deaf - returns true while as many completions of receives and of peers' accesses are unread as may be,
 * in the queue of one of its receive contexts
 * What peers send stays in their connections until they are read: else a queue would grow for as long as they like.
 */
static inline bool engine_ep_deaf(const struct engine_ep *ep)
{
	if (PLATFORM_HELD_MAX == UINT32_MAX)
		return false;
	for (uint32_t i = 0; i < ep->rx_cnt; i++) {
		const struct engine_cq *cq = ep->rxs[i] ? ep->rxs[i]->cq : NULL;

		if (cq && unlikely(cq->queue.tail - cq->queue.head >= PLATFORM_HELD_MAX))
			return true;
	}
	return false;
}

/* engine_ep_poll - poll the wires of one endpoint. Returns true if a poll moved something */
static inline bool engine_ep_poll(struct engine_ep *ep)
{
	struct engine_wire *w = &ep->wires[0];
	bool moved = likely(w->wire != NULL) && !engine_ep_deaf(ep) && w->ops->poll(w->wire);

	if (moved)
		ep->busy = true;
	if (unlikely(!--ep->look_wait))
		moved |= engine_ep_look(ep);
	return moved;
}

/* engine_round - engine_domain_round(), inlined */
static inline bool engine_round(struct engine_domain *domain)
{
	struct engine_ep *ep;
	bool moved = false;

	domain->gathered = false;
	list_for_each_entry(ep, &domain->eps, domain_link)
		moved |= engine_ep_poll(ep);
	if (unlikely(domain->pending))
		engine_round_rest(domain);
	return moved;
}

/*
 * engine_single_poll - engine_domain_progress() of a domain with domain->single: polls
 * engine_single_rest - the rest of it, which reads the domain again: a caller with both inlined
 * keeps less across the poll
 */
static inline void engine_single_poll(struct engine_domain *domain)
{
	struct engine_ep *ep = domain->single;
	struct engine_wire *w = &ep->wires[0];

	engine_domain_count(domain);
	domain->gathered = false;
	domain->idle++;
	if (likely(w->wire != NULL) && !engine_ep_deaf(ep) && w->ops->poll(w->wire)) {
		ep->busy = true;
		ep->domain->idle = 0;
	}
}

static inline void engine_single_rest(struct engine_domain *domain)
{
	bool look = !--domain->single->look_wait;

	if (unlikely(look | domain->pending))
		engine_single_more(domain);
	if (unlikely(domain->idle > domain->yield_after))
		engine_domain_idle(domain);
}

#endif
