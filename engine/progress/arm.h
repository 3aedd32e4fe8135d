/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Arming the wires of a domain before a thread or a program sleeps (waiting.h), and removing the
 * sleepers that have been woken.
 *
 * The caller holds the domain.
 */
#ifndef WEFT_ARM_H
#define WEFT_ARM_H

#include "domain.h"

/*
 * engine_wires_arm - arm all wires of the domain for a caller that is about to sleep
 * Returns the longest time to sleep, ns; it is bounded for events that ring no bell. 0: a wire has
 * something now, and all sleepers were woken; the caller makes a round.
 * If the domain's channel can't be opened, no wire is armed and the time is a millisecond.
 */
uint64_t engine_wires_arm(struct engine_domain *domain);

/*
 * engine_wait_arm - prepare for a program to sleep on the channel of an object, for fi_trywait
 * @look: returns true if the object has something, after a round of progress if it had nothing
 *
 * Returns 0: the wires are armed, or the domain has a thread that rings the channel; -FI_EAGAIN:
 * the object has something, or a wire has in each of many rounds.
 */
int engine_wait_arm(struct engine_wait *wait, bool (*look)(struct engine_wait *wait));

/*
 * engine_channel_hold - have the channel of a wait set or event queue hold that of a domain, if it
 * is open, and unless a thread makes progress for the domain
 * The caller holds what protects @channel, and not the domain. Returns 0 or -FI_E*.
 */
int engine_channel_hold(struct engine_channel *channel, struct engine_domain *domain);

/*
 * engine_waits_round - end a round: remove the objects whose sleepers have been woken
 * The domain's thread is let off, and the wires are disarmed if no sleeper is left. domain->armed
 * is not empty.
 */
void engine_waits_round(struct engine_domain *domain);

#endif
