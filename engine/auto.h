/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Progress without the program: a thread per domain that wants it.
 */
#ifndef WEFT_AUTO_H
#define WEFT_AUTO_H

#include "engine.h"

/*
 * engine_auto_start - give a domain its thread, unless it has one in this process
 *
 * The domain's callers are not alone any more: all of them take its lock from then on (guard.h). The
 * program serializes its calls here, as fi_domain(3) has it for opening.
 * The caller does not hold the domain. Returns 0 or -FI_E*.
 */
int engine_auto_start(struct engine_domain *domain);

/*
 * engine_auto_wake - somebody goes to sleep: look now, and often; nothing without a thread
 * In the child of a fork the domain has lost its thread, and gets another one here. The caller does
 * not hold the domain. Returns 0 or -FI_E*: nobody would wake who sleeps.
 */
int engine_auto_wake(struct engine_domain *domain);

/* engine_auto_stop - the domain is closed: end the thread, if there is one */
void engine_auto_stop(struct engine_domain *domain);

#endif
