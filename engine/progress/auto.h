/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Progress without the program: a thread per domain that wants it.
 */
#ifndef WEFT_AUTO_H
#define WEFT_AUTO_H

#include "endpoint.h"

/*
 * engine_auto_enable - an endpoint is about to be enabled: automatic progress begins, if it was
 * asked for The caller holds the domain. Returns 0 or -FI_E*.
 */
int engine_auto_enable(struct engine_domain *domain);

/*
 * engine_auto_rings - there are descriptors that only the thread rings: give the domain one in
 * this process The program serializes its calls here, as fi_domain(3) has it for opening. The
 * caller does not hold the domain. Returns 0 or -FI_E*.
 */
int engine_auto_rings(struct engine_domain *domain);

/* engine_auto_needed - are there such descriptors? */
static inline bool engine_auto_needed(const struct engine_domain *domain)
{
	return atomic_load_explicit(&domain->progress.rings, memory_order_relaxed);
}

/*
 * engine_auto_wake - somebody goes to sleep: look now, if descriptors need the thread
 * In the child of a fork the domain has lost its thread, and gets another one here. The caller does
 * not hold the domain. Returns 0 or -FI_E*: nobody would wake who sleeps.
 */
int engine_auto_wake(struct engine_domain *domain);

/*
 * engine_auto_let_off - the program makes a round while the thread sleeps: it need not be woken.
 * Domain held
 */
void engine_auto_let_off(struct engine_domain *domain);

/* engine_auto_stop - the domain is closed: end the thread, if there is one */
void engine_auto_stop(struct engine_domain *domain);

#endif
