/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The descriptors that sleepers of a domain poll: the poll set with the bells of the wires, the
 * bell that wakes threads, the timer that wakes programs. Called with the domain held, unless
 * waiting.h says otherwise.
 *
 * The child of a fork inherits the descriptors of its parent but does not change the objects behind
 * them: it closes them and opens its own. Numbers that the program knows stay valid.
 */
#include <rdma/fi_errno.h>
#include "waiting.h"

void engine_waiter_init(struct engine_waiter *waiter)
{
	*waiter = (struct engine_waiter){ .open = false };
	platform_lock_init(&waiter->lock);
}

static bool engine_waiter_here(const struct engine_waiter *waiter)
{
	return waiter->open && waiter->forks == platform_forks();
}

static void engine_waiter_release(struct engine_waiter *waiter)
{
	if (waiter->poll_set >= 0) {
		platform_poll_set_close(waiter->poll_set);
		platform_timer_close(waiter->timer);
	}
	platform_bell_close(&waiter->bell);
	waiter->open = false;
}

void engine_waiter_close(struct engine_waiter *waiter)
{
	if (waiter->open)
		engine_waiter_release(waiter);
	platform_lock_fini(&waiter->lock);
}

/* In the child of a fork: the sleepers of the parent do not exist here. */
static void engine_waiter_forked(struct engine_domain *domain)
{
	struct engine_waiter *waiter = &domain->waiter;
	uint32_t poll_sets = waiter->poll_sets;
	struct list *node, *after;

	waiter->armed = false; /* the wires are the parent's */
	list_for_each(node, after, &domain->armed)
		engine_armed_forget(domain, container_of(node, struct engine_armed, link));
	engine_waiter_release(waiter);
	engine_waiter_init(waiter);
	waiter->poll_sets = poll_sets;
}

static void engine_wire_add_bell(struct engine_waiter *waiter, struct engine_wire *w)
{
	w->bell_polled = false;
	if (!w->wire || !w->ops->bell || waiter->poll_set < 0)
		return;
	w->bell = w->ops->bell(w->wire, waiter->poll_set);
	w->bell_polled = w->bell >= 0 && !platform_poll_set_add(waiter->poll_set, w->bell);
}

static void engine_ep_add_bells(struct engine_ep *ep)
{
	for (uint32_t i = 0; i < ep->wire_cnt; i++)
		engine_wire_add_bell(&ep->domain->waiter, &ep->wires[i]);
}

static void engine_domain_add_bells(struct engine_domain *domain)
{
	struct list *node, *after;

	list_for_each(node, after, &domain->eps)
		engine_ep_add_bells(container_of(node, struct engine_ep, domain_link));
}

static void engine_bells_restore(struct engine_domain *domain)
{
	if (likely(!domain->waiter.parted))
		return;
	domain->waiter.parted = false;
	engine_domain_add_bells(domain);
}

/* Open the poll set and the timer. Returns 0 also if the platform has no poll sets. */
static int engine_waiter_open_poll_set(struct engine_waiter *waiter)
{
	int ret = platform_poll_set_open(NULL, &waiter->poll_set);

	waiter->timer = -1;
	if (ret)
		waiter->poll_set = -1;
	if (ret == -FI_ENOSYS)
		return 0;
	if (!ret)
		ret = platform_timer_open(&waiter->timer);
	if (ret && waiter->poll_set >= 0)
		platform_poll_set_close(waiter->poll_set);
	return ret;
}

int engine_waiter_open(struct engine_domain *domain)
{
	struct engine_waiter *waiter = &domain->waiter;
	int ret;

	if (likely(engine_waiter_here(waiter))) {
		engine_bells_restore(domain);
		return 0;
	}
	if (waiter->open)
		engine_waiter_forked(domain);
	ret = platform_bell_open(&waiter->bell);
	if (ret)
		return ret;
	ret = engine_waiter_open_poll_set(waiter);
	if (ret) {
		platform_bell_close(&waiter->bell);
		return ret;
	}
	waiter->open = true;
	waiter->forks = platform_forks();
	engine_domain_add_bells(domain);
	return 0;
}

