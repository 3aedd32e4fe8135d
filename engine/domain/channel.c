/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Channels: opened by the first call that sleeps on them, rung, and closed with their owner. Called
 * on any thread; the owner's lock serializes the calls that open and close one.
 *
 * The child of a fork inherits the descriptors of its parent but does not change the objects behind
 * them: a channel that the parent has opened is silent until it is opened again. The numbers of
 * exported descriptors stay valid.
 */
#include <rdma/fi_errno.h>
#include "waiting.h"

void engine_channel_init(struct engine_channel *c, enum engine_channel_kind kind)
{
	*c = (struct engine_channel){ .kind = kind, .poll_set = -1, .timer = -1 };
	platform_lock_init(&c->lock);
}

bool engine_channel_is_local(const struct engine_channel *c)
{
	/*
	 * A:engine_channel.opened  what it consists of; pairs R:engine_channel.opened
	 * F:engine_channel.opened  a signal before it, or the one that opens it sees the signal;
	 * pairs F:engine_signals.cnt
	 */
	return atomic_load_explicit(&c->opened, memory_order_seq_cst) == platform_forks() + 1;
}

int engine_channel_descriptor(const struct engine_channel *c)
{
	if (!engine_channel_opened(c))
		return -1;
	return c->poll_set >= 0 ? c->poll_set : platform_bell_descriptor(&c->bell);
}

int engine_channel_export(struct engine_channel *c)
{
	atomic_store_explicit(&c->exported, true, memory_order_relaxed);
	return engine_channel_descriptor(c);
}

/* Opening and closing */

/* Add what the channel of a domain consists of to a poll set, but for its bell. */
static int engine_poll_set_add_domain(int poll_set, const struct engine_channel *of)
{
	int ret = platform_poll_set_add(poll_set, of->poll_set);

	return ret ? ret : platform_poll_set_add(poll_set, of->timer);
}

/* The poll set and the timer of a domain's channel. Returns 0 also if the platform has none. */
static int engine_channel_open_domain(struct engine_channel *fresh)
{
	int ret = platform_poll_set_open(&fresh->bell, &fresh->poll_set);

	if (ret)
		return ret == -FI_ENOSYS ? 0 : ret;
	ret = platform_timer_open(&fresh->timer);
	if (ret)
		platform_poll_set_close(fresh->poll_set);
	return ret;
}

/* The poll set of a set's or a queue's channel, over its bell and over @domain. */
static int engine_channel_open_over(struct engine_channel *fresh,
				    const struct engine_domain *domain)
{
	int ret = platform_poll_set_open(domain ? &fresh->bell : NULL, &fresh->poll_set);

	if (ret)
		return ret;
	if (domain)
		ret = engine_poll_set_add_domain(fresh->poll_set, &domain->channel);
	else
		ret = platform_poll_set_add(fresh->poll_set,
					    platform_bell_descriptor(&fresh->bell));
	if (ret)
		platform_poll_set_close(fresh->poll_set);
	return ret;
}

static int engine_channel_open_rest(struct engine_channel *fresh,
				    const struct engine_domain *domain)
{
	switch (fresh->kind) {
	case ENGINE_CHANNEL_DOMAIN:
		return engine_channel_open_domain(fresh);
	case ENGINE_CHANNEL_SET:
	case ENGINE_CHANNEL_QUEUE:
		return engine_channel_open_over(fresh, domain);
	case ENGINE_CHANNEL_CALL:
		return 0;
	case ENGINE_CHANNEL_BELL:
		break;
	}
	return platform_bell_descriptor(&fresh->bell) < 0 ? -FI_ENOSYS : 0;
}

/* Open what a channel of that kind consists of. */
static int engine_channel_open_parts(struct engine_channel *fresh, struct engine_domain *domain)
{
	int ret = domain ? engine_domain_channel(domain) : platform_bell_open(&fresh->bell);

	if (ret)
		return ret;
	if (domain)
		fresh->bell = domain->channel.bell;
	ret = engine_channel_open_rest(fresh, domain);
	if (ret && !domain)
		platform_bell_close(&fresh->bell);
	return ret;
}

