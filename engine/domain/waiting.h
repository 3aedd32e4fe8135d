/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Sleeping, in three structs (types/waits.h):
 *  - a channel is what threads sleep on: a bell, and mostly a poll set. A domain has one that holds
 *    the bells of its wires; wait sets, event queues, and queues and counters with a descriptor
 *    have one that holds those of their domains;
 *  - a wait says who sleeps until an object has something: threads, on the channel of the domain,
 *    and programs, on that of the object;
 *  - a sleeper is one blocking call: it spins, and then sleeps on a channel.
 *
 * Before a thread sleeps, the domain is held for these steps: arm the wires (engine_wires_arm(),
 * progress/arm.h), register (engine_wait_add(), for threads also engine_channel_enter()), and check
 * once more for what is awaited. Then the domain is given up, and the channel wakes:
 *  - by the bell of a wire, or by engine_wire_wake(), while poll() of that may have something;
 *  - by its own: another thread has found what the object waits for, or has left work to do.
 *
 * No wake-up is lost: all wires are armed while any wait in domain->armed has not been woken. Where
 * a wire can't be armed (it has something already) or the set of wires changes, all sleepers are
 * woken; each arms the wires again or stays awake. The channel of a domain stays rung until the
 * last thread that slept on it is awake, the others until fi_trywait or until there is nothing
 * left, so that each of several sleepers sees it. What a wire has rung is silenced by the next
 * thread that arms the wires: it polls them if they have something, as each sleeper would.
 */
#ifndef WEFT_WAITING_H
#define WEFT_WAITING_H

#include "endpoint.h"

/* Waiting for objects (waits.c). The caller holds the domain. */

/*
 * engine_wait_init - initialize a wait: no thread or program waits for the object
 * @domain, @channel, @watch: see the struct
 */
void engine_wait_init(struct engine_wait *wait, struct engine_domain *domain,
		      struct engine_channel *channel,
		      void (*watch)(struct engine_wait *wait, bool on));

/*
 * engine_wait_add - a sleeper is about to sleep until the object has something; the wires are armed
 * @thread: true for a thread, on the channel of the domain; false for a program, on that of the
 *	    object
 */
void engine_wait_add(struct engine_wait *wait, bool thread);

/*
 * engine_wait_drop - a thread is awake, or the program no longer waits for the channel
 * @thread: as in engine_wait_add()
 * The wires are disarmed if no sleeper is left in the domain. Not called from within poll().
 */
void engine_wait_drop(struct engine_wait *wait, bool thread);

/* engine_wait_forget - the object ends, and has no sleepers. Not called from within poll() */
void engine_wait_forget(struct engine_wait *wait);

/* engine_wait_wake - wake the sleepers of the object. Also called from within poll() */
void engine_wait_wake(struct engine_wait *wait);

/*
 * engine_wait_remove - the object has no sleepers left: remove it from domain->armed, if it is
 * there
 */
void engine_wait_remove(struct engine_wait *wait);

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
 * Channels (channel.c). The owner's lock serializes the calls that open, close or fill one: that is
 * the domain for its own channel and for those of queues. The other functions are called on any
 * thread.
 */

/* engine_channel_init - a channel that is not open */
void engine_channel_init(struct engine_channel *channel, enum engine_channel_kind kind);
/* engine_channel_close - close the channel of an owner that is closed; no thread sleeps on it */
void engine_channel_close(struct engine_channel *channel);

/*
 * engine_channel_open - open the channel, unless this process has opened it already
 * @domain: for ENGINE_CHANNEL_QUEUE: the one whose channel it holds; else NULL
 *
 * In the child of a fork its descriptor keeps its number. That of a domain is opened by
 * engine_domain_channel(). Returns 0 or -FI_E*; -FI_ENOSYS: the platform has no descriptors.
 */
int engine_channel_open(struct engine_channel *channel, struct engine_domain *domain);

/*
 * engine_channel_opened - returns true if this process, or one that it was forked from, has opened
 * it
 */
static inline bool engine_channel_opened(const struct engine_channel *channel)
{
	/* A:engine_channel.opened  what it consists of; pairs R:engine_channel.opened */
	return atomic_load_explicit(&channel->opened, memory_order_acquire);
}

/* engine_channel_is_local - returns true if this process has opened the channel */
bool engine_channel_is_local(const struct engine_channel *channel);

/* engine_channel_descriptor - returns what a program polls, or -1 if the channel is not open */
int engine_channel_descriptor(const struct engine_channel *channel);

