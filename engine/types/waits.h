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
	/*
	 * The program has the descriptor of the poll set, and may sleep on it between its calls
	 */
	bool given;
	struct engine_spin_budget spin_budget;
	/* Protects @members, @poll_set and @given; rank 0 */
	struct platform_lock lock;
	/* Threads in fi_wait() */
	uint32_t asleep;
	/* Queues and counters, by struct engine_wait.member */
	struct list members;
	/* Event queues, by struct engine_eq.member */
	struct list eqs;
	/* References: of the program, until it closes the set, and of its members */
	_Atomic int refs;
};

/* How to wait for a queue or counter, and who does (wait.h). */
struct engine_wait {
	/* The queue or counter */
	struct fid *fid;
	struct engine_domain *domain;
	enum fi_wait_obj obj;
	/*
	 * Descriptor for FI_WAIT_FD, and for FI_WAIT_UNSPEC once the program asks for it;
	 * owned; else -1. Written with the domain held
	 */
	_Atomic int descriptor;
	/* True if @descriptor is a poll set over the domain's waiter, false if it is that of @bell */
	bool is_poll_set;
	/* The domain's thread rings it */
	struct platform_bell bell;
	/* Fork count of the process that opened @descriptor */
	uint32_t forks;
	/* Wait set that it is a member of, or NULL (FI_WAIT_SET) */
	struct engine_waitset *set;
	/* Link in set->members */
	struct list member;
	struct engine_armed armed;
	/* struct poll_member of the poll sets (fi_poll_open) that it is in */
	struct list polled;
};

#endif
