/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The objects of a domain that have sleepers, and waking these. Called with the domain held: before
 * a thread sleeps and after it has woken, when a completion is written that a sleeper waits for,
 * and at the end of rounds.
 *
 * An object that was woken leaves domain->armed at the end of a round, or when its sleeper reports
 * that it is awake, but not at once: with the last object the wires are disarmed, which poll() may
 * not do.
 */
#include "waiting.h"

void engine_armed_init(struct engine_armed *armed, void (*ring)(struct engine_armed *armed),
		       void (*watch)(struct engine_armed *armed, bool on))
{
	*armed = (struct engine_armed){ .ring = ring, .watch = watch };
	list_init(&armed->link);
}

void engine_armed_remove(struct engine_armed *armed)
{
	if (list_empty(&armed->link))
		return;
	list_remove(&armed->link);
	if (armed->watch)
		armed->watch(armed, false);
}

void engine_armed_add(struct engine_domain *domain, struct engine_armed *armed, bool thread)
{
	/* In the child of a fork this forgets the sleepers of the parent. */
	engine_domain_channel(domain);
	if (list_empty(&armed->link))
		list_add_tail(&domain->armed, &armed->link);
	domain->pending = true;
	if (armed->watch)
		armed->watch(armed, true);
	armed->came = false;
	if (thread)
		armed->threads++;
	else
		armed->descriptor = true;
}

void engine_armed_drop(struct engine_domain *domain, struct engine_armed *armed, bool thread)
{
	if (thread && armed->threads) /* 0 in the child of a fork */
		armed->threads--;
	else if (!thread)
		armed->descriptor = false;
	if (!armed->threads && !armed->descriptor)
		engine_armed_remove(armed);
	engine_wires_disarm(domain);
}

void engine_armed_forget(struct engine_domain *domain, struct engine_armed *armed)
{
	armed->threads = 0;
	armed->descriptor = false;
	engine_armed_remove(armed);
	engine_wires_disarm(domain);
}

void engine_armed_wake(struct engine_domain *domain, struct engine_armed *armed)
{
	if (armed->came)
		return;
	armed->came = true;
	if (armed->descriptor)
		armed->ring(armed);
	armed->descriptor = false;
	if (armed->threads)
		engine_channel_ring(&domain->channel);
}

void engine_wake_all(struct engine_domain *domain)
{
	struct list *node, *after;

	list_for_each(node, after, &domain->armed)
		engine_armed_wake(domain, container_of(node, struct engine_armed, link));
}

void engine_wire_wake(struct wire *wire)
{
	engine_wake(wire->ep->domain);
}
