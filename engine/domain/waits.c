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

void engine_wait_init(struct engine_wait *wait, struct engine_domain *domain,
		      struct engine_channel *channel,
		      void (*watch)(struct engine_wait *wait, bool on))
{
	*wait = (struct engine_wait){ .domain = domain, .channel = channel, .watch = watch };
	list_init(&wait->link);
}

void engine_wait_remove(struct engine_wait *wait)
{
	if (list_empty(&wait->link))
		return;
	list_remove(&wait->link);
	if (wait->watch)
		wait->watch(wait, false);
}

void engine_wait_add(struct engine_wait *wait, bool thread)
{
	/* In the child of a fork this forgets the sleepers of the parent. */
	engine_domain_channel(wait->domain);
	if (list_empty(&wait->link))
		list_add_tail(&wait->domain->armed, &wait->link);
	wait->domain->pending = true;
	if (wait->watch)
		wait->watch(wait, true);
	wait->woken = false;
	if (thread)
		wait->threads++;
	else
		wait->descriptor = true;
}

void engine_wait_drop(struct engine_wait *wait, bool thread)
{
	if (thread && wait->threads) /* 0 in the child of a fork */
		wait->threads--;
	else if (!thread)
		wait->descriptor = false;
	if (!wait->threads && !wait->descriptor)
		engine_wait_remove(wait);
	engine_wires_disarm(wait->domain);
}

void engine_wait_forget(struct engine_wait *wait)
{
	wait->threads = 0;
	wait->descriptor = false;
	engine_wait_remove(wait);
	engine_wires_disarm(wait->domain);
}

void engine_wait_wake(struct engine_wait *wait)
{
	if (wait->woken)
		return;
	wait->woken = true;
	if (wait->descriptor)
		engine_channel_ring(wait->channel);
	wait->descriptor = false;
	if (wait->threads)
		engine_channel_ring(&wait->domain->channel);
}

void engine_wake_all(struct engine_domain *domain)
{
	struct list *node, *after;

	list_for_each(node, after, &domain->armed)
		engine_wait_wake(container_of(node, struct engine_wait, link));
}

void engine_wire_wake(struct wire *wire)
{
	engine_channel_wake(&wire->ep->domain->channel);
}
