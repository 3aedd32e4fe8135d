/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What a broken or closed connection, a closed endpoint or a closed region does to one-sided
 * operations, in each state that they go through: one error for each with its source, and
 * nothing is left over on either side. One case at a time over the fake wires.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include "fake_ends.h"
#include <cmocka.h>

#define ROUNDS_MAX 200000 /* polls in which anything must happen */
#define KEY	   7
#define REGION	   (256u << 10)
#define LARGE	   100000u
#define OPS_MAX	   16u

static struct fake_end a, b;
static fi_addr_t to_b, to_a;
static struct fid_mr *mr; /* of b */
static char region[REGION], buf[REGION], out[REGION];
static struct fi_context2 contexts[OPS_MAX];
static uint32_t posted;
static struct fi_cq_tagged_entry entry;
static struct fi_cq_err_entry error;

static const struct fake_end_attr plain = {
	.family = FAKE_FAMILY_B,
	.threading = FI_THREAD_DOMAIN,
	.format = FI_CQ_FORMAT_TAGGED,
	.budget = 64u << 20,
};

static void region_open(void)
{
	assert_int_equal(fi_mr_reg(b.domain, region, REGION, FI_REMOTE_READ | FI_REMOTE_WRITE,
				   0, KEY, 0, &mr, NULL),
			 0);
}

static int setup(void **state)
{
	fake_ends_begin(1);
	fake_end_open(&a, &plain, NULL);
	fake_end_open(&b, &plain, NULL);
	to_b = fake_end_insert(&a, &b.name);
	to_a = fake_end_insert(&b, &a.name);
	region_open();
	memset(region, 'r', REGION);
	memset(buf, 'b', REGION);
	memset(out, 'o', REGION);
	posted = 0;
	return 0;
}

static void expect_no_leaks(const struct fake_end *end)
{
	struct engine_ep *ep = fake_end_engine(end);

	fake_end_rests(end);
	assert_int_equal(ep->reply_pool.used, 0);
	assert_int_equal(ep->landing_pool.used, 0);
	assert_int_equal(ep->ctl_pool.used, 0);
	assert_int_equal(ep->held_pool.used, 0);
	assert_int_equal(ep->domain->rx_pool.used, 0);
}

static int teardown(void **state)
{
	if (a.ep)
		expect_no_leaks(&a);
	if (b.ep)
		expect_no_leaks(&b);
	if (mr)
		assert_int_equal(fi_close(&mr->fid), 0);
	mr = NULL;
	fake_ends_close();
	return 0;
}

static ssize_t next(struct fid_cq *cq, uint32_t rounds)
{
	return fake_ends_next(cq, rounds, &entry, NULL, &error);
}

static void expect_nothing(struct fid_cq *cq)
{
	assert_int_equal(next(cq, 2000), -FI_EAGAIN);
}

static void stop(struct fake_end *from, struct fake_end *to, bool stopped)
{
	fake_stop(fake_end_engine(from), fake_end_engine(to), stopped);
}

static void knobs(const struct fake_knobs *k)
{
	fake_knobs_set(FAKE_B, k);
}

static void *context(void)
{
	assert_in_range(posted, 0, OPS_MAX - 1);
	return &contexts[posted++];
}

static void post_write(size_t len)
{
	assert_int_equal(fi_write(a.rma, buf, len, NULL, to_b, 0, KEY, context()), 0);
}

static void post_read(size_t len)
{
	assert_int_equal(fi_read(a.ep, out, len, NULL, to_b, 0, KEY, context()), 0);
}

static void post_atomics(void)
{
	uint64_t *operand = (uint64_t *)(void *)buf, *result = (uint64_t *)(void *)out;

	assert_int_equal(
		fi_atomic(a.rma, operand, 4, NULL, to_b, 0, KEY, FI_UINT64, FI_SUM, context()),
		0);
	assert_int_equal(fi_fetch_atomic(a.ep, operand, 4, NULL, result, NULL, to_b, 0, KEY,
					 FI_UINT64, FI_SUM, context()),
			 0);
	assert_int_equal(fi_compare_atomic(a.ep, operand, 1, NULL, operand, NULL, result, NULL,
					   to_b, 0, KEY, FI_UINT64, FI_CSWAP, context()),
			 0);
}

