/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Holding domains and locks through a fork. On the thread that forks; see forked.h. */
#include <rdma/fi_errno.h>
#include "forked.h"
#include "refuse.h"
#include "registrar.h"

/*
 * A call of another thread is over sooner, or it waits for what the forking thread has: some allocators take
 * their locks before our turn comes.
 */
#define HOLD_NS 1000000000u

/* Domains */

static struct engine_domain *domain_of(struct platform_hold *hold)
{
	return container_of(hold, struct engine_domain, hold);
}

static void hold(struct platform_hold *hold)
{
	struct engine_domain *domain = domain_of(hold);
	uint64_t end_ns = platform_now_ns() + HOLD_NS;

	if (domain->left)
		return;
	domain->held = engine_enter_until(domain, end_ns);
	if (!domain->held || engine_registrar_pause(domain, end_ns))
		return;
	engine_leave(domain);
	domain->held = false;
}

static void release(struct platform_hold *hold, bool child)
{
	struct engine_domain *domain = domain_of(hold);

	if (child) {
		domain->left |= !domain->held;
		/* those that waited are gone */
		atomic_store_explicit(&domain->wanted, 0, memory_order_relaxed);
	}
	if (!domain->held)
		return;
	domain->held = false;
	/* In the child the registrar is another thread: gone. */
	if (!child)
		engine_registrar_go_on(domain);
	engine_leave(domain);
}

void engine_forked_open(struct engine_domain *domain)
{
	domain->hold = (struct platform_hold){ .rank = ENGINE_HOLD_DOMAIN,
					       .hold = hold,
					       .release = release };
	platform_hold_watch(&domain->hold);
}

void engine_forked_close(struct engine_domain *domain)
{
	platform_hold_unwatch(&domain->hold);
}

/* Locks */

static void lock_hold(struct platform_hold *hold)
{
	struct engine_fork_lock *l = container_of(hold, struct engine_fork_lock, hold);
	uint64_t end_ns = platform_now_ns() + HOLD_NS;

	if (l->fabric->left)
		return;
	atomic_store_explicit(&l->wanted, true, memory_order_relaxed);
	while (!(l->held = platform_trylock(l->lock)) && platform_now_ns() < end_ns)
		platform_yield();
	atomic_store_explicit(&l->wanted, false, memory_order_relaxed);
}

static void lock_release(struct platform_hold *hold, bool child)
{
	struct engine_fork_lock *l = container_of(hold, struct engine_fork_lock, hold);

	if (child)
		l->fabric->left |= !l->held;
	if (!l->held)
		return;
	l->held = false;
	platform_unlock(l->lock);
}

void engine_fork_lock_open(struct engine_fork_lock *l, struct platform_lock *lock,
			   struct engine_fabric *fabric, enum engine_hold_rank rank)
{
	l->hold = (struct platform_hold){ .rank = rank,
					  .hold = lock_hold,
					  .release = lock_release };
	l->lock = lock;
	l->fabric = fabric;
	platform_hold_watch(&l->hold);
}

void engine_fork_lock_close(struct engine_fork_lock *l)
{
	platform_hold_unwatch(&l->hold);
}

/* Where a hold was in vain */

static int refuse(const struct engine_fabric *fabric, enum fi_log_subsys subsys,
		  const char *call)
{
	return engine_refuse(
		fabric->family, subsys, -FI_EOPBADSTATE, call,
		"another thread was in a call of the domain, or of an event queue or wait set of "
		"its fabric, for a second when this process was forked; the child opens a fabric "
		"and a domain of its own");
}

int engine_left(const struct engine_domain *domain, enum fi_log_subsys subsys, const char *call)
{
	if (likely(!domain->left && !domain->fabric->left))
		return 0;
	return refuse(domain->fabric, subsys, call);
}

int engine_fabric_left(const struct engine_fabric *fabric, enum fi_log_subsys subsys,
		       const char *call)
{
	return likely(!fabric->left) ? 0 : refuse(fabric, subsys, call);
}
