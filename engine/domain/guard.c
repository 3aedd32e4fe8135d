/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The guard's slow side: control calls, and data calls that meet one. Any thread.
 */
#include <rdma/fi_errno.h>
#include "guard.h"

#define SETTLE_NS   10000000u /* a store reaches the other cores in a thousandth of that */
#define LOCK_TRIALS 100u /* a few us: the domain's thread gives the lock up within a round */

/*
 * There is no barrier any more: the process has forbidden itself the system call since the domain was
 * opened. A data call that has not seen the claim by now has written that it is inside long ago.
 */
static void engine_guard_settle(const struct engine_domain *domain, int err)
{
	uint64_t end = platform_now_ns() + SETTLE_NS;

	FI_WARN(domain->family->provider, FI_LOG_DOMAIN,
		"membarrier(2) fails: %s. All calls of the domain take its lock from now on\n",
		fi_strerror(-err));
	while (platform_now_ns() < end)
		platform_yield();
}

/* From now on no data call comes in; one may be under way. 0, or what became of the barrier. */
static int engine_guard_claim(struct engine_domain *domain)
{
	int err;

	atomic_store_explicit(&domain->claimed, true, memory_order_relaxed);
	/* F:engine_enter  a data call sees the claim, or we see its store; pairs F:domain.inside */
	err = platform_membarrier();
	if (err)
		engine_guard_settle(domain, err);
	return err;
}

/* A:domain.inside  what the last data call did; pairs R:domain.inside */
static bool engine_guard_inside(const struct engine_domain *domain)
{
	return atomic_load_explicit(&domain->inside, memory_order_acquire);
}

/* A call that is counted among those that wait gets the lock. */
static void engine_lock_take(struct engine_domain *domain)
{
	bool held = false;

	for (uint32_t i = 0; i < LOCK_TRIALS && !held; i++) {
		platform_relax();
		held = platform_trylock(&domain->lock);
	}
	if (!held)
		platform_lock(&domain->lock);
	atomic_fetch_sub_explicit(&domain->wanted, 1, memory_order_relaxed);
}

void engine_lock_wait(struct engine_domain *domain)
{
	atomic_fetch_add_explicit(&domain->wanted, 1, memory_order_relaxed);
	engine_lock_take(domain);
}

void engine_enter(struct engine_domain *domain)
{
	int err;

	if (domain->unified)
		return;
	if (!platform_trylock(&domain->lock))
		engine_lock_wait(domain);
	if (engine_has_lock(domain))
		return;
	err = engine_guard_claim(domain);
	while (engine_guard_inside(domain))
		platform_yield();
	if (err)
		atomic_store_explicit(&domain->safe, true, memory_order_relaxed);
}

bool engine_enter_idle(struct engine_domain *domain)
{
	int err;

	if (!platform_trylock(&domain->lock))
		return false;
	if (engine_has_lock(domain))
		return true;
	if (!engine_guard_wanted(domain) && !engine_guard_inside(domain)) {
		err = engine_guard_claim(domain);
		/* Without the barrier who is inside ends before the next call, which takes the lock. */
		while (err && engine_guard_inside(domain))
			platform_yield();
		if (err)
			atomic_store_explicit(&domain->safe, true, memory_order_relaxed);
		if (!engine_guard_inside(domain))
			return true;
	}
	engine_leave(domain);
	return false;
}

void engine_leave(struct engine_domain *domain)
{
	if (domain->unified)
		return;
	/* R:domain.claimed  what the control call did; pairs A:domain.claimed */
	if (!engine_has_lock(domain))
		atomic_store_explicit(&domain->claimed, false, memory_order_release);
	platform_unlock(&domain->lock);
}

void engine_guard_wait(struct engine_domain *domain)
{
	/* Data calls come one at a time: if one has the lock, that is this one. */
	if (engine_lock_use(domain) != ENGINE_LOCK_NO_CALL)
		return;
	atomic_fetch_add_explicit(&domain->wanted, 1, memory_order_relaxed);
	/* R:domain.inside  what the call did; pairs A:domain.inside */
	atomic_store_explicit(&domain->inside, false, memory_order_release);
	engine_lock_take(domain);
	if (engine_has_lock(domain)) {
		atomic_store_explicit(&domain->lock_use, ENGINE_LOCK_LATE,
				      memory_order_relaxed);
		return;
	}
	/* The next control call has the lock after this, and finds it set. */
	atomic_store_explicit(&domain->inside, true, memory_order_relaxed);
	platform_unlock(&domain->lock);
}

void engine_guard_unlock(struct engine_domain *domain)
{
	engine_unlock(domain);
}
