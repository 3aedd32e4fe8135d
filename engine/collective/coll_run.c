/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Collectives under way: their rounds are run, their messages posted and ended, and members told
 * of failures. The ops of groups are called from within sends, packets and failures, where they
 * only note what happened; rounds are run by the endpoint's task. The caller holds the domain.
 */
#include "coll.h"
#include "complete.h"
#include "peer.h"
#include "recv.h"
#include "send.h"
#include "tasks.h"
#include "waiting.h"

#define COLL_ERROR_MAX 511u /* FI_E* that a member may tell of */

static bool coll_before(uint16_t a, uint16_t b)
{
	return (int16_t)(uint16_t)(a - b) < 0;
}

void coll_op_free(struct coll_op *op)
{
	eq_event_free(op->event);
	platform_free(op->memory);
	platform_free(op);
}

void engine_group_free(struct engine_group *group)
{
	struct list *node;

	while ((node = list_pop(&group->notices))) {
		group->coll->notice_cnt--;
		platform_free(container_of(node, struct coll_notice, link));
	}
	list_remove(&group->link);
	platform_free(group->addrs);
	platform_free(group);
}

void engine_coll_free(struct engine_ep *ep)
{
	struct engine_coll *coll = ep->coll;
	struct list *node, *after, *onode;

	if (!coll)
		return;
	list_for_each(node, after, &coll->groups) {
		struct engine_group *group = container_of(node, struct engine_group, link);

		while ((onode = list_pop(&group->ops))) {
			struct coll_op *op = container_of(onode, struct coll_op, link);

			list_remove(&op->ready);
			coll_op_free(op);
		}
		engine_group_free(group);
	}
	engine_task_drop(&coll->task);
	engine_rxq_fini(ep->domain, &coll->rx.own);
	platform_free(coll);
	ep->coll = NULL;
	ep->group_rx = NULL;
}

bool engine_coll_busy(const struct engine_ep *ep)
{
	struct list *node, *after;

	if (!ep->coll)
		return false;
	list_for_each(node, after, &ep->coll->groups)
		if (!container_of(node, struct engine_group, link)->closed)
			return true;
	return false;
}

struct engine_group *engine_group_at(const struct engine_coll *coll, uint32_t id)
{
	struct list *node, *after;

	list_for_each(node, after, &coll->groups) {
		struct engine_group *group = container_of(node, struct engine_group, link);

		if (group->id == id)
			return group;
	}
	return NULL;
}

/* What may go on */

static void coll_due(struct engine_coll *coll)
{
	engine_task_due(coll->ep->domain, &coll->task);
}

static void coll_ready(struct coll_op *op)
{
	if (op->running)
		return;
	if (list_empty(&op->ready))
		list_push(&op->group->coll->ready, &op->ready);
	coll_due(op->group->coll);
}

static void coll_fail(struct coll_op *op, int err)
{
	if (!op->error)
		op->error = err;
	coll_ready(op);
}

static void coll_step_end(struct coll_step *step, int status)
{
	struct coll_op *op = step->op;

	op->pending--;
	if (op->join && step->recv)
		engine_join_heard(step, status);
	if (status)
		coll_fail(op, status);
	else if (!op->pending)
		coll_ready(op);
}

static void coll_sent(void *context, int status)
{
	if (context)
		coll_step_end(context, status);
}

static void coll_received(struct engine_rx *rx, int status)
{
	struct coll_step *step = rx->context;

	/* Members that disagree on the length, or one that could not join. */
	if (!status && rx->len != step->len)
		status = -FI_ETRUNC;
	pool_put(&step->op->group->coll->ep->domain->rx_pool, rx);
	coll_step_end(step, status);
}

/* The peer behind a member, if it has been met; NULL otherwise. */
static struct engine_peer *coll_peer(const struct engine_group *group, uint32_t rank)
{
	const struct engine_ep *ep = group->coll->ep;

	return group->addrs[rank] < ep->peer_cap ? ep->peers[group->addrs[rank]] : NULL;
}

/*
 * A collective's sends to a member that have not left: they wait for a connection, for ever if nobody
 * is there. @cancel: end them; returns whether there is one.
 */
