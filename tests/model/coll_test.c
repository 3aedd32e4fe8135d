/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What collectives give, over the real library and each provider: members in threads of one
 * process, or in processes, with random groups, orders, lengths and delays, against a
 * straightforward computation.
 *
 * usage: coll_test PROVIDER; COLL_SEED and COLL_ROUNDS choose what is random
 */
#include <complex.h>
#include "coll_members.h"
#include "seeded.h"

#define GROUPS 3

static uint64_t seed = 1;
static int rounds = 30;

/* Elements */

typedef __int128 wide;
typedef unsigned __int128 uwide;

/* clang-format off */
#define TYPES(X) \
	X(FI_INT8, int8_t, wide) \
	X(FI_UINT8, uint8_t, wide) \
	X(FI_INT16, int16_t, wide) \
	X(FI_UINT16, uint16_t, wide) \
	X(FI_INT32, int32_t, wide) \
	X(FI_UINT32, uint32_t, wide) \
	X(FI_INT64, int64_t, wide) \
	X(FI_UINT64, uint64_t, wide) \
	X(FI_INT128, wide, wide) \
	X(FI_UINT128, uwide, wide) \
	X(FI_FLOAT, float, double) \
	X(FI_DOUBLE, double, double) \
	X(FI_LONG_DOUBLE, long double, double) \
	X(FI_FLOAT_COMPLEX, float complex, double complex) \
	X(FI_DOUBLE_COMPLEX, double complex, double complex) \
	X(FI_LONG_DOUBLE_COMPLEX, long double complex, double complex)
/* clang-format on */

static size_t size_of(enum fi_datatype type)
{
	switch (type) {
#define X(t, c, w) \
	case t:    \
		return sizeof(c);
		TYPES(X)
#undef X
	default:
		return 0;
	}
}

/* A small number, exact in every type. */
static void put(enum fi_datatype type, void *at, size_t i, wide v)
{
	char *to = (char *)at + i * size_of(type);

	memset(to, 0, size_of(type));
	switch (type) {
#define X(t, c, w)                                                                       \
	case t: {                                                                        \
		c x = (c)v;                                                              \
		memcpy(to, &x, sizeof(x) == 16 && t == FI_LONG_DOUBLE ? 10 : sizeof(x)); \
		break;                                                                   \
	}
		TYPES(X)
#undef X
	default:
		break;
	}
}

static wide get(enum fi_datatype type, const void *at, size_t i)
{
	const char *from = (const char *)at + i * size_of(type);

	switch (type) {
#define X(t, c, w)                           \
	case t: {                            \
		c x;                         \
		memcpy(&x, from, sizeof(x)); \
		return (wide)x;              \
	}
		TYPES(X)
#undef X
	default:
		return 0;
	}
}

static wide reduce(enum fi_op op, wide a, wide b)
{
	switch (op) {
	case FI_MIN:
		return a < b ? a : b;
	case FI_MAX:
		return a > b ? a : b;
	case FI_SUM:
		return a + b;
	case FI_PROD:
		return a * b;
	case FI_LOR:
		return a || b;
	case FI_LAND:
		return a && b;
	case FI_LXOR:
		return !a != !b;
	case FI_BOR:
		return a | b;
	case FI_BAND:
		return a & b;
	default:
		return a ^ b;
	}
}

/* What a member puts into element @i of the collective that @salt is of. */
static wide value(uint64_t salt, uint32_t rank, size_t i)
{
	uint64_t x = (salt * 0x9e3779b97f4a7c15u) ^ (rank * 0xc2b2ae3d27d4eb4fu) ^
		     (i * 0x165667b19e3779f9u);

	x ^= x >> 29;
	x *= 0xbf58476d1ce4e5b9u;
	return (wide)((x >> 40) % 4);
}

/* One collective that every member of the group makes the same of. */
struct plan {
	enum fi_collective_op kind;
	enum fi_datatype type;
	enum fi_op op;
	size_t cnt;
	uint32_t root;
	uint64_t salt;
	bool in_place;
};

/* One member's part in it. */
struct part {
	struct plan plan;
	char *in, *out;
	uint32_t rank, members;
	bool pending;
};

static size_t first_of(const struct part *p, uint32_t rank)
{
	size_t more = p->plan.cnt % p->members;

	return p->plan.cnt / p->members * rank + (rank < more ? rank : more);
}

