/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Small one-sided operations that leave at once: what they do and tell is what those do and tell
 * that are kept, and a program that begins nothing else needs no call for its progress. Over the
 * fake wires.
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
#define READ_KEY   8	/* of a region that may be read only */
#define NO_KEY	   4711 /* of no region */
#define OPS	   10000u

static struct fake_end a, b;
static fi_addr_t to_b;
static struct fid_mr *mr, *read_mr; /* of b */
static uint64_t region[8];

static int setup(void **state)
{
	static const struct fake_end_attr attr = {
		.family = FAKE_FAMILY_B,
		.threading = FI_THREAD_DOMAIN,
		.format = FI_CQ_FORMAT_TAGGED,
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
	assert_int_equal(fi_mr_reg(b.domain, region, sizeof(region), FI_REMOTE_READ, 0,
				   READ_KEY, 0, &read_mr, NULL),
			 0);
	return 0;
}

static int teardown(void **state)
{
	fake_end_rests(&a);
	assert_int_equal(fake_end_peer(&a, &b.name)->outstanding_cnt, 0);
	assert_int_equal(fi_close(&read_mr->fid), 0);
	assert_int_equal(fi_close(&mr->fid), 0);
	fake_ends_close();
	return 0;
}

/* The next completion, or error, of a. */
static ssize_t next(struct fi_cq_tagged_entry *entry)
{
	uint32_t rounds = 0;
	ssize_t ret;

	while ((ret = fi_cq_read(a.tx_cq, entry, 1)) == -FI_EAGAIN) {
		assert_true(rounds++ < ROUNDS_MAX);
		fake_ends_go(1);
	}
	return ret;
}

static void expect(uint64_t flags)
{
	struct fi_cq_tagged_entry entry;

	assert_int_equal(next(&entry), 1);
	assert_int_equal(entry.flags, flags);
	assert_ptr_equal(entry.op_context, region);
}

static void expect_error(int err)
{
	struct fi_cq_err_entry error = { 0 };
	struct fi_cq_tagged_entry entry;

	assert_int_equal(next(&entry), -FI_EAVAIL);
	assert_int_equal(fi_cq_readerr(a.tx_cq, &error, 0), 1);
	assert_int_equal(error.err, err);
	assert_int_equal(error.src_addr, to_b);
}

static void meet(void)
{
	uint64_t word;

	assert_int_equal(fi_read(a.ep, &word, 8, NULL, to_b, 0, KEY, region), 0);
	expect(FI_RMA | FI_READ);
}

static ssize_t inject_write(uint64_t number)
{
	return fi_inject_write(a.ep, &number, 8, to_b, 8, KEY);
}

static ssize_t inject_add(uint64_t number)
{
	return fi_inject_atomic(a.ep, &number, 1, to_b, 8, KEY, FI_UINT64, FI_SUM);
}

/* The target makes progress; the initiator makes calls of one kind and no others. */
static void begin_nothing_else(ssize_t (*post)(uint64_t number))
{
	struct engine_ep *ep = fake_end_engine(&a);
	uint32_t rounds = 0;

	meet();
	for (uint64_t i = 1; i <= OPS; i++) {
		assert_int_equal(post(i), 0);
		assert_in_range(ep->queued_cnt, 0, ENGINE_TX_SIZE / 4);
		if (i % 16 == 0)
			fake_end_progress(&b);
	}
	while (fi_cntr_read(b.cntrs[FAKE_CNTR_REMOTE_WRITE]) < OPS) {
		assert_true(rounds++ < ROUNDS_MAX);
		fake_ends_go(1);
	}
	assert_int_equal(fi_cntr_read(b.cntrs[FAKE_CNTR_REMOTE_WRITE]), OPS);
	assert_int_equal(fi_cntr_read(a.cntrs[FAKE_CNTR_WRITE]), OPS);
}

static void who_does_nothing_but_write_has_no_long_queue(void **state)
{
	begin_nothing_else(inject_write);
	assert_int_equal(region[1], OPS);
}

static void who_does_nothing_but_add_has_no_long_queue(void **state)
{
	begin_nothing_else(inject_add);
	assert_int_equal(region[1], (uint64_t)OPS * (OPS + 1) / 2);
}

/*
 * Each kind of operation on one word, again and again; what fetches sees all that was begun before
 * it.
 */
static void small_updates_writes_and_fetches_keep_their_order(void **state)
{
	uint64_t was[3], one = 1, value, compare;

	meet();
	for (uint64_t i = 0; i < OPS / 10; i++) {
		value = 100 * i;
		compare = value + 3;
		assert_int_equal(fi_inject_write(a.ep, &value, 8, to_b, 16, KEY), 0);
		assert_int_equal(inject_add(1), 0);
		assert_int_equal(fi_atomic(a.ep, &one, 1, NULL, to_b, 16, KEY, FI_UINT64,
					   FI_SUM, region),
				 0);
		assert_int_equal(fi_fetch_atomic(a.ep, &one, 1, NULL, &was[0], NULL, to_b, 16,
						 KEY, FI_UINT64, FI_SUM, region),
				 0);
		assert_int_equal(fi_atomic(a.rma, &one, 1, NULL, to_b, 16, KEY, FI_UINT64,
					   FI_SUM, region),
				 0);
		assert_int_equal(fi_compare_atomic(a.ep, &value, 1, NULL, &compare, NULL,
						   &was[1], NULL, to_b, 16, KEY, FI_UINT64,
						   FI_CSWAP, region),
				 0);
		assert_int_equal(fi_fetch_atomic(a.ep, NULL, 1, NULL, &was[2], NULL, to_b, 16,
						 KEY, FI_UINT64, FI_ATOMIC_READ, region),
				 0);
		for (int k = 0; k < 5; k++)
			assert_int_equal(next(&(struct fi_cq_tagged_entry){ 0 }), 1);
		assert_int_equal(was[0], value + 1);
		assert_int_equal(was[1], value + 3);
		assert_int_equal(was[2], value);
	}
	assert_int_equal(region[1], OPS / 10);
}

static void completions_say_what_ended(void **state)
{
	uint64_t one = 1, was;

	meet();
	assert_int_equal(
		fi_atomic(a.ep, &one, 1, NULL, to_b, 8, KEY, FI_UINT64, FI_SUM, region), 0);
	expect(FI_ATOMIC | FI_WRITE);
	assert_int_equal(
		fi_atomic(a.rma, &one, 1, NULL, to_b, 8, KEY, FI_UINT64, FI_SUM, region), 0);
	expect(FI_ATOMIC | FI_WRITE);
	assert_int_equal(fi_fetch_atomic(a.ep, &one, 1, NULL, &was, NULL, to_b, 8, KEY,
					 FI_UINT64, FI_SUM, region),
			 0);
	expect(FI_ATOMIC | FI_READ);
	assert_int_equal(was, 2);
	assert_int_equal(fi_write(a.ep, &one, 8, NULL, to_b, 8, KEY, region), 0);
	expect(FI_RMA | FI_WRITE);
}

/* @ep: whether its additions complete at once, or with the target's answer */
static void refuse_additions(struct fid_ep *ep, bool at_once)
{
	static const struct {
		uint64_t addr, key;
		int err;
	} bad[] = {
		{ 0, NO_KEY, FI_EKEYREJECTED },
		{ 0, READ_KEY, FI_EACCES },
		{ 60, KEY, FI_EACCES }, /* beyond the end */
		{ 4, KEY, FI_EINVAL },	/* where no word may stand */
	};
	uint64_t one = 1;

	meet();
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(fi_atomic(ep, &one, 1, NULL, to_b, bad[i].addr, bad[i].key,
					   FI_UINT64, FI_SUM, region),
				 0);
		if (at_once)
			expect(FI_ATOMIC | FI_WRITE);
		expect_error(bad[i].err);
	}
	for (size_t i = 0; i < sizeof(region) / sizeof(region[0]); i++)
		assert_int_equal(region[i], 0);
	meet();
}

