/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Who sleeps in a domain, and waking them. Called with the domain held: by those who are about to sleep
 * and have woken up, by what writes completions while somebody waits for them, at the end of rounds.
 *
 * What has been woken leaves the list at the end of a round, or when it says that it is awake: not
 * at once, since the wires are disarmed when nobody is left, and that is not for poll().
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
	/* In the child of a fork those who slept in the parent are to be forgotten first. */
	engine_waiter_open(domain);
	if (list_empty(&armed->link))
		list_push(&domain->armed, &armed->link);
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
	if (thread && armed->threads) /* in the child of a fork they are gone */
		armed->threads--;
	else if (!thread)
		armed->descriptor = false;
	if (!armed->threads && !armed->descriptor)
		engine_armed_remove(armed);
	engine_waiter_rest(domain);
}

void engine_armed_forget(struct engine_domain *domain, struct engine_armed *armed)
{
	armed->threads = 0;
	armed->descriptor = false;
	engine_armed_remove(armed);
	engine_waiter_rest(domain);
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
		engine_waiter_ring(domain);
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
