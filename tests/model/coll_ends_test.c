/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Collectives that end irregularly, over the real library and each provider: a member is late,
 * cancels, leaves or dies, or uses them wrongly. No member hangs.
 *
 *	usage: coll_ends_test PROVIDER
 */
#include <signal.h>
#include <unistd.h>
#include "coll_members.h"

/*
 * One member joins a barrier late: no member leaves it before that, and messages of programs pass.
 */
static void late_member(struct member *m)
{
	struct fid_mc *mc = member_join(m, everyone, m->cnt);
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
	member_meet(m);
	if (!m->rank)
		CHECK(m, !fi_barrier2(m->ep, fi_mc_addr(mc), FI_COMPLETION, mc));
	CHECK(m, member_next(m) == mc);
	CHECK(m, !got);
	CHECK(m, !fi_cancel(&m->ep->fid, &got));
	CHECK(m, fi_cq_read(m->cq, &entry, 1) == -FI_EAVAIL);
	CHECK(m, fi_cq_readerr(m->cq, &m->error, 0) == 1 && m->error.op_context == &got);
	member_meet(m);
	CHECK(m, !fi_close(&mc->fid));
}

/* One cancels what the others wait in: it and all that follows fail for all of them. */
static void cancelled(struct member *m)
{
	static const size_t len = 300000;
	struct fid_mc *mc = member_join(m, everyone, m->cnt);
	char *in = calloc(1, len), *out = calloc(1, len);

	/* The first one begins when the others have ended, or nearly. */
	for (int i = 0; i < 100 && !m->rank; i++)
		sched_yield();
	CHECK(m, !fi_allreduce(m->ep, in, len, NULL, out, NULL, fi_mc_addr(mc), FI_UINT8,
			       FI_SUM, 0, out));
	CHECK(m, m->rank != 1 || !fi_cancel(&m->ep->fid, out));
	CHECK(m, m->rank != 1 || fi_cancel(&m->ep->fid, out) == 0);
	CHECK(m, !member_next(m) && m->error.err == FI_ECANCELED && m->error.op_context == out);
	CHECK(m, !fi_barrier(m->ep, fi_mc_addr(mc), m));
	CHECK(m, !member_next(m) && m->error.op_context == m && m->error.err == FI_ECANCELED);
	member_meet(m);
	CHECK(m, !fi_close(&mc->fid));
	/* A new group is none the worse. */
	mc = member_join(m, everyone, m->cnt);
	CHECK(m, !fi_barrier(m->ep, fi_mc_addr(mc), m));
	CHECK(m, member_next(m) == m);
	member_meet(m);
	CHECK(m, !fi_close(&mc->fid));
	free(in);
	free(out);
}

/* The program leaves a group while others wait for it. */
static void left(struct member *m)
{
	struct fid_mc *mc = member_join(m, everyone, m->cnt);

	CHECK(m, fi_close(&m->ep->fid) == -FI_EBUSY);
	CHECK(m, !fi_barrier(m->ep, fi_mc_addr(mc), m));
	if (m->rank == m->cnt - 1)
		CHECK(m, !fi_close(&mc->fid));
	if (!member_next(m))
		CHECK(m, m->error.err == FI_ECANCELED);
	member_meet(m);
	if (m->rank != m->cnt - 1)
		CHECK(m, !fi_close(&mc->fid));
	member_meet(m);
}

/*
 * A member is killed: the members that need it get an error, whether they are connected to it or
 * not.
 */
static void killed(struct member *m)
{
	struct fid_mc *mc = member_join(m, everyone, m->cnt);
	static char in[MEMBERS * 8], out[MEMBERS * 8];
	bool failed = false;

	member_meet(m);
	if (m->rank == m->cnt - 1) {
		atomic_fetch_add(&m->shared->dead, 1);
		raise(SIGKILL);
	}
	for (int i = 0; i < 10 && !failed; i++) {
		fi_addr_t root = m->addrs[i % 2];

		/* Some of these need it not, at some members. */
		if (i % 2)
			CHECK(m, !fi_gather(m->ep, in, 1, NULL, out, NULL, fi_mc_addr(mc), root,
					    FI_UINT64, 0, m));
		else
			CHECK(m, !fi_allreduce(m->ep, in, 1, NULL, out, NULL, fi_mc_addr(mc),
					       FI_UINT64, FI_SUM, 0, m));
		failed = !member_next(m);
	}
	CHECK(m, failed);
	CHECK(m, !fi_close(&mc->fid));
	/* The remaining members can go on. */
	mc = member_join(m, everyone, m->cnt - 1);
	CHECK(m, !fi_barrier(m->ep, fi_mc_addr(mc), m));
	CHECK(m, member_next(m) == m);
	member_meet(m);
	CHECK(m, !fi_close(&mc->fid));
	_exit(0);
}