/* What element @i of the result is to be; false: there is none. */
static bool expected(const struct part *p, size_t i, wide *v)
{
	const struct plan *plan = &p->plan;
	size_t cnt = plan->cnt;

	switch (plan->kind) {
	case FI_BROADCAST:
		*v = value(plan->salt, plan->root, i);
		return i < cnt;
	case FI_ALLGATHER:
	case FI_GATHER:
		*v = cnt ? value(plan->salt, (uint32_t)(i / cnt), i % cnt) : 0;
		return i < cnt * p->members &&
		       (plan->kind == FI_ALLGATHER || p->rank == plan->root);
	case FI_ALLTOALL:
		*v = cnt ? value(plan->salt, (uint32_t)(i / cnt), p->rank * cnt + i % cnt) : 0;
		return i < cnt * p->members;
	case FI_SCATTER:
		*v = value(plan->salt, plan->root, p->rank * cnt + i);
		return i < cnt;
	case FI_REDUCE_SCATTER:
		if (i >= first_of(p, p->rank + 1) - first_of(p, p->rank))
			return false;
		i += first_of(p, p->rank);
		break;
	case FI_REDUCE:
	case FI_ALLREDUCE:
		if (i >= cnt || (plan->kind == FI_REDUCE && p->rank != plan->root))
			return false;
		break;
	default:
		return false;
	}
	*v = value(plan->salt, 0, i);
	for (uint32_t r = 1; r < p->members; r++)
		*v = reduce(plan->op, *v, value(plan->salt, r, i));
	return true;
}

static const enum fi_datatype types[] = {
#define X(t, c, w) t,
	TYPES(X)
#undef X
};

static bool op_fits(enum fi_datatype type, enum fi_op op)
{
	if (type >= FI_FLOAT && type <= FI_LONG_DOUBLE_COMPLEX &&
	    (op == FI_BOR || op == FI_BAND || op == FI_BXOR))
		return false;
	return (type != FI_FLOAT_COMPLEX && type != FI_DOUBLE_COMPLEX &&
		type != FI_LONG_DOUBLE_COMPLEX) ||
	       (op != FI_MIN && op != FI_MAX);
}

static void plan_draw(struct plan *plan, uint64_t *dice, uint32_t members)
{
	static const size_t cnts[] = { 0,  1,	2,   3,	   7,	 8,	9,
				       64, 100, 511, 1025, 5000, 20000, 40000 };

	plan->kind = (enum fi_collective_op)seeded_below(dice, FI_GATHER + 1);
	plan->type = types[seeded_below(dice, sizeof(types) / sizeof(types[0]))];
	do {
		plan->op = (enum fi_op)seeded_below(dice, FI_BXOR + 1);
	} while (!op_fits(plan->type, plan->op));
	plan->cnt = cnts[seeded_below(dice, sizeof(cnts) / sizeof(cnts[0]))];
	plan->root = (uint32_t)seeded_below(dice, members);
	plan->salt = seeded_below(dice, UINT64_MAX);
	plan->in_place = !seeded_below(dice, 4);
}

/* Room for input and result, and the input. */
static void part_fill(struct part *p)
{
	size_t all = p->plan.cnt * p->members, size = size_of(p->plan.type);
	size_t mine = p->plan.kind == FI_ALLGATHER ? p->rank * p->plan.cnt : 0;

	p->in = malloc(all * size + 1);
	p->out = p->plan.in_place || p->plan.kind == FI_BROADCAST ? p->in
								  : malloc(all * size + 1);
	memset(p->in, 0x5a, all * size + 1);
	memset(p->out, 0x5a, all * size + 1);
	if (!p->plan.in_place || p->plan.kind != FI_ALLGATHER)
		mine = 0;
	if (p->plan.kind == FI_BROADCAST && p->rank != p->plan.root)
		return;
	if (p->plan.kind != FI_ALLTOALL && p->plan.kind != FI_SCATTER)
		all = p->plan.cnt;
	for (size_t i = 0; i < all; i++)
		put(p->plan.type, p->in, mine + i, value(p->plan.salt, p->rank, i));
}

