/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Collectives over the real library and each provider: members in threads of one process, or in
 * processes, with random groups, orders, lengths and delays, against a straightforward computation.
 * Each member is run in a child of the test, so that a crash or a hang is a failed test.
 *
 * usage: coll_test PROVIDER; COLL_SEED and COLL_ROUNDS choose what is random
 */
#include <complex.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_collective.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <cmocka.h>

#define MEMBERS 9
#define GROUPS	3
#define NAME	128

static const char *provider;
static uint64_t seed = 1;
static int rounds = 30;

/* What the members share beside the fabric. */
struct shared {
	char names[MEMBERS][NAME];
	_Atomic int arrived[64]; /* of the meetings, in order */
	_Atomic int dead;
};

struct member {
	struct shared *shared;
	int rank, cnt;
	int met; /* meetings so far */
	enum fi_threading threading;
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_eq *eq;
	struct fid_cq *cq;
	struct fid_cntr *cntr;
	struct fid_av *av;
	struct fid_ep *ep;
	fi_addr_t addrs[MEMBERS];
	struct fi_cq_err_entry error;
};

typedef void (*role)(struct member *m);

#define CHECK(m, cond)                                                                               \
	do {                                                                                         \
		if (!(cond)) {                                                                       \
			fprintf(stderr, "member %d of %d: %s:%d: %s\n", (m)->rank, (m)->cnt, __FILE__, \
				__LINE__, #cond);                                                    \
			exit(1);                                                                     \
		}                                                                                    \
	} while (0)

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static uint64_t draw(uint64_t *state, uint64_t below)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state % below;
}

/* Wait for all members; the endpoint works meanwhile, if there is one. */
static void meet(struct member *m)
{
	_Atomic int *arrived = &m->shared->arrived[m->met++];
	struct fi_cq_tagged_entry entry;

	atomic_fetch_add(arrived, 1);
	while (atomic_load(arrived) < m->cnt - atomic_load(&m->shared->dead)) {
		if (m->ep)
			CHECK(m, fi_cq_read(m->cq, &entry, 1) == -FI_EAGAIN);
		sched_yield();
	}
}

static struct fi_info *info_of(enum fi_threading threading)
{
	struct fi_info *hints = fi_allocinfo(), *info = NULL;

	hints->fabric_attr->prov_name = strdup(provider);
	hints->ep_attr->type = FI_EP_RDM;
	hints->caps = FI_MSG | FI_COLLECTIVE;
	hints->mode = FI_CONTEXT | FI_CONTEXT2;
	hints->domain_attr->threading = threading;
	if (fi_getinfo(FI_VERSION(1, 20), NULL, NULL, 0, hints, &info))
		info = NULL;
	fi_freeinfo(hints);
	return info;
}

static void member_open(struct member *m)
{
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_TAGGED };
	struct fi_av_attr av_attr = { .type = FI_AV_TABLE };
	struct fi_eq_attr eq_attr = { .wait_obj = FI_WAIT_NONE };
	size_t len = NAME;

	m->info = info_of(m->threading);
	CHECK(m, m->info);
	CHECK(m, !fi_fabric(m->info->fabric_attr, &m->fabric, NULL));
	CHECK(m, !fi_eq_open(m->fabric, &eq_attr, &m->eq, NULL));
	CHECK(m, !fi_domain(m->fabric, m->info, &m->domain, NULL));
	CHECK(m, !fi_cq_open(m->domain, &cq_attr, &m->cq, NULL));
	CHECK(m, !fi_cntr_open(m->domain, NULL, &m->cntr, NULL));
	CHECK(m, !fi_av_open(m->domain, &av_attr, &m->av, NULL));
	CHECK(m, !fi_endpoint(m->domain, m->info, &m->ep, NULL));
	CHECK(m, !fi_ep_bind(m->ep, &m->eq->fid, 0));
	CHECK(m, !fi_ep_bind(m->ep, &m->cq->fid, FI_TRANSMIT | FI_RECV));
	CHECK(m, !fi_ep_bind(m->ep, &m->cntr->fid, FI_WRITE));
	CHECK(m, !fi_ep_bind(m->ep, &m->av->fid, 0));
	CHECK(m, !fi_enable(m->ep));
	CHECK(m, !fi_getname(&m->ep->fid, m->shared->names[m->rank], &len));
	meet(m);
	for (int i = 0; i < m->cnt; i++)
		CHECK(m, fi_av_insert(m->av, m->shared->names[i], 1, &m->addrs[i], 0, NULL) == 1);
}