/* A member is dead before the others join. */
static void dead_before(struct member *m)
{
	struct fid_mc *mc;

	if (m->rank == m->cnt - 1) {
		/* The others know that it was there. */
		mc = member_join(m, everyone, m->cnt);
		atomic_fetch_add(&m->shared->dead, 1);
		raise(SIGKILL);
	}
	mc = member_join(m, everyone, m->cnt);
	CHECK(m, !fi_close(&mc->fid));
	mc = member_join_begin(m, everyone, m->cnt, m);
	CHECK(m, member_joined(m, mc, m) != 0);
	CHECK(m, fi_barrier(m->ep, fi_mc_addr(mc), NULL) == -FI_EOPBADSTATE);
	CHECK(m, !fi_close(&mc->fid));
	_exit(0);
}

/*
 * A member dies while the others join: its parent in the tree has its message, and finds it dead
 * when it answers. Members that have joined do not wait for those that have not.
 */
static void died_while_joining(struct member *m)
{
	int victim = m->cnt - 1, parent = m->cnt - 2;
	struct fi_context2 contexts[2];
	struct fi_msg msg = { .addr = m->addrs[m->rank == victim ? parent : victim],
			      .context = &contexts[0] };
	struct fi_cq_tagged_entry entry;
	struct fid_mc *mc = NULL;
	uint64_t in = 1, out;

	if (m->rank)
		mc = member_join_begin(m, everyone, m->cnt, m);
	if (m->rank == victim) {
		CHECK(m, !fi_sendmsg(m->ep, &msg, FI_COMPLETION | FI_MATCH_COMPLETE));
		while (fi_cq_read(m->cq, &entry, 1) != 1)
			sched_yield();
		raise(SIGKILL);
	}
	if (m->rank == parent) {
		CHECK(m, !fi_recv(m->ep, NULL, 0, NULL, FI_ADDR_UNSPEC, &contexts[1]));
		while (fi_cq_read(m->cq, &entry, 1) != 1)
			sched_yield();
		CHECK(m, !fi_sendmsg(m->ep, &msg, FI_COMPLETION | FI_MATCH_COMPLETE));
		while (fi_cq_read(m->cq, &entry, 1) != -FI_EAVAIL)
			sched_yield();
		CHECK(m, fi_cq_readerr(m->cq, &m->error, 0) == 1);
		atomic_fetch_add(&m->shared->dead, 1);
	}
	while (!atomic_load(&m->shared->dead)) {
		CHECK(m, fi_cq_read(m->cq, &entry, 1) == -FI_EAGAIN);
		sched_yield();
	}
	if (!m->rank) /* the answer comes from here */
		mc = member_join_begin(m, everyone, m->cnt, m);
	if (!member_joined(m, mc, m)) {
		CHECK(m, !fi_broadcast(m->ep, &out, 1, NULL, fi_mc_addr(mc), m->addrs[parent],
				       FI_UINT64, 0, m));
		CHECK(m, !member_next(m));
		CHECK(m, !fi_allreduce(m->ep, &in, 1, NULL, &out, NULL, fi_mc_addr(mc),
				       FI_UINT64, FI_SUM, 0, m));
		CHECK(m, !member_next(m));
	}
	member_meet(m);
	CHECK(m, !fi_close(&mc->fid));
	_exit(0);
}

/*
 * A member is never there: the others wait for it, unless its address tells that there is none,
 * until the one that needs it cancels. That is reported to the program at once, and to the others
 * by the answers that they get; so it is at the first member, which cancels before.
 */
static void never_there(struct member *m)
{
	int last = m->cnt - 1, parent = last & (last - 1);
	struct fi_cq_tagged_entry entry;
	struct fid_mc *mc;
	int err;

	if (m->rank == last) {
		CHECK(m, !fi_close(&m->ep->fid));
		m->ep = NULL;
		member_meet(m);
		atomic_fetch_add(&m->shared->dead, 1);
		_exit(0);
	}
	member_meet(m);
	mc = member_join_begin(m, everyone, m->cnt, m);
	for (int i = 0; i < 200; i++) {
		CHECK(m, fi_cq_read(m->cq, &entry, 1) == -FI_EAGAIN);
		sched_yield();
	}
	if (!m->rank)
		fi_cancel(&m->ep->fid, m);
	if (!m->rank && parent)
		CHECK(m, member_joined(m, mc, m) != 0);
	member_meet(m);
	if (m->rank == parent)
		fi_cancel(&m->ep->fid, m);
	if (m->rank || !parent) {
		err = member_joined(m, mc, m);
		CHECK(m, err != 0);
	}
	member_meet(m);
	CHECK(m, !fi_close(&mc->fid));
	/* The others can go on. */
	mc = member_join(m, everyone, last);
	CHECK(m, !fi_barrier(m->ep, fi_mc_addr(mc), m));
	CHECK(m, member_next(m) == m);
	member_meet(m);
	CHECK(m, !fi_close(&mc->fid));
	_exit(0);
}