static ssize_t part_call(struct member *m, struct part *p, fi_addr_t coll, fi_addr_t root)
{
	const struct plan *plan = &p->plan;
	size_t mine = plan->kind == FI_ALLGATHER && plan->in_place
			      ? p->rank * plan->cnt * size_of(plan->type)
			      : 0;
	const char *in = p->in + mine;

	switch (plan->kind) {
	case FI_BARRIER:
		return fi_barrier(m->ep, coll, p);
	case FI_BROADCAST:
		return fi_broadcast(m->ep, p->in, plan->cnt, NULL, coll, root, plan->type, 0, p);
	case FI_ALLTOALL:
		return fi_alltoall(m->ep, in, plan->cnt, NULL, p->out, NULL, coll, plan->type,
				   0, p);
	case FI_ALLREDUCE:
		return fi_allreduce(m->ep, in, plan->cnt, NULL, p->out, NULL, coll, plan->type,
				    plan->op, 0, p);
	case FI_ALLGATHER:
		return fi_allgather(m->ep, in, plan->cnt, NULL, p->out, NULL, coll, plan->type,
				    0, p);
	case FI_REDUCE_SCATTER:
		return fi_reduce_scatter(m->ep, in, plan->cnt, NULL, p->out, NULL, coll,
					 plan->type, plan->op, 0, p);
	case FI_REDUCE:
		return fi_reduce(m->ep, in, plan->cnt, NULL, p->out, NULL, coll, root,
				 plan->type, plan->op, 0, p);
	case FI_SCATTER:
		return fi_scatter(m->ep, in, plan->cnt, NULL, p->out, NULL, coll, root,
				  plan->type, 0, p);
	default:
		return fi_gather(m->ep, in, plan->cnt, NULL, p->out, NULL, coll, root,
				 plan->type, 0, p);
	}
}

static void part_check(struct member *m, struct part *p)
{
	char room[64];
	wide v;

	for (size_t i = 0; expected(p, i, &v); i++) {
		/* As the type has it: overflow wraps. */
		put(p->plan.type, room, 0, v);
		if (get(p->plan.type, p->out, i) == get(p->plan.type, room, 0))
			continue;
		fprintf(stderr,
			"member %d of %d: collective %d type %d op %d cnt %zu root %u%s: element %zu\n",
			m->rank, m->cnt, p->plan.kind, p->plan.type, p->plan.op, p->plan.cnt,
			p->plan.root, p->plan.in_place ? " in place" : "", i);
		exit(1);
	}
	if (p->out != p->in)
		free(p->out);
	free(p->in);
}

/* Groups: all members; every second; all in reverse order. */
static int group_ranks(const struct member *m, int group, int *ranks)
{
	int cnt = 0;

	for (int i = 0; i < m->cnt; i++)
		if (group != 1 || i % 2 == 0)
			ranks[cnt++] = group == 2 ? m->cnt - 1 - i : i;
	return cnt;
}

#define OUTSTANDING 6

/* Several groups, several collectives under way in each, at another pace in each member. */
static void random_collectives(struct member *m)
{
	struct part parts[OUTSTANDING] = { 0 }, *done;
	uint64_t dice = seed * 7919 + (uint64_t)m->cnt, pace = dice * 31 + (uint64_t)m->rank + 1;
	struct fid_mc *mcs[GROUPS] = { 0 };
	int ranks[GROUPS][MEMBERS], cnts[GROUPS], under_way = 0;
	uint64_t calls = 0;

	for (int g = 0; g < GROUPS; g++) {
		cnts[g] = group_ranks(m, g, ranks[g]);
		if (g != 1 || m->rank % 2 == 0)
			mcs[g] = member_join_begin(m, ranks[g], cnts[g], &mcs[g]);
	}
	for (int g = 0; g < GROUPS; g++) {
		struct fi_cq_tagged_entry entry;
		struct fi_eq_entry event;
		uint32_t what;

		if (!mcs[g])
			continue;
		while (fi_eq_read(m->eq, &what, &event, sizeof(event), 0) == -FI_EAGAIN)
			CHECK(m, fi_cq_read(m->cq, &entry, 1) == -FI_EAGAIN);
		CHECK(m, what == FI_JOIN_COMPLETE);
	}
	for (int i = 0; i < rounds; i++) {
		int g = (int)seeded_below(&dice, GROUPS), slot = 0;
		struct plan plan;

		plan_draw(&plan, &dice, (uint32_t)cnts[g]);
		if (!mcs[g])
			continue;
		while (under_way == OUTSTANDING || (under_way && !seeded_below(&pace, 3))) {
			done = member_next(m);
			CHECK(m, done && done->pending);
			done->pending = false;
			under_way--;
			part_check(m, done);
		}
		for (uint64_t wait = seeded_below(&pace, 20); wait; wait--)
			sched_yield();
		while (parts[slot].pending)
			slot++;
		parts[slot] = (struct part){ .plan = plan,
					     .members = (uint32_t)cnts[g],
					     .pending = true };
		while (ranks[g][parts[slot].rank] != m->rank)
			parts[slot].rank++;
		part_fill(&parts[slot]);
		CHECK(m, !part_call(m, &parts[slot], fi_mc_addr(mcs[g]),
				    m->addrs[ranks[g][plan.root]]));
		under_way++;
		calls++;
	}
	for (; under_way; under_way--) {
		done = member_next(m);
		CHECK(m, done && done->pending);
		done->pending = false;
		part_check(m, done);
	}
	CHECK(m, fi_cntr_read(m->cntr) == calls);
	member_meet(m);
	for (int g = 0; g < GROUPS; g++)
		if (mcs[g])
			CHECK(m, !fi_close(&mcs[g]->fid));
}

