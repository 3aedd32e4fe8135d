/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How the members of a group agree: each member has an id for it, and all of them learn all ids.
 *
 *	member				parent in a binomial tree
 *			<-  BEGIN: only brings up a conn, so that a dead member is detected
 *	UP (ids of its subtree)	->	after the UP of all its children
 *			<-  DOWN (all ids), begun by the first member
 *	HAVE (ids received)	->	after the HAVE of all its children
 *			<-  DONE, begun by the first member
 *
 * There is no id yet to put into tags: these messages match by the number of members and by the
 * members that they are from and to, in the order of calls. A member that can't join sends an UP
 * or a DOWN without ids; a member that sends such an UP gets no DOWN. So whatever fails, each UP
 * and DOWN is answered, and no message of a failed join is left for the next one. The same holds
 * for HAVE and DONE, which follow between two members when DOWN had ids.
 *
 * A member has joined when DONE arrives: all others have the ids then, and have joined, or are in
 * doubt because their parent died or the program cancelled. A member in doubt fails to join, and
 * breaks the group for the others: having the ids, it can send the notices.
 *
 * A member that was never reached is waited for until the program cancels. That is reported at once,
 * and the join goes on without it, to answer the others; and it, should it turn up.
 *
 * coll_run.c runs the rounds, with the domain held.
 */
#include <rdma/fi_errno.h>
#include "coll.h"
#include "recv.h"

enum join_tag {
	JOIN_BEGIN,
	JOIN_UP,
	JOIN_DOWN,
	JOIN_HAVE,
	JOIN_DONE,
};

#define JOIN_WHAT_SHIFT 56 /* in tags; 3 bits */

/*
 * op->state. Low bits: one for each child whose UP or HAVE was a refusal, by its distance in
 * ranks, a power of two.
 */
#define JOIN_IDS   (1u << 29) /* op->work has the ids */
#define JOIN_GAVE  (1u << 30) /* the ids were sent to the children, which answer with HAVE */
#define JOIN_DOUBT (1u << 31) /* others may have joined */

static uint64_t join_tag(const struct coll_op *op, enum join_tag what, uint32_t from,
			 uint32_t to)
{
	return (uint64_t)COLL_JOIN << 62 | (uint64_t)what << JOIN_WHAT_SHIFT |
	       (uint64_t)op->group->cnt << 32 | from << 16 | to;
}

static enum join_tag join_what(uint64_t tag)
{
	return (enum join_tag)(tag >> JOIN_WHAT_SHIFT & 7);
}

bool engine_join_begins(uint64_t tag)
{
	return join_what(tag) == JOIN_BEGIN;
}

static void join_send(struct coll_op *op, enum join_tag what, uint32_t to, const void *buf,
		      size_t len)
{
	coll_step(op, false, to, join_tag(op, what, op->group->rank, to), buf, len);
}

static void join_recv(struct coll_op *op, enum join_tag what, uint32_t from, void *buf,
		      size_t len)
{
	coll_step(op, true, from, join_tag(op, what, from, op->group->rank), buf, len);
}

void engine_join_received(const struct coll_step *step, int status)
{
	struct coll_op *op = step->op;

	if (status && step->rank > op->group->rank)
		op->state |= step->rank - op->group->rank;
	else if (!status && join_what(step->tag) == JOIN_DOWN)
		op->state |= JOIN_IDS;
	else if (status == -FI_ETRUNC && join_what(step->tag) == JOIN_DONE)
		op->state &=
			~JOIN_DOUBT; /* the first member refused, or a member is in doubt itself */
}

static bool join_up(struct coll_op *op)
{
	uint32_t me = op->group->rank, cnt = op->group->cnt;

	for (uint32_t m = coll_reach(op, me) / 2; m; m /= 2) {
		if (m >= cnt - me)
			continue;
		join_recv(op, JOIN_UP, me + m, coll_at(op, me + m),
			  coll_part(op, me + m, coll_subtree(op, me + m)));
		join_send(op, JOIN_BEGIN, me + m, NULL, 0);
	}
	return true;
}

static bool join_parent(struct coll_op *op)
{
	uint32_t me = op->group->rank, parent = me & (me - 1);

	if (!me)
		return true;
	if (op->error) {
		join_send(op, JOIN_UP, parent, NULL, 0);
		return true;
	}
	join_recv(op, JOIN_DOWN, parent, op->work, coll_off(op, op->group->cnt));
	join_send(op, JOIN_UP, parent, coll_at(op, me), coll_part(op, me, coll_subtree(op, me)));
	return true;
}

static bool join_down(struct coll_op *op)
{
	uint32_t me = op->group->rank, cnt = op->group->cnt;

	if (!me && !op->error)
		op->state |= JOIN_IDS;
	if (!op->error)
		op->state |= JOIN_GAVE;
	for (uint32_t m = coll_reach(op, me) / 2; m; m /= 2) {
		if (m >= cnt - me || op->state & m)
			continue;
		if (!op->error)
			join_recv(op, JOIN_HAVE, me + m, op->spare, op->block);
		join_send(op, JOIN_DOWN, me + m, op->work, op->error ? 0 : coll_off(op, cnt));
	}
	return true;
}

