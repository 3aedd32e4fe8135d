/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Operations that wait for a counter before they begin: queued, begun, cancelled. Called with the
 * domain held, from fi_control, from calls with FI_TRIGGER, and at the end of a round of progress.
 */
#include <rdma/fi_errno.h>
#include "access.h"
#include "cntr.h"
#include "complete.h"
#include "progress.h"
#include "recv.h"
#include "refuse.h"
#include "send.h"
#include "trigger.h"
#include "work.h"

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
	if (engine_work_is_recv(work))
		return work->want.flags;
	return work->type == FI_OP_SEND || work->type == FI_OP_TSEND ? work->msg.flags
								     : work->access.flags;
}

/* Ends work that has not begun, with an error. Takes @work. */
static void work_fail(struct engine_work *work, int err)
{
	const struct work_kind *kind = &work_kinds[work->type];
	bool recv = engine_work_is_recv(work);
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
		work->want.work_cntr = work->work_cntr;
		return engine_post(work->ctx, &work->want);
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
		ret = engine_work_keep(work, w);
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
	struct engine_work *work;

	list_for_each_entry(work, &domain->works, link) {
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
	struct engine_work *work;

	list_for_each_entry(work, &domain->works, link) {
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
	struct engine_work *work;

	list_for_each_entry(work, &ctx->domain->works, link) {
		if (work->ctx == ctx)
			work_free(work);
	}
}

int engine_trigger_cancel(struct engine_ctx *ctx, void *context)
{
	struct engine_work *work;

	list_for_each_entry(work, &ctx->domain->works, link) {
		if (work->of || work->context != context || work->ctx->tx != ctx->tx ||
		    work->ctx->rx != ctx->rx)
			continue;
		work_fail(work, -FI_ECANCELED);
		return 0;
	}
	return -FI_ENOENT;
}