/*
 * engine_channel_export - the program has the descriptor from now on, which is returned
 * engine_channel_exported - returns true if it has
 */
int engine_channel_export(struct engine_channel *channel);
static inline bool engine_channel_exported(const struct engine_channel *channel)
{
	return atomic_load_explicit(&channel->exported, memory_order_relaxed);
}

/*
 * engine_channel_add, engine_channel_remove - have a set's channel hold that of a domain; no more
 * The caller holds the domain. Returns 0 or -FI_E*.
 */
int engine_channel_add(struct engine_channel *channel, struct engine_domain *domain);
void engine_channel_remove(struct engine_channel *channel, struct engine_domain *domain);

/*
 * engine_channel_ring - wake the threads and programs that sleep on the channel; for a domain's,
 * the threads
 * engine_channel_clear - silence it; a domain's is silent once the last thread is awake
 * They may be called with any lock held. A channel that this process has not opened stays as it is.
 */
void engine_channel_ring(struct engine_channel *channel);
void engine_channel_clear(struct engine_channel *channel);

/*
 * engine_channel_wake - a wire has something for its poll(): wake whoever sleeps on the channel of
 * the domain, and on those that hold it
 * Called from any context: it takes no lock, allocates nothing, and does not depend on who holds
 * the domain. Until the wires are armed again only the first call rings.
 *
 * engine_channel_rearm - the wires of the domain are about to be armed: from now on a wake rings
 * The wires' arm() sees what the caller of an earlier wake did before. The caller holds the domain.
 */
void engine_channel_wake(struct engine_channel *channel);
void engine_channel_rearm(struct engine_channel *channel);

/*
 * engine_channel_enter - a thread is about to sleep
 * @on: out: what wakes the thread, for platform_sleep()
 * Returns false if nothing can wake it, because the channel could not be opened.
 */
bool engine_channel_enter(struct engine_channel *channel, struct platform_wakers *on);
/* engine_channel_wakers - what wakes a thread that has entered, again */
void engine_channel_wakers(const struct engine_channel *channel, struct platform_wakers *on);

/*
 * engine_channel_leave - a thread is awake
 * Returns true if other threads sleep, or are woken but have not called this yet.
 */
bool engine_channel_leave(struct engine_channel *channel);

/* The wires of a domain in its channel (arming.c). The caller holds the domain. */

/*
 * engine_domain_channel - open the domain's channel, unless this process has opened it already
 * Returns 0 or -FI_E*.
 */
int engine_domain_channel(struct engine_domain *domain);

/*
 * engine_bells_join - an endpoint has opened its wires
 * engine_bells_part - it is about to close them
 */
void engine_bells_join(struct engine_ep *ep);
void engine_bells_part(struct engine_ep *ep);

/*
 * engine_bells_clear - remove the wires' bells from the channel, if no wire is armed
 * Called while the program makes progress by polling: packets on a socket cost more while the
 * socket is in a poll set. engine_domain_channel() adds the bells again.
 */
void engine_bells_clear(struct engine_domain *domain);

/*
 * engine_wires_disarm - disarm the wires, if the domain has no sleepers. Not called from within
 * poll()
 */
void engine_wires_disarm(struct engine_domain *domain);

/* engine_domain_timer - wake the programs that sleep on the domain in @ns ns at the latest */
void engine_domain_timer(struct engine_domain *domain, uint64_t ns);

/* Blocking calls (spin.c). The caller does not hold the domain. */

/*
 * engine_sleeper_init - a blocking call begins
 * @channel: what it will sleep on
 * @timeout: ms; negative: none
 */
void engine_sleeper_init(struct engine_sleeper *sleeper, struct engine_channel *channel,
			 int timeout);

/*
 * engine_sleeper_spins - one turn of its spin: returns true to check again at once, false to sleep
 * Yields the core now and then, and returns false in the next turn if other threads want it.
 */
bool engine_sleeper_spins(struct engine_sleeper *sleeper);

/* engine_sleeper_end - the call returns: adapt the channel's time to spin to what it took */
void engine_sleeper_end(const struct engine_sleeper *sleeper);

/* engine_sleeper_ns - returns the time until the deadline, ns, but at most @most; 0: it is over */
uint64_t engine_sleeper_ns(const struct engine_sleeper *sleeper, uint64_t most);

/* engine_sleeper_over - returns true if the deadline has passed */
static inline bool engine_sleeper_over(const struct engine_sleeper *sleeper)
{
	return sleeper->end_ns != UINT64_MAX && platform_now_ns() >= sleeper->end_ns;
}

#endif
