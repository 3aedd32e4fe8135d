/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How queues and counters are waited for, alone and in wait sets (wait.h).
 */
#ifndef WEFT_ENGINE_WAITS_H
#define WEFT_ENGINE_WAITS_H

#include <rdma/fi_eq.h>
#include "armed.h"
#include "family.h"

struct engine_waitset {
	struct fid_wait fid;
	struct engine_fabric *fabric;
	enum fi_wait_obj obj;
	struct engine_poll_set poll_set;
	bool given; /* the program has the poll set's number, and may sleep on it between its calls */
	struct engine_spin_budget spin_budget;
	struct platform_lock lock; /* members, poll set, given; rank 0 */
	uint32_t asleep;	   /* threads in fi_wait() */
	struct list members;	   /* struct engine_wait.member */
	struct list eqs;	   /* struct engine_eq.member */
	_Atomic int refs;	   /* the program's, until it closes it, and its members' */
};

/* How to wait for a queue or counter, and who does (wait.h). */
struct engine_wait {
	struct fid *fid; /* of the queue or counter */
	struct engine_domain *domain;
	enum fi_wait_obj obj;
	/* FI_WAIT_FD, and FI_WAIT_UNSPEC once the program asks for it: owned; else -1. Written with the domain held */
	_Atomic int descriptor;
	bool is_poll_set; /* that is a poll set over the domain's waiter; else a bell that the domain's thread rings */
	uint32_t forks;		    /* the process that opened it */
	struct engine_waitset *set; /* FI_WAIT_SET */
	struct list member;	    /* set->members */
	struct engine_armed armed;
	struct list polled; /* struct poll_member of the poll sets that it is in */
};

#endif
