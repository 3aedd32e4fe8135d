/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Operations that wait for a counter before they begin: queued, begun, cancelled. Called with the
 * domain held, from fi_control, from calls with FI_TRIGGER, and at the end of a round of progress.
 */
#include <rdma/fi_errno.h>
#include "access.h"
#include "cntr.h"
#include "complete.h"
#include "copy.h"
#include "directions.h"
#include "progress.h"
#include "recv.h"
#include "refuse.h"
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
		struct engine_want_later recv;
		struct engine_access access;
	};
	/* Arrays of any kind of operation */
	struct engine_access_room room;
};

/*
 * How an operation that ends before it begins is reported: flags of its error, and the counter for
 * it.
 */
static const struct work_kind {
	uint64_t flags;
	uint8_t cntr; /* enum engine_tx_cntr or engine_rx_cntr */
} work_kinds[] = {
	[FI_OP_RECV] = { FI_RECV | FI_MSG, ENGINE_CNTR_RECV },
	[FI_OP_SEND] = { FI_SEND | FI_MSG, ENGINE_CNTR_SEND },
	[FI_OP_TRECV] = { FI_RECV | FI_TAGGED, ENGINE_CNTR_RECV },
	[FI_OP_TSEND] = { FI_SEND | FI_TAGGED, ENGINE_CNTR_SEND },
	[FI_OP_READ] = { FI_RMA | FI_READ, ENGINE_CNTR_READ },
	[FI_OP_WRITE] = { FI_RMA | FI_WRITE, ENGINE_CNTR_WRITE },
	[FI_OP_ATOMIC] = { FI_ATOMIC | FI_WRITE, ENGINE_CNTR_WRITE },
	[FI_OP_FETCH_ATOMIC] = { FI_ATOMIC | FI_READ, ENGINE_CNTR_READ },
	[FI_OP_COMPARE_ATOMIC] = { FI_ATOMIC | FI_READ, ENGINE_CNTR_READ },
};

static bool work_is_recv(const struct engine_work *work)
{
	return work->type == FI_OP_RECV || work->type == FI_OP_TRECV;
}

void engine_works_init(struct engine_domain *domain)
{
	list_init(&domain->works);
	pool_init(&domain->work_pool, sizeof(struct engine_work), 0);
}

static void work_free(struct engine_work *work)
{
	list_remove(&work->link);
	engine_cntr_forget(&work->wait);
	engine_cntr_release(work->trigger);
	engine_cntr_release(work->work_cntr);
	platform_free(work->copy);
	pool_put(&work->domain->work_pool, work);
}

/* The end */

static uint32_t work_flags(const struct engine_work *work)
{
	if (work_is_recv(work))
		return work->recv.want.flags;
	return work->type == FI_OP_SEND || work->type == FI_OP_TSEND ? work->msg.flags
								     : work->access.flags;
}

/* Ends work that has not begun, with an error. Takes @work. */
static void work_fail(struct engine_work *work, int err)
{
	const struct work_kind *kind = &work_kinds[work->type];
	bool recv = work_is_recv(work);
	struct engine_cntr *own = recv ? work->ctx->rx->cntr[kind->cntr]
				       : work->ctx->tx->cntr[kind->cntr];
	struct engine_cq *cq = recv ? work->ctx->rx->cq : work->ctx->tx->cq;
	struct fi_cq_err_entry entry = {
		.op_context = work->context,
		.flags = kind->flags,
		.err = -err,
		.prov_errno = -err,
		.src_addr = FI_ADDR_NOTAVAIL,
	};

	if (cq)
		engine_complete_error(cq, &entry);
	if (work->of)
		engine_deferred_end(own, work->work_cntr, work_flags(work), err, 0);
	else
		engine_count(own, err, 0);
	work->work_cntr = NULL;
	work_free(work);
}

/* The beginning */

static void work_count(struct engine_work *work)
{
	uint64_t value = atomic_load_explicit(&work->work_cntr->value, memory_order_relaxed);

	engine_cntr_add(work->work_cntr,
			work->type == FI_OP_CNTR_ADD ? work->value : work->value - value);
	work_free(work);
}

static ssize_t work_begin(struct engine_work *work)
{
	switch (work->type) {
	case FI_OP_SEND:
	case FI_OP_TSEND:
		return engine_send_later(work->ctx, work->dest, &work->msg, work->work_cntr);
	case FI_OP_RECV:
	case FI_OP_TRECV:
		work->recv.work_cntr = work->work_cntr;
		return engine_recv_later(work->ctx, &work->recv);
	default:
		work->access.work_cntr = work->work_cntr;
		return engine_access(work->ctx, &work->access);
	}
}

