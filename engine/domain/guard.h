/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Holding a domain: at most one thread holds it, and only the holder accesses what is in it.
 *
 * The guard serves programs that serialize data calls themselves (FI_THREAD_DOMAIN). Control calls
 * are safe on any thread even so, and cost a data call two plain stores, without a lock or a fence.
 * A control call sets its claim, makes it visible to every core of the process (membarrier(2)), and
 * then waits for the data call that is under way. Source: fi_domain(3), threading.
 *
 * With domain->safe every data call takes the domain's lock, and control calls take the same lock.
 * With domain->unified the program serializes control calls with data calls
 * (FI_PROGRESS_CONTROL_UNIFIED), and control calls do nothing here.
 *
 * The domain's thread (auto.c) claims the domain like a control call, but only while no data call
 * is under way. A data call that begins meanwhile waits for the end of the thread's round.
 *
 * A domain becomes safe later if membarrier(2) fails that succeeded when the domain was opened. A
 * data call may then still enter by the op table without a lock: the claim stays set from then on,
 * and such a call takes the lock in engine_guard_wait().
 */
#ifndef WEFT_GUARD_H
#define WEFT_GUARD_H

#include "endpoint.h"

/*
 * engine_guard_wait - wait until the control call that holds the domain leaves, and enter
 * Called by engine_guard_enter(). Enters with the lock if the domain has become safe.
 */
void engine_guard_wait(struct engine_domain *domain);

/* engine_guard_wanted - returns true if calls wait for the domain; for its holder */
static inline bool engine_guard_wanted(const struct engine_domain *domain)
{
	return atomic_load_explicit(&domain->wanted, memory_order_relaxed);
}

/*
 * engine_has_lock - returns true if all calls of the domain take its lock. Never becomes false
 * again
 */
static inline bool engine_has_lock(const struct engine_domain *domain)
{
	return atomic_load_explicit(&domain->safe, memory_order_relaxed);
}

/*
 * engine_lock_use - returns which kind of data call has the lock
 * The value does not change during a data call, unless that call itself enters or leaves.
 */
static inline enum engine_lock_use engine_lock_use(const struct engine_domain *domain)
{
	return (enum engine_lock_use)atomic_load_explicit(&domain->lock_use,
							  memory_order_relaxed);
}

/*
 * engine_lock_wait - take a lock that is contended; its holder sees that by engine_guard_wanted()
 */
void engine_lock_wait(struct engine_domain *domain);

/*
 * engine_lock, engine_unlock - take and release the lock around a data call of a safe domain
 * Functions under it may call engine_guard_enter(), which then returns without waiting.
 */
static inline void engine_lock(struct engine_domain *domain)
{
	if (unlikely(!platform_trylock(&domain->lock)))
		engine_lock_wait(domain);
	atomic_store_explicit(&domain->lock_use, ENGINE_LOCK_CALL, memory_order_relaxed);
}

static inline void engine_unlock(struct engine_domain *domain)
{
	atomic_store_explicit(&domain->lock_use, ENGINE_LOCK_NO_CALL, memory_order_relaxed);
	platform_unlock(&domain->lock);
}

/* engine_guard_unlock - release the lock that a data call took in engine_guard_wait() */
void engine_guard_unlock(struct engine_domain *domain);

/*
 * engine_guard_enter, engine_guard_leave - begin and end a data call of a domain without a lock
 * engine_guard_begin - engine_guard_enter() that calls nothing. Returns false if the caller has to
 * call engine_guard_wait() then
 */
static inline bool engine_guard_begin(struct engine_domain *domain)
{
	/* F:domain.inside  compiler only: store before the load of claimed; pairs F:engine_enter */
	atomic_store_explicit(&domain->inside, true, memory_order_relaxed);
	atomic_signal_fence(memory_order_seq_cst);
	/* A:domain.claimed  before the effects of the control call; pairs R:domain.claimed */
	return likely(!atomic_load_explicit(&domain->claimed, memory_order_acquire));
}

static inline void engine_guard_enter(struct engine_domain *domain)
{
	if (!engine_guard_begin(domain))
		engine_guard_wait(domain);
}

static inline void engine_guard_leave(struct engine_domain *domain)
{
	/* R:domain.inside  the effects of this call; pairs A:domain.inside */
	atomic_store_explicit(&domain->inside, false, memory_order_release);
	if (unlikely(engine_lock_use(domain) == ENGINE_LOCK_LATE))
		engine_guard_unlock(domain);
}

/*
 * engine_guard_barrier - a full memory barrier on every core that runs a thread of this process
 * Where it is forbidden since the domain was opened, waits until all stores of before are visible.
 * Returns 0, or the error of membarrier(2): the domain should do without from now on.
 */
int engine_guard_barrier(const struct engine_domain *domain);

/* engine_enter - hold the domain in a control call, until engine_leave() */
void engine_enter(struct engine_domain *domain);

/*
 * engine_enter_until - engine_enter(), unless another thread stays in the domain until then
 * @end_ns: of platform_now_ns()
 * Returns true if the domain is held, until engine_leave().
 */
bool engine_enter_until(struct engine_domain *domain, uint64_t end_ns);

/*
 * engine_enter_idle - hold the domain on its own thread, unless another thread holds or awaits it
 * Does not wait for other calls. Returns true if the domain is held, until engine_leave().
 */
bool engine_enter_idle(struct engine_domain *domain);
void engine_leave(struct engine_domain *domain);

/*
 * engine_use, engine_unuse - hold the domain in a data call whose op table does not depend on the
 * threading level
 */
static inline void engine_use(struct engine_domain *domain)
{
	if (engine_has_lock(domain))
		engine_lock(domain);
	else
		engine_guard_enter(domain);
}

static inline void engine_unuse(struct engine_domain *domain)
{
	/* The domain may have become safe since engine_use(): leave the way that was taken then. */
	if (engine_lock_use(domain) == ENGINE_LOCK_CALL)
		engine_unlock(domain);
	else
		engine_guard_leave(domain);
}

#endif
