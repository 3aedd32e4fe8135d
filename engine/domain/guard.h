/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The guard of a domain whose program lets one thread at a time transfer data (FI_THREAD_DOMAIN):
 * control calls are safe on any thread all the same, and data calls pay two plain stores for it,
 * no lock and no fence. Who controls makes every core of the process see its claim, and then waits
 * for the data call that is under way. Source: fi_domain(3), threading.
 *
 * With a lock in every data call (domain->safe) control calls take that one; a program that keeps
 * control and data calls apart itself (FI_PROGRESS_CONTROL_UNIFIED) needs nothing of all this.
 *
 * The domain's thread (auto.c) claims it likewise, and only while no data call is under way; one that
 * comes meanwhile waits for the end of its round.
 *
 * A domain may get its lock later, when the barrier fails that could be had when it was opened, and a
 * data call be on its way in by the op table of before: the claim stays from then on, and sends such a
 * call to the lock.
 */
#ifndef WEFT_GUARD_H
#define WEFT_GUARD_H

#include "endpoint.h"

/*
 * engine_guard_wait - a control call has the domain: enter when it is over, with the lock if there is
 * one from then on
 */
void engine_guard_wait(struct engine_domain *domain);

/* engine_guard_wanted - do calls wait for the domain? For who holds it */
static inline bool engine_guard_wanted(const struct engine_domain *domain)
{
	return atomic_load_explicit(&domain->wanted, memory_order_relaxed);
}

/* engine_has_lock - do all calls of the domain take its lock? Once they do they always will */
static inline bool engine_has_lock(const struct engine_domain *domain)
{
	return atomic_load_explicit(&domain->safe, memory_order_relaxed);
}

/* engine_lock_use - which data call has the lock; steady in a data call, but for what it calls itself */
static inline enum engine_lock_use engine_lock_use(const struct engine_domain *domain)
{
	return (enum engine_lock_use)atomic_load_explicit(&domain->lock_use,
							  memory_order_relaxed);
}

/* engine_lock_wait - take the lock of a domain that somebody else has, who is told of it */
void engine_lock_wait(struct engine_domain *domain);

/*
 * engine_lock, engine_unlock - around a data call in a domain with a lock; what it calls may enter the
 * guard, which stands open to it
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

/* engine_guard_unlock - a data call that got the lock in engine_guard_wait() is over */
void engine_guard_unlock(struct engine_domain *domain);

/* engine_guard_enter, engine_guard_leave - around what a data call does to its domain */
static inline void engine_guard_enter(struct engine_domain *domain)
{
	/* F:domain.inside  before the claim is looked at, by the compiler; pairs F:engine_enter */
	atomic_store_explicit(&domain->inside, true, memory_order_relaxed);
	atomic_signal_fence(memory_order_seq_cst);
	/* A:domain.claimed  before what the control call did; pairs R:domain.claimed */
	if (unlikely(atomic_load_explicit(&domain->claimed, memory_order_acquire)))
		engine_guard_wait(domain);
}

static inline void engine_guard_leave(struct engine_domain *domain)
{
	/* R:domain.inside  what the call did; pairs A:domain.inside */
	atomic_store_explicit(&domain->inside, false, memory_order_release);
	if (unlikely(engine_lock_use(domain) == ENGINE_LOCK_LATE))
		engine_guard_unlock(domain);
}

/* engine_enter, engine_leave - hold a domain in a control call */
void engine_enter(struct engine_domain *domain);
/*
 * engine_enter_idle - the same for the domain's thread, when nobody else has it or is about to: it waits
 * for none. Returns whether it holds the domain
 */
bool engine_enter_idle(struct engine_domain *domain);
void engine_leave(struct engine_domain *domain);

/* engine_use, engine_unuse - hold it in a data call that has no op tables of two kinds */
static inline void engine_use(struct engine_domain *domain)
{
	if (engine_has_lock(domain))
		engine_lock(domain);
	else
		engine_guard_enter(domain);
}

static inline void engine_unuse(struct engine_domain *domain)
{
	/* Whichever it was: the domain may have got its lock in between. */
	if (engine_lock_use(domain) == ENGINE_LOCK_CALL)
		engine_unlock(domain);
	else
		engine_guard_leave(domain);
}

#endif
