/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The domains that readers of an event queue drive, and how threads sleep on the queue. A domain
 * keeps the queue until its last object is unbound. Called on any thread; locks are taken in the
 * order watch_lock, the domain, lock.
 */
#include <rdma/fi_errno.h>
#include "arm.h"
#include "auto.h"
#include "eq_fid.h"
#include "events.h"
#include "fabric_fid.h"
#include "forked.h"
#include "guard.h"
#include "progress.h"
#include "refs.h"
#include "sleep.h"
#include "wait_obj.h"
#include "wait_set_fid.h"
#include "waiting.h"

/* A domain that readers of the queue drive. */
struct engine_watch {
	/* Link in eq->watched */
	struct list link;
	/* Bound objects of the domain */
	uint32_t cnt;
	/* Value of domain->rounds at the last check */
	uint32_t seen;
	/* A thread or the program sleeps on the queue, which the domain may have something for */
	struct engine_wait wait;
};

static struct engine_watch *engine_watch_of(struct engine_eq *eq,
					    const struct engine_domain *domain)
{
	struct engine_watch *watch;

	list_for_each_entry(watch, &eq->watched, link) {
		if (watch->wait.domain == domain)
			return watch;
	}
	return NULL;
}

static struct engine_watch *engine_watch_new(struct engine_eq *eq, struct engine_domain *domain)
{
	struct engine_watch *watch = platform_alloc(sizeof(*watch));

	if (!watch)
		return NULL;
	watch->seen = atomic_load_explicit(&domain->rounds, memory_order_relaxed);
	engine_wait_init(&watch->wait, domain, &eq->channel, NULL);
	list_add_tail(&eq->watched, &watch->link);
	return watch;
}

static void engine_watch_free(struct engine_watch *watch)
{
	list_remove(&watch->link);
	platform_free(watch);
}

int engine_eq_watch(struct engine_eq *eq, struct engine_domain *domain)
{
	struct engine_watch *watch;
	int ret = 0;

	platform_lock(&eq->watch_lock);
	watch = engine_watch_of(eq, domain);
	if (!watch) {
		watch = engine_watch_new(eq, domain);
		ret = watch ? engine_channel_hold(&eq->channel, domain) : -FI_ENOMEM;
		if (!ret)
			engine_ref(&eq->refs);
	}
	if (!ret)
		watch->cnt++;
	else if (watch)
		engine_watch_free(watch);
	platform_unlock(&eq->watch_lock);
	return ret;
}

void engine_eq_free(struct engine_eq *eq)
{
	engine_fork_lock_close(&eq->fork_watch_lock);
	engine_fork_lock_close(&eq->fork_lock);
	engine_channel_close(&eq->channel);
	eq_fini(&eq->queue);
	platform_lock_fini(&eq->lock);
	platform_lock_fini(&eq->watch_lock);
	platform_free(eq);
}

void engine_eq_put(struct engine_eq *eq)
{
	struct engine_fabric *fabric = eq->fabric;

	if (atomic_fetch_sub_explicit(&eq->refs, 1, memory_order_acq_rel) > 1)
		return;
	engine_eq_free(eq);
	engine_fabric_put(fabric);
}

void engine_eq_drop(struct engine_eq *eq, struct engine_domain *domain)
{
	struct engine_watch *watch;
	bool last;

	platform_lock(&eq->watch_lock);
	watch = engine_watch_of(eq, domain);
	last = !--watch->cnt;
	if (last) {
		engine_enter(domain);
		engine_channel_remove(&eq->channel, domain);
		engine_wait_forget(&watch->wait);
		engine_leave(domain);
		engine_watch_free(watch);
	}
	platform_unlock(&eq->watch_lock);
	if (last)
		engine_eq_put(eq);
}

/*
 * Drives the domain, unless the program has driven it since the last check: then no round is
 * needed, and claiming the domain from its callers is expensive (guard.h).
 */
static void engine_watch_drive(struct engine_watch *watch)
{
	struct engine_domain *domain = watch->wait.domain;
	uint32_t rounds = atomic_load_explicit(&domain->rounds, memory_order_relaxed);

	if (rounds != watch->seen) {
		watch->seen = rounds;
		return;
	}
	engine_enter(domain);
	engine_domain_progress(domain);
	watch->seen = atomic_load_explicit(&domain->rounds, memory_order_relaxed);
	engine_leave(domain);
}

static void engine_eq_progress(struct engine_eq *eq)
{
	struct engine_watch *watch;

	engine_fork_lock_give_way(&eq->fork_watch_lock);
	platform_lock(&eq->watch_lock);
	list_for_each_entry(watch, &eq->watched, link)
		engine_watch_drive(watch);
	platform_unlock(&eq->watch_lock);
}

static bool engine_eq_is_empty(struct engine_eq *eq)
{
	bool empty;

	platform_lock(&eq->lock);
	empty = eq_empty(&eq->queue);
	platform_unlock(&eq->lock);
	return empty;
}

bool engine_eq_check(struct engine_eq *eq)
{
	if (!engine_eq_is_empty(eq))
		return true;
	engine_eq_progress(eq);
	return !engine_eq_is_empty(eq);
}

/* Sleeping. The channel is rung while the queue has events, or to have its readers check. */

void engine_eq_event_read(struct engine_eq *eq)
{
	if (eq_empty(&eq->queue))
		engine_channel_clear(&eq->channel);
}

