/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Completion queues and event queues.
 */
#ifndef WEFT_ENGINE_QUEUES_H
#define WEFT_ENGINE_QUEUES_H

#include <rdma/fi_eq.h>
#include "cq.h"
#include "domain.h"
#include "eq.h"
#include "waits.h"

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
};

struct engine_eq {
	struct fid_eq fid;
	struct engine_fabric *fabric;
	struct platform_lock lock; /* queue; rank 2 */
	struct eq queue;
	enum fi_wait_obj wait;
	bool rung;		    /* the nest's bell; it is while there is something */
	struct engine_waitset *set; /* FI_WAIT_SET */
	struct list member;	    /* set->eqs */
	struct engine_nest nest;    /* opened and closed with both locks held */
	struct engine_patience patience;
	struct platform_lock
		watch_lock; /* watched, asleep; rank 0, after a wait set's, held while those make progress */
	_Atomic bool given;  /* as in a wait set; written with watch_lock */
	struct list watched; /* domains with objects that are bound here */
	_Atomic int refs;    /* the program's, until it closes it, and those domains' */
	bool closed;	     /* with lock: nobody reads any more */
	uint32_t asleep;     /* threads in fi_eq_sread() */
};

struct engine_cntr;

struct engine_coll;

#endif
