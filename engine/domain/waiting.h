/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Sleeping: the part that blocking calls, descriptors and the thread of a domain share.
 *
 * A sleeper is a thread in a blocking call, the thread of the domain, or a program that polls a
 * descriptor. Before it sleeps, the domain is held for these steps: arm the wires
 * (engine_waiter_arm(), progress/arm.h), register (engine_armed_add(), for threads also
 * engine_waiter_enter()), and check once more for what is awaited. Then the domain is given up, and
 * the sleeper is woken by
 *  - the poll set, while poll() of a wire may have something;
 *  - the domain's bell, for threads, or the descriptor of the object: another thread has found what
 *    the object waits for, or has left work to do.
 *
 * No wake-up is lost: all wires are armed while any object in domain->armed has not been woken.
 * Where a wire can't be armed (it has something already) or the set of wires changes, all sleepers
 * are woken; each arms the wires again or stays awake. A bell stays rung until the last thread that
 * slept on it is awake, and a descriptor until fi_trywait, so that each of several sleepers sees
 * it.
 */
#ifndef WEFT_WAITING_H
#define WEFT_WAITING_H

#include "endpoint.h"

/* Objects with sleepers (bell.c). The caller holds the domain. */

/*
 * engine_armed_init - initialize the entry of an object without sleepers; @ring, @watch: see the
 * struct
 */
void engine_armed_init(struct engine_armed *armed, void (*ring)(struct engine_armed *armed),
		       void (*watch)(struct engine_armed *armed, bool on));

/*
 * engine_armed_add - a sleeper is about to sleep on the object; the wires are armed
 * @thread: true for a thread, false for a program that polls the descriptor
 */
void engine_armed_add(struct engine_domain *domain, struct engine_armed *armed, bool thread);

/*
 * engine_armed_drop - a thread is awake, or the program no longer waits for the descriptor
 * @thread: as in engine_armed_add()
 * The wires are disarmed if no sleeper is left in the domain. Not called from within poll().
 */
void engine_armed_drop(struct engine_domain *domain, struct engine_armed *armed, bool thread);

/* engine_armed_forget - the object ends, and has no sleepers. Not called from within poll() */
void engine_armed_forget(struct engine_domain *domain, struct engine_armed *armed);

/* engine_armed_wake - wake the sleepers of the object. Also called from within poll() */
void engine_armed_wake(struct engine_domain *domain, struct engine_armed *armed);

/*
 * engine_armed_remove - the object has no sleepers left: remove it from domain->armed, if it is
 * there
 */
void engine_armed_remove(struct engine_armed *armed);

/* engine_wake_all - wake all sleepers of the domain. Also called from within poll() */
void engine_wake_all(struct engine_domain *domain);

/*
 * engine_wake - a call has left work for progress: wake the sleepers of the domain, if there are
 * any
 */
static inline void engine_wake(struct engine_domain *domain)
{
	if (unlikely(!list_empty(&domain->armed)))
		engine_wake_all(domain);
}

/*
 * The descriptors that sleepers poll (waiter.c). The caller holds the domain, except for
 * engine_waiter_leave() and engine_waiter_ring().
 */

/* engine_waiter_init, engine_waiter_close - the domain is opened; it is closed */
void engine_waiter_init(struct engine_waiter *waiter);
void engine_waiter_close(struct engine_waiter *waiter);

/*
 * engine_waiter_open - open the descriptors, unless this process has opened them already
 * Returns 0 or -FI_E*.
 */
int engine_waiter_open(struct engine_domain *domain);

/*
 * engine_waiter_join, engine_waiter_part - an endpoint has opened its wires; it is about to close
 * them
 */
void engine_waiter_join(struct engine_ep *ep);
void engine_waiter_part(struct engine_ep *ep);

/*
 * engine_waiter_clear - remove the bells from the poll set, if no wire is armed
 * Called while the program makes progress by polling: packets on a socket cost more while the
 * socket is in a poll set. engine_waiter_open() adds the bells again.
 */
void engine_waiter_clear(struct engine_domain *domain);

/*
 * engine_waiter_rest - disarm the wires, if the domain has no sleepers. Not called from within
 * poll()
 */
void engine_waiter_rest(struct engine_domain *domain);

/* engine_waiter_timer - wake the sleepers on descriptors of the domain in @ns ns at the latest */
void engine_waiter_timer(struct engine_domain *domain, uint64_t ns);

/*
 * engine_waiter_enter - a thread is about to sleep
 * @on: out: what wakes the thread, for platform_sleep()
 * Returns false if nothing can wake it, because the descriptors could not be opened.
 */
bool engine_waiter_enter(struct engine_domain *domain, struct platform_wakers *on);

/*
 * engine_waiter_leave - a thread is awake; it need not hold the domain
 * Returns true if other threads sleep, or are woken but have not called this yet.
 */
bool engine_waiter_leave(struct engine_domain *domain);

/*
 * engine_waiter_ring - wake all threads that sleep in the domain. Called on any thread, with any
 * lock held
 */
void engine_waiter_ring(struct engine_domain *domain);

/*
 * engine_waiter_object - open a descriptor for an object of the domain: a poll set over the waiter
 * @descriptor: out: owned by the caller
 * engine_waiter_object_renew - in the child of a fork, open it again under the same number
 * Returns 0 or -FI_E*.
 */
int engine_waiter_object(struct engine_domain *domain, int *descriptor);
int engine_waiter_object_renew(struct engine_domain *domain, int descriptor);

/* A poll set for objects of several domains (waiter.c). The caller serializes these calls. */

/*
 * engine_poll_set_open - open the poll set, unless this process has opened it already
 * A new one contains only its bell. In the child of a fork its number stays the same.
 * Returns 0 or -FI_E*.
 */
int engine_poll_set_open(struct engine_poll_set *poll_set);
void engine_poll_set_close(struct engine_poll_set *poll_set);

/* engine_poll_set_here - returns true if this process has opened the poll set */
bool engine_poll_set_here(const struct engine_poll_set *poll_set);

/*
 * engine_poll_set_add, engine_poll_set_remove - add the waiter of a domain; remove it
 * The caller holds the domain. Returns 0 or -FI_E*.
 */
int engine_poll_set_add(struct engine_poll_set *poll_set, struct engine_domain *domain);
void engine_poll_set_remove(struct engine_poll_set *poll_set, struct engine_domain *domain);

/* Spinning before a thread sleeps (spin.c). The caller does not hold the domain. */

/*
 * engine_spin - one turn of a spin: returns true to check again at once, false to sleep
 * @spin: zeroed at the start of the blocking call
 * Yields the core now and then, and returns false in the next turn if other threads want it.
 */
bool engine_spin(struct engine_spin *spin, struct engine_spin_budget *spin_budget);

/* engine_spin_end - the wait is over: adapt the budget to the time that it took */
void engine_spin_end(const struct engine_spin *spin, struct engine_spin_budget *spin_budget);

/*
 * engine_end_ns - returns the time @timeout ms from now, or UINT64_MAX (never) if @timeout is
 * negative
 */
uint64_t engine_end_ns(int timeout);

/* engine_over - returns true if the time @end_ns has come */
static inline bool engine_over(uint64_t end_ns)
{
	return end_ns != UINT64_MAX && platform_now_ns() >= end_ns;
}

#endif
