/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Collectives under way: their rounds are run, and their messages posted and completed. The paths
 * of messages, packets and failures only record that a message ended: the endpoint's task runs the
 * rounds. The caller holds the domain.
 */
#include "coll.h"
#include "complete.h"
#include "peer.h"
#include "recv.h"
#include "send.h"
#include "tasks.h"
#include "waiting.h"

struct coll_op *coll_op_new(void *context)
{
	struct coll_op *op = platform_alloc(sizeof(*op));

	if (op)
		op->context = context;
	return op;
}

void coll_op_free(struct coll_op *op)
{
	eq_event_free(op->event);
	platform_free(op->late);
	platform_free(op->memory);
	platform_free(op);
}

/* What may continue */

static void coll_ready(struct coll_op *op)
{
	struct engine_coll *coll = op->group->coll;

	if (op->running)
		return;
	if (list_empty(&op->ready))
		list_add_tail(&coll->ready, &op->ready);
	engine_task_due(coll->ep->domain, &coll->task);
}

void coll_fail(struct coll_op *op, int err)
{
	if (!op->error)
		op->error = err;
	coll_ready(op);
}

static void coll_step_end(struct coll_step *step, int status)
{
	struct coll_op *op = step->op;

	if (step->late) {
		engine_join_late(step, status);
		coll_ready(op);
		return;
	}
	op->pending--;
	if (op->join && step->recv)
		engine_join_received(step, status);
	if (status)
		coll_fail(op, status);
	else if (!op->pending)
		coll_ready(op);
}

void coll_sent(void *context, int status)
{
	if (context)
		coll_step_end(context, status);
}

void coll_received(struct engine_rx *rx, int status)
{
	struct coll_step *step = rx->context;

	/* Members disagree on the length, or one could not join. */
	if (!status && rx->len != step->len)
		status = -FI_ETRUNC;
	engine_rx_put(step->op->group->coll->ep->domain, rx);
	coll_step_end(step, status);
}

struct engine_peer *coll_peer(const struct engine_group *group, uint32_t rank)
{
	return engine_peer_lookup(group->coll->ep, group->addrs[rank]);
}

bool coll_unsent(struct coll_op *op, uint32_t rank, bool cancel)
{
	struct engine_peer *peer = coll_peer(op->group, rank);
	struct engine_tx *tx;
	bool any = false;

	if (!peer)
		return false;
	list_for_each_entry(tx, &peer->queued, link) {
		const struct coll_step *step = tx->context;

		if (!(tx->flags & PACKET_GROUP) || !step || step->op != op)
			continue;
		any = true;
		if (!cancel)
			break;
		list_remove(&tx->link);
		engine_tx_end(tx, -FI_ECANCELED);
	}
	return any;
}

/* Cancels what is posted of a collective. */
static void coll_unpost(struct coll_op *op)
{
	struct engine_coll *coll = op->group->coll;
	struct engine_rx *rx, *after;

	for (rx = engine_rxq_next(&coll->rx.own, NULL); rx; rx = after) {
		after = engine_rxq_next(&coll->rx.own, rx);
		if (((struct coll_step *)rx->context)->op != op)
			continue;
		match_unpost(coll->rx.own.tagged, &rx->match);
		engine_rx_put(coll->ep->domain, rx);
		op->pending--;
	}
	for (uint32_t i = 0; i < op->started; i++)
		if (!op->steps[i].recv)
			coll_unsent(op, op->steps[i].rank, true);
}

/* Rounds */

void coll_step(struct coll_op *op, bool recv, uint32_t rank, uint64_t tag, const void *buf,
	       size_t len)
{
	assert(op->step_cnt < COLL_STEPS_MAX);
	op->steps[op->step_cnt++] = (struct coll_step){ .op = op,
							.recv = recv,
							.rank = rank,
							.tag = tag,
							.buf = (void *)(uintptr_t)buf,
							.len = len };
}

void coll_send(struct coll_op *op, uint32_t rank, const void *buf, size_t len)
{
	coll_step(op, false, rank,
		  coll_tag(COLL_STEP, op->group->ids[rank], op->seq, (uint16_t)op->phase), buf,
		  len);
}

void coll_recv(struct coll_op *op, uint32_t rank, void *buf, size_t len)
{
	coll_step(op, true, rank,
		  coll_tag(COLL_STEP, op->group->id, op->seq, (uint16_t)op->phase), buf, len);
}

ssize_t coll_send_to(struct engine_group *group, uint32_t rank, struct engine_msg *msg)
{
	struct engine_ep *ep = group->coll->ep;
	struct engine_peer *peer = engine_peer_at(ep, group->addrs[rank]);
	ssize_t ret;

	if (!peer) {
		ret = engine_peer_refused(ep, group->addrs[rank]);
		return ret == -FI_ENOMEM ? -FI_EAGAIN : ret;
	}
	msg->tx = &group->coll->tx;
	msg->flags = PACKET_TAGGED | PACKET_GROUP;
	return engine_send_slow(ep, peer, msg);
}

static ssize_t coll_step_start(struct coll_step *step)
{
	struct engine_group *group = step->op->group;
	struct engine_coll *coll = group->coll;
	fi_addr_t addr = group->addrs[step->rank];
	struct engine_msg msg = {
		.buf = step->buf, .len = step->len, .tag = step->tag, .context = step
	};
	struct iovec iov = { step->buf, step->len };
	struct engine_want want = { .iov = &iov,
				    .cnt = 1,
				    .src = addr,
				    .tag = step->tag,
				    .context = step,
				    .flags = engine_trx_defaults(&coll->ctx) };
	struct engine_peer *peer;

	if (!step->recv)
		return group->lost[step->rank] ? -FI_ECONNRESET
					       : coll_send_to(group, step->rank, &msg);
	if (group->lost[step->rank]) {
		/* The member is lost, but messages that it sent before are here. */
		peer = engine_peer_at(coll->ep, addr);
		if (!peer || !match_find(coll->rx.own.tagged, (uintptr_t)peer, step->tag, 0))
			return -FI_ECONNRESET;
	}
	return engine_post(&coll->ctx, &want);
}

