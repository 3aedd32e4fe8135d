/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Calls with flags of contexts that have FI_TRIGGER: with that flag they wait for the counter in
 * their context, else they go to the table that the context would have without the capability.
 * Slots of op tables, called on the program's threads. Source: fi_trigger(3).
 */
#include <rdma/fi_errno.h>
#include "access.h"
#include "guard.h"
#include "refuse.h"
#include "trigger.h"

static ssize_t trigger_refuse(struct fid_ep *fid, ssize_t err)
{
	return engine_refuse_call(engine_ctx_of(fid), "a call with FI_TRIGGER", err);
}

static ssize_t trigger_add(struct fid_ep *fid, struct fi_deferred_work *w, const void *context)
{
	const struct engine_ctx *ctx = engine_ctx_of(fid);
	const struct fi_triggered_context *when = context;
	ssize_t ret;

	if (!((ctx->tx_caps | ctx->rx_caps) & FI_TRIGGER))
		return trigger_refuse(fid, -FI_EBADFLAGS);
	if (!when)
		return trigger_refuse(fid, -FI_EINVAL);
	if (when->event_type != FI_TRIGGER_THRESHOLD)
		return trigger_refuse(fid, when->event_type == FI_TRIGGER_XPU ? -FI_ENOSYS
									      : -FI_EINVAL);
	w->triggering_cntr = when->trigger.threshold.cntr;
	w->threshold = when->trigger.threshold.threshold;
	engine_use(ctx->domain);
	ret = engine_work_add(ctx->domain, w, true);
	engine_unuse(ctx->domain);
	return trigger_refuse(fid, ret);
}

static ssize_t trigger_msg(struct fid_ep *fid, const struct fi_msg *msg, uint64_t flags,
			   enum fi_op_type type)
{
	struct fi_op_msg op = { .ep = fid, .flags = flags & ~FI_TRIGGER };
	struct fi_deferred_work w = { .op_type = type, .op.msg = &op };

	if (!msg)
		return trigger_refuse(fid, -FI_EINVAL);
	op.msg = *msg;
	return trigger_add(fid, &w, msg->context);
}

static ssize_t trigger_tagged(struct fid_ep *fid, const struct fi_msg_tagged *msg,
			      uint64_t flags, enum fi_op_type type)
{
	struct fi_op_tagged op = { .ep = fid, .flags = flags & ~FI_TRIGGER };
	struct fi_deferred_work w = { .op_type = type, .op.tagged = &op };

	if (!msg)
		return trigger_refuse(fid, -FI_EINVAL);
	op.msg = *msg;
	return trigger_add(fid, &w, msg->context);
}

static ssize_t trigger_rma(struct fid_ep *fid, const struct fi_msg_rma *msg, uint64_t flags,
			   enum fi_op_type type)
{
	struct fi_op_rma op = { .ep = fid, .flags = flags & ~FI_TRIGGER };
	struct fi_deferred_work w = { .op_type = type, .op.rma = &op };

	if (!msg)
		return trigger_refuse(fid, -FI_EINVAL);
	op.msg = *msg;
	return trigger_add(fid, &w, msg->context);
}

/* @fetch, @compare: NULL if the operation has none */
static ssize_t trigger_atomic(struct fid_ep *fid, const struct fi_msg_atomic *msg,
			      const struct fi_msg_fetch *fetch,
			      const struct fi_msg_compare *compare, uint64_t flags)
{
	struct fi_op_atomic base = { .ep = fid, .flags = flags & ~FI_TRIGGER };
	struct fi_op_fetch_atomic fetched = { .ep = fid, .flags = flags & ~FI_TRIGGER };
	struct fi_op_compare_atomic compared = { .ep = fid, .flags = flags & ~FI_TRIGGER };
	struct fi_deferred_work w = { .op_type = FI_OP_ATOMIC, .op.atomic = &base };

	if (!msg)
		return trigger_refuse(fid, -FI_EINVAL);
	base.msg = fetched.msg = compared.msg = *msg;
	if (fetch)
		fetched.fetch = compared.fetch = *fetch;
	if (compare) {
		compared.compare = *compare;
		w.op_type = FI_OP_COMPARE_ATOMIC;
		w.op.compare_atomic = &compared;
	} else if (fetch) {
		w.op_type = FI_OP_FETCH_ATOMIC;
		w.op.fetch_atomic = &fetched;
	}
	return trigger_add(fid, &w, msg->context);
}

