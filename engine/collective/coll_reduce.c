/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Collectives that reduce, as rounds of messages. Set up by coll_fid.c, run by coll_run.c, with the
 * domain held.
 *
 *	allreduce	recursive doubling; large: reduced around a ring, gathered around it
 *	reduce		binomial tree; large: reduced around a ring, gathered up the tree
 *	reduce-scatter	recursive doubling; large: reduced around a ring
 *
 * All members get the same bits: where two of them compute the same value, both compute it in the
 * order of ranks.
 *
 * Source: Thakur, Rabenseifner, Gropp: Optimization of Collective Communication Operations in
 * MPICH (2005).
 */
#include <rdma/fi_errno.h>
#include "atomics.h"
#include "coll.h"

/* The elements at @to become @to op @from. */
static void coll_combine(const struct coll_op *op, void *to, const void *from, size_t len)
{
	struct atomics_update update = {
		.kind = ATOMICS_BASE,
		.datatype = op->datatype,
		.op = op->op,
		.target = to,
		.operand = from,
		.cnt = len / op->size,
	};

	atomics_combine(&update);
}

/* Exchanges op->work and op->spare, so that the value is in work. */
static void coll_swap(struct coll_op *op)
{
	uint8_t *work = op->work;

	op->work = op->spare;
	op->spare = work;
}

static uint32_t coll_pow2(uint32_t cnt)
{
	uint32_t p = 1;

	while (p <= cnt / 2)
		p *= 2;
	return p;
}

/*
 * Members beyond a power of two: as many pairs at the start act as one member, the second of each
 * pair.
 */
static uint32_t coll_extra(const struct coll_op *op)
{
	return op->group->cnt - coll_pow2(op->group->cnt);
}

static bool coll_fold(struct coll_op *op)
{
	uint32_t me = op->group->rank;
	size_t len = op->cnt * op->size;

	if (me >= 2 * coll_extra(op))
		return true;
	if (me % 2 == 0) {
		coll_send(op, me + 1, op->work, len);
		return true;
	}
	if (!op->round) {
		coll_recv(op, me - 1, op->spare, len);
		return false;
	}
	coll_combine(op, op->spare, op->work, len);
	coll_swap(op);
	return true;
}

static bool coll_double(struct coll_op *op)
{
	uint32_t me = op->group->rank, extra = coll_extra(op), bit = 1u << op->round, folded,
		 other;
	size_t len = op->cnt * op->size;

	if (me < 2 * extra && me % 2 == 0)
		return true;
	folded = me < 2 * extra ? me / 2 : me - extra;
	if (op->round && folded & bit / 2) {
		/* The other member's rank is lower. */
		coll_combine(op, op->spare, op->work, len);
		coll_swap(op);
	} else if (op->round) {
		coll_combine(op, op->work, op->spare, len);
	}
	if (bit >= coll_pow2(op->group->cnt))
		return true;
	other = folded ^ bit;
	other = other < extra ? other * 2 + 1 : other + extra;
	coll_recv(op, other, op->spare, len);
	coll_send(op, other, op->work, len);
	return false;
}

static bool coll_unfold(struct coll_op *op)
{
	uint32_t me = op->group->rank;
	size_t len = op->cnt * op->size;

	if (me >= 2 * coll_extra(op))
		return true;
	if (me % 2)
		coll_send(op, me - 1, op->work, len);
	else
		coll_recv(op, me + 1, op->work, len);
	return true;
}

/* Reduces to place 0, by subtrees that double. op->state: the part of a child is in op->spare. */
static bool coll_tree_reduce(struct coll_op *op)
{
	uint32_t me = coll_place(op), bit = 1u << op->round;
	size_t len = op->cnt * op->size;

	if (op->state)
		coll_combine(op, op->work, op->spare, len);
	op->state = 0;
	if (bit >= op->group->cnt)
		return true;
	if (me & bit) {
		coll_send(op, coll_rank(op, me - bit), op->work, len);
		return true;
	}
	if (bit < op->group->cnt - me) {
		coll_recv(op, coll_rank(op, me + bit), op->spare, len);
		op->state = 1;
	}
	return false;
}

