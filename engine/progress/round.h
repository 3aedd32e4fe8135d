/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A round of progress, inline: fi_cq_read() makes one in every call that finds its queue empty,
 * and most of those move nothing. Others call engine_domain_round(). The caller holds the domain.
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
 * engine_ep_look - what an endpoint does once in a while: when it is due, a look at the clock, a
 * poll of the wires but the first. Returns whether one moved anything.
 */
bool engine_ep_look(struct engine_ep *ep);

/*
 * engine_round_rest - what a round does when it has polled: ACKs, peers that are blocked, tasks,
 * work that is due
 */
void engine_round_rest(struct engine_domain *domain);

/* engine_ep_poll - poll the wires of one endpoint. Did they move anything? */
static inline bool engine_ep_poll(struct engine_ep *ep)
{
	struct engine_wire *w = &ep->wires[0];
	bool moved = likely(w->wire != NULL) && w->ops->poll(w->wire);

	if (moved)
		ep->busy = true;
	if (unlikely(!--ep->look_wait))
		moved |= engine_ep_look(ep);
	return moved;
}

/* engine_round - engine_domain_round() within its caller */
static inline bool engine_round(struct engine_domain *domain)
{
	struct list *node, *after;
	bool moved = false;

	domain->gathered = false;
	list_for_each(node, after, &domain->eps)
		moved |= engine_ep_poll(container_of(node, struct engine_ep, domain_link));
	if (unlikely(domain->pending))
		engine_round_rest(domain);
	return moved;
}

#endif