static void member_close(struct member *m)
{
	CHECK(m, !fi_close(&m->ep->fid));
	m->ep = NULL;
	CHECK(m, !fi_close(&m->av->fid));
	CHECK(m, !fi_close(&m->cntr->fid));
	CHECK(m, !fi_close(&m->cq->fid));
	CHECK(m, !fi_close(&m->eq->fid));
	CHECK(m, !fi_close(&m->domain->fid));
	CHECK(m, !fi_close(&m->fabric->fid));
	fi_freeinfo(m->info);
}

/* The next completion: its context; or NULL for an error, in m->error. */
static void *next(struct member *m)
{
	struct fi_cq_tagged_entry entry;
	double end = now() + 40;
	ssize_t ret;

	while ((ret = fi_cq_read(m->cq, &entry, 1)) == -FI_EAGAIN) {
		CHECK(m, now() < end);
		sched_yield();
	}
	if (ret == 1) {
		CHECK(m, entry.flags == FI_COLLECTIVE);
		return entry.op_context;
	}
	CHECK(m, ret == -FI_EAVAIL);
	m->error = (struct fi_cq_err_entry){ 0 };
	CHECK(m, fi_cq_readerr(m->cq, &m->error, 0) == 1);
	CHECK(m, m->error.flags == FI_COLLECTIVE);
	return NULL;
}

/* Wait for the end of a join: 0 or its FI_E*. */
static int joined(struct member *m, struct fid_mc *mc, void *context)
{
	struct fi_cq_tagged_entry entry;
	struct fi_eq_err_entry err = { 0 };
	struct fi_eq_entry event;
	double end = now() + 40;
	uint32_t what;
	ssize_t ret;

	while ((ret = fi_eq_read(m->eq, &what, &event, sizeof(event), 0)) == -FI_EAGAIN) {
		CHECK(m, fi_cq_read(m->cq, &entry, 1) == -FI_EAGAIN);
		CHECK(m, now() < end);
		sched_yield();
	}
	if (ret == -FI_EAVAIL) {
		CHECK(m, fi_eq_readerr(m->eq, &err, 0) == sizeof(err));
		CHECK(m, err.fid == &mc->fid && err.context == context);
		return err.err;
	}
	CHECK(m, ret == sizeof(event) && what == FI_JOIN_COMPLETE);
	CHECK(m, event.fid == &mc->fid && event.context == context);
	return 0;
}

static struct fid_mc *join_begin(struct member *m, const int *ranks, int cnt, void *context)
{
	struct fi_av_set_attr attr = { .start_addr = FI_ADDR_NOTAVAIL, .end_addr = FI_ADDR_NOTAVAIL };
	struct fid_av_set *set;
	struct fid_mc *mc;
	fi_addr_t addr;

	CHECK(m, !fi_av_set(m->av, &attr, &set, NULL));
	for (int i = 0; i < cnt; i++)
		CHECK(m, !fi_av_set_insert(set, m->addrs[ranks[i]]));
	CHECK(m, !fi_av_set_addr(set, &addr));
	CHECK(m, !fi_join_collective(m->ep, addr, set, 0, &mc, context));
	CHECK(m, !fi_close(&set->fid));
	return mc;
}