/* A write of each size and a read, whole, so that they are connected. */
static void meet(void)
{
	struct fi_context2 done;

	assert_int_equal(fi_write(a.rma, buf, 8, NULL, to_b, 0, KEY, &done), 0);
	assert_int_equal(next(a.tx_cq, ROUNDS_MAX), 1);
	assert_ptr_equal(entry.op_context, &done);
	fake_ends_go(200);
}

/* The states in which operations are caught */

static void queued_behind_a_full_wire(void)
{
	struct fake_knobs k;

	fake_knobs_default(&k);
	k.claim_room = 1;
	knobs(&k);
	meet();
	stop(&a, &b, true);
	post_write(8);
	post_write(LARGE);
	post_read(8);
	post_read(LARGE);
	post_atomics();
	assert_true(fake_end_engine(&a)->queued_cnt == 6);
}

static void queued_behind_a_fence(void)
{
	struct iovec iov = { buf, 8 };
	struct fi_rma_iov target = { 0, 8, KEY };
	struct fi_msg_rma msg = { .msg_iov = &iov,
				  .iov_count = 1,
				  .rma_iov = &target,
				  .rma_iov_count = 1,
				  .addr = to_b };

	meet();
	stop(&b, &a, true);
	post_write(8);
	msg.context = context();
	assert_int_equal(
		fi_writemsg(a.ep, &msg, FI_COMPLETION | FI_DELIVERY_COMPLETE | FI_FENCE), 0);
	post_read(8);
	assert_true(fake_end_engine(&a)->queued_cnt == 2);
}

/* A message may be overtaken: what is too large to be held without credit waits until it can't be. */
static void queued_behind_a_lane(void)
{
	meet();
	stop(&a, &b, true);
	assert_int_equal(fi_tsend(a.ep, buf, 5000, NULL, to_b, 1, context()), 0);
	assert_int_equal(fi_writedata(a.rma, buf, 1000, NULL, 1, to_b, 0, KEY, context()), 0);
	post_read(8);
	assert_true(fake_end_engine(&a)->queued_cnt == 2);
}

static void never_connected(void)
{
	struct fake_knobs k;

	fake_knobs_default(&k);
	k.mute = true;
	knobs(&k);
	post_write(8);
	post_write(LARGE);
	post_read(8);
	post_atomics();
	fake_ends_go(10);
}

static void unacked(void)
{
	uint64_t *operand = (uint64_t *)(void *)buf;

	meet();
	stop(&b, &a, true);
	post_write(8);
	post_write(8192);
	assert_int_equal(fi_atomic(a.rma, operand, 4, NULL, to_b, 8192, KEY, FI_UINT64, FI_SUM,
				   context()),
			 0);
	fake_ends_go(20);
	assert_memory_equal(region, buf, 8192); /* done, and not known to be */
}

static void refused_and_unacked(void)
{
	meet();
	stop(&b, &a, true);
	assert_int_equal(fi_write(a.rma, buf, 8, NULL, to_b, 0, 4711, context()), 0);
	assert_int_equal(fi_read(a.ep, out, 8, NULL, to_b, 0, 4711, context()), 0);
	assert_int_equal(fi_write(a.rma, buf, LARGE, NULL, to_b, 0, 4711, context()), 0);
	fake_ends_go(20);
}

static void large_write_not_answered(void)
{
	meet();
	stop(&a, &b, true);
	post_write(LARGE);
	fake_ends_go(20);
}

