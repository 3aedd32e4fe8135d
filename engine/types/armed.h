/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Who sleeps until a domain has something, what on, and for how long it looks on before. waiting.h says how
 * none is missed.
 */
#ifndef WEFT_ENGINE_ARMED_H
#define WEFT_ENGINE_ARMED_H

#include "list.h"
#include "platform.h"

/*
 * Whose users sleep until it has something, while the wires of its domain are armed (bell.c): a queue,
 * a counter, an event queue, the domain's thread.
 */
struct engine_armed {
	struct list link; /* domain->armed */
	/* ring - make its descriptor readable; the caller holds the domain. NULL: it has none */
	void (*ring)(struct engine_armed *armed);
	/* watch - call engine_armed_wake() when it gets something, from now on, or not any more; or NULL */
	void (*watch)(struct engine_armed *armed, bool on);
	uint32_t threads; /* that sleep in a call of ours */
	bool descriptor;  /* somebody may sleep on its descriptor */
	bool came;	  /* they have been woken: it leaves the list at the end of a round */
};

/* Progress that a domain makes without the program (auto.c). */
struct engine_auto {
	bool asked; /* from the first endpoint on */
	struct platform_thread thread;
	_Atomic bool
		rings; /* descriptors that nothing else rings rely on it; stays in the child of a fork */
	_Atomic bool eager; /* somebody sleeps on such a one: look at once */
	struct engine_armed armed;
	bool listed; /* counts as one who sleeps there; the domain's */
	/* the thread's own */
	bool asleep;	  /* this nap ends when the domain has something */
	uint32_t seen;	  /* domain->rounds at the last look */
	uint64_t nap_ns;  /* between rounds of its own */
	uint64_t away_ns; /* between looks at a program that makes rounds itself */
};

/* How long it is worth while to look again and again before one sleeps (spin.c). */
struct engine_spin_budget {
	_Atomic uint32_t spin_ns; /* 0: not known yet */
	_Atomic uint32_t vain;	  /* times in a row that it was for nothing */
};

/*
 * What those who block in a domain sleep on (waiter.c). Nothing is opened before somebody does. What
 * is not protected by its lock belongs to the domain.
 */
struct engine_waiter {
	bool open;	    /* there are these descriptors, owned: */
	int poll_set;	    /* holds the bells of all wires */
	int bell;	    /* wakes threads that sleep in calls */
	int timer;	    /* wakes programs that sleep on descriptors */
	uint32_t forks;	    /* the process that opened them */
	bool armed;	    /* the wires are, or some of them */
	bool parted;	    /* poll set: none of the bells, until something is armed */
	uint32_t poll_sets; /* objects whose descriptors hold the poll set */
	uint64_t timer_ns;  /* when the timer rings */
	struct engine_spin_budget spin_budget;
	struct platform_lock lock; /* asleep, rung; rank 3 */
	uint32_t asleep;	   /* threads that have not said that they are awake */
	bool rung;		   /* the bell */
};

/* What one sleeps on for objects of several domains: a poll set of waiters and a bell. */
struct engine_poll_set {
	bool open; /* these are, owned: */
	int poll_set;
	int bell;	/* in the poll set */
	uint32_t forks; /* the process that opened them */
};

/* Looking again and again before one sleeps. */
struct engine_spin {
	uint64_t begin_ns;
	uint32_t turns;
	bool over;
};

/* A blocking call on an object of one domain (sleep.c). */
struct engine_sleeper {
	struct engine_domain *domain;
	struct engine_armed *armed;
	/* there - what the call waits for has come; with the domain held, once more before it sleeps */
	bool (*there)(void *arg);
	void *arg;
	uint64_t end_ns; /* UINT64_MAX: never */
	struct engine_spin spin;
	uint32_t rounds; /* of the domain, when it was last about to sleep */
	uint32_t looks;	 /* to go before it sleeps */
};

#endif