static struct fid_mc *join(struct member *m, const int *ranks, int cnt)
{
	struct fid_mc *mc = join_begin(m, ranks, cnt, m);
	int err = joined(m, mc, m);

	if (err)
		fprintf(stderr, "member %d of %d: join of %d: %s\n", m->rank, m->cnt, cnt, fi_strerror(err));
	CHECK(m, err == 0);
	return mc;
}

static const int everyone[MEMBERS] = { 0, 1, 2, 3, 4, 5, 6, 7, 8 };

/* Elements */

typedef __int128 wide;
typedef unsigned __int128 uwide;

#define TYPES(X)                                                                                       \
	X(FI_INT8, int8_t, wide) X(FI_UINT8, uint8_t, wide) X(FI_INT16, int16_t, wide)                 \
	X(FI_UINT16, uint16_t, wide) X(FI_INT32, int32_t, wide) X(FI_UINT32, uint32_t, wide)           \
	X(FI_INT64, int64_t, wide) X(FI_UINT64, uint64_t, wide) X(FI_INT128, wide, wide)               \
	X(FI_UINT128, uwide, wide) X(FI_FLOAT, float, double) X(FI_DOUBLE, double, double)             \
	X(FI_LONG_DOUBLE, long double, double) X(FI_FLOAT_COMPLEX, float complex, double complex)      \
	X(FI_DOUBLE_COMPLEX, double complex, double complex)                                           \
	X(FI_LONG_DOUBLE_COMPLEX, long double complex, double complex)

static size_t size_of(enum fi_datatype type)
{
	switch (type) {
#define X(t, c, w) case t: return sizeof(c);
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
#define X(t, c, w) case t: { c x = (c)v; memcpy(to, &x, sizeof(x) == 16 && t == FI_LONG_DOUBLE ? 10 : sizeof(x)); break; }
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
#define X(t, c, w) case t: { c x; memcpy(&x, from, sizeof(x)); return (wide)x; }
		TYPES(X)
#undef X
	default:
		return 0;
	}
}

static wide reduce(enum fi_op op, wide a, wide b)
{
	switch (op) {
	case FI_MIN: return a < b ? a : b;
	case FI_MAX: return a > b ? a : b;
	case FI_SUM: return a + b;
	case FI_PROD: return a * b;
	case FI_LOR: return a || b;
	case FI_LAND: return a && b;
	case FI_LXOR: return !a != !b;
	case FI_BOR: return a | b;
	case FI_BAND: return a & b;
	default: return a ^ b;
	}
}

/* What a member puts into element @i of the collective that @salt is of. */
static wide value(uint64_t salt, uint32_t rank, size_t i)
{
	uint64_t x = (salt * 0x9e3779b97f4a7c15u) ^ (rank * 0xc2b2ae3d27d4eb4fu) ^ (i * 0x165667b19e3779f9u);

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
		return i < cnt * p->members && (plan->kind == FI_ALLGATHER || p->rank == plan->root);
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
	if (type >= FI_FLOAT && type <= FI_LONG_DOUBLE_COMPLEX && (op == FI_BOR || op == FI_BAND || op == FI_BXOR))
		return false;
	return (type != FI_FLOAT_COMPLEX && type != FI_DOUBLE_COMPLEX && type != FI_LONG_DOUBLE_COMPLEX) ||
	       (op != FI_MIN && op != FI_MAX);
}

static void plan_draw(struct plan *plan, uint64_t *dice, uint32_t members)
{
	static const size_t cnts[] = { 0, 1, 2, 3, 7, 8, 9, 64, 100, 511, 1025, 5000, 20000, 40000 };

	plan->kind = (enum fi_collective_op)draw(dice, FI_GATHER + 1);
	plan->type = types[draw(dice, sizeof(types) / sizeof(types[0]))];
	do {
		plan->op = (enum fi_op)draw(dice, FI_BXOR + 1);
	} while (!op_fits(plan->type, plan->op));
	plan->cnt = cnts[draw(dice, sizeof(cnts) / sizeof(cnts[0]))];
	plan->root = (uint32_t)draw(dice, members);
	plan->salt = draw(dice, UINT64_MAX);
	plan->in_place = !draw(dice, 4);
}

