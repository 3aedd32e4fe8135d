/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The thread of a domain with automatic progress, or with queues whose readers sleep on a
 * descriptor. While the program makes progress itself (domain->rounds moves) the thread stays
 * out of its way; it never waits for the domain either, since who holds that is at work. It naps
 * between rounds, longer the longer nothing moves.
 */
#include "auto.h"
#include "ctx.h"
#include "fids.h"
#include "progress.h"
#include "sleep.h"

#define NAP_MIN_NS 20000u
#define NAP_MAX_NS 1000000u
#define BATCH_MAX \
	64u /* rounds in a row that move something, before others may have the domain */

/* Nobody else moves anything: arm the wires and sleep until they have something. Returns for how long. */
static uint64_t engine_auto_arm(struct engine_domain *domain)
{
	struct engine_auto *a = &domain->progress;
	uint64_t ns = engine_waiter_arm(domain);
	int on[2];

	if (!ns)
		return 0;
	if (!engine_waiter_enter(domain, on)) {
		engine_waiter_leave(domain);
		return a->nap_ns;
	}
	engine_armed_add(domain, &a->armed, true);
	a->listed = a->asleep = true;
	return ns;
}

/* It is awake, and has the domain again. */
static void engine_auto_up(struct engine_domain *domain)
{
	struct engine_auto *a = &domain->progress;

	if (!a->listed)
		return;
	a->listed = false;
	engine_armed_drop(domain, &a->armed, true);
	engine_domain_clock(domain);
}

/* Rounds, as long as something moves. Returns the ns to sleep, 0 when it is not to sleep yet. */
static uint64_t engine_auto_work(struct engine_domain *domain, bool *moved)
{
	uint64_t ns = 0;

	*moved = false;
	for (uint32_t i = 0; i < BATCH_MAX && engine_domain_round(domain); i++)
		*moved = true;
	if (!*moved)
		ns = engine_auto_arm(domain);
	return ns;
}

/* One look at the domain: ns to nap after it. Called by the thread. */
static uint64_t engine_auto_round(void *arg)
{
	struct engine_domain *domain = arg;
	struct engine_auto *a = &domain->progress;
	uint32_t rounds = atomic_load_explicit(&domain->rounds, memory_order_relaxed);
	uint64_t ns = 0;
	bool moved = false;

	if (a->asleep)
		engine_waiter_leave(domain);
	a->asleep = false;
	if (atomic_exchange_explicit(&a->eager, false, memory_order_relaxed)) {
		a->nap_ns = NAP_MIN_NS;
		a->seen = rounds;
	}
	if ((rounds == a->seen || a->listed) && platform_trylock(&domain->lock)) {
		engine_auto_up(domain);
		if (rounds == a->seen)
			ns = engine_auto_work(domain, &moved);
		platform_unlock(&domain->lock);
	}
	a->seen = rounds;
	a->nap_ns = moved ? NAP_MIN_NS : a->nap_ns + a->nap_ns / 8;
	if (a->nap_ns > NAP_MAX_NS)
		a->nap_ns = NAP_MAX_NS;
	return ns ? ns : a->nap_ns;
}

/* What it sleeps on, when the wires are armed. */
static int engine_auto_bed(void *arg, int *on)
{
	struct engine_domain *domain = arg;

	if (!domain->progress.asleep)
		return 0;
	on[0] = domain->waiter.bell;
	on[1] = domain->waiter.nest;
	return 2;
}

static void engine_auto_rouse(void *arg)
{
	engine_waiter_ring(arg);
}

int engine_auto_start(struct engine_domain *domain)
{
	struct engine_auto *a = &domain->progress;
	const struct platform_work work = {
		.name = "weft-progress",
		.round = engine_auto_round,
		.bed = engine_auto_bed,
		.rouse = engine_auto_rouse,
		.arg = domain,
	};
	int ret = 0;

	/* From here on every call takes the lock: those by tables of before find the claim. */
	if (domain->unified) { /* no data call is under way: the program sees to that */
		domain->unified = false;
		atomic_store_explicit(&domain->claimed, true, memory_order_relaxed);
		atomic_store_explicit(&domain->safe, true, memory_order_relaxed);
	} else if (!engine_has_lock(domain)) {
		engine_enter(domain);
		atomic_store_explicit(&domain->safe, true, memory_order_relaxed);
		engine_leave(domain);
	}
	platform_lock(&domain->lock);
	if (!platform_thread_runs(&a->thread)) {
		a->nap_ns = NAP_MIN_NS;
		a->listed = a->asleep = false;
		ret = platform_thread_start(&a->thread, &work);
		if (!ret)
			a->there = true;
	}
	platform_unlock(&domain->lock);
	return ret;
}

int engine_auto_wake(struct engine_domain *domain)
{
	struct engine_auto *a = &domain->progress;
	int ret = 0;

	if (!a->there)
		return 0;
	if (!platform_thread_runs(&a->thread)) /* the child of a fork: it needs its own */
		ret = engine_auto_start(domain);
	if (ret)
		return ret;
	atomic_store_explicit(&a->eager, true, memory_order_relaxed);
	platform_thread_wake(&a->thread);
	return 0;
}

void engine_auto_stop(struct engine_domain *domain)
{
	platform_thread_stop(&domain->progress.thread);
}
