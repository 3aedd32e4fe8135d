/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Automatic progress: a thread per domain that makes rounds while the program makes none.
 */
#ifndef WEFT_AUTO_H
#define WEFT_AUTO_H

#include "endpoint.h"

/*
 * engine_auto_enable - start the thread of a domain that was opened with FI_PROGRESS_AUTO
 * Called before an endpoint is enabled; has no effect if the thread runs. The caller holds the
 * domain. Returns 0 or -FI_E*.
 */
int engine_auto_enable(struct engine_domain *domain);

/*
 * engine_auto_rings - start the thread, if it does not run, for descriptors that only it rings
 * From then on engine_auto_needed() returns true. The program serializes this call with others, as
 * it does when it opens an object (fi_domain(3), threading). The caller does not hold the domain.
 * Returns 0 or -FI_E*.
 */
int engine_auto_rings(struct engine_domain *domain);

/* engine_auto_needed - returns true if only the thread rings some descriptors of the domain */
static inline bool engine_auto_needed(const struct engine_domain *domain)
{
	return atomic_load_explicit(&domain->progress.rings, memory_order_relaxed);
}

/*
 * engine_auto_wake - have the thread look at once, because the program is about to sleep
 * Has no effect unless engine_auto_needed(). In the child of a fork, where the domain has lost its
 * thread, the call starts another one. The caller does not hold the domain.
 * Returns 0, or -FI_E*: there is no thread, and the program would not be woken.
 */
int engine_auto_wake(struct engine_domain *domain);

/*
 * engine_auto_detach - take the sleeping thread off the sleepers: the program makes rounds again
 * The thread wakes and goes back to watching domain->rounds. The caller holds the domain.
 */
void engine_auto_detach(struct engine_domain *domain);

/*
 * engine_auto_stop - end the thread, if there is one
 * Called when the domain is closed. The caller does not hold the domain.
 */
void engine_auto_stop(struct engine_domain *domain);

#endif
