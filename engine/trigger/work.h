/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * An operation that waits for a counter, and what its call says (work_call.c). The caller holds the
 * domain.
 */
#ifndef WEFT_TRIGGER_WORK_H
#define WEFT_TRIGGER_WORK_H

#include "access.h"
#include "recv.h"
#include "send.h"
#include "trigger.h"

/* One operation, with all parameters of its call. */
struct engine_work {
	struct pool_object pool;
	struct cntr_work wait;
	/* Link in domain->works */
	struct list link;
	struct engine_domain *domain;
	/* NULL: the work changes a counter */
	struct engine_ctx *ctx;
	/* Deferred work of the program; NULL: a call with FI_TRIGGER */
	const struct fi_deferred_work *of;
	/* Reference held */
	struct engine_cntr *trigger;
	/* completion_cntr, or the counter to change; reference held; or NULL */
	struct engine_cntr *work_cntr;
	enum fi_op_type type;
	void *context;
	/* Destination of a send */
	fi_addr_t dest;
	/* Operand for the counter to change */
	uint64_t value;
	/* Data of a call with FI_INJECT, owned */
	void *copy;
	union {
		struct engine_msg msg;
		struct engine_want want;
		struct engine_access access;
	};
	/* Arrays of any kind of operation */
	struct engine_access_room room;
};

static inline bool engine_work_is_recv(const struct engine_work *work)
{
	return work->type == FI_OP_RECV || work->type == FI_OP_TRECV;
}

/*
 * engine_work_keep - check the call of an operation, and keep its parameters and arrays
 * @work: its type, domain and counters are set
 * Returns 0 or -FI_E*; @work may have a copy of the data then.
 */
int engine_work_keep(struct engine_work *work, const struct fi_deferred_work *w);

#endif