static void engine_channel_close_parts(struct engine_channel *c)
{
	if (c->poll_set >= 0)
		platform_poll_set_close(c->poll_set);
	if (c->timer >= 0)
		platform_timer_close(c->timer);
	if (c->kind != ENGINE_CHANNEL_QUEUE) /* that one's bell is its domain's */
		platform_bell_close(&c->bell);
}

/* The new descriptor gets the number of the exported one. */
static int engine_channel_renumber(struct engine_channel *c, struct engine_channel *fresh)
{
	int old = engine_channel_descriptor(c), ret;

	if (c->kind == ENGINE_CHANNEL_BELL) {
		ret = platform_descriptor_renew(old, platform_bell_descriptor(&fresh->bell));
		fresh->bell = c->bell;
		return ret;
	}
	ret = platform_descriptor_renew(old, fresh->poll_set);
	fresh->poll_set = old;
	if (c->kind == ENGINE_CHANNEL_SET)
		platform_bell_close(ret ? &fresh->bell : &c->bell);
	return ret;
}

/* In the child of a fork: no thread sleeps here, and the parent's descriptors are closed. */
static int engine_channel_renew(struct engine_channel *c, struct engine_channel *fresh)
{
	int ret = engine_channel_renumber(c, fresh);

	platform_lock_init(&c->lock); /* a thread of the parent may have held it */
	c->rung = false;
	c->asleep = 0;
	return ret;
}

int engine_channel_open(struct engine_channel *c, struct engine_domain *domain)
{
	struct engine_channel fresh = { .kind = c->kind, .poll_set = -1, .timer = -1 };
	int ret;

	if (engine_channel_is_local(c))
		return 0;
	ret = engine_channel_open_parts(&fresh, domain);
	if (!ret && engine_channel_opened(c))
		ret = engine_channel_renew(c, &fresh);
	if (ret)
		return ret;
	c->bell = fresh.bell;
	c->poll_set = fresh.poll_set;
	c->timer = fresh.timer;
	/* R:engine_channel.opened  what it consists of; pairs A:engine_channel.opened */
	atomic_store_explicit(&c->opened, platform_forks() + 1, memory_order_seq_cst);
	return 0;
}

void engine_channel_close(struct engine_channel *c)
{
	if (engine_channel_opened(c))
		engine_channel_close_parts(c);
	platform_lock_fini(&c->lock);
}

int engine_channel_add(struct engine_channel *c, struct engine_domain *domain)
{
	int ret = engine_domain_channel(domain);

	return ret ? ret : engine_poll_set_add_domain(c->poll_set, &domain->channel);
}

void engine_channel_remove(struct engine_channel *c, struct engine_domain *domain)
{
	if (!engine_channel_is_local(c) || !engine_channel_is_local(&domain->channel))
		return;
	platform_poll_set_remove(c->poll_set, domain->channel.poll_set);
	platform_poll_set_remove(c->poll_set, domain->channel.timer);
}

/* Ringing; with the lock. A queue's channel has the bell of its domain, which stays silent. */

static void engine_channel_ring_locked(struct engine_channel *c)
{
	if (c->rung)
		return;
	c->rung = true;
	if (c->kind == ENGINE_CHANNEL_QUEUE)
		platform_poll_set_ring(c->poll_set, &c->bell);
	else
		platform_bell_ring(&c->bell);
}

static void engine_channel_clear_locked(struct engine_channel *c)
{
	if (!c->rung)
		return;
	c->rung = false;
	if (c->kind == ENGINE_CHANNEL_QUEUE) {
		platform_poll_set_clear(c->poll_set, &c->bell);
		return;
	}
	platform_bell_clear(&c->bell);
	/* Where there is no poll set, this may have silenced engine_channel_wake(). */
	if (c->poll_set < 0 && atomic_load_explicit(&c->wake_pending, memory_order_relaxed))
		platform_bell_ring(&c->bell);
}

