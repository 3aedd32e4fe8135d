/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Several connections of a peer over one wire, its rails: which of them is the route, and what is
 * lost with one of them. The peer is the test itself, over the fake wires.
 */
#include "conns.h"
#include "liveness.h"
#include "peer.h"
#include "victim.h"

static struct fake_raw *second;
static char bytes[64];

static int setup(void **state)
{
	victim_open();
	return 0;
}

static int teardown(void **state)
{
	if (second)
		fake_raw_close(second, -FI_ECONNRESET);
	second = NULL;
	fake_raw_close(liar, -FI_ECONNRESET);
	fake_end_close(&victim);
	return 0;
}

static struct engine_peer *peer(void)
{
	return fake_end_peer(&victim, &lie.addr);
}

static int open_rail(uint32_t rail, struct fake_raw **raw)
{
	struct hello hello = lie;

	hello.rail = (uint8_t)rail;
	return fake_raw_open(fake_end_engine(&victim), &hello, raw, &reply);
}

static void open_second(void)
{
	assert_int_equal(open_rail(1, &second), 0);
	assert_int_equal(reply.rail, 1);
	assert_int_equal(peer()->up_cnt, 2);
}

static void post(uint64_t tag, fi_addr_t from, void *context)
{
	assert_int_equal(fi_trecv(victim.ep, bytes, sizeof(bytes), NULL, from, tag, 0, context),
			 0);
}

/* The next message of the peer, over one of its conns. */
static void send_over(struct fake_raw *raw, const char *text)
{
	struct packet p = { .op = PACKET_EAGER,
			    .flags = PACKET_TAGGED,
			    .epoch = PACKET_EPOCH(lie.epoch),
			    .len = (uint32_t)strlen(text) + 1,
			    .seq = lie.seq++,
			    .tag = 5 };

	assert_int_equal(fake_raw_send(raw, &p, text, p.len, NULL), 0);
}

static void expect(void *context, const char *text)
{
	assert_int_equal(next(victim.rx_cq), 1);
	assert_ptr_equal(entry.op_context, context);
	assert_string_equal(bytes, text);
}

/* The victim sends a message: returns true if it leaves over this conn. */
static bool sends_over(struct fake_raw *raw)
{
	struct packet p = { 0 };

	assert_int_equal(fi_tinject(victim.ep, "out", 4, to_liar, 1), 0);
	go(1);
	return fake_raw_read(raw, &p, NULL, 0) && p.op == PACKET_EAGER;
}

static void messages_of_two_rails_are_one_sequence(void **state)
{
	open_second();
	for (int i = 0; i < 6; i++) {
		post(5, FI_ADDR_UNSPEC, &contexts[i]);
		send_over(i % 2 ? second : liar, i % 2 ? "second" : "first");
		expect(&contexts[i], i % 2 ? "second" : "first");
	}
}

static void the_route_is_the_rail_that_came_first(void **state)
{
	open_second();
	assert_true(sends_over(liar));
	assert_true(sends_over(liar));
	assert_ptr_equal(peer()->conn, engine_conn_at(peer(), 0, 0));
}

static void a_peer_lives_on_when_a_rail_fails_that_has_carried_nothing(void **state)
{
	open_second();
	post(5, to_liar, &contexts[0]);
	fake_raw_close(second, -FI_ETIMEDOUT);
	second = NULL;
	assert_int_equal(next(victim.rx_cq), -FI_EAGAIN);
	assert_int_equal(peer()->up_cnt, 1);
	assert_true(sends_over(liar));
	send_over(liar, "lives");
	expect(&contexts[0], "lives");
}

static void a_peer_lives_on_when_the_check_of_an_idle_rail_fails(void **state)
{
	struct wire_conn *conn;

	open_second();
	post(5, to_liar, &contexts[0]);
	conn = engine_conn_at(peer(), 0, 1);
	assert_non_null(conn);
	engine_conn_failed(conn, -FI_ETIMEDOUT);
	assert_false(fake_raw_alive(second));
	assert_int_equal(next(victim.rx_cq), -FI_EAGAIN);
	send_over(liar, "lives");
	expect(&contexts[0], "lives");
}