/* Each kind, type and operation once. */
static void every_kind(struct member *m)
{
	struct fid_mc *mc = member_join(m, everyone, m->cnt);
	struct part part;

	for (int kind = FI_BARRIER; kind <= FI_GATHER; kind++)
		for (size_t t = 0; t < sizeof(types) / sizeof(types[0]); t++)
			for (int op = FI_MIN; op <= FI_BXOR; op++) {
				struct fi_collective_attr attr = { .op = (enum fi_op)op,
								   .datatype = types[t] };
				bool reduces = kind == FI_ALLREDUCE || kind == FI_REDUCE ||
					       kind == FI_REDUCE_SCATTER;

				if (!reduces && op != FI_MIN)
					break;
				if (reduces && !op_fits(types[t], attr.op)) {
					CHECK(m, fi_query_collective(m->domain, kind, &attr,
								     0) == -FI_EOPNOTSUPP);
					continue;
				}
				CHECK(m, !fi_query_collective(m->domain, kind, &attr, 0));
				CHECK(m, attr.max_members >= MEMBERS && !attr.mode);
				CHECK(m, kind == FI_BARRIER ||
						 attr.datatype_attr.size == size_of(types[t]));
				part = (struct part){ .plan = { .kind = kind,
								.type = types[t],
								.op = attr.op,
								.cnt = 5,
								.root = (uint32_t)t %
									(uint32_t)m->cnt,
								.salt = t + 1 },
						      .rank = (uint32_t)m->rank,
						      .members = (uint32_t)m->cnt };
				part_fill(&part);
				CHECK(m, !part_call(m, &part, fi_mc_addr(mc),
						    m->addrs[part.plan.root]));
				CHECK(m, member_next(m) == &part);
				part_check(m, &part);
			}
	member_meet(m);
	CHECK(m, !fi_close(&mc->fid));
}

static void members_agree_in_threads(void **state)
{
	for (int cnt = 1; cnt <= MEMBERS; cnt += 1 + (cnt > 3))
		members_run(cnt, random_collectives, true);
}

static void members_agree_in_processes(void **state)
{
	for (int cnt = 2; cnt <= MEMBERS; cnt += 1 + (cnt > 3))
		members_run(cnt, random_collectives, false);
}

static void every_kind_type_and_operation(void **state)
{
	members_run(1, every_kind, true);
	members_run(3, every_kind, true);
	members_run(4, every_kind, false);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_kind_type_and_operation),
		cmocka_unit_test(members_agree_in_threads),
		cmocka_unit_test(members_agree_in_processes),
	};

	if (argc < 2)
		return 2;
	provider = argv[1];
	if (getenv("COLL_SEED"))
		seed = strtoull(getenv("COLL_SEED"), NULL, 0);
	if (getenv("COLL_ROUNDS"))
		rounds = atoi(getenv("COLL_ROUNDS"));
	if (argc > 2)
		cmocka_set_test_filter(argv[2]);
	printf("COLL_SEED=%llu COLL_ROUNDS=%d\n", (unsigned long long)seed, rounds);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