/* Posts the rest of the round. Returns false when there was no room. */
static bool coll_round_start(struct coll_op *op)
{
	while (op->started < op->step_cnt && !op->stopped) {
		struct coll_step *step = &op->steps[op->started];
		ssize_t ret;

		op->pending++; /* counted first: it may end in the call */
		ret = coll_step_start(step);
		if (ret == -FI_EAGAIN) {
			op->pending--;
			return false;
		}
		op->started++;
		if (ret)
			coll_step_end(step, (int)ret);
		if (op->error && !op->join)
			break;
	}
	return true;
}

static void coll_report(const struct coll_op *op)
{
	struct engine_cq *cq = op->tx && op->tx->cq ? op->tx->cq : op->rx ? op->rx->cq : NULL;

	if (op->tx)
		engine_count(op->tx->cntr[ENGINE_CNTR_WRITE], op->error, 0);
	if (!cq)
		return;
	if (op->error) {
		struct fi_cq_err_entry err = {
			.op_context = op->context,
			.flags = FI_COLLECTIVE,
			.err = -op->error,
			.prov_errno = -op->error,
			.src_addr = FI_ADDR_NOTAVAIL,
		};

		engine_complete_error(cq, &err);
	} else { /* also to a selective queue: nothing else reports the end */
		engine_complete_op(cq, op->context, FI_COLLECTIVE);
	}
}

static void coll_tell(struct coll_op *op)
{
	if (op->reported)
		return;
	op->reported = true;
	if (op->report)
		op->report(op);
	else
		coll_report(op);
}

static void coll_end(struct coll_op *op)
{
	struct engine_group *group = op->group;

	if (!op->error && op->finish)
		op->finish(op);
	if (op->error && op->join)
		engine_join_failed(op);
	coll_tell(op);
	list_remove(&op->link);
	list_remove(&op->ready);
	coll_op_free(op);
	coll_group_settle(group);
}

/* Begins nothing more after an error; members that join still answer each other. */
static void coll_stop(struct coll_op *op)
{
	op->stopped = true;
	coll_unpost(op);
	engine_group_break(op->group, op->seq, op->error);
}

/*
 * Runs as many rounds as possible. Returns false when there was no room for a message: tried again
 * later.
 */
static bool coll_op_run(struct coll_op *op)
{
	bool room = true, over = false, answered;

	op->running = true;
	answered = !op->late_cnt || engine_join_answer(op);
	while (!over) {
		if (op->error && !op->stopped && !op->join)
			coll_stop(op);
		room = coll_round_start(op);
		if (op->error && !op->stopped && !op->join)
			continue;
		if (op->error == -FI_ECANCELED && op->join) {
			engine_join_forgo(op);
			coll_tell(op);
		}
		if (!room || op->pending)
			break;
		over = op->stopped || op->phase == COLL_PHASES_MAX || !op->phases[op->phase];
		if (over)
			break;
		op->step_cnt = op->started = 0;
		if (op->phases[op->phase](op)) {
			op->phase++;
			op->round = 0;
		} else {
			op->round++;
		}
	}
	op->running = false;
	if (over && !op->late_cnt)
		coll_end(op);
	return room && answered;
}

bool coll_run(struct engine_task *task)
{
	struct engine_coll *coll = container_of(task, struct engine_coll, task);
	struct list stuck, *node;
	bool room = true;

	list_init(&stuck);
	while ((node = list_pop(&coll->ready))) {
		struct coll_op *op = container_of(node, struct coll_op, ready);

		/* @op may be freed by this, but not if it returns false. */
		if (!coll_op_run(op))
			list_add_tail(&stuck, &op->ready);
	}
	while ((node = list_pop(&stuck))) {
		list_add_tail(&coll->ready, node);
		room = false;
	}
	return coll_notices_send(coll) && room;
}

void engine_coll_begin(struct engine_group *group, struct coll_op *op)
{
	struct engine_domain *domain = group->coll->ep->domain;

	op->group = group;
	list_init(&op->ready);
	list_add_tail(&group->ops, &op->link);
	if (!op->join) {
		op->seq = group->seq++;
		if (group->broken && !coll_before(op->seq, group->broken_seq))
			op->error = group->broken;
	}
	coll_ready(op);
	engine_tasks_run(domain);
	if (!list_empty(&domain->tasks))
		engine_wake(domain);
}

struct coll_op *coll_op_at(const struct engine_group *group, uint16_t seq)
{
	struct coll_op *op;

	list_for_each_entry(op, &group->ops, link) {
		if (!op->join && op->seq == seq)
			return op;
	}
	return NULL;
}

int engine_coll_cancel(struct engine_ctx *ctx, void *context)
{
	struct engine_coll *coll = ctx->ep ? ctx->ep->coll : NULL;
	struct engine_group *group;
	struct coll_op *op;

	if (!coll)
		return -FI_ENOENT;
	list_for_each_entry(group, &coll->groups, link) {
		list_for_each_entry(op, &group->ops, link) {
			if (op->context != context || op->error)
				continue;
			coll_fail(op, -FI_ECANCELED);
			engine_tasks_run(ctx->domain);
			return 0;
		}
	}
	return -FI_ENOENT;
}
