/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Slots of atomics and of collectives: a call of each, and what it does. See surface.h. */
#include "surface.h"

/* Atomics: 7 and 5, the target and the operand */

static struct fi_ioc one(uint64_t *at)
{
	return (struct fi_ioc){ .addr = at, .count = 1 };
}

static void begin(struct subject *u)
{
	static const uint64_t seven = 7;

	end_put(u->s->words, &seven, sizeof(seven));
	u->operand[0] = 5;
	u->compare[0] = 7;
}

struct atomic_call {
	struct fi_ioc operand, compare, result;
	struct fi_rma_ioc target;
	struct fi_msg_atomic msg;
};

static struct atomic_call *arrange(struct subject *u, struct atomic_call *call, enum fi_op op)
{
	begin(u);
	call->operand = one(u->operand);
	call->compare = one(u->compare);
	call->result = one(u->result);
	call->target = (struct fi_rma_ioc){ .addr = 0, .count = 1, .key = SURFACE_KEY };
	call->msg = (struct fi_msg_atomic){ .msg_iov = &call->operand,
					    .iov_count = 1,
					    .addr = u->peer->addr,
					    .rma_iov = &call->target,
					    .rma_iov_count = 1,
					    .datatype = FI_UINT64,
					    .op = op,
					    .context = &u->context };
	return call;
}

static void wait_word(struct subject *u, uint64_t value)
{
	surface_wait_words(u, &value, sizeof(value));
}

static void added(struct subject *u, const struct slot *slot)
{
	wait_word(u, 12);
	assert_int_equal(surface_done(u->cq, &u->context).flags, FI_ATOMIC | FI_WRITE);
}

static void add_injected(struct subject *u, const struct slot *slot)
{
	wait_word(u, 12);
}

static void fetched(struct subject *u, const struct slot *slot)
{
	wait_word(u, 12);
	assert_int_equal(surface_done(u->cq, &u->context).flags, FI_ATOMIC | FI_READ);
	assert_int_equal(u->result[0], 7);
}

static void swapped(struct subject *u, const struct slot *slot)
{
	wait_word(u, 5);
	assert_int_equal(surface_done(u->cq, &u->context).flags, FI_ATOMIC | FI_READ);
	assert_int_equal(u->result[0], 7);
}

static void counted(struct subject *u, const struct slot *slot)
{
	assert_true(u->cnt > 0);
}

static ssize_t call_atomic(struct subject *u)
{
	begin(u);
	return fi_atomic(u->ep, u->operand, 1, NULL, u->peer->addr, 0, SURFACE_KEY, FI_UINT64,
			 FI_SUM, &u->context);
}

static ssize_t call_atomicv(struct subject *u)
{
	struct fi_ioc operand = one(u->operand);

	begin(u);
	return fi_atomicv(u->ep, &operand, NULL, 1, u->peer->addr, 0, SURFACE_KEY, FI_UINT64,
			  FI_SUM, &u->context);
}

static ssize_t call_atomicmsg(struct subject *u)
{
	struct atomic_call call;

	return fi_atomicmsg(u->ep, &arrange(u, &call, FI_SUM)->msg, FI_COMPLETION);
}

static ssize_t call_inject_atomic(struct subject *u)
{
	begin(u);
	return fi_inject_atomic(u->ep, u->operand, 1, u->peer->addr, 0, SURFACE_KEY, FI_UINT64,
				FI_SUM);
}

static ssize_t call_fetch(struct subject *u)
{
	begin(u);
	return fi_fetch_atomic(u->ep, u->operand, 1, NULL, u->result, NULL, u->peer->addr, 0,
			       SURFACE_KEY, FI_UINT64, FI_SUM, &u->context);
}

static ssize_t call_fetchv(struct subject *u)
{
	struct fi_ioc operand = one(u->operand), result = one(u->result);

	begin(u);
	return fi_fetch_atomicv(u->ep, &operand, NULL, 1, &result, NULL, 1, u->peer->addr, 0,
				SURFACE_KEY, FI_UINT64, FI_SUM, &u->context);
}

static ssize_t call_fetchmsg(struct subject *u)
{
	struct atomic_call call;

	arrange(u, &call, FI_SUM);
	return fi_fetch_atomicmsg(u->ep, &call.msg, &call.result, NULL, 1, FI_COMPLETION);
}

static ssize_t call_compare(struct subject *u)
{
	begin(u);
	return fi_compare_atomic(u->ep, u->operand, 1, NULL, u->compare, NULL, u->result, NULL,
				 u->peer->addr, 0, SURFACE_KEY, FI_UINT64, FI_CSWAP,
				 &u->context);
}

static ssize_t call_comparev(struct subject *u)
{
	struct fi_ioc operand = one(u->operand), compare = one(u->compare),
		      result = one(u->result);

	begin(u);
	return fi_compare_atomicv(u->ep, &operand, NULL, 1, &compare, NULL, 1, &result, NULL, 1,
				  u->peer->addr, 0, SURFACE_KEY, FI_UINT64, FI_CSWAP,
				  &u->context);
}