void engine_waiter_join(struct engine_ep *ep)
{
	if (engine_waiter_here(&ep->domain->waiter) && !ep->domain->waiter.parted)
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

void engine_waiter_part(struct engine_ep *ep)
{
	struct engine_waiter *waiter = &ep->domain->waiter;

	for (uint32_t i = 0; i < ep->wire_cnt; i++) {
		struct engine_wire *w = &ep->wires[i];

		if (w->bell_polled && engine_waiter_here(waiter) &&
		    !engine_bell_shared(ep, w->bell))
			platform_poll_set_remove(waiter->poll_set, w->bell);
		w->bell_polled = false;
	}
	engine_wake(ep->domain);
}

void engine_waiter_clear(struct engine_domain *domain)
{
	struct engine_waiter *waiter = &domain->waiter;
	struct list *node, *after;

	if (waiter->armed || waiter->parted || !engine_waiter_here(waiter))
		return;
	waiter->parted = true;
	list_for_each(node, after, &domain->eps) {
		struct engine_ep *ep = container_of(node, struct engine_ep, domain_link);

		for (uint32_t i = 0; i < ep->wire_cnt; i++) {
			if (ep->wires[i].bell_polled)
				platform_poll_set_remove(waiter->poll_set, ep->wires[i].bell);
			ep->wires[i].bell_polled = false;
		}
	}
}

void engine_waiter_rest(struct engine_domain *domain)
{
	struct list *node, *after;

	if (!domain->waiter.armed || !list_empty(&domain->armed) ||
	    !engine_waiter_here(&domain->waiter))
		return;
	domain->waiter.armed = false;
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
void engine_waiter_timer(struct engine_domain *domain, uint64_t ns)
{
	struct engine_waiter *waiter = &domain->waiter;
	uint64_t now = platform_now_ns();

	if (waiter->timer_ns > now + ns / 2 && waiter->timer_ns <= now + ns)
		return;
	waiter->timer_ns = now + ns;
	platform_timer_set(waiter->timer, ns);
}

/* Threads that sleep */

bool engine_waiter_enter(struct engine_domain *domain, struct platform_wakers *on)
{
	struct engine_waiter *waiter = &domain->waiter;
	bool here = engine_waiter_here(waiter);

	platform_lock(&waiter->lock);
	waiter->asleep++;
	platform_unlock(&waiter->lock);
	on->bell = here ? &waiter->bell : NULL;
	on->descriptor = here ? waiter->poll_set : -1;
	return here;
}

bool engine_waiter_leave(struct engine_domain *domain)
{
	struct engine_waiter *waiter = &domain->waiter;
	bool others;

	platform_lock(&waiter->lock);
	if (waiter->asleep)
		waiter->asleep--;
	if (!waiter->asleep && waiter->rung) {
		waiter->rung = false;
		platform_bell_clear(&waiter->bell);
	}
	others = waiter->asleep;
	platform_unlock(&waiter->lock);
	return others;
}

void engine_waiter_ring(struct engine_domain *domain)
{
	struct engine_waiter *waiter = &domain->waiter;

	platform_lock(&waiter->lock);
	if (waiter->asleep && !waiter->rung && engine_waiter_here(waiter)) {
		waiter->rung = true;
		platform_bell_ring(&waiter->bell);
	}
	platform_unlock(&waiter->lock);
}

/* Descriptors of objects */

static int engine_waiter_add_to(struct engine_waiter *waiter, int poll_set)
{
	int ret = platform_poll_set_add(poll_set, waiter->poll_set);

	return ret ? ret : platform_poll_set_add(poll_set, waiter->timer);
}

int engine_waiter_object(struct engine_domain *domain, int *descriptor)
{
	struct engine_waiter *waiter = &domain->waiter;
	int ret = engine_waiter_open(domain), poll_set;

	if (ret)
		return ret;
	ret = platform_poll_set_open(&waiter->bell, &poll_set);
	if (ret)
		return ret;
	ret = engine_waiter_add_to(waiter, poll_set);
	if (ret)
		platform_poll_set_close(poll_set);
	else
		*descriptor = poll_set;
	return ret;
}

int engine_waiter_object_renew(struct engine_domain *domain, int descriptor)
{
	int fresh, ret = engine_waiter_object(domain, &fresh);

	return ret ? ret : platform_descriptor_renew(descriptor, fresh);
}

/* Poll sets for several domains */

bool engine_poll_set_here(const struct engine_poll_set *poll_set)
{
	return poll_set->open && poll_set->forks == platform_forks();
}

/* In the child of a fork the poll set keeps its number. */
int engine_poll_set_open(struct engine_poll_set *poll_set)
{
	struct platform_bell bell;
	int fresh, ret;

	if (engine_poll_set_here(poll_set))
		return 0;
	ret = platform_bell_open(&bell);
	if (ret)
		return ret;
	ret = platform_poll_set_open(NULL, &fresh);
	if (ret)
		goto err_bell;
	ret = platform_poll_set_add(fresh, platform_bell_descriptor(&bell));
	if (ret)
		goto err_poll_set;
	if (poll_set->open) {
		ret = platform_descriptor_renew(poll_set->poll_set, fresh);
		if (ret)
			goto err_bell;
		platform_bell_close(&poll_set->bell);
	} else {
		poll_set->poll_set = fresh;
	}
	poll_set->bell = bell;
	poll_set->forks = platform_forks();
	poll_set->open = true;
	return 0;

err_poll_set:
	platform_poll_set_close(fresh);
err_bell:
	platform_bell_close(&bell);
	return ret;
}

void engine_poll_set_close(struct engine_poll_set *poll_set)
{
	if (!poll_set->open)
		return;
	platform_poll_set_close(poll_set->poll_set);
	platform_bell_close(&poll_set->bell);
	poll_set->open = false;
}

int engine_poll_set_add(struct engine_poll_set *poll_set, struct engine_domain *domain)
{
	int ret = engine_waiter_open(domain);

	return ret ? ret : engine_waiter_add_to(&domain->waiter, poll_set->poll_set);
}

void engine_poll_set_remove(struct engine_poll_set *poll_set, struct engine_domain *domain)
{
	if (!engine_poll_set_here(poll_set) || !engine_waiter_here(&domain->waiter))
		return;
	platform_poll_set_remove(poll_set->poll_set, domain->waiter.poll_set);
	platform_poll_set_remove(poll_set->poll_set, domain->waiter.timer);
}