/* Room for input and result, and the input. */
static void part_fill(struct part *p)
{
	size_t all = p->plan.cnt * p->members, size = size_of(p->plan.type);
	size_t mine = p->plan.kind == FI_ALLGATHER ? p->rank * p->plan.cnt : 0;

	p->in = malloc(all * size + 1);
	p->out = p->plan.in_place || p->plan.kind == FI_BROADCAST ? p->in : malloc(all * size + 1);
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
	size_t mine = plan->kind == FI_ALLGATHER && plan->in_place ? p->rank * plan->cnt * size_of(plan->type) : 0;
	const char *in = p->in + mine;

	switch (plan->kind) {
	case FI_BARRIER:
		return fi_barrier(m->ep, coll, p);
	case FI_BROADCAST:
		return fi_broadcast(m->ep, p->in, plan->cnt, NULL, coll, root, plan->type, 0, p);
	case FI_ALLTOALL:
		return fi_alltoall(m->ep, in, plan->cnt, NULL, p->out, NULL, coll, plan->type, 0, p);
	case FI_ALLREDUCE:
		return fi_allreduce(m->ep, in, plan->cnt, NULL, p->out, NULL, coll, plan->type, plan->op, 0, p);
	case FI_ALLGATHER:
		return fi_allgather(m->ep, in, plan->cnt, NULL, p->out, NULL, coll, plan->type, 0, p);
	case FI_REDUCE_SCATTER:
		return fi_reduce_scatter(m->ep, in, plan->cnt, NULL, p->out, NULL, coll, plan->type, plan->op, 0, p);
	case FI_REDUCE:
		return fi_reduce(m->ep, in, plan->cnt, NULL, p->out, NULL, coll, root, plan->type, plan->op, 0, p);
	case FI_SCATTER:
		return fi_scatter(m->ep, in, plan->cnt, NULL, p->out, NULL, coll, root, plan->type, 0, p);
	default:
		return fi_gather(m->ep, in, plan->cnt, NULL, p->out, NULL, coll, root, plan->type, 0, p);
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
		fprintf(stderr, "member %d of %d: collective %d type %d op %d cnt %zu root %u%s: element %zu\n", m->rank,
			m->cnt, p->plan.kind, p->plan.type, p->plan.op, p->plan.cnt, p->plan.root,
			p->plan.in_place ? " in place" : "", i);
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
			mcs[g] = join_begin(m, ranks[g], cnts[g], &mcs[g]);
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
		int g = (int)draw(&dice, GROUPS), slot = 0;
		struct plan plan;

		plan_draw(&plan, &dice, (uint32_t)cnts[g]);
		if (!mcs[g])
			continue;
		while (under_way == OUTSTANDING || (under_way && !draw(&pace, 3))) {
			done = next(m);
			CHECK(m, done && done->pending);
			done->pending = false;
			under_way--;
			part_check(m, done);
		}
		for (uint64_t wait = draw(&pace, 20); wait; wait--)
			sched_yield();
		while (parts[slot].pending)
			slot++;
		parts[slot] = (struct part){ .plan = plan, .members = (uint32_t)cnts[g], .pending = true };
		while (ranks[g][parts[slot].rank] != m->rank)
			parts[slot].rank++;
		part_fill(&parts[slot]);
		CHECK(m, !part_call(m, &parts[slot], fi_mc_addr(mcs[g]), m->addrs[ranks[g][plan.root]]));
		under_way++;
		calls++;
	}
	for (; under_way; under_way--) {
		done = next(m);
		CHECK(m, done && done->pending);
		done->pending = false;
		part_check(m, done);
	}
	CHECK(m, fi_cntr_read(m->cntr) == calls);
	meet(m);
	for (int g = 0; g < GROUPS; g++)
		if (mcs[g])
			CHECK(m, !fi_close(&mcs[g]->fid));
}