/* The payload of a large write is asked for, and does not come. */
static void large_write_half_way(void)
{
	struct fake_knobs k;

	fake_knobs_default(&k);
	k.has_get = false;
	knobs(&k);
	meet();
	stop(&b, &a, true);
	post_write(LARGE);
	fake_ends_go(20);
	stop(&a, &b, true);
	stop(&b, &a, false);
	fake_ends_go(20);
	assert_int_equal(fake_end_engine(&b)->landing_pool.used, 1);
}

/* Its payload is being written where it belongs. */
static void large_write_arriving(void)
{
	struct fake_knobs k;

	fake_knobs_default(&k);
	k.has_get = false;
	k.split = 256;
	knobs(&k);
	meet();
	post_write(LARGE);
	for (uint32_t i = 0; i < 100 && region[8] != 'b'; i++)
		fake_ends_go(1);
	stop(&a, &b, true);
	assert_int_equal(fake_end_engine(&b)->landing_pool.used, 1);
}

/* The same of one that needed no question: it has its turn, and then it has not. */
static void streamed_write_arriving(void)
{
	struct fake_knobs k;

	fake_knobs_default(&k);
	k.has_get = false;
	k.eager_max = 2 * LARGE;
	k.split = 256;
	knobs(&k);
	meet();
	post_write(LARGE);
	post_write(LARGE);
	for (uint32_t i = 0; i < 100 && region[8] != 'b'; i++)
		fake_ends_go(1);
	stop(&a, &b, true);
	assert_true(fake_end_engine(&b)->landing_pool.used);
}

static void streamed_writes_before_their_turn(void)
{
	struct fake_knobs k;

	fake_knobs_default(&k);
	k.has_get = false;
	k.eager_max = 2 * LARGE;
	k.split = k.stall = 128;
	k.burst = 1;
	k.move = 64;
	knobs(&k);
	meet();
	for (uint32_t i = 0; i < 200 && !fake_end_peer(&b, &a.name)->reorder_cnt; i++) {
		assert_int_equal(fi_inject_write(a.rma, buf, 100, to_b, 0, KEY), 0);
		assert_int_equal(fi_write(a.rma, buf, LARGE, NULL, to_b, 0, KEY, &contexts[0]),
				 0);
		assert_int_equal(fi_write(a.rma, buf, 2000, NULL, to_b, 0, KEY, &contexts[0]),
				 0);
		for (uint32_t n = 0; n < 20 && !fake_end_peer(&b, &a.name)->reorder_cnt; n++)
			fake_ends_go(1);
	}
	assert_true(fake_end_peer(&b, &a.name)->reorder_cnt);
	posted = OPS_MAX + 1; /* too many to tell one by one */
}

static void large_write_being_read(void)
{
	struct fake_knobs k;

	fake_knobs_default(&k);
	k.get_now = 0;
	k.get_later = 256;
	knobs(&k);
	meet();
	k.move = 20;
	knobs(&k);
	for (uint32_t i = 0; i < 3; i++)
		post_write(LARGE);
	for (uint32_t i = 0; i < 100 && !fake_end_engine(&b)->landing_pool.used; i++)
		fake_ends_go(1);
	stop(&a, &b, true);
	assert_true(fake_end_engine(&b)->landing_pool.used);
}

/* It is there, and its sender does not know. */
static void large_write_not_finished(void)
{
	meet();
	stop(&b, &a, true);
	post_write(LARGE);
	fake_ends_go(20);
	assert_memory_equal(region, buf, LARGE);
}

static void requests_on_their_way(void)
{
	meet();
	stop(&a, &b, true);
	post_read(8);
	post_read(0);
	post_read(LARGE);
	post_atomics();
	fake_ends_go(20);
}

static void responses_on_their_way(void)
{
	meet();
	stop(&b, &a, true);
	post_read(8);
	post_read(0);
	post_read(LARGE);
	post_atomics();
	fake_ends_go(20);
}

