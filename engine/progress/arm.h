/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Arming the wires of a domain for those who are about to sleep (waiting.h), and what becomes of
 * those who have been woken. The caller holds the domain.
 */
#ifndef WEFT_ARM_H
#define WEFT_ARM_H

#include "domain.h"

/*
 * engine_waiter_arm - arm all wires
 * Returns for how many ns the caller may sleep: also for the sake of what only time brings. 0: a
 * wire has something now, make a round; everybody who slept is woken.
 */
uint64_t engine_waiter_arm(struct engine_domain *domain);

/* engine_armed_round - who has been woken sleeps no more; domain->armed is not empty */
void engine_armed_round(struct engine_domain *domain);

#endif