/* Each kind, type and operation once. */
static void every_kind(struct member *m)
{
	struct fid_mc *mc = join(m, everyone, m->cnt);
	struct part part;

	for (int kind = FI_BARRIER; kind <= FI_GATHER; kind++)
		for (size_t t = 0; t < sizeof(types) / sizeof(types[0]); t++)
			for (int op = FI_MIN; op <= FI_BXOR; op++) {
				struct fi_collective_attr attr = { .op = (enum fi_op)op, .datatype = types[t] };
				bool reduces = kind == FI_ALLREDUCE || kind == FI_REDUCE || kind == FI_REDUCE_SCATTER;

				if (!reduces && op != FI_MIN)
					break;
				if (reduces && !op_fits(types[t], attr.op)) {
					CHECK(m, fi_query_collective(m->domain, kind, &attr, 0) == -FI_EOPNOTSUPP);
					continue;
				}
				CHECK(m, !fi_query_collective(m->domain, kind, &attr, 0));
				CHECK(m, attr.max_members >= MEMBERS && !attr.mode);
				CHECK(m, kind == FI_BARRIER || attr.datatype_attr.size == size_of(types[t]));
				part = (struct part){ .plan = { .kind = kind, .type = types[t], .op = attr.op, .cnt = 5,
								.root = (uint32_t)t % (uint32_t)m->cnt, .salt = t + 1 },
						      .rank = (uint32_t)m->rank, .members = (uint32_t)m->cnt };
				part_fill(&part);
				CHECK(m, !part_call(m, &part, fi_mc_addr(mc), m->addrs[part.plan.root]));
				CHECK(m, next(m) == &part);
				part_check(m, &part);
			}
	meet(m);
	CHECK(m, !fi_close(&mc->fid));
}

/* One member comes late: nobody is through a barrier before that, and messages of programs pass by. */
static void late_member(struct member *m)
{
	struct fid_mc *mc = join(m, everyone, m->cnt);
	struct fi_cq_tagged_entry entry;
	char got = 0;

	CHECK(m, !fi_recv(m->ep, &got, 1, NULL, FI_ADDR_UNSPEC, &got));
	if (m->rank) {
		CHECK(m, !fi_barrier(m->ep, fi_mc_addr(mc), mc));
		for (int i = 0; i < 200; i++) {
			CHECK(m, fi_cq_read(m->cq, &entry, 1) == -FI_EAGAIN);
			sched_yield();
		}
	}
	meet(m);
	if (!m->rank)
		CHECK(m, !fi_barrier2(m->ep, fi_mc_addr(mc), FI_COMPLETION, mc));
	CHECK(m, next(m) == mc);
	CHECK(m, !got);
	CHECK(m, !fi_cancel(&m->ep->fid, &got));
	CHECK(m, fi_cq_read(m->cq, &entry, 1) == -FI_EAVAIL);
	CHECK(m, fi_cq_readerr(m->cq, &m->error, 0) == 1 && m->error.op_context == &got);
	meet(m);
	CHECK(m, !fi_close(&mc->fid));
}