/* The slots */

/*
 * The op table for calls without FI_TRIGGER. It may change meanwhile: the context has or had the
 * one read.
 */
#define PLAIN(fid, kind) \
	atomic_load_explicit(&engine_ctx_of(fid)->plain.kind, memory_order_relaxed)

ssize_t engine_trigger_sendmsg(struct fid_ep *fid, const struct fi_msg *msg, uint64_t flags)
{
	return unlikely(flags & FI_TRIGGER) ? trigger_msg(fid, msg, flags, FI_OP_SEND)
					    : PLAIN(fid, msg)->sendmsg(fid, msg, flags);
}

ssize_t engine_trigger_tsendmsg(struct fid_ep *fid, const struct fi_msg_tagged *msg,
				uint64_t flags)
{
	return unlikely(flags & FI_TRIGGER) ? trigger_tagged(fid, msg, flags, FI_OP_TSEND)
					    : PLAIN(fid, tagged)->sendmsg(fid, msg, flags);
}

ssize_t engine_trigger_recvmsg(struct fid_ep *fid, const struct fi_msg *msg, uint64_t flags)
{
	return unlikely(flags & FI_TRIGGER) ? trigger_msg(fid, msg, flags, FI_OP_RECV)
					    : PLAIN(fid, msg)->recvmsg(fid, msg, flags);
}

ssize_t engine_trigger_trecvmsg(struct fid_ep *fid, const struct fi_msg_tagged *msg,
				uint64_t flags)
{
	return unlikely(flags & FI_TRIGGER) ? trigger_tagged(fid, msg, flags, FI_OP_TRECV)
					    : PLAIN(fid, tagged)->recvmsg(fid, msg, flags);
}

ssize_t engine_trigger_readmsg(struct fid_ep *fid, const struct fi_msg_rma *msg, uint64_t flags)
{
	return unlikely(flags & FI_TRIGGER) ? trigger_rma(fid, msg, flags, FI_OP_READ)
					    : PLAIN(fid, rma)->readmsg(fid, msg, flags);
}

ssize_t engine_trigger_writemsg(struct fid_ep *fid, const struct fi_msg_rma *msg, uint64_t flags)
{
	return unlikely(flags & FI_TRIGGER) ? trigger_rma(fid, msg, flags, FI_OP_WRITE)
					    : PLAIN(fid, rma)->writemsg(fid, msg, flags);
}

ssize_t engine_trigger_atomicmsg(struct fid_ep *fid, const struct fi_msg_atomic *msg,
				 uint64_t flags)
{
	return unlikely(flags & FI_TRIGGER) ? trigger_atomic(fid, msg, NULL, NULL, flags)
					    : PLAIN(fid, atomic)->writemsg(fid, msg, flags);
}

ssize_t engine_trigger_fetch_atomicmsg(struct fid_ep *fid, const struct fi_msg_atomic *msg,
				       struct fi_ioc *resultv, void **result_desc,
				       size_t result_cnt, uint64_t flags)
{
	struct fi_msg_fetch fetch = { .msg_iov = resultv, .iov_count = result_cnt };

	if (unlikely(flags & FI_TRIGGER))
		return trigger_atomic(fid, msg, &fetch, NULL, flags);
	return PLAIN(fid, atomic)->readwritemsg(fid, msg, resultv, result_desc, result_cnt, flags);
}

ssize_t engine_trigger_compare_atomicmsg(struct fid_ep *fid, const struct fi_msg_atomic *msg,
					 const struct fi_ioc *comparev, void **compare_desc,
					 size_t compare_cnt, struct fi_ioc *resultv,
					 void **result_desc, size_t result_cnt, uint64_t flags)
{
	struct fi_msg_fetch fetch = { .msg_iov = resultv, .iov_count = result_cnt };
	struct fi_msg_compare compare = { .msg_iov = comparev, .iov_count = compare_cnt };

	if (unlikely(flags & FI_TRIGGER))
		return trigger_atomic(fid, msg, &fetch, &compare, flags);
	return PLAIN(fid, atomic)
		->compwritemsg(fid, msg, comparev, compare_desc, compare_cnt, resultv,
			       result_desc, result_cnt, flags);
}