static void responses_without_room(void)
{
	struct fake_knobs k;

	meet();
	fake_knobs_default(&k);
	k.claim_room = k.sendv_room = 1;
	knobs(&k);
	stop(&b, &a, true);
	for (uint32_t i = 0; i < 3; i++) {
		post_read(64);
		post_read(LARGE);
	}
	post_atomics();
	fake_ends_go(20);
	assert_true(fake_end_engine(&b)->reply_pool.used >= 3);
	assert_true(fake_end_engine(&b)->landing_pool.used >= 2);
}

static void response_arriving(void)
{
	struct fake_knobs k;

	fake_knobs_default(&k);
	k.split = 256;
	knobs(&k);
	meet();
	k.move = 20;
	knobs(&k);
	post_read(LARGE);
	while (out[8] != 'r' || out[LARGE - 1] == 'r') {
		/* It arrived in one piece: try again. */
		if (out[8] == 'r') {
			assert_int_equal(next(a.tx_cq, ROUNDS_MAX), 1);
			memset(out, 'o', REGION);
			posted = 0;
			post_read(LARGE);
		}
		fake_ends_go(1);
	}
	stop(&b, &a, true);
	assert_int_equal(fake_end_engine(&b)->landing_pool.used, 1);
}

static void early_at_the_target(void)
{
	uint64_t *operand = (uint64_t *)(void *)buf, *result = (uint64_t *)(void *)out;
	struct fake_knobs k;

	fake_knobs_default(&k);
	k.burst = 1;
	k.move = 64;
	k.stall = 128;
	knobs(&k);
	meet();
	for (uint32_t i = 0; i < 200 && !fake_end_peer(&b, &a.name)->reorder_cnt; i++) {
		struct fi_context2 sent;

		assert_int_equal(fi_tsend(a.ep, buf, 5000, NULL, to_b, 1, &sent), 0);
		assert_int_equal(fi_inject_write(a.rma, buf, 100, to_b, 0, KEY), 0);
		assert_int_equal(fi_fetch_atomic(a.ep, operand, 4, NULL, result, NULL, to_b, 0,
						 KEY, FI_UINT64, FI_SUM, &contexts[0]),
				 0);
		for (uint32_t n = 0; n < 20 && !fake_end_peer(&b, &a.name)->reorder_cnt; n++)
			fake_ends_go(1);
	}
	assert_true(fake_end_peer(&b, &a.name)->reorder_cnt);
	posted = OPS_MAX + 1; /* too many to tell one by one */
}

static const struct state {
	void (*begin)(void);
	const char *name;
} states[] = {
#define STATE(state)          \
	{                     \
		state, #state \
	}
	STATE(queued_behind_a_full_wire),
	STATE(queued_behind_a_fence),
	STATE(queued_behind_a_lane),
	STATE(never_connected),
	STATE(unacked),
	STATE(refused_and_unacked),
	STATE(large_write_not_answered),
	STATE(large_write_half_way),
	STATE(large_write_arriving),
	STATE(streamed_write_arriving),
	STATE(streamed_writes_before_their_turn),
	STATE(large_write_being_read),
	STATE(large_write_not_finished),
	STATE(requests_on_their_way),
	STATE(responses_on_their_way),
	STATE(responses_without_room),
	STATE(response_arriving),
	STATE(early_at_the_target),
#undef STATE
};

#define STATES (sizeof(states) / sizeof(states[0]))

static void begin(size_t i)
{
	print_message("%s\n", states[i].name);
	states[i].begin();
}

/*
 * Each operation that was posted ends once, with one of these errors, from b. @may_end: answers
 * that arrived before the end count
 */