static ssize_t call_comparemsg(struct subject *u)
{
	struct atomic_call call;

	arrange(u, &call, FI_CSWAP);
	return fi_compare_atomicmsg(u->ep, &call.msg, &call.compare, NULL, 1, &call.result,
				    NULL, 1, FI_COMPLETION);
}

static ssize_t call_atomicvalid(struct subject *u)
{
	u->cnt = 0;
	return fi_atomicvalid(u->ep, FI_UINT64, FI_SUM, &u->cnt);
}

static ssize_t call_fetchvalid(struct subject *u)
{
	u->cnt = 0;
	return fi_fetch_atomicvalid(u->ep, FI_UINT64, FI_SUM, &u->cnt);
}

static ssize_t call_comparevalid(struct subject *u)
{
	u->cnt = 0;
	return fi_compare_atomicvalid(u->ep, FI_UINT64, FI_CSWAP, &u->cnt);
}

const struct slot atomic_slots[] = {
	SLOT(fi_ops_atomic, write, FI_ATOMIC | FI_WRITE, call_atomic, added),
	SLOT(fi_ops_atomic, writev, FI_ATOMIC | FI_WRITE, call_atomicv, added),
	SLOT(fi_ops_atomic, writemsg, FI_ATOMIC | FI_WRITE, call_atomicmsg, added),
	SLOT(fi_ops_atomic, inject, FI_ATOMIC | FI_WRITE, call_inject_atomic, add_injected),
	SLOT(fi_ops_atomic, readwrite, FI_ATOMIC | FI_READ, call_fetch, fetched),
	SLOT(fi_ops_atomic, readwritev, FI_ATOMIC | FI_READ, call_fetchv, fetched),
	SLOT(fi_ops_atomic, readwritemsg, FI_ATOMIC | FI_READ, call_fetchmsg, fetched),
	SLOT(fi_ops_atomic, compwrite, FI_ATOMIC | FI_READ, call_compare, swapped),
	SLOT(fi_ops_atomic, compwritev, FI_ATOMIC | FI_READ, call_comparev, swapped),
	SLOT(fi_ops_atomic, compwritemsg, FI_ATOMIC | FI_READ, call_comparemsg, swapped),
	SLOT(fi_ops_atomic, writevalid, 0, call_atomicvalid, counted),
	SLOT(fi_ops_atomic, readwritevalid, 0, call_fetchvalid, counted),
	SLOT(fi_ops_atomic, compwritevalid, 0, call_comparevalid, counted),
};
ALL_SLOTS(fi_ops_atomic, atomic_slots);

/* Collectives: near gives 1 and 2, far 10 and 20; near is the root. */

/* The far member makes the same call; both end. */
static void both(struct subject *u, struct subject *far, const struct slot *slot)
{
	surface_subject(far, u->s, "far", u->peer->ep, u->does);
	far->coll = u->peer_coll;
	far->cq = u->peer->cq;
	far->root = u->root;
	assert_int_equal(slot->call(far), 0);
	assert_int_equal(surface_done(far->cq, &far->context).flags, FI_COLLECTIVE);
	assert_int_equal(surface_done(u->cq, &u->context).flags, FI_COLLECTIVE);
}

static void give(struct subject *u)
{
	bool far = u->whole == u->s->far.ep;

	u->operand[0] = far ? 10 : 1;
	u->operand[1] = far ? 20 : 2;
	u->result[0] = u->result[1] = 0;
}

#define PAIR_EQUAL(at, first, second)              \
	do {                                       \
		assert_int_equal((at)[0], first);  \
		assert_int_equal((at)[1], second); \
	} while (0)

static void all_came(struct subject *u, const struct slot *slot)
{
	struct subject far;

	both(u, &far, slot);
}

static void was_broadcast(struct subject *u, const struct slot *slot)
{
	struct subject far;

	both(u, &far, slot);
	PAIR_EQUAL(u->operand, 1, 2);
	PAIR_EQUAL(far.operand, 1, 2);
}

static void was_exchanged(struct subject *u, const struct slot *slot)
{
	struct subject far;

	both(u, &far, slot);
	PAIR_EQUAL(u->result, 1, 10);
	PAIR_EQUAL(far.result, 2, 20);
}

static void all_reduced(struct subject *u, const struct slot *slot)
{
	struct subject far;

	both(u, &far, slot);
	PAIR_EQUAL(u->result, 11, 22);
	PAIR_EQUAL(far.result, 11, 22);
}

static void all_gathered(struct subject *u, const struct slot *slot)
{
	struct subject far;

	both(u, &far, slot);
	PAIR_EQUAL(u->result, 1, 10);
	PAIR_EQUAL(far.result, 1, 10);
}

static void reduced_in_parts(struct subject *u, const struct slot *slot)
{
	struct subject far;

	both(u, &far, slot);
	PAIR_EQUAL(u->result, 11, 0);
	PAIR_EQUAL(far.result, 22, 0);
}

