/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The guard of a domain whose program lets one thread at a time transfer data (FI_THREAD_DOMAIN):
 * control calls are safe on any thread all the same, and data calls pay two plain stores for it,
 * no lock and no fence. Who controls makes every core of the process see its claim, and then waits
 * for the data call that is under way. Source: fi_domain(3), threading.
 *
 * With a lock in every data call (domain->safe) control calls take that one; a program that keeps
 * control and data calls apart itself (FI_PROGRESS_CONTROL_UNIFIED) needs nothing of all this.
 */
#ifndef WEFT_GUARD_H
#define WEFT_GUARD_H

#include "engine.h"

/* engine_guard_wait - a control call has the domain: enter when it is over */
void engine_guard_wait(struct engine_domain *domain);

/* engine_guard_enter, engine_guard_leave - around what a data call does to its domain */
static inline void engine_guard_enter(struct engine_domain *domain)
{
	/* I:domain.inside  before the claim is looked at, by the processor too: pairs B:engine_enter */
	atomic_store_explicit(&domain->inside, true, memory_order_relaxed);
	atomic_signal_fence(memory_order_seq_cst);
	if (unlikely(atomic_load_explicit(&domain->claimed, memory_order_acquire)))
		engine_guard_wait(domain);
}

static inline void engine_guard_leave(struct engine_domain *domain)
{
	/* R:domain.inside  what the call did; pairs A:engine_enter */
	atomic_store_explicit(&domain->inside, false, memory_order_release);
}

/* engine_enter, engine_leave - hold a domain in a control call */
void engine_enter(struct engine_domain *domain);
void engine_leave(struct engine_domain *domain);

/* engine_use, engine_unuse - hold it in a data call that has no op tables of two kinds */
static inline void engine_use(struct engine_domain *domain)
{
	if (domain->safe)
		platform_lock(&domain->lock);
	else
		engine_guard_enter(domain);
}

static inline void engine_unuse(struct engine_domain *domain)
{
	if (domain->safe)
		platform_unlock(&domain->lock);
	else
		engine_guard_leave(domain);
}

#endif
