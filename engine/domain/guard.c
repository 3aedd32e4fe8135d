/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The slow paths of the guard: control calls, and data calls that find a claim. Any thread.
 */
#include <rdma/fi_errno.h>
#include "guard.h"

/*
 * Attempts before a call blocks on the lock, a few us: the domain's thread gives it up within a
 * round
 */
#define LOCK_TRIALS 100u

/*
 * Without membarrier(2), which the process has forbidden since the domain was opened, time takes
 * its place: a data call that has not seen the claim has set domain->inside, and the store is
 * visible when platform_settle() returns.
 */
static void engine_guard_settle(const struct engine_domain *domain, int err)
{
	FI_WARN(domain->family->provider, FI_LOG_DOMAIN,
		"membarrier(2) fails: %s. Calls of the domain take its lock from now on\n",
		fi_strerror(-err));
	platform_settle();
}

int engine_guard_barrier(const struct engine_domain *domain)
{
	int err = platform_membarrier();

	if (err)
		engine_guard_settle(domain, err);
	return err;
}

/* Keep data calls out from now on; one may be under way. Returns 0, or the error of the barrier. */
static int engine_guard_claim(struct engine_domain *domain)
{
	atomic_store_explicit(&domain->claimed, true, memory_order_relaxed);
	/* F:engine_enter  a data call sees claimed, or we see its inside; pairs F:domain.inside */
	return engine_guard_barrier(domain);
}

/* A:domain.inside  before the effects of the last data call; pairs R:domain.inside */
static bool engine_guard_inside(const struct engine_domain *domain)
{
	return atomic_load_explicit(&domain->inside, memory_order_acquire);
}

/* Take the lock in a call that has counted itself in domain->wanted. */
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

bool engine_enter_until(struct engine_domain *domain, uint64_t end_ns)
{
	bool held;
	int err;

	if (domain->unified)
		return true;
	atomic_fetch_add_explicit(&domain->wanted, 1, memory_order_relaxed);
	while (!(held = platform_trylock(&domain->lock)) && platform_now_ns() < end_ns)
		platform_yield();
	atomic_fetch_sub_explicit(&domain->wanted, 1, memory_order_relaxed);
	if (!held || engine_has_lock(domain))
		return held;
	err = engine_guard_claim(domain);
	while (engine_guard_inside(domain) && platform_now_ns() < end_ns)
		platform_yield();
	if (engine_guard_inside(domain)) {
		engine_leave(domain);
		return false;
	}
	if (err)
		atomic_store_explicit(&domain->safe, true, memory_order_relaxed);
	return true;
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
		/*
		 * Without the barrier a data call may have entered meanwhile: wait for its end.
		 * The next one takes the lock.
		 */
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
	/* R:domain.claimed  the effects of the control call; pairs A:domain.claimed */
	if (!engine_has_lock(domain))
		atomic_store_explicit(&domain->claimed, false, memory_order_release);
	platform_unlock(&domain->lock);
}

void engine_guard_wait(struct engine_domain *domain)
{
	/* The program serializes data calls: if a data call has the lock, it is this one. */
	if (engine_lock_use(domain) != ENGINE_LOCK_NO_CALL)
		return;
	atomic_fetch_add_explicit(&domain->wanted, 1, memory_order_relaxed);
	/* R:domain.inside  the effects of this call; pairs A:domain.inside */
	atomic_store_explicit(&domain->inside, false, memory_order_release);
	engine_lock_take(domain);
	if (engine_has_lock(domain)) {
		atomic_store_explicit(&domain->lock_use, ENGINE_LOCK_LATE, memory_order_relaxed);
		return;
	}
	/* Set before the lock is released: the next control call finds it set. */
	atomic_store_explicit(&domain->inside, true, memory_order_relaxed);
	platform_unlock(&domain->lock);
}

void engine_guard_unlock(struct engine_domain *domain)
{
	engine_unlock(domain);
}