static void was_reduced(struct subject *u, const struct slot *slot)
{
	struct subject far;

	both(u, &far, slot);
	PAIR_EQUAL(u->result, 11, 22);
	PAIR_EQUAL(far.result, 0, 0);
}

static void was_scattered(struct subject *u, const struct slot *slot)
{
	struct subject far;

	both(u, &far, slot);
	PAIR_EQUAL(u->result, 1, 0);
	PAIR_EQUAL(far.result, 2, 0);
}

static void was_gathered(struct subject *u, const struct slot *slot)
{
	struct subject far;

	both(u, &far, slot);
	PAIR_EQUAL(u->result, 1, 10);
	PAIR_EQUAL(far.result, 0, 0);
}

static ssize_t call_barrier(struct subject *u)
{
	return fi_barrier(u->ep, u->coll, &u->context);
}

static ssize_t call_broadcast(struct subject *u)
{
	give(u);
	return fi_broadcast(u->ep, u->operand, 2, NULL, u->coll, u->root, FI_UINT64, 0,
			    &u->context);
}

static ssize_t call_alltoall(struct subject *u)
{
	give(u);
	return fi_alltoall(u->ep, u->operand, 1, NULL, u->result, NULL, u->coll, FI_UINT64, 0,
			   &u->context);
}

static ssize_t call_allreduce(struct subject *u)
{
	give(u);
	return fi_allreduce(u->ep, u->operand, 2, NULL, u->result, NULL, u->coll, FI_UINT64,
			    FI_SUM, 0, &u->context);
}

static ssize_t call_allgather(struct subject *u)
{
	give(u);
	return fi_allgather(u->ep, u->operand, 1, NULL, u->result, NULL, u->coll, FI_UINT64, 0,
			    &u->context);
}

static ssize_t call_reduce_scatter(struct subject *u)
{
	give(u);
	return fi_reduce_scatter(u->ep, u->operand, 2, NULL, u->result, NULL, u->coll,
				 FI_UINT64, FI_SUM, 0, &u->context);
}

static ssize_t call_reduce(struct subject *u)
{
	give(u);
	return fi_reduce(u->ep, u->operand, 2, NULL, u->result, NULL, u->coll, u->root,
			 FI_UINT64, FI_SUM, 0, &u->context);
}

static ssize_t call_scatter(struct subject *u)
{
	give(u);
	return fi_scatter(u->ep, u->operand, 1, NULL, u->result, NULL, u->coll, u->root,
			  FI_UINT64, 0, &u->context);
}

static ssize_t call_gather(struct subject *u)
{
	give(u);
	return fi_gather(u->ep, u->operand, 1, NULL, u->result, NULL, u->coll, u->root,
			 FI_UINT64, 0, &u->context);
}

static ssize_t call_collective_msg(struct subject *u)
{
	struct fi_ioc operand = { .addr = u->operand, .count = 2 },
		      result = { .addr = u->result, .count = 2 };
	struct fi_msg_collective msg = { .msg_iov = &operand,
					 .iov_count = 1,
					 .coll_addr = u->coll,
					 .root_addr = FI_ADDR_UNSPEC,
					 .coll = FI_ALLREDUCE,
					 .datatype = FI_UINT64,
					 .op = FI_SUM,
					 .context = &u->context };

	give(u);
	return u->ep->collective->msg(u->ep, &msg, &result, NULL, 1, FI_COMPLETION);
}

static ssize_t call_barrier2(struct subject *u)
{
	return u->ep->collective->barrier2(u->ep, u->coll, FI_COMPLETION, &u->context);
}

const struct slot collective_slots[] = {
	SLOT(fi_ops_collective, barrier, FI_COLLECTIVE, call_barrier, all_came),
	SLOT(fi_ops_collective, broadcast, FI_COLLECTIVE, call_broadcast, was_broadcast),
	SLOT(fi_ops_collective, alltoall, FI_COLLECTIVE, call_alltoall, was_exchanged),
	SLOT(fi_ops_collective, allreduce, FI_COLLECTIVE, call_allreduce, all_reduced),
	SLOT(fi_ops_collective, allgather, FI_COLLECTIVE, call_allgather, all_gathered),
	SLOT(fi_ops_collective, reduce_scatter, FI_COLLECTIVE, call_reduce_scatter,
	     reduced_in_parts),
	SLOT(fi_ops_collective, reduce, FI_COLLECTIVE, call_reduce, was_reduced),
	SLOT(fi_ops_collective, scatter, FI_COLLECTIVE, call_scatter, was_scattered),
	SLOT(fi_ops_collective, gather, FI_COLLECTIVE, call_gather, was_gathered),
	SLOT(fi_ops_collective, msg, FI_COLLECTIVE, call_collective_msg, all_reduced),
	SLOT(fi_ops_collective, barrier2, FI_COLLECTIVE, call_barrier2, all_came),
};
ALL_SLOTS(fi_ops_collective, collective_slots);