void engine_channel_ring(struct engine_channel *c)
{
	if (!engine_channel_is_local(c))
		return;
	platform_lock(&c->lock);
	if (c->asleep || c->kind != ENGINE_CHANNEL_DOMAIN)
		engine_channel_ring_locked(c);
	platform_unlock(&c->lock);
}

void engine_channel_clear(struct engine_channel *c)
{
	if (!engine_channel_is_local(c))
		return;
	platform_lock(&c->lock);
	engine_channel_clear_locked(c);
	platform_unlock(&c->lock);
}

/* Threads that sleep */

void engine_channel_wakers(const struct engine_channel *c, struct platform_wakers *on)
{
	bool here = engine_channel_is_local(c);

	*on = (struct platform_wakers){
		.bell = here && c->kind == ENGINE_CHANNEL_DOMAIN ? &c->bell : NULL,
		.descriptor = here ? c->poll_set : -1,
	};
}

bool engine_channel_enter(struct engine_channel *c, struct platform_wakers *on)
{
	platform_lock(&c->lock);
	c->asleep++;
	platform_unlock(&c->lock);
	engine_channel_wakers(c, on);
	return engine_channel_is_local(c);
}

bool engine_channel_leave(struct engine_channel *c)
{
	bool others;

	platform_lock(&c->lock);
	if (c->asleep) /* 0 in the child of a fork */
		c->asleep--;
	others = c->asleep;
	if (!others && c->kind == ENGINE_CHANNEL_DOMAIN && engine_channel_is_local(c))
		engine_channel_clear_locked(c);
	platform_unlock(&c->lock);
	return others;
}

/*
 * Wakes by wires. One that finds wake_pending set leaves the ringing to the one that set it. That
 * one may be interrupted before it rings, until the wires have been armed again: its ring comes late
 * and wakes without need. engine_channel_rearm() sees in @waking that it may still come, and the next
 * one silences it.
 */

/* In any context. The domain's poll set is in those of all programs; it wakes threads too. */
static void engine_channel_ring_all(struct engine_channel *c)
{
	if (c->poll_set >= 0)
		platform_poll_set_ring(c->poll_set, &c->bell);
	else
		platform_bell_ring(&c->bell);
}

static void engine_channel_silence_all(struct engine_channel *c)
{
	if (c->poll_set >= 0) {
		platform_poll_set_clear(c->poll_set, &c->bell);
		return;
	}
	platform_lock(&c->lock);
	if (!c->rung) /* else it is silenced once the last thread is awake */
		platform_bell_clear(&c->bell);
	platform_unlock(&c->lock);
}

void engine_channel_wake(struct engine_channel *c)
{
	if (!engine_channel_is_local(c))
		return;
	atomic_fetch_add_explicit(&c->waking, 1, memory_order_relaxed);
	/*
	 * R:engine_channel.wake_pending  what the wire has, and the count before it; pairs
	 * A:engine_channel.wake_pending
	 */
	if (!atomic_exchange_explicit(&c->wake_pending, true, memory_order_release))
		engine_channel_ring_all(c);
	/* R:engine_channel.waking  the ring before it; pairs A:engine_channel.waking */
	atomic_fetch_sub_explicit(&c->waking, 1, memory_order_release);
}

/* Returns true if there was a wake. */
static bool engine_channel_take_wake(struct engine_channel *c)
{
	/*
	 * A:engine_channel.wake_pending  before the wires are looked at, and the count; pairs
	 * R:engine_channel.wake_pending
	 */
	return atomic_exchange_explicit(&c->wake_pending, false, memory_order_acquire);
}

void engine_channel_rearm(struct engine_channel *c)
{
	bool pending = engine_channel_take_wake(c), late;

	/* A:engine_channel.waking  rings that are over; pairs R:engine_channel.waking */
	late = atomic_load_explicit(&c->waking, memory_order_acquire);
	if (likely(!pending && !late && !c->wake_late))
		return;
	engine_channel_silence_all(c);
	/* A wake since engine_channel_take_wake() may have rung before that or after it. */
	late |= engine_channel_take_wake(c);
	c->wake_late = late;
}
