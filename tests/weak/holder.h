/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The system of the models of a domain's holder: an atomic word in place of its lock, a clock that makes a
 * barrier, and no log. A thread that would wait for another one ends the execution: there is one in which the
 * other thread was first. The barrier is each model's own: platform_membarrier().
 */
#ifndef WEFT_WEAK_HOLDER_H
#define WEFT_WEAK_HOLDER_H

#include "guard.h"

/* membarrier(2) is; written before the threads begin */
extern bool holder_forbidden;

/* holder_init - @domain is one that nobody holds, of no provider; called before the threads begin */
void holder_init(struct engine_domain *domain);

#endif