static void refused(struct member *m)
{
	struct fi_av_set_attr attr = { .start_addr = 0,
				       .end_addr = (fi_addr_t)m->cnt - 1,
				       .stride = 1,
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
	CHECK(m, member_joined(m, mc, &mc) == 0);
	CHECK(m, !fi_join_collective(m->ep, fi_mc_addr(mc), set, 0, &inner, &inner));
	CHECK(m, member_joined(m, inner, &inner) == 0);
	addr = fi_mc_addr(mc);
	CHECK(m, addr != fi_mc_addr(inner));
	CHECK(m, fi_barrier(m->ep, 0, NULL) == -FI_EINVAL);
	CHECK(m, fi_barrier2(m->ep, addr, FI_PEEK, NULL) == -FI_EBADFLAGS);
	CHECK(m, fi_broadcast(m->ep, in, 1, NULL, addr, 0, FI_UINT8, 0, NULL) == -FI_EOPNOTSUPP);
	CHECK(m, fi_reduce(m->ep, in, 1, NULL, out, NULL, addr, 99, FI_UINT8, FI_SUM, 0,
			   NULL) == -FI_EINVAL);
	CHECK(m, fi_reduce(m->ep, in, 1, NULL, out, NULL, addr, 0, FI_VOID, FI_SUM, 0, NULL) ==
			 -FI_EOPNOTSUPP);
	CHECK(m, fi_reduce(m->ep, in, 1, NULL, out, NULL, addr, 0, FI_UINT8, FI_CSWAP, 0,
			   NULL) == -FI_EOPNOTSUPP);
	CHECK(m, fi_reduce(m->ep, NULL, 1, NULL, out, NULL, addr, 0, FI_UINT8, FI_SUM, 0,
			   NULL) == -FI_EINVAL);
	CHECK(m, fi_reduce(m->ep, in, SIZE_MAX, NULL, out, NULL, addr, 0, FI_UINT8, FI_SUM, 0,
			   NULL) == -FI_EMSGSIZE);
	CHECK(m, fi_query_collective(m->domain, FI_ALLREDUCE, &query, 0) == -FI_EOPNOTSUPP);
	query.op = FI_SUM;
	CHECK(m, !fi_query_collective(m->domain, FI_ALLREDUCE, &query, FI_SCATTER));
	CHECK(m, fi_query_collective(m->domain, FI_ALLREDUCE, NULL, 0) == -FI_EINVAL);
	CHECK(m, fi_query_collective(m->domain, 99, &query, 0) == -FI_EOPNOTSUPP);
	member_meet(m);
	other = inner;
	CHECK(m, !fi_close(&other->fid));
	CHECK(m, fi_barrier(m->ep, fi_mc_addr(mc) + 1, NULL) == -FI_EINVAL);
	CHECK(m, !fi_close(&mc->fid));
	CHECK(m, !fi_close(&part->fid));
	CHECK(m, !fi_close(&set->fid));
}

static void a_late_member_is_waited_for(void **state)
{
	members_run(5, late_member, true);
}

static void a_cancelled_collective_ends_everywhere(void **state)
{
	members_run(2, cancelled, true);
	members_run(5, cancelled, false);
}

static void who_leaves_does_not_let_others_hang(void **state)
{
	members_run(2, left, true);
	members_run(6, left, true);
}

static void who_dies_does_not_let_others_hang(void **state)
{
	members_run(2, killed, false);
	members_run(6, killed, false);
	members_run(7, dead_before, false);
}

static void who_dies_while_joining_does_not_let_others_hang(void **state)
{
	members_run(6, died_while_joining, false);
}

static void who_is_never_there_is_waited_for_until_it_is_cancelled(void **state)
{
	members_run(2, never_there, false);
	members_run(4, never_there, false);
	members_run(6, never_there, false);
}

static void wrong_use_is_refused(void **state)
{
	members_run(3, refused, true);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_dies_while_joining_does_not_let_others_hang),
		cmocka_unit_test(who_is_never_there_is_waited_for_until_it_is_cancelled),
		cmocka_unit_test(wrong_use_is_refused),
		cmocka_unit_test(a_late_member_is_waited_for),
		cmocka_unit_test(a_cancelled_collective_ends_everywhere),
		cmocka_unit_test(who_leaves_does_not_let_others_hang),
		cmocka_unit_test(who_dies_does_not_let_others_hang),
	};

	if (argc < 2)
		return 2;
	provider = argv[1];
	if (argc > 2)
		cmocka_set_test_filter(argv[2]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