/* struct cntr_work.run */
static bool work_run(struct cntr_work *wait)
{
	struct engine_work *work = container_of(wait, struct engine_work, wait);
	struct engine_ep *ep;
	ssize_t ret;

	if (!work->ctx) {
		work_count(work);
		return true;
	}
	/* An operation that finds no room is not overtaken by others of its endpoint. */
	ep = work->ctx->ep;
	if (ep && ep->due_stuck == work->domain->due_round)
		return false;
	ret = work_begin(work);
	if (ret == -FI_EAGAIN) {
		if (ep)
			ep->due_stuck = work->domain->due_round;
		return false;
	}
	if (ret) {
		work_fail(work, (int)ret);
		return true;
	}
	work->work_cntr = NULL; /* the operation has the reference now */
	work_free(work);
	return true;
}

/* What a call says */

/*
 * Sets the endpoint or context of the call. @does: true if it supports the call. Returns 0 or
 * -FI_E*
 */
static int work_ctx(struct engine_work *work, struct fid_ep *fid,
		    bool (*does)(const struct engine_ctx *ctx))
{
	bool recv = work_is_recv(work);
	struct engine_ctx *ctx;

	if (!fid || (fid->fid.fclass != FI_CLASS_EP && fid->fid.fclass != FI_CLASS_TX_CTX &&
		     fid->fid.fclass != FI_CLASS_RX_CTX && fid->fid.fclass != FI_CLASS_SRX_CTX))
		return -FI_EINVAL;
	ctx = engine_ctx_of(fid);
	if (ctx->domain != work->domain)
		return -FI_EINVAL;
	if (!ctx->enabled)
		return -FI_EOPBADSTATE;
	if (!does(ctx) || !((recv ? ctx->rx_caps : ctx->tx_caps) & FI_TRIGGER))
		return -FI_ENOSYS;
	work->ctx = ctx;
	return 0;
}

/* Returns message flags that say which queue and counters report the end. */
static uint32_t work_end_flags(const struct engine_work *work, uint32_t flags, uint64_t call)
{
	if (!work->of)
		return flags;
	if (call & FI_COMPLETION)
		return flags | ENGINE_DEFERRED | ENGINE_EP_REPORTS;
	return (flags & ~(uint32_t)ENGINE_COMPLETE) | ENGINE_DEFERRED;
}

/*
 * Returns true if the data is copied by the call. The data of deferred work is not read before it
 * begins.
 */
static bool work_takes(const struct engine_work *work, uint32_t flags)
{
	return !work->of && flags & ENGINE_INJECT;
}

static int work_keep_msg(struct engine_work *work, fi_addr_t dest, uint64_t flags)
{
	struct engine_msg *msg = &work->msg;
	struct iovec *iov = work->room.iov;

	work->dest = dest;
	work->context = msg->context;
	msg->flags = work_end_flags(work, msg->flags, flags);
	if (msg->iov_cnt) {
		memcpy(iov, msg->iov, msg->iov_cnt * sizeof(*iov));
		msg->iov = iov;
	} else if (!msg->buf && msg->len) {
		return -FI_EINVAL;
	} else {
		iov[0] = (struct iovec){ (void *)(uintptr_t)msg->buf, msg->len };
	}
	if (!work_takes(work, msg->flags) || !msg->len)
		return 0;
	work->copy = platform_alloc(msg->len);
	if (!work->copy)
		return -FI_ENOMEM;
	copy_from_iov(work->copy, iov, msg->iov_cnt ? msg->iov_cnt : 1, 0, msg->len);
	msg->buf = work->copy;
	msg->iov = NULL;
	msg->iov_cnt = 0;
	return 0;
}

static int work_keep_recv(struct engine_work *work, uint64_t flags)
{
	struct engine_want *want = &work->recv.want;

	/* Not defined: which completion of a multi-receive buffer its own counter counts. */
	if (work->of && want->flags & ENGINE_MULTI)
		return -FI_ENOSYS;
	work->context = want->context;
	want->flags = work_end_flags(work, want->flags, flags);
	if (want->cnt)
		memcpy(work->room.iov, want->iov, want->cnt * sizeof(*want->iov));
	want->iov = work->room.iov;
	return 0;
}

