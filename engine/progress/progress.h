/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Progress: polls the wires of endpoints and serves peers that have something queued. The
 * caller holds the domain; reading or waiting on any object of a domain comes through here.
 */
#ifndef WEFT_PROGRESS_H
#define WEFT_PROGRESS_H

#include "endpoint.h"

/* engine_domain_clock - do now what is done once in a while: who sleeps makes few rounds */
void engine_domain_clock(struct engine_domain *domain);

/*
 * engine_domain_idle - let others run now and then; gives up the domain meanwhile, when it has a
 * lock
 */
void engine_domain_idle(struct engine_domain *domain);

/*
 * engine_domain_round - one round for every enabled endpoint of a domain, and what it sets off
 * Returns whether anything moved.
 */
bool engine_domain_round(struct engine_domain *domain);

/*
 * engine_domain_progress - the same, in a call of the program: the domain's thread stays out of
 * the way
 * engine_domain_progress_by - that with the round inline in the caller
 */
static inline __attribute__((always_inline)) void engine_domain_progress_by(
	struct engine_domain *domain, bool (*round)(struct engine_domain *))
{
	uint32_t rounds = atomic_load_explicit(&domain->rounds, memory_order_relaxed);

	atomic_store_explicit(&domain->rounds, rounds + 1, memory_order_relaxed);
	if (round(domain))
		domain->idle = 0;
	else if (unlikely(++domain->idle > domain->yield_after))
		engine_domain_idle(domain);
}

static inline void engine_domain_progress(struct engine_domain *domain)
{
	engine_domain_progress_by(domain, engine_domain_round);
}

#endif
