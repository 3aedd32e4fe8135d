/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Which calls make progress: reading completions, whether there are any or not. Over the fake wires.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <rdma/fi_errno.h>
#include "fake_ends.h"
#include <cmocka.h>

#define UNREAD 64 /* completions that stand in a queue */

static struct fake_end a, b;
static fi_addr_t to_a, to_b;
static uint32_t arrived; /* packets at a */

static void count_packet(const struct wire_conn *conn, const struct packet *packet, bool whole)
{
	arrived += conn->wire->ep == fake_end_engine(&a);
}

static int setup(void **state)
{
	const struct fake_end_attr attr = {
		.family = FAKE_FAMILY_A,
		.threading = FI_THREAD_DOMAIN,
		.format = FI_CQ_FORMAT_TAGGED,
		.budget = 64u << 20,
	};
	struct fake_knobs knobs;

	fake_ends_begin(1);
	fake_knobs_default(&knobs);
	fake_knobs_set(FAKE_A, &knobs);
	fake_end_open(&a, &attr, NULL);
	fake_end_open(&b, &attr, NULL);
	to_b = fake_end_insert(&a, &b.name);
	to_a = fake_end_insert(&b, &a.name);
	return 0;
}

static int teardown(void **state)
{
	fake_watch.packet = NULL;
	fake_end_close(&b);
	fake_end_close(&a);
	return 0;
}

/* Completions of sends that a has not read, and a message of b that a has not looked for. */
static void leave_unread(void)
{
	struct fi_cq_tagged_entry entry;
	int told = 0;

	for (int i = 0; i < UNREAD; i++)
		while (fi_tsend(a.ep, "out", 4, NULL, to_b, 1, NULL)) {
			fake_end_progress(&a);
			fake_end_progress(&b);
		}
	for (int i = 0; i < 1000; i++) {
		fi_cq_read(a.tx_cq, NULL, 0);
		fi_cq_read(b.tx_cq, NULL, 0);
	}
	fake_watch.packet = count_packet;
	arrived = 0;
	assert_int_equal(fi_tsend(b.ep, "in", 3, NULL, to_a, 1, &told), 0);
	while (fi_cq_read(b.tx_cq, &entry, 1) != 1)
		;
	assert_int_equal(arrived, 0);
}

/* What a program does with a completion. */
static void work(void)
{
	uint64_t end = platform_now_ns() + 50000;

	while (platform_now_ns() < end)
		;
}

static void reading_one_completion_of_many_hears_peers_too(void **state)
{
	struct fi_cq_tagged_entry entry;
	int reads = 0;

	leave_unread();
	while (!arrived) {
		assert_int_equal(fi_cq_read(a.tx_cq, &entry, 1), 1);
		assert_true(++reads < UNREAD);
		work();
	}
	assert_true(reads <= 8);
}

static void reading_some_completions_of_many_hears_peers_too(void **state)
{
	struct fi_cq_tagged_entry entries[7];
	int reads = 0;

	leave_unread();
	while (!arrived) {
		assert_int_equal(fi_cq_read(a.tx_cq, entries, 7), 7);
		assert_true(++reads < UNREAD / 7);
		work();
	}
	assert_true(reads <= 8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		TEST(reading_one_completion_of_many_hears_peers_too),
		TEST(reading_some_completions_of_many_hears_peers_too),
#undef TEST
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