static bool join_have(struct coll_op *op)
{
	uint32_t me = op->group->rank, parent = me & (me - 1);

	if (!(op->state & JOIN_IDS) || (!me && op->error))
		return true;
	if (!op->error)
		op->state |= JOIN_DOUBT;
	if (!me)
		return true;
	if (!op->error)
		join_recv(op, JOIN_DONE, parent, op->spare, op->block);
	join_send(op, JOIN_HAVE, parent, op->work, op->error ? 0 : op->block);
	return true;
}

static bool join_done(struct coll_op *op)
{
	uint32_t me = op->group->rank, cnt = op->group->cnt;

	for (uint32_t m = coll_reach(op, me) / 2; m && op->state & JOIN_GAVE; m /= 2)
		if (m < cnt - me && !(op->state & m))
			join_send(op, JOIN_DONE, me + m, op->work, op->error ? 0 : op->block);
	return true;
}

static void join_ids(const struct coll_op *op)
{
	struct engine_group *group = op->group;

	memcpy(group->ids, op->work, group->cnt * sizeof(*group->ids));
	for (uint32_t i = 0; i < group->cnt; i++)
		group->ids[i] &= COLL_ID_MAX;
	group->named = true;
}

static void join_finish(struct coll_op *op)
{
	join_ids(op);
	engine_group_joined(op->group);
}

void engine_join_failed(struct coll_op *op)
{
	if (!(op->state & JOIN_DOUBT))
		return;
	join_ids(op);
	engine_group_break(op->group, 0, op->error);
}

/* Gives the step room of its own: those of the next round take its place. NULL without memory. */
static struct coll_step *join_late_step(struct coll_op *op, const struct coll_step *step)
{
	struct coll_step *late;

	if (!op->late)
		op->late = platform_alloc(COLL_STEPS_MAX * sizeof(*op->late));
	if (!op->late || op->late_used == COLL_STEPS_MAX)
		return NULL;
	late = &op->late[op->late_used++];
	*late = *step;
	late->late = true;
	op->late_cnt++;
	op->pending--;
	return late;
}

/* A child that may turn up later is refused then; the join goes on as if it had refused. */
static void join_defer(struct coll_op *op, struct engine_peer *peer, uint32_t rank)
{
	struct coll_step *late;
	struct engine_rx *rx = NULL;
	struct engine_tx *tx;

	while ((rx = engine_rxq_next(&op->group->coll->rx.own, rx))) {
		const struct coll_step *step = rx->context;

		if (step->op != op || step->rank != rank || step->late)
			continue;
		late = join_late_step(op, step);
		if (!late)
			return;
		rx->context = late;
		op->state |= rank - op->group->rank;
	}
	list_for_each_entry(tx, &peer->queued, link) {
		const struct coll_step *step = tx->context;

		if (!(tx->flags & PACKET_GROUP) || !step || step->op != op || step->late)
			continue;
		late = join_late_step(op, step);
		if (late)
			tx->context = late;
	}
}

/* An UP with ids has not left: takes it back, so that the parent gets one without ids. */
static void join_take_back(struct coll_op *op, uint32_t parent)
{
	struct engine_coll *coll = op->group->coll;
	struct engine_rx *rx, *after;

	coll_unsent(op, parent, true);
	for (rx = engine_rxq_next(&coll->rx.own, NULL); rx; rx = after) {
		after = engine_rxq_next(&coll->rx.own, rx);
		if (((struct coll_step *)rx->context)->op != op ||
		    ((struct coll_step *)rx->context)->rank != parent)
			continue;
		match_unpost(coll->rx.own.tagged, &rx->match);
		engine_rx_put(coll->ep->domain, rx);
		op->pending--;
	}
	op->phase = 1;
}

void engine_join_forgo(struct coll_op *op)
{
	uint32_t me = op->group->rank, parent = me & (me - 1);
	struct engine_peer *peer;

	for (uint32_t m = coll_reach(op, me) / 2; m && op->phase == 1; m /= 2) {
		peer = m < op->group->cnt - me ? coll_peer(op->group, me + m) : NULL;
		if (peer && !peer->up_cnt)
			join_defer(op, peer, me + m);
	}
	if (op->phase == 2 && me && op->step_cnt == 2 && op->started == 2 &&
	    coll_unsent(op, parent, false))
		join_take_back(op, parent);
}

void engine_join_late(struct coll_step *step, int status)
{
	if (step->recv && !status)
		step->owed = true; /* whoever sends ids waits for the answer */
	else
		step->op->late_cnt--;
}

bool engine_join_answer(struct coll_op *op)
{
	for (uint32_t i = 0; i < op->late_used; i++) {
		struct coll_step *step = &op->late[i];
		struct engine_msg msg = { .tag = join_tag(op, JOIN_DOWN, op->group->rank,
							  step->rank) };

		if (!step->owed)
			continue;
		if (coll_send_to(op->group, step->rank, &msg) == -FI_EAGAIN)
			return false;
		step->owed = false;
		op->late_cnt--;
	}
	return true;
}

int engine_join_setup(struct coll_op *op)
{
	struct engine_group *group = op->group;

	op->join = true;
	op->block = sizeof(group->id);
	if (coll_memory(op, group->cnt * op->block, op->block))
		return -FI_ENOMEM;
	memcpy(coll_at(op, group->rank), &group->id, sizeof(group->id));
	op->phases[0] = join_up;
	op->phases[1] = join_parent;
	op->phases[2] = join_down;
	op->phases[3] = join_have;
	op->phases[4] = join_done;
	op->finish = join_finish;
	return 0;
}
