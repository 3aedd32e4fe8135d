/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Collectives that move data, as rounds of messages; those that reduce are in coll_reduce.c.
 * Set up by coll_fid.c, run by coll_run.c, with the domain held.
 *
 *	barrier		dissemination
 *	broadcast	binomial tree; large: scattered down the tree, gathered around a ring
 *	allgather	Bruck; large: ring
 *	alltoall	pairs at growing distance, COLL_WINDOW of them at a time
 *	scatter, gather	binomial tree; large: straight from and to the root
 *
 * Source: Thakur, Rabenseifner, Gropp: Optimization of Collective Communication Operations in
 * MPICH (2005).
 */
#include <rdma/fi_errno.h>
#include "coll.h"

#define COLL_BROADCAST_SMALL (64u << 10)
#define COLL_DIRECT	     16u /* members that the root exchanges with at once */

size_t coll_off(const struct coll_op *op, uint32_t place)
{
	size_t share = op->cnt / op->group->cnt, more = op->cnt % op->group->cnt;

	if (op->block)
		return place * op->block;
	return (share * place + (place < more ? place : more)) * op->size;
}

uint8_t *coll_at(const struct coll_op *op, uint32_t place)
{
	return op->work + (coll_off(op, place) - coll_off(op, op->work_first));
}

size_t coll_part(const struct coll_op *op, uint32_t place, uint32_t end)
{
	return coll_off(op, end) - coll_off(op, place);
}

uint32_t coll_rank(const struct coll_op *op, uint64_t place)
{
	return (uint32_t)((place + op->root) % op->group->cnt);
}

uint32_t coll_place(const struct coll_op *op)
{
	return (op->group->rank + op->group->cnt - op->root) % op->group->cnt;
}

uint32_t coll_reach(const struct coll_op *op, uint32_t place)
{
	uint32_t reach = 1;

	if (place)
		return place & -place;
	while (reach < op->group->cnt)
		reach *= 2;
	return reach;
}

uint32_t coll_subtree(const struct coll_op *op, uint32_t place)
{
	uint32_t end = place + coll_reach(op, place);

	return end < op->group->cnt ? end : op->group->cnt;
}

void coll_move(void *to, const void *from, size_t len)
{
	if (len && to != from)
		memmove(to, from, len);
}

bool coll_overlap(const void *a, size_t a_len, const void *b, size_t b_len)
{
	return (uintptr_t)a < (uintptr_t)b + b_len && (uintptr_t)b < (uintptr_t)a + a_len;
}

