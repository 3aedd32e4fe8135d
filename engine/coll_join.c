/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How the members of a group agree: each of them has an id for it, and all of them learn all ids.
 *
 *	member				parent in a binomial tree
 *			<-  BEGIN: nothing but a connection, so that one that is dead is missed
 *	UP (ids of its subtree)	->	when all its children have said so
 *			<-  DOWN (all ids), from the first member's on
 *
 * No id is there yet to put into tags: these messages match by how many members there are and who
 * they are from and to, in the order of calls. A member that can't join says UP or DOWN without
 * ids; who says such an UP gets no DOWN. So whatever fails, each UP and DOWN is answered, and nothing
 * of a join that failed is left over for the next one.
 *
 * The rounds are run by coll_run.c, with the domain held.
 */
#include <rdma/fi_errno.h>
#include "coll.h"

enum join_tag {
	JOIN_BEGIN = 1,
	JOIN_UP = 2,
	JOIN_DOWN = 3,
};

static uint64_t join_tag(const struct coll_op *op, enum join_tag what, uint32_t from,
			 uint32_t to)
{
	return (uint64_t)COLL_JOIN << 62 | (uint64_t)what << 60 |
	       (uint64_t)op->group->cnt << 32 | from << 16 | to;
}

bool engine_join_begins(uint64_t tag)
{
	return (tag >> 60 & 3) == JOIN_BEGIN;
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

/* op->state has a bit for each child that has no ids for us: by the power of two that it is behind us. */
void engine_join_refused(struct coll_op *op, uint32_t rank)
{
	if (rank > op->group->rank)
		op->state |= rank - op->group->rank;
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
	join_send(op, JOIN_UP, parent, coll_at(op, me),
		  coll_part(op, me, coll_subtree(op, me)));
	return true;
}

static bool join_down(struct coll_op *op)
{
	uint32_t me = op->group->rank, cnt = op->group->cnt;

	for (uint32_t m = coll_reach(op, me) / 2; m; m /= 2)
		if (m < cnt - me && !(op->state & m))
			join_send(op, JOIN_DOWN, me + m, op->work,
				  op->error ? 0 : coll_off(op, cnt));
	return true;
}

static void join_finish(struct coll_op *op)
{
	struct engine_group *group = op->group;

	memcpy(group->ids, op->work, group->cnt * sizeof(*group->ids));
	for (uint32_t i = 0; i < group->cnt; i++)
		group->ids[i] &= COLL_ID_MAX;
	engine_group_joined(group);
}

int engine_join_setup(struct coll_op *op)
{
	struct engine_group *group = op->group;

	op->join = true;
	op->block = sizeof(group->id);
	if (coll_memory(op, group->cnt * op->block, 0))
		return -FI_ENOMEM;
	memcpy(coll_at(op, group->rank), &group->id, sizeof(group->id));
	op->phases[0] = join_up;
	op->phases[1] = join_parent;
	op->phases[2] = join_down;
	op->finish = join_finish;
	return 0;
}
