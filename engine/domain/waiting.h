/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Sleeping: what blocking calls, descriptors and the thread of a domain have in common.
 *
 * Who is about to sleep holds the domain, arms its wires (engine_waiter_arm(), arm.h), says that it sleeps
 * (engine_armed_add, and for threads engine_waiter_enter), looks once more at what it waits for, gives
 * up the domain, and sleeps on what rings from then on:
 *  - the poll set, while poll() of a wire may have something;
 *  - the domain's bell, for threads, or the object's own descriptor: somebody else has found something
 *    for the object, or has left something to do.
 *
 * Why none is missed: while there is anybody in domain->armed who has not been woken, all wires are
 * armed. Where that can't be kept up (a wire has something when it is to be armed, wires come and go)
 * everybody is woken, and arms anew or stays awake. A bell stays rung until the last thread that slept
 * on it is awake, a descriptor until fi_trywait; so nobody misses one because another was faster.
 */
#ifndef WEFT_WAITING_H
#define WEFT_WAITING_H

#include "endpoint.h"

/* Who sleeps (bell.c). All with the domain held. */

/* engine_armed_init - nobody does; @ring, @watch: as in the struct */
void engine_armed_init(struct engine_armed *armed, void (*ring)(struct engine_armed *armed),
		       void (*watch)(struct engine_armed *armed, bool on));
/* engine_armed_add - somebody is about to: a thread, or whoever has the descriptor. The wires are armed */
void engine_armed_add(struct engine_domain *domain, struct engine_armed *armed, bool thread);
/* engine_armed_drop - a thread is awake, or nobody waits for the descriptor any more */
void engine_armed_drop(struct engine_domain *domain, struct engine_armed *armed, bool thread);
/* engine_armed_forget - the object ends; nobody sleeps on it */
void engine_armed_forget(struct engine_domain *domain, struct engine_armed *armed);
/* engine_armed_wake - there is something for those who sleep on @armed. Also from within poll() */
void engine_armed_wake(struct engine_domain *domain, struct engine_armed *armed);
/* engine_armed_remove - nobody is left who sleeps on it: out of the domain's list, if it is there */
void engine_armed_remove(struct engine_armed *armed);

/* engine_wake_all - wake everybody who sleeps in the domain. Also from within poll() */
void engine_wake_all(struct engine_domain *domain);

/* engine_wake - a call has left something to do: somebody who sleeps has to do it */
static inline void engine_wake(struct engine_domain *domain)
{
	if (unlikely(!list_empty(&domain->armed)))
		engine_wake_all(domain);
}

/* What they sleep on (waiter.c). With the domain held, but for engine_waiter_ring(). */

/* engine_waiter_init, engine_waiter_close - of a domain that is opened or closed */
void engine_waiter_init(struct engine_waiter *waiter);
void engine_waiter_close(struct engine_waiter *waiter);

/* engine_waiter_open - have the descriptors, in this process; 0 or -FI_E* */
int engine_waiter_open(struct engine_domain *domain);

/* engine_waiter_join, engine_waiter_part - an endpoint has opened its wires, or is about to close them */
void engine_waiter_join(struct engine_ep *ep);
void engine_waiter_part(struct engine_ep *ep);

/*
 * engine_waiter_clear - nobody sleeps, and the program makes rounds: take the bells out of the poll set
 * What comes over a socket costs more while that is in one. Arming puts them back.
 */
void engine_waiter_clear(struct engine_domain *domain);

/* engine_waiter_rest - disarm the wires, if nobody sleeps any more. Not from within poll() */
void engine_waiter_rest(struct engine_domain *domain);

/* engine_waiter_timer - those who sleep on descriptors of the domain are to be woken in @ns at the latest */
void engine_waiter_timer(struct engine_domain *domain, uint64_t ns);

/*
 * engine_waiter_enter - a thread is about to sleep
 * @on: out: what on, for platform_sleep(). Returns false when there is nothing that could wake it
 * engine_waiter_leave - it is awake; it may hold nothing. Returns whether others have not said that yet
 */
bool engine_waiter_enter(struct engine_domain *domain, struct platform_wakers *on);
bool engine_waiter_leave(struct engine_domain *domain);

/* engine_waiter_ring - wake all threads that sleep in the domain. Any thread, whatever it holds */
void engine_waiter_ring(struct engine_domain *domain);

/*
 * engine_waiter_object - a descriptor for an object of the domain: a poll set over the waiter
 * engine_waiter_object_renew - the same under the number that the object had in the process before
 * Returns 0 or -FI_E*.
 */
int engine_waiter_object(struct engine_domain *domain, int *descriptor);
int engine_waiter_object_renew(struct engine_domain *domain, int descriptor);

/* A poll set for objects of several domains (waiter.c). The caller serializes. */

/* engine_poll_set_open - have it, in this process; empty but for its bell if it was not there. 0 or -FI_E* */
int engine_poll_set_open(struct engine_poll_set *poll_set);
void engine_poll_set_close(struct engine_poll_set *poll_set);
/* engine_poll_set_here - is there one, of this process? */
bool engine_poll_set_here(const struct engine_poll_set *poll_set);
/* engine_poll_set_add, engine_poll_set_remove - put a domain's waiter in, take it out; the domain is held */
int engine_poll_set_add(struct engine_poll_set *poll_set, struct engine_domain *domain);
void engine_poll_set_remove(struct engine_poll_set *poll_set, struct engine_domain *domain);

/* Looking again and again before one sleeps (spin.c) */

/*
 * engine_spin - look again at once, and do not sleep yet?
 * Lets others run now and then, and gives up at once when they want this core.
 */
bool engine_spin(struct engine_spin *spin, struct engine_spin_budget *spin_budget);
/* engine_spin_end - the waiting is over: was it worth while? */
void engine_spin_end(const struct engine_spin *spin, struct engine_spin_budget *spin_budget);

/* engine_end_ns - when @timeout ms from now are over; below 0: never */
uint64_t engine_end_ns(int timeout);
/* engine_over - is it that time? */
static inline bool engine_over(uint64_t end_ns)
{
	return end_ns != UINT64_MAX && platform_now_ns() >= end_ns;
}

#endif