int coll_memory(struct coll_op *op, size_t work, size_t spare)
{
	size_t at = (work + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE;

	op->memory = platform_alloc(at + spare + 1);
	if (!op->memory)
		return -FI_ENOMEM;
	op->work = op->memory;
	op->spare = (uint8_t *)op->memory + at;
	return 0;
}

/* Phases */

static bool coll_disseminate(struct coll_op *op)
{
	uint64_t cnt = op->group->cnt, me = op->group->rank, by = 1ull << op->round;

	if (by >= cnt)
		return true;
	coll_recv(op, (uint32_t)((me + cnt - by) % cnt), NULL, 0);
	coll_send(op, (uint32_t)((me + by) % cnt), NULL, 0);
	return by * 2 >= cnt;
}

/* Sends all of op->work from the root to every member. */
static bool coll_tree_broadcast(struct coll_op *op)
{
	uint32_t me = coll_place(op), cnt = op->group->cnt;
	size_t len = op->cnt * op->size;

	if (me && !op->round) {
		coll_recv(op, coll_rank(op, me & (me - 1)), op->work, len);
		return false;
	}
	for (uint32_t m = coll_reach(op, me) / 2; m; m /= 2)
		if (m < cnt - me)
			coll_send(op, coll_rank(op, me + m), op->work, len);
	return true;
}

static bool coll_tree_scatter(struct coll_op *op)
{
	uint32_t me = coll_place(op), cnt = op->group->cnt;

	if (me && !op->round) {
		coll_recv(op, coll_rank(op, me & (me - 1)), coll_at(op, me),
			  coll_part(op, me, coll_subtree(op, me)));
		return false;
	}
	for (uint32_t m = coll_reach(op, me) / 2; m; m /= 2)
		if (m < cnt - me)
			coll_send(op, coll_rank(op, me + m), coll_at(op, me + m),
				  coll_part(op, me + m, coll_subtree(op, me + m)));
	return true;
}

bool coll_tree_gather(struct coll_op *op)
{
	uint32_t me = coll_place(op), cnt = op->group->cnt;

	for (uint32_t m = coll_reach(op, me) / 2; m && !op->round; m /= 2)
		if (m < cnt - me)
			coll_recv(op, coll_rank(op, me + m), coll_at(op, me + m),
				  coll_part(op, me + m, coll_subtree(op, me + m)));
	if (!me)
		return true;
	if (op->step_cnt)
		return false;
	coll_send(op, coll_rank(op, me & (me - 1)), coll_at(op, me),
		  coll_part(op, me, coll_subtree(op, me)));
	return true;
}

bool coll_ring_gather(struct coll_op *op)
{
	uint32_t me = coll_place(op), cnt = op->group->cnt, round = op->round;
	uint32_t mine = (me + cnt - round) % cnt, theirs = (me + cnt - round + cnt - 1) % cnt;

	if (round + 1 >= cnt)
		return true;
	coll_recv(op, coll_rank(op, (uint64_t)me + cnt - 1), coll_at(op, theirs),
		  coll_part(op, theirs, theirs + 1));
	coll_send(op, coll_rank(op, (uint64_t)me + 1), coll_at(op, mine),
		  coll_part(op, mine, mine + 1));
	return round + 2 >= cnt;
}

/* op->work has the own part, then those of the next members, twice as many after each round. */
static bool coll_bruck_gather(struct coll_op *op)
{
	uint64_t cnt = op->group->cnt, me = op->group->rank, have = 1ull << op->round, more;

	if (have >= cnt)
		return true;
	more = have < cnt - have ? have : cnt - have;
	coll_recv(op, (uint32_t)((me + have) % cnt), op->work + have * op->block,
		  more * op->block);
	coll_send(op, (uint32_t)((me + cnt - have) % cnt), op->work, more * op->block);
	return have * 2 >= cnt;
}

/* op->work is what is sent, by rank. */
static bool coll_pairs(struct coll_op *op)
{
	uint64_t cnt = op->group->cnt, me = op->group->rank,
		 by = 1 + (uint64_t)op->round * COLL_WINDOW;
	uint64_t end = by + COLL_WINDOW < cnt ? by + COLL_WINDOW : cnt;

	for (uint64_t i = by; i < end; i++) {
		uint64_t from = (me + cnt - i) % cnt;

		coll_recv(op, (uint32_t)from, (uint8_t *)op->out + from * op->block, op->block);
	}
	for (uint64_t i = by; i < end; i++) {
		uint64_t to = (me + i) % cnt;

		coll_send(op, (uint32_t)to, op->work + to * op->block, op->block);
	}
	return end >= cnt;
}

/* The root exchanges with some members at a time; @at: its parts by rank. */
static bool coll_direct(struct coll_op *op, bool gather, uint8_t *at)
{
	uint64_t cnt = op->group->cnt, place = 1 + (uint64_t)op->round * COLL_DIRECT;
	uint64_t end = place + COLL_DIRECT < cnt ? place + COLL_DIRECT : cnt;

	for (; place < end; place++) {
		uint32_t rank = coll_rank(op, place);

		if (gather)
			coll_recv(op, rank, at + rank * op->block, op->block);
		else
			coll_send(op, rank, at + rank * op->block, op->block);
	}
	return end >= cnt;
}

static bool coll_direct_scatter(struct coll_op *op)
{
	if (!coll_place(op))
		return coll_direct(op, false, (uint8_t *)(uintptr_t)op->in);
	coll_recv(op, op->root, op->out, op->block);
	return true;
}

static bool coll_direct_gather(struct coll_op *op)
{
	if (!coll_place(op))
		return coll_direct(op, true, op->out);
	coll_send(op, op->root, op->in, op->block);
	return true;
}

/* Collectives */

int coll_barrier(struct coll_op *op)
{
	op->phases[0] = coll_disseminate;
	return 0;
}

int coll_broadcast(struct coll_op *op)
{
	size_t len = op->cnt * op->size;

	op->work = op->out;
	if (len <= COLL_BROADCAST_SMALL || op->group->cnt <= 2) {
		op->phases[0] = coll_tree_broadcast;
		return 0;
	}
	op->phases[0] = coll_tree_scatter;
	op->phases[1] = coll_ring_gather;
	return 0;
}

static void coll_bruck_finish(struct coll_op *op)
{
	uint32_t cnt = op->group->cnt, me = op->group->rank;

	for (uint32_t i = 0; i < cnt; i++)
		coll_move((uint8_t *)op->out + ((uint64_t)me + i) % cnt * op->block,
			  op->work + i * op->block, op->block);
}

int coll_allgather(struct coll_op *op)
{
	size_t block = op->block = op->cnt * op->size;
	uint8_t *out = op->out;

	if (block * op->group->cnt > COLL_SMALL) {
		op->work = out;
		coll_move(out + op->group->rank * block, op->in, block);
		op->phases[0] = coll_ring_gather;
		return 0;
	}
	if (coll_memory(op, block * op->group->cnt, 0))
		return -FI_ENOMEM;
	coll_move(op->work, op->in, block);
	op->phases[0] = coll_bruck_gather;
	op->finish = coll_bruck_finish;
	return 0;
}

int coll_alltoall(struct coll_op *op)
{
	size_t block = op->block = op->cnt * op->size, len = block * op->group->cnt,
	       mine = op->group->rank * block;

	op->work = (uint8_t *)(uintptr_t)op->in;
	if (coll_overlap(op->in, len, op->out, len)) {
		if (coll_memory(op, len, 0))
			return -FI_ENOMEM;
		coll_move(op->work, op->in, len);
	}
	if (block)
		coll_move((uint8_t *)op->out + mine, op->work + mine, block);
	op->phases[0] = coll_pairs;
	return 0;
}

static void coll_scatter_finish(struct coll_op *op)
{
	coll_move(op->out, coll_at(op, coll_place(op)), op->block);
}

int coll_scatter(struct coll_op *op)
{
	size_t block = op->block = op->cnt * op->size;
	uint32_t me = coll_place(op), cnt = op->group->cnt;
	const uint8_t *in = op->in;

	op->work_first = me;
	op->finish = coll_scatter_finish;
	if (block > COLL_SMALL) {
		/* not read where parts arrive in their place */
		op->work = me ? op->out : (uint8_t *)(uintptr_t)in + op->root * block;
		op->phases[0] = coll_direct_scatter;
		return 0;
	}
	op->phases[0] = coll_tree_scatter;
	if (!me && !op->root) {
		op->work = (uint8_t *)(uintptr_t)in;
		return 0;
	}
	if (coll_memory(op, (coll_subtree(op, me) - me) * block, 0))
		return -FI_ENOMEM;
	for (uint32_t i = 0; i < cnt && !me; i++)
		coll_move(op->work + i * block, in + coll_rank(op, i) * block, block);
	return 0;
}

static void coll_gather_finish(struct coll_op *op)
{
	if (coll_place(op))
		return;
	for (uint32_t i = 0; i < op->group->cnt; i++)
		coll_move((uint8_t *)op->out + coll_rank(op, i) * op->block,
			  op->work + i * op->block, op->block);
}

int coll_gather(struct coll_op *op)
{
	size_t block = op->block = op->cnt * op->size;
	uint32_t me = coll_place(op);

	op->work_first = me;
	if (block > COLL_SMALL) {
		if (!me)
			coll_move((uint8_t *)op->out + op->root * block, op->in, block);
		op->phases[0] = coll_direct_gather;
		return 0;
	}
	op->phases[0] = coll_tree_gather;
	op->finish = coll_gather_finish;
	if (coll_memory(op, (coll_subtree(op, me) - me) * block, 0))
		return -FI_ENOMEM;
	coll_move(op->work, op->in, block);
	return 0;
}
