/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Blocking: channels, which threads and programs sleep on, the objects that they wait for, and
 * blocking calls. waiting.h says why no wake-up is lost.
 */
#ifndef WEFT_ENGINE_WAITS_H
#define WEFT_ENGINE_WAITS_H

#include <rdma/fi_eq.h>
#include "family.h"
#include "forks.h"
#include "list.h"
#include "platform.h"

struct engine_domain;

/*
 * What a channel consists of. Where it has no poll set, threads sleep on the bell alone.
 */
enum engine_channel_kind {
	/*
	 * Of a domain: a poll set with the bells of its wires, which is rung for wires without one
	 * (engine_channel_wake()), a timer that wakes programs, and beside them a bell that wakes
	 * threads
	 */
	ENGINE_CHANNEL_DOMAIN,
	/* Of a wait set or an event queue: a poll set with its bell and the channels of domains */
	ENGINE_CHANNEL_SET,
	/*
	 * Of a queue or counter: a poll set with the channel of its domain, which is rung by that
	 * one's bell but not with it (platform_poll_set_open())
	 */
	ENGINE_CHANNEL_QUEUE,
	/* The same, where the domain's thread rings it: a bell */
	ENGINE_CHANNEL_BELL,
	/* The same, where there are no descriptors: a bell that calls the consumer (kernel/wait.c) */
	ENGINE_CHANNEL_CALL,
};

/*
 * What threads and programs sleep on (channel.c). It is opened when something sleeps on it first;
 * its owner's lock serializes that.
 */
struct engine_channel {
	enum engine_channel_kind kind;
	/* Fork count of the process that opened it, and 1; 0: not open */
	_Atomic uint32_t opened;
	struct platform_bell bell;
	/* -1: none */
	int poll_set;
	/* -1: none */
	int timer;
	/* Time at which the timer rings */
	uint64_t timer_ns;
	/* The program has the descriptor, and may sleep on it between its calls */
	_Atomic bool exported;
	/* Of a domain: engine_channel_wake() was called since the wires were last armed */
	_Atomic bool wake_pending;
	/* Its calls that may still ring */
	_Atomic uint32_t waking;
	/* One may have rung since the channel was last silenced; protected by the domain */
	bool wake_late;
	/* Protects @rung and @asleep; rank 3 */
	struct platform_lock lock;
	/* The bell is rung, or the poll set is by it */
	bool rung;
	/* Threads that sleep, or have not reported yet that they are awake */
	uint32_t asleep;
	/* Time for which a blocking call spins before it sleeps; 0: not measured yet (spin.c) */
	_Atomic uint32_t spin_ns;
	/* Consecutive times that spinning was in vain */
	_Atomic uint32_t vain;
};

/*
 * Waiting for an object: a queue, a counter, what an event queue reports, work of the domain's
 * thread. The wires of the domain are armed while any is in domain->armed (waits.c). Protected by
 * the domain.
 */
struct engine_wait {
	struct engine_domain *domain;
	/* Link in domain->armed */
	struct list link;
	/* What programs sleep on; NULL: only threads wait, on the channel of the domain */
	struct engine_channel *channel;
	/*
	 * watch - @on: call engine_wait_wake() from now on when the object gets something; or
	 * NULL
	 */
	void (*watch)(struct engine_wait *wait, bool on);
	/* Threads that sleep in a blocking call */
	uint32_t threads;
	/* A program may sleep on @channel, or a thread on that of a set */
	bool descriptor;
	/* They have been woken; the entry leaves the list at the end of a round */
	bool woken;
};

/* A blocking call: it spins, and then sleeps (spin.c, sleep.c). */
struct engine_sleeper {
	/* What it sleeps on, with the time to spin */
	struct engine_channel *channel;
	/* Deadline; UINT64_MAX: none */
	uint64_t end_ns;
	/* Time at which it began to spin; 0: not yet */
	uint64_t begin_ns;
	/* Turns of the spin */
	uint32_t turns;
	/* Other threads want this core */
	bool crowded;
	/* A signal handler has run while it slept: the call ends, unless there is something */
	bool interrupted;
	/* Signals do not end the call (FI_WAIT_YIELD) */
	bool patient;
	/* The fields below are those of a call that sleeps on the channel of a domain */
	/* The object that it waits for */
	struct engine_wait *wait;
	/*
	 * there - returns true if the event that the call waits for has happened; called with the
	 * domain held, and once more before it sleeps
	 */
	bool (*there)(void *arg);
	void *arg;
	/* Value of domain->rounds when the call was last about to sleep */
	uint32_t rounds;
	/* Checks left before it sleeps */
	uint32_t looks;
};

/*
 * Calls of fi_cq_signal, on any thread. Each ends the waits that are under way; one without a wait
 * ends the next one (wait_obj.h).
 */
struct engine_signals {
	_Atomic uint32_t cnt;
	/* Value of @cnt when a wait last ended by it */
	_Atomic uint32_t done;
};

/* A wait set (wait_set_fid.c). */
struct engine_waitset {
	struct fid_wait fid;
	struct engine_fabric *fabric;
	enum fi_wait_obj obj;
	struct engine_channel channel;
	/* Protects @members and what opens @channel; rank 0 */
	struct platform_lock lock;
	struct engine_fork_lock fork_lock;
	/* Queues and counters, by struct engine_wait_obj.member */
	struct list members;
	/* Event queues, by struct engine_eq.member */
	struct list eqs;
	/* Those of its queues */
	struct engine_signals signals;
	/* References: of the program, until it closes the set, and of its members */
	_Atomic int refs;
};

/* The wait object of a queue or counter (wait_obj.h). */
struct engine_wait_obj {
	/* Its channel is that of @set, else @own */
	struct engine_wait base;
	/* The queue or counter */
	struct fid *fid;
	enum fi_wait_obj obj;
	/*
	 * Open for FI_WAIT_FD, and for FI_WAIT_UNSPEC once the program asks for it. Opened with the
	 * domain held
	 */
	struct engine_channel own;
	/* Wait set that it is a member of, or NULL (FI_WAIT_SET) */
	struct engine_waitset *set;
	/* Link in set->members */
	struct list member;
	/* struct poll_member of the poll sets (fi_poll_open) that it is in */
	struct list polled;
};

#endif