/* One cancels what the others wait in: it and all that follows fail for all of them. */
static void cancelled(struct member *m)
{
	static const size_t len = 300000;
	struct fid_mc *mc = join(m, everyone, m->cnt);
	char *in = calloc(1, len), *out = calloc(1, len);

	/* The first one comes when it is over already, or nearly. */
	for (int i = 0; i < 100 && !m->rank; i++)
		sched_yield();
	CHECK(m, !fi_allreduce(m->ep, in, len, NULL, out, NULL, fi_mc_addr(mc), FI_UINT8, FI_SUM, 0, out));
	CHECK(m, m->rank != 1 || !fi_cancel(&m->ep->fid, out));
	CHECK(m, m->rank != 1 || fi_cancel(&m->ep->fid, out) == -FI_ENOENT);
	CHECK(m, !next(m) && m->error.err == FI_ECANCELED && m->error.op_context == out);
	CHECK(m, !fi_barrier(m->ep, fi_mc_addr(mc), m));
	CHECK(m, !next(m) && m->error.op_context == m && m->error.err == FI_ECANCELED);
	meet(m);
	CHECK(m, !fi_close(&mc->fid));
	/* A new group is none the worse. */
	mc = join(m, everyone, m->cnt);
	CHECK(m, !fi_barrier(m->ep, fi_mc_addr(mc), m));
	CHECK(m, next(m) == m);
	meet(m);
	CHECK(m, !fi_close(&mc->fid));
	free(in);
	free(out);
}

/* The program leaves a group while others wait for it. */
static void left(struct member *m)
{
	struct fid_mc *mc = join(m, everyone, m->cnt);

	CHECK(m, fi_close(&m->ep->fid) == -FI_EBUSY);
	CHECK(m, !fi_barrier(m->ep, fi_mc_addr(mc), m));
	if (m->rank == m->cnt - 1)
		CHECK(m, !fi_close(&mc->fid));
	if (!next(m))
		CHECK(m, m->error.err == FI_ECANCELED);
	meet(m);
	if (m->rank != m->cnt - 1)
		CHECK(m, !fi_close(&mc->fid));
	meet(m);
}

/* A member is killed: whoever needs it is told, whether it is connected to it or not. */
static void killed(struct member *m)
{
	struct fid_mc *mc = join(m, everyone, m->cnt);
	static char in[MEMBERS * 8], out[MEMBERS * 8];
	bool failed = false;

	meet(m);
	if (m->rank == m->cnt - 1) {
		atomic_fetch_add(&m->shared->dead, 1);
		raise(SIGKILL);
	}
	for (int i = 0; i < 10 && !failed; i++) {
		fi_addr_t root = m->addrs[i % 2];

		/* Some of these need it not, at some members. */
		if (i % 2)
			CHECK(m, !fi_gather(m->ep, in, 1, NULL, out, NULL, fi_mc_addr(mc), root, FI_UINT64, 0, m));
		else
			CHECK(m, !fi_allreduce(m->ep, in, 1, NULL, out, NULL, fi_mc_addr(mc), FI_UINT64, FI_SUM, 0, m));
		failed = !next(m);
	}
	CHECK(m, failed);
	CHECK(m, !fi_close(&mc->fid));
	/* Who is left can go on. */
	mc = join(m, everyone, m->cnt - 1);
	CHECK(m, !fi_barrier(m->ep, fi_mc_addr(mc), m));
	CHECK(m, next(m) == m);
	meet(m);
	CHECK(m, !fi_close(&mc->fid));
	_exit(0);
}

/* A member is dead before the others join. */
static void dead_before(struct member *m)
{
	struct fid_mc *mc;

	if (m->rank == m->cnt - 1) {
		/* The others know that it was there. */
		mc = join(m, everyone, m->cnt);
		atomic_fetch_add(&m->shared->dead, 1);
		raise(SIGKILL);
	}
	mc = join(m, everyone, m->cnt);
	CHECK(m, !fi_close(&mc->fid));
	mc = join_begin(m, everyone, m->cnt, m);
	CHECK(m, joined(m, mc, m) != 0);
	CHECK(m, fi_barrier(m->ep, fi_mc_addr(mc), NULL) == -FI_EOPBADSTATE);
	CHECK(m, !fi_close(&mc->fid));
	_exit(0);
}

