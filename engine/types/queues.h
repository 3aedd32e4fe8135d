/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Completion queues, event queues, and counters.
 */
#ifndef WEFT_ENGINE_QUEUES_H
#define WEFT_ENGINE_QUEUES_H

#include <rdma/fi_eq.h>
#include "cq.h"
#include "domain.h"
#include "eq.h"
#include "forks.h"
#include "task.h"
#include "waits.h"

struct fid_peer_cq;

struct engine_cq {
	struct fid_cq fid;
	struct engine_domain *domain;
	struct cq queue;
	enum fi_cq_format format;
	enum fi_cq_wait_cond cond;
	struct engine_wait_obj wait;
	struct engine_signals signals;
	/* Value of signals.cnt that fi_trywait has reported */
	uint32_t signals_tried;
	/* Successful reads left until one looks at the clock */
	uint32_t found;
	uint32_t found_step, looks;
	/* Value of domain->rounds at the last look */
	uint32_t found_rounds;
	/* Time of the last look */
	uint64_t found_ns;
	_Atomic int refs;
	/* its queue is where entries go (cq_import.h); NULL: they are read here */
	struct fid_peer_cq *owner;
	/* hands them over */
	struct engine_task pass;
};

struct engine_eq {
	struct fid_eq fid;
	struct engine_fabric *fabric;
	/* Protects @queue; rank 2 */
	struct platform_lock lock;
	struct engine_fork_lock fork_lock;
	struct eq queue;
	enum fi_wait_obj wait;
	/* Wait set that it is a member of, or NULL (FI_WAIT_SET) */
	struct engine_waitset *set;
	/* Link in set->eqs */
	struct list member;
	/* Rung while the queue is not empty */
	struct engine_channel channel;
	/*
	 * Protects @watched and what opens @channel; rank 0, after that of a wait set; held while
	 * @watched make progress
	 */
	struct platform_lock watch_lock;
	struct engine_fork_lock fork_watch_lock;
	/* Domains that have objects bound to this queue */
	struct list watched;
	/*
	 * References: of the program, until it closes the queue, and of the domains in @watched
	 */
	_Atomic int refs;
	/* MSG endpoints and passive ones that are bound: the program can't close it */
	_Atomic int connections;
	/* Closed by the program; with @lock held */
	bool closed;
};

/* Work to run when a counter reaches a value. In memory of the caller that adds it. */
struct cntr_work {
	/* Link in cntr->waiting */
	struct list link;
	/* Sum of successes and errors at which it runs; 0 once that is reached */
	uint64_t threshold;
	/*
	 * run - the value is reached. Called with the domain held, never from within counting;
	 * @work is linked nowhere, and may be freed or added again. It may begin operations.
	 * Returns false if there is no room for them: it is run again in a later round, whatever
	 * the counter says by then, and may be forgotten until then.
	 */
	bool (*run)(struct cntr_work *work);
};

/* An event of a memory region, and its counter, until either of them is closed. */
struct cntr_region {
	/* Link in cntr->regions */
	struct list link;
	/* Counter of the event, or NULL */
	struct engine_cntr *cntr;
};

struct engine_cntr {
	struct fid_cntr fid;
	struct engine_domain *domain;
	/* Accessed relaxed: the holder of the domain sees what they count */
	_Atomic uint64_t value, errors;
	/* struct cntr_work by threshold */
	struct list waiting;
	/* Link in domain->due, once the first of @waiting is due */
	struct list due;
	/* struct cntr_region: events of regions that it counts */
	struct list regions;
	/* Work that wakes the threads that sleep until the counter changes */
	struct cntr_work watch;
	/* FI_CNTR_EVENTS_BYTES: successes are counted in bytes */
	bool bytes;
	struct engine_wait_obj wait;
	/* Values that the program has read, or that fi_wait has reported */
	uint64_t seen_value, seen_errors;
	/* Values that fi_poll has reported, or that the program has set */
	uint64_t polled_value, polled_errors;
	/* References of what it is bound to */
	_Atomic int refs;
};

#endif