/*
 * Each part travels around the ring and ends at its place. Partial results are in op->work, or,
 * when that is the input too, arrive in op->spare.
 */
static bool coll_ring_reduce(struct coll_op *op)
{
	uint32_t cnt = op->group->cnt, me = coll_place(op), round = op->round;
	uint32_t out = (me + cnt - round % cnt + cnt - 1) % cnt, in = (out + cnt - 1) % cnt;
	bool same = op->work == op->in;

	if (round && same)
		coll_combine(op, coll_at(op, out), op->spare, coll_part(op, out, out + 1));
	else if (round)
		coll_combine(op, coll_at(op, out), (const uint8_t *)op->in + coll_off(op, out),
			     coll_part(op, out, out + 1));
	if (round + 1 >= cnt)
		return true;
	coll_recv(op, coll_rank(op, (uint64_t)me + cnt - 1), same ? op->spare : coll_at(op, in),
		  coll_part(op, in, in + 1));
	coll_send(op, coll_rank(op, (uint64_t)me + 1),
		  round ? coll_at(op, out) : (const uint8_t *)op->in + coll_off(op, out),
		  coll_part(op, out, out + 1));
	return false;
}

static bool coll_is_large(const struct coll_op *op)
{
	return op->cnt * op->size > COLL_SMALL && op->cnt >= op->group->cnt &&
	       op->group->cnt > 1;
}

/* Recursive doubling into op->work. */
static int coll_doubling(struct coll_op *op)
{
	size_t len = op->cnt * op->size;

	if (coll_memory(op, len, len))
		return -FI_ENOMEM;
	coll_move(op->work, op->in, len);
	op->phases[0] = coll_fold;
	op->phases[1] = coll_double;
	op->phases[2] = coll_unfold;
	return 0;
}

/* Memory of the ring; @work: memory for results, or NULL to allocate it. */
static int coll_ring(struct coll_op *op, void *work)
{
	size_t len = op->cnt * op->size, share = coll_part(op, 0, 1);
	bool copy = work && work != op->in && coll_overlap(work, len, op->in, len);

	if (!work || copy) {
		if (coll_memory(op, len, 0))
			return -FI_ENOMEM;
	} else if (work == op->in && coll_memory(op, 0, share)) {
		return -FI_ENOMEM;
	}
	if (copy) {
		coll_move(op->memory, op->in, len);
		op->in = op->memory;
	}
	if (work)
		op->work = work;
	op->phases[0] = coll_ring_reduce;
	return 0;
}

static void coll_reduce_finish(struct coll_op *op)
{
	if (!coll_place(op))
		coll_move(op->out, op->work, op->cnt * op->size);
}

static void coll_allreduce_finish(struct coll_op *op)
{
	coll_move(op->out, op->work, op->cnt * op->size);
}

static void coll_part_finish(struct coll_op *op)
{
	coll_move(op->out, coll_at(op, op->group->rank),
		  coll_part(op, op->group->rank, op->group->rank + 1));
}

int coll_allreduce(struct coll_op *op)
{
	if (coll_is_large(op)) {
		op->phases[1] = coll_ring_gather;
		return coll_ring(op, op->out);
	}
	op->finish = coll_allreduce_finish;
	return coll_doubling(op);
}

int coll_reduce(struct coll_op *op)
{
	size_t len = op->cnt * op->size;

	if (coll_is_large(op)) {
		op->phases[1] = coll_tree_gather;
		return coll_ring(op, coll_place(op) ? NULL : op->out);
	}
	if (coll_memory(op, len, len))
		return -FI_ENOMEM;
	coll_move(op->work, op->in, len);
	op->phases[0] = coll_tree_reduce;
	op->finish = coll_reduce_finish;
	return 0;
}

int coll_reduce_scatter(struct coll_op *op)
{
	op->finish = coll_part_finish;
	return coll_is_large(op) ? coll_ring(op, NULL) : coll_doubling(op);
}
