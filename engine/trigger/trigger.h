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
 * The slots of calls with flags, for what has the capability FI_TRIGGER (trigger.c). With that flag the
 * call waits for the counter in its context, struct fi_triggered_context, and holds the domain itself;
 * without, it goes on in the table of ctx->plain.
 *
 * Return 0 or -FI_E*: -FI_EBADFLAGS with the flag and without the capability, -FI_ENOSYS for FI_TRIGGER_XPU.
 */
ssize_t engine_trigger_sendmsg(struct fid_ep *ep, const struct fi_msg *msg, uint64_t flags);
ssize_t engine_trigger_tsendmsg(struct fid_ep *ep, const struct fi_msg_tagged *msg,
				uint64_t flags);
ssize_t engine_trigger_recvmsg(struct fid_ep *ep, const struct fi_msg *msg, uint64_t flags);
ssize_t engine_trigger_trecvmsg(struct fid_ep *ep, const struct fi_msg_tagged *msg,
				uint64_t flags);
ssize_t engine_trigger_readmsg(struct fid_ep *ep, const struct fi_msg_rma *msg, uint64_t flags);
ssize_t engine_trigger_writemsg(struct fid_ep *ep, const struct fi_msg_rma *msg,
				uint64_t flags);
ssize_t engine_trigger_atomicmsg(struct fid_ep *ep, const struct fi_msg_atomic *msg,
				 uint64_t flags);
ssize_t engine_trigger_fetch_atomicmsg(struct fid_ep *ep, const struct fi_msg_atomic *msg,
				       struct fi_ioc *resultv, void **result_desc,
				       size_t result_cnt, uint64_t flags);
ssize_t engine_trigger_compare_atomicmsg(struct fid_ep *ep, const struct fi_msg_atomic *msg,
					 const struct fi_ioc *comparev, void **compare_desc,
					 size_t compare_cnt, struct fi_ioc *resultv,
					 void **result_desc, size_t result_cnt, uint64_t flags);

/*
 * Op tables of the slots above, and of calls without flags, for what has FI_TRIGGER among its default
 * flags (trigger_ops.c, trigger_atomic.c). The slots of all other calls are empty.
 */
extern struct fi_ops_msg engine_trigger_msg_ops;
extern struct fi_ops_tagged engine_trigger_tagged_ops;
extern struct fi_ops_rma engine_trigger_rma_ops;
extern struct fi_ops_atomic engine_trigger_atomic_ops;

#endif
