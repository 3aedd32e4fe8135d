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
#include "task.h"
#include "waits.h"

struct fid_peer_cq;

struct engine_cq {
	struct fid_cq fid;
	struct engine_domain *domain;
	struct cq queue;
	enum fi_cq_format format;
	enum fi_cq_wait_cond cond;
	struct engine_wait wait;
	_Atomic uint32_t signals,
		obeyed; /* fi_cq_signal: how often, as of which sreads have returned, */
	uint32_t tried; /* and as of which fi_trywait has told */
	uint32_t found; /* reads that find something until one looks at the clock */
	uint32_t found_step, looks;
	uint32_t found_rounds; /* of the domain, at the last look */
	uint64_t found_ns;     /* the last look */
	_Atomic int refs;
	/* its queue is where entries go (cq_import.h); NULL: they are read here */
	struct fid_peer_cq *owner;
	/* hands them over */
	struct engine_task pass;
};

struct engine_eq {
	struct fid_eq fid;
	struct engine_fabric *fabric;
	struct platform_lock lock; /* queue; rank 2 */
	struct eq queue;
	enum fi_wait_obj wait;
	bool rung;		    /* the poll set's bell; it is while there is something */
	struct engine_waitset *set; /* FI_WAIT_SET */
	struct list member;	    /* set->eqs */
	struct engine_poll_set poll_set; /* opened and closed with both locks held */
	struct engine_spin_budget spin_budget;
	struct platform_lock
		watch_lock; /* watched, asleep; rank 0, after a wait set's, held while those make progress */
	_Atomic bool given;  /* as in a wait set; written with watch_lock */
	struct list watched; /* domains with objects that are bound here */
	_Atomic int refs;    /* the program's, until it closes it, and those domains' */
	bool closed;	     /* with lock: nobody reads any more */
	uint32_t asleep;     /* threads in fi_eq_sread() */
};

/* Something to do when a counter reaches a value. The waiter's memory. */
struct cntr_work {
	struct list link;   /* cntr->waiting */
	uint64_t threshold; /* of successes and errors together; 0 once it has been reached */
	/*
	 * run - the value is reached. Called with the domain held, outside of what counts; @work is
	 * linked nowhere and may be freed or wait again. It may begin operations.
	 * Returns false when there is no room for what it begins: it is run again in a later round,
	 * whatever the counter says by then, and may be forgotten until then.
	 */
	bool (*run)(struct cntr_work *work);
};

/* An event of a memory region, and what counts it until one of the two is closed. */
struct cntr_region {
	struct list link;	  /* cntr->regions */
	struct engine_cntr *cntr; /* NULL: none */
};

struct engine_cntr {
	struct fid_cntr fid;
	struct engine_domain *domain;
	_Atomic uint64_t value, errors; /* relaxed: who holds the domain sees what they count */
	struct list waiting;		/* struct cntr_work, by threshold */
	struct list due;		/* domain->due, when the first of those is */
	struct list regions;		/* struct cntr_region */
	struct cntr_work watch;		/* somebody sleeps until it changes */
	bool bytes;			/* FI_CNTR_EVENTS_BYTES: what went well, in bytes */
	struct engine_wait wait;
	uint64_t seen_value,
		seen_errors; /* what the program has read, or was told of by fi_wait */
	uint64_t polled_value, polled_errors; /* ... was told of by fi_poll, or has set */
	_Atomic int refs;		      /* bindings */
};

#endif
