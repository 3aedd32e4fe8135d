/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Progress: rounds that poll the wires of the endpoints and serve the peers for which something is
 * queued. Every call that reads an object of a domain or waits for it makes rounds.
 *
 * The caller holds the domain.
 */
#ifndef WEFT_PROGRESS_H
#define WEFT_PROGRESS_H

#include "endpoint.h"

/*
 * engine_domain_clock - do the work that depends on time, for all endpoints: liveness checks, ACKs
 * Rounds do that once in a while; threads and programs that sleep make few rounds and call this
 * when they wake.
 */
void engine_domain_clock(struct engine_domain *domain);

/*
 * engine_domain_idle - yield the core in some of the calls; for rounds that have moved nothing
 * The lock of a safe domain is released during the yield. Called while domain->idle exceeds
 * domain->yield_after.
 */
void engine_domain_idle(struct engine_domain *domain);

/* engine_domain_link - add an endpoint to domain->eps; engine_domain_unlink - remove it */
void engine_domain_link(struct engine_ep *ep);
void engine_domain_unlink(struct engine_ep *ep);

/*
 * engine_domain_round - make one round: poll every enabled endpoint, then run the work that is due
 * Returns true if a poll moved something.
 */
bool engine_domain_round(struct engine_domain *domain);

/* engine_domain_count - count a round that a call of the program makes */
static inline void engine_domain_count(struct engine_domain *domain)
{
	uint32_t rounds = atomic_load_explicit(&domain->rounds, memory_order_relaxed);

	atomic_store_explicit(&domain->rounds, rounds + 1, memory_order_relaxed);
}

/*
 * engine_domain_progress - make one round in a call of the program, counted in domain->rounds
 * The domain's thread makes no rounds while that count grows (auto.c).
 */
static inline void engine_domain_progress(struct engine_domain *domain)
{
	engine_domain_count(domain);
	if (engine_domain_round(domain))
		domain->idle = 0;
	else if (unlikely(++domain->idle > domain->yield_after))
		engine_domain_idle(domain);
}

#endif