static void expect_errors(int err, int or_else, bool may_end)
{
	bool told[OPS_MAX] = { false };

	if (posted > OPS_MAX) {
		while (next(a.tx_cq, 2000) != -FI_EAGAIN)
			;
		return;
	}
	for (uint32_t i = 0; i < posted; i++) {
		ssize_t ret = next(a.tx_cq, ROUNDS_MAX);
		void *of = ret == 1 ? entry.op_context : error.op_context;
		ptrdiff_t which = (struct fi_context2 *)of - contexts;

		assert_true(ret == -FI_EAVAIL || (may_end && ret == 1));
		assert_true(which >= 0 && which < (ptrdiff_t)posted && !told[which]);
		told[which] = true;
		if (ret == 1)
			continue;
		assert_true(error.err == err || error.err == or_else ||
			    (may_end && error.err == FI_EKEYREJECTED));
		assert_int_equal(error.src_addr, to_b);
	}
	expect_nothing(a.tx_cq);
}

static void drop_messages(void)
{
	struct fi_context2 taken;
	struct fake_knobs k;

	fake_knobs_default(&k);
	knobs(&k);
	fake_ends_go(2000);
	/* What was stored at b is not what this is about. */
	while (fake_end_engine(&b)->held_pool.used || fake_end_peer(&b, &a.name)->held_cnt) {
		assert_int_equal(
			fi_trecv(b.ep, out, REGION, NULL, FI_ADDR_UNSPEC, 1, 0, &taken), 0);
		assert_int_not_equal(next(b.rx_cq, ROUNDS_MAX), -FI_EAGAIN);
	}
}

static void broken_connection_ends_each_operation_once(void **state)
{
	for (size_t i = 0; i < STATES; i++) {
		if (states[i].begin == never_connected)
			continue;
		begin(i);
		assert_true(fake_break(fake_end_engine(&a), fake_end_engine(&b),
				       -FI_ETIMEDOUT) > 0);
		expect_errors(FI_ETIMEDOUT, FI_ETIMEDOUT, false);
		fake_ends_go(100);
		drop_messages();
		teardown(state);
		setup(state);
	}
}

static void target_that_closes_ends_each_operation_once(void **state)
{
	for (size_t i = 0; i < STATES; i++) {
		begin(i);
		stop(&b, &a, false);
		fake_end_stop(&b);
		/* Its regions are free at once, whatever was under way. */
		assert_int_equal(fi_close(&mr->fid), 0);
		mr = NULL;
		if (states[i].begin == never_connected)
			for (uint32_t n = 0; n < posted; n++) {
				fake_ends_go(50);
				fi_cancel(&a.ep->fid, &contexts[n]);
			}
		/*
		 * A peer that refuses another connection is dead; operations that were not sent can
		 * be cancelled.
		 */
		if (states[i].begin == never_connected)
			expect_errors(FI_ECANCELED, FI_ECONNREFUSED, false);
		else
			expect_errors(FI_ECONNRESET, FI_ECONNREFUSED, true);
		teardown(state);
		setup(state);
	}
}

static void initiator_that_closes_leaves_nothing_at_the_target(void **state)
{
	for (size_t i = 0; i < STATES; i++) {
		begin(i);
		stop(&a, &b, false);
		fake_end_stop(&a);
		fake_ends_go(1000);
		if (states[i].begin != never_connected)
			drop_messages();
		expect_no_leaks(&b);
		teardown(state);
		setup(state);
	}
}

static void endpoint_in_a_shared_domain_closes_with_operations_in_flight(void **state)
{
	for (size_t i = 0; i < STATES; i++) {
		struct engine_domain *domain = fake_end_engine(&b)->domain;

		begin(i);
		fake_end_stop(&b);
		assert_int_equal(domain->rx_pool.used, 0);
		assert_int_equal(fi_close(&mr->fid), 0);
		mr = NULL;
		fake_end_stop(&a);
		teardown(state);
		setup(state);
	}
}

