/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The thread of a domain with automatic progress, or with objects whose descriptors nothing else
 * rings.
 *
 * While the program makes rounds itself, domain->rounds grows. The thread looks at that number now
 * and then and touches nothing else: no wire is armed for it, and no peer rings. If the number is
 * the same in two looks, the thread makes rounds until nothing has moved for a while, and only then
 * arms the wires and sleeps on their bells: most answers come within the time of a wake-up, and the
 * peer need not ring for them. The first round of the program after that lets the thread off: the
 * wires are disarmed, and the thread goes back to watching.
 *
 * The thread claims the domain as a control call does, but never waits for it: a thread that holds
 * the domain makes progress itself (guard.h).
 */
#include "arm.h"
#include "auto.h"
#include "guard.h"
#include "progress.h"
#include "waiting.h"

/* Time without movement, after a round that moved something, before the wires are armed */
#define LINGER_NS 10000u
/* Longest time for which the thread makes rounds before other threads may hold the domain */
#define WORK_MAX_NS 1000000u
/* Bounds of the nap when the thread can't have the domain, or can't be woken */
#define NAP_MIN_NS 20000u
#define NAP_MAX_NS 1000000u
/* Time between looks at a program that makes rounds; it grows from the least to the most */
#define AWAY_MIN_NS 500000u
#define AWAY_MAX_NS \
	3000000u /* the second look after the program has stopped making rounds notices that */
/* Nap that leaves the work to a thread of the program that sleeps in a call and was woken too */
#define DEFER_NS 100000u

/*
 * Arm the wires, and register the thread as a sleeper. Returns the time to sleep, ns, or 0: a wire
 * has something now.
 */
static uint64_t engine_auto_arm(struct engine_domain *domain)
{
	struct engine_auto *a = &domain->progress;
	uint64_t ns = engine_wires_arm(domain);
	struct platform_wakers on;

	if (!ns)
		return 0;
	if (!engine_channel_enter(&domain->channel, &on)) {
		engine_channel_leave(&domain->channel);
		return a->nap_ns;
	}
	engine_wait_add(&a->wait, true);
	a->listed = a->asleep = true;
	return ns;
}

/* The thread is awake and holds the domain: it no longer counts as a sleeper. */
static void engine_auto_up(struct engine_domain *domain)
{
	struct engine_auto *a = &domain->progress;

	if (a->listed)
		engine_wait_drop(&a->wait, true);
	a->listed = false;
	engine_domain_clock(domain);
}

void engine_auto_detach(struct engine_domain *domain)
{
	struct engine_auto *a = &domain->progress;

	a->listed = false;
	engine_wait_drop(&a->wait, true);
	engine_bells_clear(domain);
	engine_channel_ring(&domain->channel); /* wakes the thread, which sleeps on that bell */
}

/*
 * Make rounds. Returns true when nothing has moved for LINGER_NS, or when *moved is still false
 * after a round; false when another call waits for the domain, or the time @end has come.
 * @moved: in, out: set if a round has moved something
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

/* The program makes rounds. Returns the time until the next look, ns. */
static uint64_t engine_auto_away(struct engine_auto *a)
{
	a->nap_ns = NAP_MIN_NS;
	a->away_ns += a->away_ns / 8;
	if (a->away_ns > AWAY_MAX_NS)
		a->away_ns = AWAY_MAX_NS;
	return a->away_ns;
}

/* The program makes no rounds: make them here. Returns the time to nap, ns. */
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

/* One look at the domain, by the thread. Returns the time to nap after it, ns. */
static uint64_t engine_auto_round(void *arg)
{
	struct engine_domain *domain = arg;
	struct engine_auto *a = &domain->progress;
	uint32_t rounds = atomic_load_explicit(&domain->rounds, memory_order_relaxed);
	bool eager = atomic_exchange_explicit(&a->eager, false, memory_order_relaxed);
	bool same = rounds == a->seen, woke = a->asleep;

	a->seen = rounds;
	a->asleep = false;
	if (woke && engine_channel_leave(&domain->channel) && same && !eager)
		return DEFER_NS;
	return same || eager ? engine_auto_take(domain) : engine_auto_away(a);
}

/*
 * Get what wakes the thread. Returns false if the wires are not armed: it only naps. A thread that
 * is not counted as asleep may not read the channel, which a call may be opening.
 */
static bool engine_auto_sleep_on(void *arg, struct platform_wakers *on)
{
	struct engine_domain *domain = arg;

	if (!domain->progress.asleep)
		return false;
	engine_channel_wakers(&domain->channel, on);
	return true;
}

static void engine_auto_wake_thread(void *arg)
{
	struct engine_domain *domain = arg;

	engine_channel_ring(&domain->channel);
}

/* Start the thread, if it does not run in this process. Returns 0 or -FI_E*. */
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

	/*
	 * The program has serialized this call with data calls, so none is under way. The thread
	 * is not serialized with them: from now on the guard is used.
	 */
	if (domain->unified) {
		domain->unified = false;
		if (PLATFORM_BARRIER_BROADCASTS || platform_membarrier_open()) {
			atomic_store_explicit(&domain->claimed, true, memory_order_relaxed);
			atomic_store_explicit(&domain->safe, true, memory_order_relaxed);
		}
	}
	engine_enter(domain);
	ret = engine_auto_begin(domain);
	if (!ret)
		atomic_store_explicit(&domain->progress.rings, true, memory_order_relaxed);
	/* Its claim stays set: data calls, of which none is under way, take the lock (guard.h). */
	if (!ret && PLATFORM_BARRIER_BROADCASTS)
		atomic_store_explicit(&domain->safe, true, memory_order_relaxed);
	engine_leave(domain);
	return ret;
}

int engine_auto_wake(struct engine_domain *domain)
{
	struct engine_auto *a = &domain->progress;
	int ret = 0;

	if (!engine_auto_needed(domain))
		return 0;
	if (!platform_thread_runs(&a->thread)) /* the child of a fork has no thread yet */
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
