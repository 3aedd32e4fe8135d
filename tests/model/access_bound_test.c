/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Programs with more one-sided operations under way than a target keeps answers for: the others
 * wait at their initiator, and each ends as it would alone. Over the fake wires.
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
#define NO_KEY	   4711 /* of no region */
#define OPS	   5000u
#define TX_SIZE	   65536u

static struct fake_end a, b;
static fi_addr_t to_b;
static struct fid_mr *mr; /* of b */
static uint64_t region[8], buf[8], out[8];

static int setup(void **state)
{
	static const struct fake_end_attr attr = {
		.family = FAKE_FAMILY_B,
		.threading = FI_THREAD_DOMAIN,
		.format = FI_CQ_FORMAT_TAGGED,
		.budget = 64u << 20,
		.tx_size = TX_SIZE,
		.count = true,
	};

	fake_ends_begin(1);
	fake_end_open(&a, &attr, NULL);
	fake_end_open(&b, &attr, NULL);
	to_b = fake_end_insert(&a, &b.name);
	memset(region, 0, sizeof(region));
	assert_int_equal(fi_mr_reg(b.domain, region, sizeof(region),
				   FI_REMOTE_READ | FI_REMOTE_WRITE, 0, KEY, 0, &mr, NULL),
			 0);
	return 0;
}

static int teardown(void **state)
{
	fake_end_rests(&a);
	assert_int_equal(fake_end_peer(&a, &b.name)->outstanding_cnt, 0);
	assert_int_equal(fi_close(&mr->fid), 0);
	fake_ends_close();
	return 0;
}

/* @cnt operations end well, or (@err) with that error */
static void expect(uint32_t cnt, int err)
{
	struct fi_cq_err_entry error = { 0 };
	struct fi_cq_tagged_entry entry;
	uint32_t rounds = 0;
	ssize_t ret;

	while (cnt) {
		ret = fi_cq_read(a.tx_cq, &entry, 1);
		if (ret == -FI_EAGAIN) {
			assert_true(rounds++ < ROUNDS_MAX);
			fake_ends_go(1);
			continue;
		}
		assert_int_equal(ret, err ? -FI_EAVAIL : 1);
		if (err) {
			assert_int_equal(fi_cq_readerr(a.tx_cq, &error, 0), 1);
			assert_int_equal(error.err, err);
			assert_int_equal(error.src_addr, to_b);
		}
		cnt--;
	}
	fake_ends_go(100);
	assert_int_equal(fi_cq_read(a.tx_cq, &entry, 1), -FI_EAGAIN);
}

/* Answers stay at the target, but for as many as a wire has room for. */
static void hold_answers(bool hold)
{
	struct fake_knobs k;

	fake_knobs_default(&k);
	if (hold)
		k.claim_room = 4;
	fake_knobs_set(FAKE_B, &k);
	fake_stop(fake_end_engine(&b), fake_end_engine(&a), hold);
}

static void meet(void)
{
	assert_int_equal(fi_read(a.ep, out, 8, NULL, to_b, 0, KEY, NULL), 0);
	expect(1, 0);
}

/*
 * Operations that @post begins, all at once, while no answer arrives; then answers are let through.
 */
static void begin_all(ssize_t (*post)(uint64_t key), uint64_t key)
{
	meet();
	hold_answers(true);
	for (uint32_t i = 0; i < OPS; i++) {
		assert_int_equal(post(key), 0);
		if (i % 64 == 0)
			fake_ends_go(64);
	}
	fake_ends_go(3 * OPS);
	hold_answers(false);
	expect(OPS, key == KEY ? 0 : FI_EKEYREJECTED);
}

static ssize_t read_one(uint64_t key)
{
	return fi_read(a.ep, out, 8, NULL, to_b, 0, key, NULL);
}

static ssize_t write_one(uint64_t key)
{
	return fi_write(a.rma, buf, 8, NULL, to_b, 0, key, NULL);
}

static ssize_t fetch_one(uint64_t key)
{
	buf[0] = 1;
	return fi_fetch_atomic(a.ep, buf, 1, NULL, out, NULL, to_b, 8, key, FI_UINT64, FI_SUM,
			       NULL);
}

static void reads_that_are_not_answered_wait_and_end_well(void **state)
{
	begin_all(read_one, KEY);
}

static void refused_reads_end_with_their_error_each(void **state)
{
	begin_all(read_one, NO_KEY);
	meet();
}

static void delivered_writes_that_are_not_answered_wait_and_end_well(void **state)
{
	begin_all(write_one, KEY);
}

static void refused_writes_end_with_their_error_each(void **state)
{
	begin_all(write_one, NO_KEY);
	meet();
}

static void each_fetching_addition_is_done_once(void **state)
{
	begin_all(fetch_one, KEY);
	assert_int_equal(region[1], OPS);
}

static void refused_additions_end_with_their_error_each(void **state)
{
	begin_all(fetch_one, NO_KEY);
	meet();
}

/* The target makes no progress at all: what is sent lies on the wire. */
static void operations_wait_for_a_target_that_makes_no_progress(void **state)
{
	meet();
	for (uint32_t i = 0; i < OPS; i++) {
		assert_int_equal(i % 2 ? read_one(KEY) : fetch_one(KEY), 0);
		fake_end_progress(&a);
		assert_in_range(fake_end_peer(&a, &b.name)->outstanding_cnt, 1,
				ENGINE_REQUESTS_MAX);
	}
	expect(OPS, 0);
	assert_int_equal(region[1], OPS / 2);
}

static void size_of_the_context_bounds_what_is_begun(void **state)
{
	meet();
	for (uint32_t i = 0; i < TX_SIZE; i++)
		assert_int_equal(read_one(KEY), 0);
	assert_int_equal(read_one(KEY), -FI_EAGAIN);
	expect(TX_SIZE, 0);
	meet();
}

/* What is complete when it leaves, and what is not, share what a target keeps. */
static void quiet_writes_and_reads_share_the_bound(void **state)
{
	struct engine_peer *peer;

	meet();
	peer = fake_end_peer(&a, &b.name);
	hold_answers(true);
	for (uint32_t i = 0; i < OPS; i++) {
		buf[2] = i;
		assert_int_equal(fi_inject_write(a.ep, &buf[2], 8, to_b, 16, KEY), 0);
		assert_int_equal(read_one(KEY), 0);
		fake_ends_go(4);
		assert_in_range(peer->outstanding_cnt + peer->quiet_cnt, 1, ENGINE_REQUESTS_MAX);
	}
	hold_answers(false);
	expect(OPS, 0);
	assert_int_equal(region[2], OPS - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		TEST(reads_that_are_not_answered_wait_and_end_well),
		TEST(refused_reads_end_with_their_error_each),
		TEST(delivered_writes_that_are_not_answered_wait_and_end_well),
		TEST(refused_writes_end_with_their_error_each),
		TEST(each_fetching_addition_is_done_once),
		TEST(refused_additions_end_with_their_error_each),
		TEST(operations_wait_for_a_target_that_makes_no_progress),
		TEST(size_of_the_context_bounds_what_is_begun),
		TEST(quiet_writes_and_reads_share_the_bound),
#undef TEST
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
