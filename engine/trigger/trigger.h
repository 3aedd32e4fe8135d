/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Operations that begin when a counter has reached a value: calls with FI_TRIGGER (trigger.c) and
 * deferred work of a domain (work.c). Both become a struct engine_work, which keeps all parameters
 * of the call but the data. Once begun it is an operation as any other; deferred work has
 * ENGINE_DEFERRED, which says how its end is reported.
 *
 * The caller holds the domain. Source: fi_trigger(3).
 */
#ifndef WEFT_TRIGGER_H
#define WEFT_TRIGGER_H

#include <rdma/fi_trigger.h>
#include "cntr.h"

/*
 * engine_works_init - initialize the works of a domain that is being opened; its pool is freed
 * with the domain
 */
void engine_works_init(struct engine_domain *domain);

/*
 * engine_work_add - queue an operation until its counter has the value; begins it if it has that
 * already
 * @triggered: a call with FI_TRIGGER, whose end the endpoint reports. Else deferred work, identified by the
 *	       address of @w
 *
 * @w and all that it points to may be freed afterwards, except data and counters. Returns 0, -FI_EINVAL,
 * -FI_ENOSYS for an operation that can't wait or that the endpoint does not support, -FI_EOPBADSTATE if it is
 * not enabled, -FI_ENOMEM, or what the call itself would return.
 */
int engine_work_add(struct engine_domain *domain, const struct fi_deferred_work *w,
		    bool triggered);

/*
 * engine_work_control - FI_QUEUE_WORK, FI_CANCEL_WORK, FI_FLUSH_WORK of a domain; takes the domain
 * @arg: struct fi_deferred_work; of a flush: NULL for all, or one that names a triggering_cntr
 *
 * Returns 0 or -FI_E*; -FI_ENOENT when work to be cancelled does not wait, or not any more.
 */
int engine_work_control(struct engine_domain *domain, int command, void *arg);

/* engine_works_drop - drop work that would use @ctx, which is closed */
void engine_works_drop(struct engine_ctx *ctx);

/* engine_trigger_cancel - end the triggered operation with that context. Returns 0 or -FI_ENOENT */
int engine_trigger_cancel(struct engine_ctx *ctx, void *context);

/*
 * Slots of calls with flags, for contexts with the capability FI_TRIGGER (trigger.c). With the
 * flag FI_TRIGGER the call waits for the counter in its struct fi_triggered_context, and holds the
 * domain itself; without the flag it continues in the table of ctx->plain.
 *
 * Return 0 or -FI_E*: -FI_EBADFLAGS for the flag without the capability, -FI_ENOSYS for
 * FI_TRIGGER_XPU.
 */
ssize_t engine_trigger_sendmsg(struct fid_ep *ep, const struct fi_msg *msg, uint64_t flags);
ssize_t engine_trigger_tsendmsg(struct fid_ep *ep, const struct fi_msg_tagged *msg,
				uint64_t flags);
ssize_t engine_trigger_recvmsg(struct fid_ep *ep, const struct fi_msg *msg, uint64_t flags);
ssize_t engine_trigger_trecvmsg(struct fid_ep *ep, const struct fi_msg_tagged *msg,
				uint64_t flags);
ssize_t engine_trigger_readmsg(struct fid_ep *ep, const struct fi_msg_rma *msg, uint64_t flags);
ssize_t engine_trigger_writemsg(struct fid_ep *ep, const struct fi_msg_rma *msg, uint64_t flags);
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
 * engine_trigger_flag - FI_TRIGGER, or 0 where there are no triggered operations: then it is no default flag of calls
 */
extern const uint64_t engine_trigger_flag;

/*
 * Op tables with the slots above, and with slots of calls without flags for contexts that have
 * FI_TRIGGER among their default flags (trigger_ops.c, trigger_atomic.c). The slots of all other
 * calls are NULL.
 */
extern struct fi_ops_msg engine_trigger_msg_ops;
extern struct fi_ops_tagged engine_trigger_tagged_ops;
extern struct fi_ops_rma engine_trigger_rma_ops;
extern struct fi_ops_atomic engine_trigger_atomic_ops;

#endif
