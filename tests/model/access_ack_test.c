/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * When a target acknowledges requests: at once to an initiator that waits for it, otherwise later
 * and together. Over the fake wires, in whose time a hundred microseconds are some forty rounds.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include "ack.h"
#include "arm.h"
#include "fake_ends.h"
#include "quiet.h"
#include "waiting.h"
#include <cmocka.h>

#define KEY	7
#define SOON	8u     /* rounds within which a requested ACK arrives */
#define IN_TIME 10000u /* ... and one that was not requested */

static struct fake_end a, b;
static fi_addr_t to_b;
static struct engine_peer *of_a, *of_b; /* the peer of b at a, and of a at b */
static struct fid_mr *mr;		/* of b */
static uint64_t region[2048], buf[2048], out[8];
static uint32_t acks; /* that a has received */

static void watch(const struct wire_conn *conn, const struct packet *packet, bool whole)
{
	acks += packet->op == PACKET_ACK && conn->wire->ep == fake_end_engine(&a);
}

/* So many completions at a, within so many rounds. */
static void expect(uint32_t cnt, uint32_t rounds)
{
	struct fi_cq_tagged_entry entry;

	while (cnt) {
		ssize_t ret = fi_cq_read(a.tx_cq, &entry, 1);

		assert_true(ret == 1 || ret == -FI_EAGAIN);
		cnt -= ret == 1;
		if (ret == 1)
			continue;
		assert_true(rounds--);
		fake_ends_go(1);
	}
}

static int setup(void **state)
{
	static const struct fake_end_attr attr = {
		.family = FAKE_FAMILY_B,
		.threading = FI_THREAD_DOMAIN,
		.format = FI_CQ_FORMAT_TAGGED,
		.budget = 64u << 20,
	};

	fake_ends_begin(1);
	fake_end_open(&a, &attr, NULL);
	fake_end_open(&b, &attr, NULL);
	to_b = fake_end_insert(&a, &b.name);
	memset(region, 0, sizeof(region));
	assert_int_equal(fi_mr_reg(b.domain, region, sizeof(region),
				   FI_REMOTE_READ | FI_REMOTE_WRITE, 0, KEY, 0, &mr, NULL),
			 0);
	assert_int_equal(fi_read(a.ep, out, 8, NULL, to_b, 0, KEY, NULL), 0);
	expect(1, IN_TIME);
	of_a = fake_end_peer(&a, &b.name);
	of_b = fake_end_peer(&b, &a.name);
	fake_ends_go(IN_TIME);
	fake_watch.packet = watch;
	acks = 0;
	return 0;
}

static int teardown(void **state)
{
	fake_watch.packet = NULL;
	assert_int_equal(fi_close(&mr->fid), 0);
	fake_ends_close();
	return 0;
}

/* A write that is complete when it leaves; what it writes. */
static uint64_t put(uint32_t word)
{
	buf[word] = buf[word] * 3 + 1;
	FAKE_UNTIL_TAKEN(fi_inject_write(a.ep, &buf[word], 8, to_b, 8 * word, KEY));
	return buf[word];
}

/* One that has arrived and that a does not know of. */
static void arrive(void)
{
	uint64_t there = put(1);

	for (uint32_t i = 0; i < SOON && region[1] != there; i++)
		fake_ends_go(1);
	assert_int_equal(region[1], there);
	assert_true(engine_quiet_open(of_a));
	assert_int_equal(acks, 0);
}

static void writes_that_nobody_waits_for_are_acknowledged_together(void **state)
{
	uint64_t one = 1;

	for (uint32_t i = 0; i < 200; i++) {
		put(1);
		assert_int_equal(
			fi_inject_atomic(a.ep, &one, 1, to_b, 16, KEY, FI_UINT64, FI_SUM), 0);
		fake_ends_go(1);
	}
	assert_in_range(acks, 1, 30);
	fake_ends_go(SOON);
	assert_int_equal(region[1], buf[1]);
	assert_int_equal(region[2], 200);
}

static void all_are_acknowledged_in_time(void **state)
{
	arrive();
	for (uint32_t i = 0; i < IN_TIME && engine_quiet_open(of_a); i++)
		fake_ends_go(1);
	assert_false(engine_quiet_open(of_a));
	assert_int_equal(of_a->quiet_cnt, 0);
	assert_int_equal(acks, 1);
	fake_ends_go(IN_TIME);
	assert_int_equal(acks, 1);
}

static void who_waits_is_told_at_once_of_all_before_it(void **state)
{
	uint64_t one = 1;

	arrive();
	assert_int_equal(fi_write(a.rma, buf, 8, NULL, to_b, 0, KEY, NULL), 0);
	expect(1, SOON);
	assert_false(engine_quiet_open(of_a));
	put(1);
	assert_int_equal(fi_write(a.rma, buf, 6000, NULL, to_b, 0, KEY, NULL), 0);
	expect(1, SOON);
	put(1);
	assert_int_equal(
		fi_atomic(a.rma, &one, 1, NULL, to_b, 16, KEY, FI_UINT64, FI_SUM, NULL), 0);
	expect(1, SOON);
	assert_false(engine_quiet_open(of_a));
	assert_int_equal(acks, 3);
}

