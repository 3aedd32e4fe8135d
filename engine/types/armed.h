/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Blocking: which objects threads and programs sleep on, the descriptors that wake them, and how
 * long a call spins before it sleeps. waiting.h says why no wake-up is lost.
 */
#ifndef WEFT_ENGINE_ARMED_H
#define WEFT_ENGINE_ARMED_H

#include "list.h"
#include "platform.h"

/*
 * An object that somebody may sleep on: a queue, a counter, an event queue, the domain's thread.
 * The wires of the domain are armed while any object is in domain->armed (bell.c).
 */
struct engine_armed {
	/* Link in domain->armed */
	struct list link;
	/*
	 * ring - make the object's descriptor readable; the caller holds the domain. NULL: no
	 * descriptor
	 */
	void (*ring)(struct engine_armed *armed);
	/*
	 * watch - @on: call engine_armed_wake() from now on when the object gets something; or
	 * NULL
	 */
	void (*watch)(struct engine_armed *armed, bool on);
	/* Threads that sleep in a blocking call */
	uint32_t threads;
	/* The program may sleep on the descriptor */
	bool descriptor;
	/* They have been woken; the entry leaves the list at the end of a round */
	bool came;
};

/* The thread of a domain with automatic progress (auto.c). */
struct engine_auto {
	/* Set from the first endpoint on */
	bool asked;
	struct platform_thread thread;
	/*
	 * Descriptors rely on the thread because nothing else rings them; kept in the child of
	 * a fork
	 */
	_Atomic bool rings;
	/* The program sleeps on such a descriptor: look at once */
	_Atomic bool eager;
	struct engine_armed armed;
	/* The thread is counted in @armed; protected by the domain */
	bool listed;
	/* The fields below belong to the thread */
	/* True if the nap ends when the domain has something */
	bool asleep;
	/* Value of domain->rounds at the last look */
	uint32_t seen;
	/* Time between rounds that the thread makes */
	uint64_t nap_ns;
	/* Time between looks at a program that makes progress itself */
	uint64_t away_ns;
};

/* How long a blocking call spins before it sleeps; measured while it runs (spin.c). */
struct engine_spin_budget {
	/* Time to spin; 0: not measured yet */
	_Atomic uint32_t spin_ns;
	/* Consecutive times that spinning was in vain */
	_Atomic uint32_t vain;
};

/*
 * The descriptors on which blocking calls of a domain sleep (waiter.c). They are opened by the
 * first call that blocks. Fields that the lock does not protect are protected by the domain.
 */
struct engine_waiter {
	/* The bell exists, and the descriptors below where the platform has such; owned */
	bool open;
	/* Wakes threads that sleep in blocking calls */
	struct platform_bell bell;
	/* Poll set with the bells of all wires; -1: the platform has no poll sets */
	int poll_set;
	/* Wakes programs that sleep on descriptors; -1 likewise */
	int timer;
	/* Fork count of the process that opened them */
	uint32_t forks;
	/* Some or all of the wires are armed */
	bool armed;
	/* @poll_set holds no bell until a wire is armed */
	bool parted;
	/* Objects whose descriptor is a poll set that holds @poll_set */
	uint32_t poll_sets;
	/* Time at which the timer rings */
	uint64_t timer_ns;
	struct engine_spin_budget spin_budget;
	/* Protects @asleep and @rung; rank 3 */
	struct platform_lock lock;
	/* Threads that sleep, or have not reported yet that they are awake */
	uint32_t asleep;
	/* True while the bell is rung */
	bool rung;
};

/* A poll set over objects of several domains: their waiters, and a bell. */
struct engine_poll_set {
	/* The descriptors below exist; owned */
	bool open;
	int poll_set;
	/* Member of the poll set; wakes threads */
	struct platform_bell bell;
	/* Fork count of the process that opened them */
	uint32_t forks;
};

/* One spin of a blocking call. */
struct engine_spin {
	uint64_t begin_ns;
	uint32_t turns;
	bool over;
};

/* A blocking call on an object of one domain (sleep.c). */
struct engine_sleeper {
	struct engine_domain *domain;
	struct engine_armed *armed;
	/*
	 * there - returns true if what the call waits for has come; called with the domain
	 * held, and once more before it sleeps
	 */
	bool (*there)(void *arg);
	void *arg;
	/* Deadline; UINT64_MAX: none */
	uint64_t end_ns;
	struct engine_spin spin;
	/* Value of domain->rounds when the call was last about to sleep */
	uint32_t rounds;
	/* Looks left before it sleeps */
	uint32_t looks;
};

#endif