/* Keeps an access. The arrays of the call are in work->room, or are checked to fit there. */
static int work_keep_access(struct engine_work *work, uint64_t flags)
{
	struct engine_access *access = &work->access;
	struct engine_access_room *room = &work->room;
	bool compare = access->update && access->update->compare_cnt;
	size_t len;
	char *copy;
	int ret;

	ret = engine_access_check(access, &len);
	if (ret)
		return ret;
	work->context = access->context;
	access->flags = work_end_flags(work, access->flags, flags);
	if (access->iov_cnt && access->iov != room->iov)
		memcpy(room->iov, access->iov, access->iov_cnt * sizeof(*access->iov));
	if (access->targets != room->targets)
		memcpy(room->targets, access->targets,
		       access->target_cnt * sizeof(*access->targets));
	access->iov = room->iov;
	access->targets = room->targets;
	if (!work_takes(work, access->flags) || !len)
		return 0;
	copy = platform_alloc(compare ? 2 * len : len);
	if (!copy)
		return -FI_ENOMEM;
	work->copy = copy;
	copy_from_iov(copy, room->iov, access->iov_cnt, 0, len);
	room->iov[0] = (struct iovec){ copy, len };
	access->iov_cnt = 1;
	if (compare) {
		copy_from_iov(copy + len, room->update.compare, room->update.compare_cnt, 0,
			      len);
		room->update.compare[0] = (struct iovec){ copy + len, len };
		room->update.compare_cnt = 1;
	}
	return 0;
}

static int work_send(struct engine_work *work, const struct fi_op_msg *op)
{
	int ret = work_ctx(work, op->ep, engine_transmits);

	if (!ret)
		ret = engine_msg_of(work->ctx, &op->msg, op->flags, &work->msg);
	return ret ? ret : work_keep_msg(work, op->msg.addr, op->flags);
}

static int work_tsend(struct engine_work *work, const struct fi_op_tagged *op)
{
	int ret = work_ctx(work, op->ep, engine_transmits);

	if (!ret)
		ret = engine_msg_of_tagged(work->ctx, &op->msg, op->flags, &work->msg);
	return ret ? ret : work_keep_msg(work, op->msg.addr, op->flags);
}

static int work_recv(struct engine_work *work, const struct fi_op_msg *op)
{
	int ret = work_ctx(work, op->ep, engine_receives);

	if (!ret)
		ret = engine_want_of(work->ctx, &op->msg, op->flags, &work->recv.want);
	return ret ? ret : work_keep_recv(work, op->flags);
}

static int work_trecv(struct engine_work *work, const struct fi_op_tagged *op)
{
	int ret = work_ctx(work, op->ep, engine_receives);

	if (!ret)
		ret = engine_want_of_tagged(work->ctx, &op->msg, op->flags, &work->recv.want);
	return ret ? ret : work_keep_recv(work, op->flags);
}

static int work_rma(struct engine_work *work, const struct fi_op_rma *op)
{
	uint8_t packet = work->type == FI_OP_READ ? PACKET_READ : PACKET_WRITE;
	int ret = work_ctx(work, op->ep, engine_accesses);

	if (!ret)
		ret = engine_access_rma(work->ctx, &op->msg, op->flags, packet, &work->access);
	return ret ? ret : work_keep_access(work, op->flags);
}

/* @fetch, @compare: NULL if the operation has none */
static int work_atomic(struct engine_work *work, struct fid_ep *ep,
		       const struct fi_msg_atomic *msg, const struct fi_msg_fetch *fetch,
		       const struct fi_msg_compare *compare, uint64_t flags)
{
	int ret = work_ctx(work, ep, engine_accesses);

	if (!ret)
		ret = engine_access_atomic(work->ctx, msg, fetch, compare, flags, &work->access,
					   &work->room);
	return ret ? ret : work_keep_access(work, flags);
}

/* Work that changes a counter. No queue or other counter reports its end. */
static int work_cntr(struct engine_work *work, const struct fi_op_cntr *op)
{
	if (work->work_cntr || !op->cntr)
		return -FI_EINVAL;
	work->value = op->value;
	return engine_cntr_hold(&op->cntr->fid, work->domain, &work->work_cntr);
}

static int work_keep(struct engine_work *work, const struct fi_deferred_work *w)
{
	const struct fi_op_fetch_atomic *fetch = w->op.fetch_atomic;
	const struct fi_op_compare_atomic *compare = w->op.compare_atomic;

	switch (w->op_type) {
	case FI_OP_RECV:
		return work_recv(work, w->op.msg);
	case FI_OP_SEND:
		return work_send(work, w->op.msg);
	case FI_OP_TRECV:
		return work_trecv(work, w->op.tagged);
	case FI_OP_TSEND:
		return work_tsend(work, w->op.tagged);
	case FI_OP_READ:
	case FI_OP_WRITE:
		return work_rma(work, w->op.rma);
	case FI_OP_ATOMIC:
		return work_atomic(work, w->op.atomic->ep, &w->op.atomic->msg, NULL, NULL,
				   w->op.atomic->flags);
	case FI_OP_FETCH_ATOMIC:
		return work_atomic(work, fetch->ep, &fetch->msg, &fetch->fetch, NULL,
				   fetch->flags);
	case FI_OP_COMPARE_ATOMIC:
		return work_atomic(work, compare->ep, &compare->msg, &compare->fetch,
				   &compare->compare, compare->flags);
	case FI_OP_CNTR_SET:
	case FI_OP_CNTR_ADD:
		return work_cntr(work, w->op.cntr);
	default:
		return -FI_ENOSYS;
	}
}

