/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Operations that begin when a counter has reached a value: calls with FI_TRIGGER (trigger.c) and
 * deferred work of a domain (work.c). What waits is struct engine_work, made by one and the same
 * path from either; it keeps all that the call said but the data. Once begun it is an operation
 * as any other, and deferred work has ENGINE_DEFERRED, which says how its end is told.
 *
 * The caller holds the domain. Source: fi_trigger(3).
 */
#ifndef WEFT_TRIGGER_H
#define WEFT_TRIGGER_H

#include <rdma/fi_trigger.h>
#include "cntr.h"

/* engine_works_init - of a domain that is opened; its pool is released with it */
void engine_works_init(struct engine_domain *domain);

/*
 * engine_work_add - let an operation wait for its counter; begins it when that is there already
 * @triggered: a call with FI_TRIGGER: its endpoint tells of its end. Else deferred work, known by
 *	       the address of @w
 *
 * @w and all that it points to may be gone afterwards, except data and counters.
 * Returns 0, -FI_EINVAL, -FI_ENOSYS: nothing that can wait, or that the endpoint has not;
 * -FI_EOPBADSTATE: it is not enabled, -FI_ENOMEM, or what the call itself would return.
 */
int engine_work_add(struct engine_domain *domain, const struct fi_deferred_work *w,
		    bool triggered);

/*
 * engine_work_control - FI_QUEUE_WORK, FI_CANCEL_WORK, FI_FLUSH_WORK of a domain; takes it
 * @arg: struct fi_deferred_work; of a flush: NULL for all, or one that names a triggering_cntr
 * Returns 0 or -FI_E*; -FI_ENOENT when what is to be cancelled does not wait (any more).
 */
int engine_work_control(struct engine_domain *domain, int command, void *arg);

/* engine_works_drop - forget what waits to use @ctx, which is closed */
void engine_works_drop(struct engine_ctx *ctx);

/* engine_trigger_cancel - end the triggered operation that waits with that context. 0 or -FI_ENOENT */
int engine_trigger_cancel(struct engine_ctx *ctx, void *context);

/*
 * Calls with FI_TRIGGER: the context says when, as struct fi_triggered_context.
 * Return 0 or -FI_E*: -FI_EBADFLAGS for an endpoint without FI_TRIGGER, -FI_ENOSYS for FI_TRIGGER_XPU.
 */
ssize_t engine_trigger_send(struct fid_ep *ep, const struct fi_msg *msg, uint64_t flags);
ssize_t engine_trigger_tsend(struct fid_ep *ep, const struct fi_msg_tagged *msg,
			     uint64_t flags);
ssize_t engine_trigger_recv(struct fid_ep *ep, const struct fi_msg *msg, uint64_t flags);
ssize_t engine_trigger_trecv(struct fid_ep *ep, const struct fi_msg_tagged *msg,
			     uint64_t flags);
/* @op: PACKET_READ or PACKET_WRITE */
ssize_t engine_trigger_rma(struct fid_ep *ep, const struct fi_msg_rma *msg, uint64_t flags,
			   uint8_t op);
/* @fetch, @compare: or NULL */
ssize_t engine_trigger_atomic(struct fid_ep *ep, const struct fi_msg_atomic *msg,
			      const struct fi_msg_fetch *fetch,
			      const struct fi_msg_compare *compare, uint64_t flags);

/*
 * Op tables of what has FI_TRIGGER among its default flags: calls without flags that can wait
 * (trigger_ops.c, trigger_atomic.c). All other slots are empty.
 */
extern struct fi_ops_msg engine_trigger_msg_ops;
extern struct fi_ops_tagged engine_trigger_tagged_ops;
extern struct fi_ops_rma engine_trigger_rma_ops;
extern struct fi_ops_atomic engine_trigger_atomic_ops;

#endif