static void additions_that_are_complete_already_fail_with_a_word(void **state)
{
	refuse_additions(a.ep, true);
}

static void additions_that_wait_for_the_target_fail_with_its_answer(void **state)
{
	refuse_additions(a.rma, false);
}

static void what_no_atomic_can_be_is_refused_by_the_call(void **state)
{
	uint64_t one = 1, was;

	meet();
	assert_int_equal(fi_inject_atomic(a.ep, &one, 1, to_b, 0, KEY, FI_UINT64, FI_CSWAP),
			 -FI_EOPNOTSUPP);
	assert_int_equal(fi_inject_atomic(a.ep, &one, 1, to_b, 0, KEY, FI_VOID, FI_SUM),
			 -FI_EOPNOTSUPP);
	assert_int_equal(fi_inject_atomic(a.ep, &one, 0, to_b, 0, KEY, FI_UINT64, FI_SUM),
			 -FI_EINVAL);
	assert_int_equal(fi_inject_atomic(a.ep, NULL, 1, to_b, 0, KEY, FI_UINT64, FI_SUM),
			 -FI_EINVAL);
	assert_int_equal(
		fi_inject_atomic(a.ep, &one, SIZE_MAX / 8 + 2, to_b, 0, KEY, FI_UINT64, FI_SUM),
		-FI_EINVAL);
	assert_int_equal(fi_fetch_atomic(a.ep, &one, 1, NULL, NULL, NULL, to_b, 0, KEY,
					 FI_UINT64, FI_SUM, region),
			 -FI_EINVAL);
	assert_int_equal(fi_compare_atomic(a.ep, &one, 1, NULL, NULL, NULL, &was, NULL, to_b, 0,
					   KEY, FI_UINT64, FI_CSWAP, region),
			 -FI_EINVAL);
	meet();
	assert_int_equal(region[0], 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		TEST(who_does_nothing_but_write_has_no_long_queue),
		TEST(who_does_nothing_but_add_has_no_long_queue),
		TEST(small_updates_writes_and_fetches_keep_their_order),
		TEST(completions_say_what_ended),
		TEST(additions_that_are_complete_already_fail_with_a_word),
		TEST(additions_that_wait_for_the_target_fail_with_its_answer),
		TEST(what_no_atomic_can_be_is_refused_by_the_call),
#undef TEST
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