/* Opens the channel; with watch_lock. In the child of a fork the domains are added again. */
static int engine_eq_open_channel(struct engine_eq *eq)
{
	struct engine_watch *watch;
	int ret;

	if (engine_channel_is_local(&eq->channel))
		return 0;
	platform_lock(&eq->lock);
	ret = engine_channel_open(&eq->channel, NULL);
	if (!ret && !eq_empty(&eq->queue))
		engine_eq_wake(eq);
	platform_unlock(&eq->lock);
	list_for_each_entry(watch, &eq->watched, link)
		if (!ret)
			ret = engine_channel_hold(&eq->channel, watch->wait.domain);
	return ret;
}

/* The queue is checked for an event once all its domains were driven. */
static bool engine_watch_look(struct engine_wait *wait)
{
	engine_domain_progress(wait->domain);
	return false;
}

/* Makes rounds until the wires of the domain are armed. Returns 0, -FI_EAGAIN or another -FI_E*. */
static int engine_watch_arm(struct engine_watch *watch)
{
	struct engine_domain *domain = watch->wait.domain;
	int ret;

	if (engine_auto_needed(domain))
		return engine_auto_wake(domain);
	engine_enter(domain);
	engine_domain_clock(domain);
	ret = engine_wait_arm(&watch->wait, engine_watch_look);
	watch->seen = atomic_load_explicit(&domain->rounds, memory_order_relaxed);
	engine_leave(domain);
	return ret;
}

/* Events keep a program from sleeping on the queue, unless it may: then they ring its channel. */
static bool engine_eq_keeps_awake(struct engine_eq *eq)
{
	return !eq->fabric->sleeps_on_events && !engine_eq_is_empty(eq);
}

/*
 * Prepares to sleep on the queue. With watch_lock. 0, -FI_EAGAIN if it has an event that keeps
 * awake, or another -FI_E*
 */
static int engine_eq_arm(struct engine_eq *eq)
{
	struct engine_watch *watch;
	int ret = engine_eq_open_channel(eq);

	if (ret)
		return ret;
	platform_lock(&eq->lock);
	engine_eq_event_read(eq); /* threads that sleep already wait for an event */
	platform_unlock(&eq->lock);
	list_for_each_entry(watch, &eq->watched, link) {
		ret = engine_watch_arm(watch);
		if (ret)
			return ret;
	}
	return engine_eq_keeps_awake(eq) ? -FI_EAGAIN : 0;
}

int engine_eq_trywait(struct engine_eq *eq)
{
	bool sleeps = engine_channel_exported(&eq->channel) ||
		      (eq->set && engine_channel_is_local(&eq->set->channel));
	int ret;

	if (!sleeps)
		return engine_eq_check(eq) ? -FI_EAGAIN : 0;
	if (engine_eq_keeps_awake(eq))
		return -FI_EAGAIN;
	platform_lock(&eq->watch_lock);
	ret = engine_eq_arm(eq);
	platform_unlock(&eq->watch_lock);
	return ret;
}

static void engine_eq_disarm(struct engine_eq *eq)
{
	struct engine_watch *watch;

	list_for_each_entry(watch, &eq->watched, link) {
		engine_enter(watch->wait.domain);
		engine_wait_drop(&watch->wait, false);
		engine_leave(watch->wait.domain);
	}
}

void engine_eq_awake(struct engine_eq *eq)
{
	platform_lock(&eq->watch_lock);
	if (!eq->channel.asleep)
		engine_eq_disarm(eq);
	platform_unlock(&eq->watch_lock);
}

int engine_eq_join(struct engine_eq *eq, struct engine_channel *channel)
{
	int ret;

	platform_lock(&eq->watch_lock);
	ret = engine_eq_open_channel(eq);
	platform_unlock(&eq->watch_lock);
	return ret ? ret : platform_poll_set_add(channel->poll_set, eq->channel.poll_set);
}

void engine_eq_leave(struct engine_eq *eq, struct engine_channel *channel)
{
	if (engine_channel_is_local(channel) && engine_channel_is_local(&eq->channel))
		platform_poll_set_remove(channel->poll_set, eq->channel.poll_set);
}

/* A thread has slept, or is cancelled in its sleep. */
static void engine_eq_slept(void *arg)
{
	struct engine_eq *eq = arg;

	platform_lock(&eq->watch_lock);
	/* The program may sleep on the descriptor or the wait set: their wires stay armed. */
	if (!engine_channel_leave(&eq->channel) && !eq->set &&
	    !engine_channel_exported(&eq->channel))
		engine_eq_disarm(eq);
	platform_unlock(&eq->watch_lock);
}

void engine_eq_sleep(struct engine_eq *eq, struct engine_sleeper *sleeper)
{
	struct platform_wakers on;
	int ret;

	platform_lock(&eq->watch_lock);
	engine_eq_open_channel(eq); /* in the child of a fork no thread sleeps on it until then */
	engine_channel_enter(&eq->channel, &on);
	ret = engine_eq_arm(eq);
	platform_unlock(&eq->watch_lock);
	on.cancelled = engine_eq_slept;
	on.arg = eq;
	engine_sleeper_sleep(sleeper, &on, ret);
	engine_eq_slept(eq);
}

int engine_eq_get_wait(struct engine_eq *eq, int *descriptor)
{
	int ret;

	if (eq->set)
		return engine_waitset_get_wait(eq->set, descriptor);
	if (eq->wait != FI_WAIT_FD && eq->wait != FI_WAIT_UNSPEC)
		return -FI_ENODATA;
	platform_lock(&eq->watch_lock);
	ret = engine_eq_open_channel(eq);
	if (!ret)
		*descriptor = engine_channel_export(&eq->channel);
	platform_unlock(&eq->watch_lock);
	return ret;
}
