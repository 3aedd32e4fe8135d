/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The wires of a domain in its channel: their bells are in its poll set, and they are disarmed once
 * no thread sleeps. Called with the domain held.
 */
#include "waiting.h"

/* In the child of a fork: the sleepers of the parent do not exist here. */
static void engine_domain_forked(struct engine_domain *domain)
{
	struct list *node, *after;

	domain->wires_armed = false; /* the wires are the parent's */
	list_for_each(node, after, &domain->armed)
		engine_wait_forget(container_of(node, struct engine_wait, link));
	engine_channel_close(&domain->channel);
	engine_channel_init(&domain->channel, ENGINE_CHANNEL_DOMAIN);
}

static void engine_wire_add_bell(struct engine_wire *w, int poll_set)
{
	w->bell_polled = false;
	if (!w->wire || !w->ops->bell || poll_set < 0)
		return;
	w->bell = w->ops->bell(w->wire, poll_set);
	w->bell_polled = w->bell >= 0 && !platform_poll_set_add(poll_set, w->bell);
}

static void engine_ep_add_bells(struct engine_ep *ep)
{
	for (uint32_t i = 0; i < ep->wire_cnt; i++)
		engine_wire_add_bell(&ep->wires[i], ep->domain->channel.poll_set);
}

static void engine_domain_add_bells(struct engine_domain *domain)
{
	struct list *node, *after;

	list_for_each(node, after, &domain->eps)
		engine_ep_add_bells(container_of(node, struct engine_ep, domain_link));
}

static void engine_bells_restore(struct engine_domain *domain)
{
	if (likely(!domain->bells_parted))
		return;
	domain->bells_parted = false;
	engine_domain_add_bells(domain);
}

int engine_domain_channel(struct engine_domain *domain)
{
	int ret;

	if (likely(engine_channel_is_local(&domain->channel))) {
		engine_bells_restore(domain);
		return 0;
	}
	if (engine_channel_opened(&domain->channel))
		engine_domain_forked(domain);
	ret = engine_channel_open(&domain->channel, NULL);
	if (ret)
		return ret;
	domain->bells_parted = false;
	engine_domain_add_bells(domain);
	return 0;
}

void engine_bells_join(struct engine_ep *ep)
{
	if (engine_channel_is_local(&ep->domain->channel) && !ep->domain->bells_parted)
		engine_ep_add_bells(ep);
	engine_wake(ep->domain);
}

/* Returns true if a bell in the poll set serves another endpoint of the domain too. */
static bool engine_bell_shared(const struct engine_ep *ep, int bell)
{
	const struct list *node;

	for (node = ep->domain->eps.next; node != &ep->domain->eps; node = node->next) {
		struct engine_ep *other = container_of(node, struct engine_ep, domain_link);

		for (uint32_t i = 0; other != ep && i < other->wire_cnt; i++)
			if (other->wires[i].bell_polled && other->wires[i].bell == bell)
				return true;
	}
	return false;
}

void engine_bells_part(struct engine_ep *ep)
{
	const struct engine_channel *channel = &ep->domain->channel;

	for (uint32_t i = 0; i < ep->wire_cnt; i++) {
		struct engine_wire *w = &ep->wires[i];

		if (w->bell_polled && engine_channel_is_local(channel) &&
		    !engine_bell_shared(ep, w->bell))
			platform_poll_set_remove(channel->poll_set, w->bell);
		w->bell_polled = false;
	}
	engine_wake(ep->domain);
}

void engine_bells_clear(struct engine_domain *domain)
{
	const struct engine_channel *channel = &domain->channel;
	struct list *node, *after;

	if (domain->wires_armed || domain->bells_parted || !engine_channel_is_local(channel))
		return;
	domain->bells_parted = true;
	list_for_each(node, after, &domain->eps) {
		struct engine_ep *ep = container_of(node, struct engine_ep, domain_link);

		for (uint32_t i = 0; i < ep->wire_cnt; i++) {
			if (ep->wires[i].bell_polled)
				platform_poll_set_remove(channel->poll_set, ep->wires[i].bell);
			ep->wires[i].bell_polled = false;
		}
	}
}

void engine_wires_disarm(struct engine_domain *domain)
{
	struct list *node, *after;

	if (!domain->wires_armed || !list_empty(&domain->armed) ||
	    !engine_channel_is_local(&domain->channel))
		return;
	domain->wires_armed = false;
	list_for_each(node, after, &domain->eps) {
		struct engine_ep *ep = container_of(node, struct engine_ep, domain_link);

		for (uint32_t i = 0; i < ep->wire_cnt; i++)
			if (ep->wires[i].wire && ep->wires[i].ops->disarm)
				ep->wires[i].ops->disarm(ep->wires[i].wire);
	}
}

/*
 * A timer that rings early does no harm, and setting it is a system call: one in the second half
 * stays.
 */
void engine_domain_timer(struct engine_domain *domain, uint64_t ns)
{
	struct engine_channel *channel = &domain->channel;
	uint64_t now = platform_now_ns();

	if (channel->timer_ns > now + ns / 2 && channel->timer_ns <= now + ns)
		return;
	channel->timer_ns = now + ns;
	platform_timer_set(channel->timer, ns);
}