static void what_a_failed_rail_may_have_carried_takes_the_peer_with_it(void **state)
{
	for (int in = 0; in < 2; in++) {
		open_second();
		post(9, to_liar, &contexts[0]);
		if (in)
			send_over(second, "carried");
		fake_raw_close(in ? second : liar, -FI_ETIMEDOUT);
		assert_int_equal(next(victim.rx_cq), -FI_EAVAIL);
		assert_ptr_equal(error.op_context, &contexts[0]);
		assert_int_equal(error.err, FI_ETIMEDOUT);
		assert_int_equal(fake_conn_cnt(), 0);
		fake_raw_close(in ? liar : second, 0);
		second = NULL;
		lie.incarnation++;
		meet_liar();
	}
}

static void the_other_rail_is_the_route_when_the_first_one_closes_in_order(void **state)
{
	open_second();
	assert_true(sends_over(liar));
	post(5, to_liar, &contexts[0]);
	fake_raw_close(liar, 0);
	liar = second;
	second = NULL;
	assert_int_equal(next(victim.rx_cq), -FI_EAGAIN);
	assert_true(sends_over(liar));
	send_over(liar, "goes on");
	expect(&contexts[0], "goes on");
}

static void a_rail_that_is_opened_again_is_a_broken_one(void **state)
{
	struct fake_raw *again;

	open_second();
	post(5, to_liar, &contexts[0]);
	assert_int_equal(open_rail(1, &again), 0);
	assert_int_equal(next(victim.rx_cq), -FI_EAVAIL);
	assert_int_equal(error.err, FI_ECONNRESET);
	assert_int_equal(fake_conn_cnt(), 1);
	fake_raw_close(second, 0);
	second = again;
}

static void a_new_incarnation_on_one_rail_ends_the_others(void **state)
{
	struct fake_raw *again;

	open_second();
	lie.incarnation++;
	assert_int_equal(open_rail(2, &again), 0);
	assert_false(fake_raw_alive(liar));
	assert_false(fake_raw_alive(second));
	assert_int_equal(peer()->up_cnt, 1);
	fake_raw_close(second, 0);
	second = again;
}

static void as_many_rails_as_there_may_be_and_no_more(void **state)
{
	struct fake_raw *raws[HELLO_RAILS], *none;

	for (uint32_t i = 1; i < HELLO_RAILS; i++)
		assert_int_equal(open_rail(i, &raws[i]), 0);
	assert_int_equal(peer()->up_cnt, HELLO_RAILS);
	assert_int_equal(open_rail(HELLO_RAILS, &none), -FI_EINVAL);
	assert_int_equal(open_rail(UINT8_MAX, &none), -FI_EINVAL);
	for (uint32_t i = 1; i < HELLO_RAILS; i++)
		fake_raw_close(raws[i], 0);
	assert_int_equal(peer()->up_cnt, 1);
}

static void an_answer_of_another_rail_is_refused(void **state)
{
	struct hello hello = lie;
	struct weft_addr nobody = lie.addr;
	struct fake_raw *raw = NULL;

	hello.addr.nonce[0]++;
	hello.addr.port++;
	nobody = hello.addr;
	hello.rail = 1;
	assert_int_equal(fi_tsend(victim.ep, "hello?", 7, NULL,
				  fake_end_insert(&victim, &nobody), 1, &contexts[0]),
			 0);
	assert_int_equal(fake_raw_answer(fake_end_engine(&victim), &hello, &raw), 0);
	assert_false(fake_raw_alive(raw));
	assert_int_equal(next(victim.tx_cq), -FI_EAVAIL);
	assert_int_equal(error.err, FI_EINVAL);
	fake_raw_close(raw, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(messages_of_two_rails_are_one_sequence),
		TEST(the_route_is_the_rail_that_came_first),
		TEST(a_peer_lives_on_when_a_rail_fails_that_has_carried_nothing),
		TEST(a_peer_lives_on_when_the_check_of_an_idle_rail_fails),
		TEST(what_a_failed_rail_may_have_carried_takes_the_peer_with_it),
		TEST(the_other_rail_is_the_route_when_the_first_one_closes_in_order),
		TEST(a_rail_that_is_opened_again_is_a_broken_one),
		TEST(a_new_incarnation_on_one_rail_ends_the_others),
		TEST(as_many_rails_as_there_may_be_and_no_more),
		TEST(an_answer_of_another_rail_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