static bool coll_unsent(struct coll_op *op, uint32_t rank, bool cancel)
{
	struct engine_peer *peer = coll_peer(op->group, rank);
	struct list *node, *after;
	bool any = false;

	if (!peer)
		return false;
	list_for_each(node, after, &peer->queued) {
		struct engine_tx *tx = container_of(node, struct engine_tx, link);
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

/* Take back what is posted of a collective. */
static void coll_unpost(struct coll_op *op)
{
	struct engine_coll *coll = op->group->coll;
	struct list *node, *after;

	list_for_each(node, after, &coll->rx.own.posted) {
		struct engine_rx *rx = container_of(node, struct engine_rx, link);

		if (((struct coll_step *)rx->context)->op != op)
			continue;
		match_cancel(coll->rx.own.tagged, &rx->match);
		list_remove(&rx->link);
		pool_put(&coll->ep->domain->rx_pool, rx);
		op->pending--;
	}
	for (uint32_t i = 0; i < op->started; i++)
		if (!op->steps[i].recv)
			coll_unsent(op, op->steps[i].rank, true);
}

/* Groups that break */

/* Messages for collectives that will not be. */
static void coll_purge(struct engine_group *group)
{
	struct match *m = group->coll->rx.own.tagged;
	struct match_msg *msg, *after;

	for (msg = match_next_msg(m, NULL); msg; msg = after) {
		after = match_next_msg(m, msg);
		if (coll_tag_kind(msg->tag) != COLL_STEP || coll_tag_id(msg->tag) != group->id)
			continue;
		if (!group->closed && coll_before(coll_tag_seq(msg->tag), group->broken_seq))
			continue;
		match_take(m, msg);
		engine_held_drop(group->coll->ep, container_of(msg, struct engine_held, match));
	}
}

/* Returns false when it is broken there, or before, already. */
static bool coll_broken(struct engine_group *group, uint16_t seq, int err)
{
	struct list *node, *after;

	if (group->broken && !coll_before(seq, group->broken_seq))
		return false;
	group->broken = err;
	group->broken_seq = seq;
	list_for_each(node, after, &group->ops) {
		struct coll_op *op = container_of(node, struct coll_op, link);

		if (!op->join && !coll_before(op->seq, seq))
			coll_fail(op, err);
	}
	coll_purge(group);
	return true;
}

static void coll_notify(struct engine_group *group, enum coll_kind kind, uint16_t seq,
			uint64_t data)
{
	struct coll_notice *notice = group->named ? platform_alloc(sizeof(*notice)) : NULL;

	if (!notice)
		return;
	notice->kind = kind;
	notice->seq = seq;
	notice->data = data;
	list_push(&group->notices, &notice->link);
	group->coll->notice_cnt++;
	coll_due(group->coll);
}

void engine_group_break(struct engine_group *group, uint16_t seq, int err)
{
	if (coll_broken(group, seq, err))
		coll_notify(group, COLL_BREAK, seq, (uint64_t)-err);
}

void engine_group_joined(struct engine_group *group)
{
	group->joined = true;
	for (uint32_t i = 0; i < group->cnt; i++)
		if (group->lost[i])
			coll_notify(group, COLL_LOST, 0, i);
}

/* Free a group that was closed, when nothing is left of it. */
static void coll_group_settle(struct engine_group *group)
{
	if (!group->closed || !list_empty(&group->ops) || !list_empty(&group->notices))
		return;
	coll_purge(group);
	engine_group_free(group);
}

void engine_group_close(struct engine_group *group)
{
	struct engine_domain *domain = group->coll->ep->domain;
	struct list *node, *after;

	group->closed = true;
	list_for_each(node, after, &group->ops) {
		struct coll_op *op = container_of(node, struct coll_op, link);

		coll_fail(op, -FI_ECANCELED);
	}
	coll_group_settle(group);
	engine_tasks_run(domain);
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

static ssize_t coll_send_to(struct engine_group *group, uint32_t rank, struct engine_msg *msg)
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
		/* What it sent before is here. */
		peer = engine_peer_at(coll->ep, addr);
		if (!peer || !match_find(coll->rx.own.tagged, (uintptr_t)peer, step->tag, 0))
			return -FI_ECONNRESET;
	}
	return engine_post(&coll->ctx, &want);
}

/* Post what the round still has to; false when there was no room. */
static bool coll_round_start(struct coll_op *op)
{
	while (op->started < op->step_cnt && !op->stopped) {
		struct coll_step *step = &op->steps[op->started];
		ssize_t ret;

		op->pending++; /* it may end at once */
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

static void coll_tell(const struct coll_op *op)
{
	struct engine_cq *cq = op->tx && op->tx->cq ? op->tx->cq : op->rx ? op->rx->cq : NULL;
	struct cq_entry entry = { .context = op->context,
				  .flags = FI_COLLECTIVE,
				  .src = FI_ADDR_NOTAVAIL };

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
	} else { /* a selective queue, too: nobody would know without */
		engine_complete(cq, &entry);
	}
}

static void coll_end(struct coll_op *op)
{
	struct engine_group *group = op->group;

	if (!op->error && op->finish)
		op->finish(op);
	if (op->error && op->join)
		engine_join_failed(op);
	if (op->tell)
		op->tell(op);
	else
		coll_tell(op);
	list_remove(&op->link);
	list_remove(&op->ready);
	coll_op_free(op);
	coll_group_settle(group);
}

/* After an error nothing more is begun; but members that join answer each other in any case. */
static void coll_stop(struct coll_op *op)
{
	op->stopped = true;
	coll_unpost(op);
	engine_group_break(op->group, op->seq, op->error);
}

/* As far as it goes. False when there was no room for a message: to be tried again. */
static bool coll_op_run(struct coll_op *op)
{
	bool room = true, over = false;

	op->running = true;
	while (!over) {
		if (op->error && !op->stopped && !op->join)
			coll_stop(op);
		room = coll_round_start(op);
		if (op->error && !op->stopped && !op->join)
			continue;
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
	if (over)
		coll_end(op);
	return room;
}

/* Notices */

/* Returns false when there was no room. */
static bool coll_notice_send(struct engine_group *group, struct coll_notice *notice)
{
	for (; notice->next < group->cnt; notice->next++) {
		uint32_t rank = notice->next;
		struct engine_msg msg = { .data = notice->data };

		if (rank == group->rank || group->lost[rank])
			continue;
		msg.tag = coll_tag(notice->kind, group->ids[rank], notice->seq, 0);
		if (coll_send_to(group, rank, &msg) == -FI_EAGAIN)
			return false;
	}
	return true;
}

static bool coll_notices_send(struct engine_coll *coll)
{
	struct list *node, *after;

	if (!coll->notice_cnt)
		return true;
	list_for_each(node, after, &coll->groups) {
		struct engine_group *group = container_of(node, struct engine_group, link);

		while (!list_empty(&group->notices)) {
			struct coll_notice *notice = container_of(group->notices.next,
								  struct coll_notice, link);

			if (!coll_notice_send(group, notice))
				return false;
			list_remove(&notice->link);
			platform_free(notice);
			coll->notice_cnt--;
		}
		coll_group_settle(group);
	}
	return true;
}

/* struct engine_task.run: every collective of an endpoint that may go on, and its notices. */
static bool coll_run(struct engine_task *task)
{
	struct engine_coll *coll = container_of(task, struct engine_coll, task);
	struct list stuck, *node;
	bool room = true;

	list_init(&stuck);
	while ((node = list_pop(&coll->ready))) {
		struct coll_op *op = container_of(node, struct coll_op, ready);

		/* It may be gone afterwards, but not when it is stuck. */
		if (!coll_op_run(op))
			list_push(&stuck, &op->ready);
	}
	while ((node = list_pop(&stuck))) {
		list_push(&coll->ready, node);
		room = false;
	}
	return coll_notices_send(coll) && room;
}

void engine_coll_begin(struct engine_group *group, struct coll_op *op)
{
	struct engine_domain *domain = group->coll->ep->domain;

	op->group = group;
	list_init(&op->ready);
	list_push(&group->ops, &op->link);
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

/* What others say */

static struct coll_op *coll_op_at(const struct engine_group *group, uint16_t seq)
{
	struct list *node, *after;

	list_for_each(node, after, &group->ops) {
		struct coll_op *op = container_of(node, struct coll_op, link);

		if (!op->join && op->seq == seq)
			return op;
	}
	return NULL;
}

static bool coll_has(const struct engine_group *group, const struct engine_peer *peer)
{
	for (uint32_t i = 0; i < group->cnt; i++)
		if (coll_peer(group, i) == peer)
			return true;
	return false;
}

/* Another member has seen this one die. Who is connected to it will see that itself. */
static void coll_heard_lost(struct engine_group *group, uint64_t rank)
{
	struct engine_peer *peer;
	struct list *node, *after;

	if (rank >= group->cnt || rank == group->rank || group->lost[rank])
		return;
	peer = coll_peer(group, (uint32_t)rank);
	if (peer && peer->up)
		return;
	group->lost[rank] = 1;
	list_for_each(node, after, &group->coll->rx.own.posted) {
		const struct engine_rx *rx = container_of(node, struct engine_rx, link);
		const struct coll_step *step = rx->context;

		if (step->op->group == group && step->rank == rank && !step->op->join)
			coll_fail(step->op, -FI_ECONNRESET);
	}
	list_for_each(node, after, &group->ops) {
		struct coll_op *op = container_of(node, struct coll_op, link);

		if (!op->join && coll_unsent(op, (uint32_t)rank, false))
			coll_fail(op, -FI_ECONNRESET);
	}
}

/* Is this a message of a collective that is over here, or that will not be? */
static bool coll_stale(const struct engine_group *group, uint16_t seq)
{
	if (group->closed)
		return true;
	if (group->broken && !coll_before(seq, group->broken_seq))
		return true;
	return coll_before(seq, group->seq) && !coll_op_at(group, seq);
}

static bool coll_stray(struct engine_peer *peer, const struct packet *packet)
{
	struct engine_group *group;
	enum coll_kind kind = coll_tag_kind(packet->tag);
	uint16_t seq = coll_tag_seq(packet->tag);

	if (kind == COLL_JOIN)
		return engine_join_begins(packet->tag);
	group = engine_group_at(peer->ep->coll, coll_tag_id(packet->tag));
	if (!group)
		return true;
	if (kind == COLL_STEP)
		return coll_stale(group, seq);
	if (!coll_has(group, peer))
		return true;
	if (kind == COLL_LOST)
		coll_heard_lost(group, packet->data);
	else
		coll_broken(group, seq,
			    packet->data && packet->data <= COLL_ERROR_MAX ? -(int)packet->data
									   : -FI_EIO);
	return true;
}

static void coll_peer_lost(struct engine_peer *peer, bool died)
{
	struct list *node, *after;

	list_for_each(node, after, &peer->ep->coll->groups) {
		struct engine_group *group = container_of(node, struct engine_group, link);

		for (uint32_t i = 0; i < group->cnt; i++) {
			if (group->lost[i] || i == group->rank || coll_peer(group, i) != peer)
				continue;
			group->lost[i] = 1;
			if (died)
				coll_notify(group, COLL_LOST, 0, i);
		}
	}
}

int engine_coll_cancel(struct engine_ctx *ctx, void *context)
{
	struct engine_coll *coll = ctx->ep ? ctx->ep->coll : NULL;
	struct list *node, *after, *onode, *oafter;

	if (!coll)
		return -FI_ENOENT;
	list_for_each(node, after, &coll->groups) {
		struct engine_group *group = container_of(node, struct engine_group, link);

		list_for_each(onode, oafter, &group->ops) {
			struct coll_op *op = container_of(onode, struct coll_op, link);

			if (op->context != context || op->error)
				continue;
			coll_fail(op, -FI_ECANCELED);
			engine_tasks_run(ctx->domain);
			return 0;
		}
	}
	return -FI_ENOENT;
}

struct engine_coll *engine_coll_get(struct engine_ep *ep)
{
	struct engine_coll *coll = ep->coll;

	if (coll)
		return coll;
	coll = platform_alloc(sizeof(*coll));
	if (!coll)
		return NULL;
	if (engine_rxq_init(&coll->rx.own, false)) {
		platform_free(coll);
		return NULL;
	}
	coll->ep = ep;
	coll->rx.q = &coll->rx.own;
	coll->rx.ep = ep;
	coll->ctx.domain = ep->domain;
	coll->ctx.ep = ep;
	coll->ctx.tx = &coll->tx;
	coll->ctx.rx = &coll->rx;
	coll->ctx.trx_flags = PACKET_TAGGED | PACKET_GROUP;
	coll->ctx.directed_recv = true;
	list_init(&coll->groups);
	list_init(&coll->ready);
	list_init(&coll->task.link);
	coll->task.run = coll_run;
	ep->coll = coll;
	ep->group_rx = &coll->rx;
	return coll;
}

static struct engine_rx_ctx *coll_rx(struct engine_ep *ep)
{
	struct engine_coll *coll = engine_coll_get(ep);

	return coll ? &coll->rx : NULL;
}

const struct engine_group_ops engine_groups = {
	.rx = coll_rx,
	.stray = coll_stray,
	.received = coll_received,
	.sent = coll_sent,
	.peer_lost = coll_peer_lost,
};