/* @len: of the one behind the fence */
static void fence(size_t len)
{
	struct iovec iov = { buf, len };
	struct fi_rma_iov target = { 0, len, KEY };
	struct fi_msg_rma msg = { .msg_iov = &iov,
				  .iov_count = 1,
				  .rma_iov = &target,
				  .rma_iov_count = 1,
				  .addr = to_b };

	assert_int_equal(fi_writemsg(a.ep, &msg, FI_COMPLETION | FI_FENCE), 0);
}

static void fence_asks_for_what_it_waits_for(void **state)
{
	arrive();
	fence(8);
	assert_int_equal(fake_end_engine(&a)->queued_cnt, 1);
	expect(1, SOON);
	assert_int_equal(acks, 1);
	put(1);
	assert_int_equal(fi_write(a.ep, buf, 16000, NULL, to_b, 0, KEY, NULL), 0);
	fence(8000);
	expect(2, 2 * SOON);
}

static void fenced_message_asks_too(void **state)
{
	struct iovec iov = { buf, 8 };
	struct fi_msg msg = { .msg_iov = &iov, .iov_count = 1, .addr = to_b };

	arrive();
	assert_int_equal(fi_sendmsg(a.ep, &msg, FI_COMPLETION | FI_FENCE), 0);
	assert_int_equal(fake_end_engine(&a)->queued_cnt, 1);
	expect(1, SOON);
}

static void some_of_many_ask(void **state)
{
	for (uint32_t i = 0; i < QUIET_ACK_INTERVAL; i++)
		put(1 + i);
	for (uint32_t i = 0; i < IN_TIME && of_b->rx_seq != (uint32_t)of_a->tx_seq; i++)
		fake_ends_go(1);
	fake_ends_go(SOON / 2);
	assert_false(engine_quiet_open(of_a));
	for (uint32_t i = 0; i < 20 * ENGINE_REQUESTS_MAX; i++) {
		put(1 + i % 1000);
		assert_in_range(of_a->quiet_cnt, 0, ENGINE_REQUESTS_MAX);
		if (i % 32 == 0)
			fake_ends_go(1);
	}
	for (uint32_t i = 0; i < IN_TIME && fake_end_engine(&a)->queued_cnt; i++)
		fake_ends_go(1);
	fake_ends_go(4 * SOON);
	assert_memory_equal(&region[1], &buf[1], 1000 * 8);
}

static void target_that_closes_says_what_it_has_got(void **state)
{
	struct fi_cq_tagged_entry entry;
	struct fi_context2 context;
	uint32_t rounds = SOON;

	assert_int_equal(fi_write(a.ep, buf, 8, NULL, to_b, 8, KEY, &context), 0);
	expect(1, SOON);
	buf[1] = 5;
	assert_int_equal(fi_write(a.ep, &buf[1], 8, NULL, to_b, 8, KEY, &context), 0);
	while (region[1] != 5 && rounds--)
		fake_ends_go(1);
	assert_true(engine_quiet_open(of_a));
	expect(1, SOON);
	fake_end_stop(&b);
	for (uint32_t i = 0; i < IN_TIME; i++)
		fake_end_progress(&a);
	/* no error */
	assert_int_equal(fi_cq_read(a.tx_cq, &entry, 1), -FI_EAGAIN);
	assert_int_equal(acks, 1);
}

static void who_sleeps_wakes_to_say_it(void **state)
{
	struct engine_domain *domain = fake_end_engine(&b)->domain;
	uint64_t ns;

	arrive();
	for (uint32_t i = 0; i < IN_TIME && engine_quiet_open(of_a); i++)
		fake_ends_go(1);
	acks = 0;
	/* One has just left: the next waits, and so long only is slept. */
	arrive();
	while (!(ns = engine_wires_arm(domain)))
		fake_end_progress(&b);
	assert_in_range(ns, 1, ENGINE_ACKS_NS);
	assert_int_equal(of_b->ack_due, ACK_LATER);
	engine_wires_disarm(domain);
	fake_ends_go(IN_TIME);
	assert_false(engine_quiet_open(of_a));
}

/* What was not answered is reported once, and the next incarnation begins without it. */
static void break_forgets_who_was_to_be_told(void **state)
{
	arrive();
	assert_int_equal(of_b->ack_due, ACK_LATER);
	assert_true(fake_break(fake_end_engine(&a), fake_end_engine(&b), -FI_ETIMEDOUT) > 0);
	fake_ends_go(IN_TIME);
	assert_true(list_empty(&fake_end_engine(&b)->acks_later));
	assert_false(engine_quiet_open(of_a));
	put(1);
	fake_ends_go(IN_TIME);
	assert_int_equal(region[1], buf[1]);
	assert_false(engine_quiet_open(of_a));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		TEST(writes_that_nobody_waits_for_are_acknowledged_together),
		TEST(all_are_acknowledged_in_time),
		TEST(who_waits_is_told_at_once_of_all_before_it),
		TEST(fence_asks_for_what_it_waits_for),
		TEST(fenced_message_asks_too),
		TEST(some_of_many_ask),
		TEST(target_that_closes_says_what_it_has_got),
		TEST(who_sleeps_wakes_to_say_it),
		TEST(break_forgets_who_was_to_be_told),
#undef TEST
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