static void after_a_break_operations_go_on(void **state)
{
	for (size_t i = 0; i < STATES; i++) {
		struct fake_knobs k;

		if (states[i].begin == never_connected)
			continue;
		begin(i);
		assert_true(fake_break(fake_end_engine(&a), fake_end_engine(&b),
				       -FI_ETIMEDOUT) > 0);
		expect_errors(FI_ETIMEDOUT, FI_ETIMEDOUT, false);
		fake_knobs_default(&k);
		knobs(&k);
		memset(buf, 'n', REGION);
		memset(out, 'o', REGION);
		posted = 0;
		post_write(LARGE);
		assert_int_equal(next(a.tx_cq, ROUNDS_MAX), 1);
		post_read(LARGE);
		assert_int_equal(next(a.tx_cq, ROUNDS_MAX), 1);
		assert_memory_equal(out, buf, LARGE);
		drop_messages();
		teardown(state);
		setup(state);
	}
}

/* Regions */

static void region_that_is_being_written_stays_until_that_ends(void **state)
{
	large_write_half_way();
	assert_int_equal(fi_close(&mr->fid), -FI_EBUSY);
	/* It is still registered: what was begun ends, and more is taken. */
	stop(&a, &b, false);
	assert_int_equal(next(a.tx_cq, ROUNDS_MAX), 1);
	assert_memory_equal(region, buf, LARGE);
	post_read(8);
	assert_int_equal(next(a.tx_cq, ROUNDS_MAX), 1);
	assert_memory_equal(out, buf, 8);
}

static void region_that_is_being_read_stays_until_that_ends(void **state)
{
	meet();
	stop(&b, &a, true);
	post_read(LARGE);
	fake_ends_go(20);
	assert_int_equal(fi_close(&mr->fid), -FI_EBUSY);
	stop(&b, &a, false);
	assert_int_equal(next(a.tx_cq, ROUNDS_MAX), 1);
	fake_ends_go(20);
	assert_int_equal(fi_close(&mr->fid), 0);
	mr = NULL;
	post_read(8);
	assert_int_equal(next(a.tx_cq, ROUNDS_MAX), -FI_EAVAIL);
	assert_int_equal(error.err, FI_EKEYREJECTED);
}

/* What the wire holds in memory of its own needs nothing but progress to end. */
static void region_closes_as_soon_as_the_wire_lets_go_of_it(void **state)
{
	struct fake_knobs k;

	fake_knobs_default(&k);
	k.buffer = 256;
	knobs(&k);
	meet();
	stop(&b, &a, true);
	post_read(LARGE);
	for (uint32_t i = 0; i < 100 && !fake_end_engine(&b)->landing_pool.used; i++)
		fake_ends_go(1);
	assert_int_equal(fi_close(&mr->fid), 0);
	mr = NULL;
	memset(region, 'x', REGION);
	stop(&b, &a, false);
	assert_int_equal(next(a.tx_cq, ROUNDS_MAX), 1);
	for (size_t i = 0; i < LARGE; i++)
		assert_true(out[i] == 'b' || out[i] == 'r');
}

static void large_write_after_the_key_is_closed_is_refused(void **state)
{
	meet();
	stop(&a, &b, true);
	post_write(LARGE);
	post_write(8);
	post_read(LARGE);
	post_atomics();
	assert_int_equal(fi_close(&mr->fid), 0);
	mr = NULL;
	stop(&a, &b, false);
	for (uint32_t i = 0; i < posted; i++) {
		assert_int_equal(next(a.tx_cq, ROUNDS_MAX), -FI_EAVAIL);
		assert_int_equal(error.err, FI_EKEYREJECTED);
	}
	expect_nothing(a.tx_cq);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		TEST(broken_connection_ends_each_operation_once),
		TEST(target_that_closes_ends_each_operation_once),
		TEST(initiator_that_closes_leaves_nothing_at_the_target),
		TEST(endpoint_in_a_shared_domain_closes_with_operations_in_flight),
		TEST(after_a_break_operations_go_on),
		TEST(region_that_is_being_written_stays_until_that_ends),
		TEST(region_that_is_being_read_stays_until_that_ends),
		TEST(region_closes_as_soon_as_the_wire_lets_go_of_it),
		TEST(large_write_after_the_key_is_closed_is_refused),
#undef TEST
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