static int work_hold_cntrs(struct engine_work *work, const struct fi_deferred_work *w)
{
	int ret = engine_cntr_hold(&w->triggering_cntr->fid, work->domain, &work->trigger);

	if (!ret && w->completion_cntr)
		ret = engine_cntr_hold(&w->completion_cntr->fid, work->domain, &work->work_cntr);
	return ret;
}

int engine_work_add(struct engine_domain *domain, const struct fi_deferred_work *w,
		    bool triggered)
{
	struct engine_work *work;
	int ret;

	/* A union: every member is a pointer to the arguments of its operation. */
	if (!w->triggering_cntr || !w->op.msg)
		return -FI_EINVAL;
	work = pool_get(&domain->work_pool);
	if (!work)
		return -FI_ENOMEM;
	list_init(&work->link);
	list_init(&work->wait.link);
	work->wait.threshold = w->threshold;
	work->wait.run = work_run;
	work->domain = domain;
	work->ctx = NULL;
	work->of = triggered ? NULL : w;
	work->trigger = work->work_cntr = NULL;
	work->type = w->op_type;
	work->copy = NULL;
	ret = work_hold_cntrs(work, w);
	if (!ret)
		ret = work_keep(work, w);
	if (ret) {
		work_free(work);
		return ret;
	}
	list_add_tail(&domain->works, &work->link);
	engine_cntr_await(work->trigger, &work->wait);
	engine_due_run(domain);
	return 0;
}

/* What waits and will not begin */

static int work_cancel(struct engine_domain *domain, const struct fi_deferred_work *w)
{
	struct list *node, *after;

	list_for_each(node, after, &domain->works) {
		struct engine_work *work = container_of(node, struct engine_work, link);

		if (work->of != w)
			continue;
		work_free(work);
		return 0;
	}
	return -FI_ENOENT;
}

/* @trigger: counter whose works are dropped; NULL: all */
static void work_flush(struct engine_domain *domain, const struct fid_cntr *trigger)
{
	struct list *node, *after;

	list_for_each(node, after, &domain->works) {
		struct engine_work *work = container_of(node, struct engine_work, link);

		if (work->of && (!trigger || &work->trigger->fid == trigger))
			work_free(work);
	}
}

#define WORK_CALL "fi_control with FI_QUEUE_WORK or FI_CANCEL_WORK"

int engine_work_control(struct engine_domain *domain, int command, void *arg)
{
	const struct fi_deferred_work *w = arg;
	int ret = 0;

	if (!w && command != FI_FLUSH_WORK)
		return engine_refuse(domain->family, FI_LOG_DOMAIN, -FI_EINVAL, WORK_CALL,
				     "NULL");
	engine_enter(domain);
	switch (command) {
	case FI_QUEUE_WORK:
		ret = engine_work_add(domain, w, false);
		break;
	case FI_CANCEL_WORK:
		ret = work_cancel(domain, w);
		break;
	case FI_FLUSH_WORK:
		work_flush(domain, w ? w->triggering_cntr : NULL);
		break;
	default:
		ret = -FI_ENOSYS;
	}
	engine_leave(domain);
	return ret && command == FI_QUEUE_WORK
		       ? engine_refuse(
				 domain->family, FI_LOG_DOMAIN, ret, WORK_CALL,
				 "work takes counters of the domain and an enabled endpoint or context "
				 "with FI_TRIGGER and what the operation needs among its capabilities")
		       : ret;
}

void engine_works_drop(struct engine_ctx *ctx)
{
	struct list *node, *after;

	list_for_each(node, after, &ctx->domain->works) {
		struct engine_work *work = container_of(node, struct engine_work, link);

		if (work->ctx == ctx)
			work_free(work);
	}
}

int engine_trigger_cancel(struct engine_ctx *ctx, void *context)
{
	struct list *node, *after;

	list_for_each(node, after, &ctx->domain->works) {
		struct engine_work *work = container_of(node, struct engine_work, link);

		if (work->of || work->context != context || work->ctx->tx != ctx->tx ||
		    work->ctx->rx != ctx->rx)
			continue;
		work_fail(work, -FI_ECANCELED);
		return 0;
	}
	return -FI_ENOENT;
}
