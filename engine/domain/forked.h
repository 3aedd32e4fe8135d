/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Domains, event queues, wait sets, and forks. The thread that forks holds all of its process meanwhile, those
 * first that calls take first: no other thread is in one when it is copied, and the child, which has no other
 * thread, finds each as it is between two calls. So it can close what it has inherited.
 */
#ifndef WEFT_FORKED_H
#define WEFT_FORKED_H

#include "endpoint.h"
#include "forks.h"

/*
 * engine_forked_open - forks hold the domain from now on
 * engine_forked_close - not any more; it is about to be freed
 * Without the domain held.
 */
void engine_forked_open(struct engine_domain *domain);
void engine_forked_close(struct engine_domain *domain);

/*
 * engine_fork_lock_open - forks hold a lock from now on
 * @lock: of an object of @fabric, which has a reference to it
 * engine_fork_lock_close - not any more; it is about to be freed
 * The caller has no lock.
 */
void engine_fork_lock_open(struct engine_fork_lock *l, struct platform_lock *lock,
			   struct engine_fabric *fabric, enum engine_hold_rank rank);
void engine_fork_lock_close(struct engine_fork_lock *l);

/*
 * engine_fork_lock_give_way - called before each time that a call which polls takes the lock
 * It yields the core while it has the lock. Where the thread that forks runs on the same core, that one would
 * else find the lock taken whenever it looks.
 */
static inline void engine_fork_lock_give_way(const struct engine_fork_lock *l)
{
	while (unlikely(atomic_load_explicit(&l->wanted, memory_order_relaxed)))
		platform_yield();
}

/*
 * engine_left - whether this is the child of a fork that could not wait for the end of a call of another thread
 * @subsys, @call: as engine_refuse()
 * Nothing of the domain can be used or closed here: that thread has it, or an event queue or wait set that
 * it may have to do with, for ever, and may have changed a part of something. Any thread, without the domain.
 * engine_fabric_left - the same for event queues and wait sets
 * Returns 0, or -FI_EOPBADSTATE, which the log explains.
 */
int engine_left(const struct engine_domain *domain, enum fi_log_subsys subsys, const char *call);
int engine_fabric_left(const struct engine_fabric *fabric, enum fi_log_subsys subsys,
		       const char *call);

#endif