static void refused(struct member *m)
{
	struct fi_av_set_attr attr = { .start_addr = 0, .end_addr = (fi_addr_t)m->cnt - 1, .stride = 1,
				       .flags = FI_BARRIER_SET | FI_REDUCE_SET };
	struct fi_collective_attr query = { .op = FI_DIFF, .datatype = FI_UINT64 };
	struct fid_mc *mc, *inner, *other;
	struct fid_av_set *set, *part;
	char in[8] = "", out[8];
	fi_addr_t addr;

	CHECK(m, !fi_av_set(m->av, &attr, &set, NULL));
	CHECK(m, !fi_av_set(m->av, &attr, &part, NULL));
	CHECK(m, !fi_av_set_addr(set, &addr));
	CHECK(m, fi_join_collective(m->ep, FI_ADDR_NOTAVAIL, NULL, 0, &mc, NULL) == -FI_EINVAL);
	CHECK(m, fi_join_collective(m->ep, 77, set, 0, &mc, NULL) == -FI_EINVAL);
	CHECK(m, fi_join_collective(m->ep, addr, set, FI_SEND, &mc, NULL) == -FI_EBADFLAGS);
	CHECK(m, fi_join(m->ep, &addr, 0, &mc, NULL) == -FI_ENOSYS);
	CHECK(m, !fi_av_set_remove(part, m->addrs[m->rank]));
	CHECK(m, fi_join_collective(m->ep, addr, part, 0, &mc, NULL) == -FI_EINVAL);

	CHECK(m, !fi_join_collective(m->ep, FI_ADDR_NOTAVAIL, set, 0, &mc, &mc));
	CHECK(m, joined(m, mc, &mc) == 0);
	CHECK(m, !fi_join_collective(m->ep, fi_mc_addr(mc), set, 0, &inner, &inner));
	CHECK(m, joined(m, inner, &inner) == 0);
	addr = fi_mc_addr(mc);
	CHECK(m, addr != fi_mc_addr(inner));
	CHECK(m, fi_barrier(m->ep, 0, NULL) == -FI_EINVAL);
	CHECK(m, fi_barrier2(m->ep, addr, FI_PEEK, NULL) == -FI_EBADFLAGS);
	CHECK(m, fi_broadcast(m->ep, in, 1, NULL, addr, 0, FI_UINT8, 0, NULL) == -FI_EOPNOTSUPP);
	CHECK(m, fi_reduce(m->ep, in, 1, NULL, out, NULL, addr, 99, FI_UINT8, FI_SUM, 0, NULL) == -FI_EINVAL);
	CHECK(m, fi_reduce(m->ep, in, 1, NULL, out, NULL, addr, 0, FI_VOID, FI_SUM, 0, NULL) == -FI_EOPNOTSUPP);
	CHECK(m, fi_reduce(m->ep, in, 1, NULL, out, NULL, addr, 0, FI_UINT8, FI_CSWAP, 0, NULL) == -FI_EOPNOTSUPP);
	CHECK(m, fi_reduce(m->ep, NULL, 1, NULL, out, NULL, addr, 0, FI_UINT8, FI_SUM, 0, NULL) == -FI_EINVAL);
	CHECK(m, fi_reduce(m->ep, in, SIZE_MAX, NULL, out, NULL, addr, 0, FI_UINT8, FI_SUM, 0, NULL) == -FI_EMSGSIZE);
	CHECK(m, fi_query_collective(m->domain, FI_ALLREDUCE, &query, 0) == -FI_EOPNOTSUPP);
	query.op = FI_SUM;
	CHECK(m, !fi_query_collective(m->domain, FI_ALLREDUCE, &query, FI_SCATTER));
	CHECK(m, fi_query_collective(m->domain, FI_ALLREDUCE, NULL, 0) == -FI_EINVAL);
	CHECK(m, fi_query_collective(m->domain, 99, &query, 0) == -FI_EOPNOTSUPP);
	meet(m);
	other = inner;
	CHECK(m, !fi_close(&other->fid));
	CHECK(m, fi_barrier(m->ep, fi_mc_addr(mc) + 1, NULL) == -FI_EINVAL);
	CHECK(m, !fi_close(&mc->fid));
	CHECK(m, !fi_close(&part->fid));
	CHECK(m, !fi_close(&set->fid));
}

