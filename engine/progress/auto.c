/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The thread of a domain with automatic progress, or with queues whose readers sleep on a
 * descriptor that nothing else rings.
 *
 * While the program makes rounds itself (domain->rounds moves) the thread looks at that number now
 * and then and touches nothing else: no wire is armed for it, nobody rings. Once the program has
 * made none between two looks the thread makes rounds until nothing has moved for a while, arms the
 * wires and sleeps on their bells: who answers mostly answers within what a wake-up costs, and the
 * peer need not ring for that. The first round of the program after that lets it off: the wires
 * rest, and it goes back to looking. It claims the domain as a control call does, but never waits for
 * it: who holds that is at work (guard.h).
 */
#include "arm.h"
#include "auto.h"
#include "guard.h"
#include "progress.h"
#include "waiting.h"

#define LINGER_NS   10000u /* after a round that moved something, before the wires are armed */
#define WORK_MAX_NS 1000000u /* rounds in a row, before others may have the domain */
#define NAP_MIN_NS  20000u   /* where it may not go on, or can't be woken */
#define NAP_MAX_NS  1000000u
#define AWAY_MIN_NS 500000u /* between looks at a program that has just begun to make rounds, */
#define AWAY_MAX_NS \
	3000000u /* and of one that keeps at it: it is noticed after two that it has stopped */
#define DEFER_NS 100000u /* for a program that sleeps in a call, and was woken too */

/* Nobody else moves anything: arm the wires and sleep until they have something. Returns for how long. */
static uint64_t engine_auto_arm(struct engine_domain *domain)
{
	struct engine_auto *a = &domain->progress;
	uint64_t ns = engine_waiter_arm(domain);
	struct platform_wakers on;

	if (!ns)
		return 0;
	if (!engine_waiter_enter(domain, &on)) {
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

	if (a->listed)
		engine_armed_drop(domain, &a->armed, true);
	a->listed = false;
	engine_domain_clock(domain);
}

void engine_auto_let_off(struct engine_domain *domain)
{
	struct engine_auto *a = &domain->progress;

	a->listed = false;
	engine_armed_drop(domain, &a->armed, true);
	engine_waiter_clear(domain);
	engine_waiter_ring(domain); /* that is where it sleeps */
}

/*
 * Rounds, until nothing has moved for a while. Returns whether that is so; false: others are to have the
 * domain, who wait for it, or @end has come. @moved: something has.
 */
static bool engine_auto_rounds(struct engine_domain *domain, uint64_t end, bool *moved)
{
	uint64_t now = platform_now_ns(), last = now;

	while (now < end) {
		bool moves = engine_domain_round(domain);

		*moved |= moves;
		if (engine_guard_wanted(domain))
			return false;
		now = platform_now_ns();
		if (moves)
			last = now;
		else if (!*moved || now - last >= LINGER_NS)
			return true;
	}
	return false;
}

/* The program makes rounds: how long to stay away. */
static uint64_t engine_auto_away(struct engine_auto *a)
{
	a->nap_ns = NAP_MIN_NS;
	a->away_ns += a->away_ns / 8;
	if (a->away_ns > AWAY_MAX_NS)
		a->away_ns = AWAY_MAX_NS;
	return a->away_ns;
}

/* It does not: make them. Returns the ns to nap. */
static uint64_t engine_auto_take(struct engine_domain *domain)
{
	struct engine_auto *a = &domain->progress;
	uint64_t end = platform_now_ns() + WORK_MAX_NS, ns = 0;
	bool moved = false;

	a->away_ns = AWAY_MIN_NS;
	if (engine_enter_idle(domain)) {
		engine_auto_up(domain);
		while (!ns && engine_auto_rounds(domain, end, &moved))
			ns = engine_auto_arm(domain);
		engine_leave(domain);
	}
	a->nap_ns = moved ? NAP_MIN_NS : a->nap_ns + a->nap_ns / 8;
	if (a->nap_ns > NAP_MAX_NS)
		a->nap_ns = NAP_MAX_NS;
	return ns ? ns : a->nap_ns;
}

/* One look at the domain: ns to nap after it. Called by the thread. */
static uint64_t engine_auto_round(void *arg)
{
	struct engine_domain *domain = arg;
	struct engine_auto *a = &domain->progress;
	uint32_t rounds = atomic_load_explicit(&domain->rounds, memory_order_relaxed);
	bool eager = atomic_exchange_explicit(&a->eager, false, memory_order_relaxed);
	bool same = rounds == a->seen, woke = a->asleep;

	a->seen = rounds;
	a->asleep = false;
	if (woke && engine_waiter_leave(domain) && same && !eager)
		return DEFER_NS;
	return same || eager ? engine_auto_take(domain) : engine_auto_away(a);
}

/* What it sleeps on, when the wires are armed. */
static bool engine_auto_sleep_on(void *arg, struct platform_wakers *on)
{
	struct engine_domain *domain = arg;

	on->bell = &domain->waiter.bell;
	on->descriptor = domain->waiter.poll_set;
	return domain->progress.asleep;
}

static void engine_auto_wake_thread(void *arg)
{
	engine_waiter_ring(arg);
}

static int engine_auto_begin(struct engine_domain *domain)
{
	struct engine_auto *a = &domain->progress;
	const struct platform_work work = {
		.name = "weft-progress",
		.round = engine_auto_round,
		.sleep_on = engine_auto_sleep_on,
		.wake = engine_auto_wake_thread,
		.arg = domain,
	};

	if (platform_thread_runs(&a->thread))
		return 0;
	a->nap_ns = NAP_MIN_NS;
	a->away_ns = AWAY_MIN_NS;
	a->listed = a->asleep = false;
	return platform_thread_start(&a->thread, &work);
}

int engine_auto_enable(struct engine_domain *domain)
{
	return domain->progress.asked ? engine_auto_begin(domain) : 0;
}

int engine_auto_rings(struct engine_domain *domain)
{
	int ret;

	/* No data call is under way: the program sees to that. From now on it need not. */
	if (domain->unified) {
		domain->unified = false;
		if (platform_membarrier_open()) {
			atomic_store_explicit(&domain->claimed, true, memory_order_relaxed);
			atomic_store_explicit(&domain->safe, true, memory_order_relaxed);
		}
	}
	engine_enter(domain);
	ret = engine_auto_begin(domain);
	if (!ret)
		atomic_store_explicit(&domain->progress.rings, true, memory_order_relaxed);
	engine_leave(domain);
	return ret;
}

int engine_auto_wake(struct engine_domain *domain)
{
	struct engine_auto *a = &domain->progress;
	int ret = 0;

	if (!engine_auto_needed(domain))
		return 0;
	if (!platform_thread_runs(&a->thread)) /* the child of a fork: it needs its own */
		ret = engine_auto_rings(domain);
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