/* Running members */

struct task {
	struct member member;
	role role;
};

static void *task_run(void *arg)
{
	struct task *t = arg;

	member_open(&t->member);
	meet(&t->member);
	t->role(&t->member);
	meet(&t->member);
	member_close(&t->member);
	return NULL;
}

static void run_threads(struct shared *shared, int cnt, role r)
{
	struct task tasks[MEMBERS];
	pthread_t threads[MEMBERS];

	for (int i = 0; i < cnt; i++) {
		tasks[i] = (struct task){ { .shared = shared, .rank = i, .cnt = cnt,
					    .threading = i % 2 ? FI_THREAD_SAFE : FI_THREAD_DOMAIN }, r };
		if (pthread_create(&threads[i], NULL, task_run, &tasks[i]))
			exit(1);
	}
	for (int i = 0; i < cnt; i++)
		pthread_join(threads[i], NULL);
}

/* Runs @cnt members, in threads or processes. */
static void run(int cnt, role r, bool threads)
{
	struct shared *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int children = threads ? 1 : cnt, status, bad = 0;
	pid_t pids[MEMBERS];

	assert_ptr_not_equal(shared, MAP_FAILED);
	fflush(NULL);
	for (int i = 0; i < children; i++) {
		pids[i] = fork();
		if (pids[i])
			continue;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		alarm(100);
		if (threads) {
			run_threads(shared, cnt, r);
		} else {
			struct task t = { { .shared = shared, .rank = i, .cnt = cnt }, r };

			task_run(&t);
		}
		exit(0);
	}
	for (int i = 0; i < children; i++) {
		waitpid(pids[i], &status, 0);
		if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL && atomic_load(&shared->dead))
			continue;
		if (status && !bad) {
			fprintf(stderr, "member %d ended with status %x\n", i, status);
			bad = 1;
			for (int j = i + 1; j < children; j++)
				kill(pids[j], SIGTERM);
		}
	}
	munmap(shared, sizeof(*shared));
	assert_int_equal(bad, 0);
}

static void members_agree_in_threads(void **state)
{
	for (int cnt = 1; cnt <= MEMBERS; cnt += 1 + (cnt > 3))
		run(cnt, random_collectives, true);
}

static void members_agree_in_processes(void **state)
{
	for (int cnt = 2; cnt <= MEMBERS; cnt += 1 + (cnt > 3))
		run(cnt, random_collectives, false);
}

static void every_kind_type_and_operation(void **state)
{
	run(1, every_kind, true);
	run(3, every_kind, true);
	run(4, every_kind, false);
}

static void a_late_member_is_waited_for(void **state)
{
	run(5, late_member, true);
}

static void a_cancelled_collective_ends_everywhere(void **state)
{
	run(2, cancelled, true);
	run(5, cancelled, false);
}

static void who_leaves_does_not_let_others_hang(void **state)
{
	run(2, left, true);
	run(6, left, true);
}

static void who_dies_does_not_let_others_hang(void **state)
{
	run(2, killed, false);
	run(6, killed, false);
	run(7, dead_before, false);
}

static void wrong_use_is_refused(void **state)
{
	run(3, refused, true);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(wrong_use_is_refused),
		cmocka_unit_test(every_kind_type_and_operation),
		cmocka_unit_test(members_agree_in_threads),
		cmocka_unit_test(members_agree_in_processes),
		cmocka_unit_test(a_late_member_is_waited_for),
		cmocka_unit_test(a_cancelled_collective_ends_everywhere),
		cmocka_unit_test(who_leaves_does_not_let_others_hang),
		cmocka_unit_test(who_dies_does_not_let_others_hang),
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
