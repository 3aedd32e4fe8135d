/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Connection requests that are answered later, and the private data of both programs. Requests
 * reach the endpoint over the fake wires; the test answers them, as the program of a connected
 * endpoint does.
 */
#include "conns.h"
#include "liveness.h"
#include "peer.h"
#include "victim.h"

#define HELD_MAX 4u

/* Requests that the endpoint has received, and not answered. */
static struct {
	struct wire_conn *conn;
	struct hello hello;
} held[HELD_MAX];
static uint32_t held_cnt;
static struct fake_raw *raw;
static char bytes[64];

static void hold(struct wire_conn *conn, const struct hello *hello)
{
	assert_null(conn->peer);
	assert_false(conn->up);
	assert_true(held_cnt < HELD_MAX);
	held[held_cnt].conn = conn;
	held[held_cnt++].hello = *hello;
}

static int setup(void **state)
{
	held_cnt = 0;
	raw = NULL;
	fake_ends_begin(1);
	fake_end_open(&victim, &victim_attr, NULL);
	fake_raw_hello(&lie, &victim.name, 20000);
	to_liar = fake_end_insert(&victim, &lie.addr);
	fake_end_engine(&victim)->requested = hold;
	return 0;
}

static int teardown(void **state)
{
	if (raw)
		fake_raw_close(raw, -FI_ECONNRESET);
	if (victim.ep)
		fake_end_close(&victim);
	if (honest.ep)
		fake_end_close(&honest);
	return 0;
}

static struct engine_peer *peer(void)
{
	return fake_end_peer(&victim, &lie.addr);
}

static struct hello_data data_of(const char *text)
{
	struct hello_data data = { .len = (uint32_t)strlen(text) + 1 };

	memcpy(data.bytes, text, data.len);
	return data;
}

static void request(void)
{
	assert_int_equal(fake_raw_request(fake_end_engine(&victim), &lie, &raw), 0);
	assert_int_equal(fake_raw_answered(raw, &reply), 1);
}

static void send_one(const char *text)
{
	struct packet p = { .op = PACKET_EAGER,
			    .flags = PACKET_TAGGED,
			    .epoch = PACKET_EPOCH(lie.epoch),
			    .len = (uint32_t)strlen(text) + 1,
			    .seq = lie.seq++,
			    .tag = 5 };

	assert_int_equal(
		fi_trecv(victim.ep, bytes, sizeof(bytes), NULL, to_liar, 5, 0, &contexts[0]), 0);
	assert_int_equal(fake_raw_send(raw, &p, text, p.len, NULL), 0);
	assert_int_equal(next(victim.rx_cq), 1);
	assert_string_equal(bytes, text);
}

static void a_request_is_accepted_later_and_carries_data_both_ways(void **state)
{
	struct hello_data answer = data_of("welcome");

	lie.data = data_of("let me in");
	request();
	go(100);
	assert_int_equal(fake_raw_answered(raw, &reply), 1);
	assert_int_equal(held_cnt, 1);
	assert_string_equal(held[0].hello.data.bytes, "let me in");
	engine_conn_accept(held[0].conn, &held[0].hello, &answer);
	assert_int_equal(fake_raw_answered(raw, &reply), 0);
	assert_int_equal(reply.data.len, sizeof("welcome"));
	assert_string_equal(reply.data.bytes, "welcome");
	go(1);
	assert_int_equal(peer()->up_cnt, 1);
	send_one("in");
}

static void a_request_is_refused_later_with_a_reason(void **state)
{
	struct hello_data answer = data_of("not you");

	request();
	go(10);
	engine_conn_refuse(held[0].conn, -FI_EACCES, &answer);
	assert_int_equal(fake_raw_answered(raw, &reply), -FI_EACCES);
	assert_string_equal(reply.data.bytes, "not you");
	assert_false(fake_raw_alive(raw));
	assert_int_equal(fake_conn_cnt(), 0);
}

static void a_request_that_was_given_up_ends_when_it_is_accepted(void **state)
{
	request();
	fake_raw_close(raw, 0);
	raw = NULL;
	go(100);
	assert_int_equal(fake_conn_cnt(), 1); /* the engine owns it */
	engine_conn_accept(held[0].conn, &held[0].hello, NULL);
	go(100);
	assert_int_equal(fake_conn_cnt(), 0);
	request();
	engine_conn_accept(held[1].conn, &held[1].hello, NULL);
	go(1);
	send_one("again");
}

static void a_request_that_was_given_up_may_be_refused(void **state)
{
	request();
	fake_raw_close(raw, 0);
	raw = NULL;
	engine_conn_refuse(held[0].conn, -FI_EACCES, NULL);
	assert_int_equal(fake_conn_cnt(), 0);
}

static void an_endpoint_that_closes_refuses_what_it_has_not_answered(void **state)
{
	request();
	fake_end_close(&victim);
	assert_int_equal(fake_raw_answered(raw, &reply), -FI_ECONNREFUSED);
	assert_false(fake_raw_alive(raw));
}

static void a_conn_that_was_accepted_ends_with_its_peer(void **state)
{
	request();
	engine_conn_accept(held[0].conn, &held[0].hello, NULL);
	assert_int_equal(peer()->up_cnt, 0);
	engine_conn_broken(peer(), -FI_ECONNABORTED);
	go(10);
	assert_false(fake_raw_alive(raw));
	assert_int_equal(fake_conn_cnt(), 0);
	assert_true(list_empty(&peer()->conns));
}

static void the_last_of_two_requests_that_are_accepted_stays(void **state)
{
	struct fake_raw *first;

	request();
	first = raw;
	request();
	engine_conn_accept(held[0].conn, &held[0].hello, NULL);
	engine_conn_accept(held[1].conn, &held[1].hello, NULL);
	go(10);
	assert_false(fake_raw_alive(first));
	assert_true(fake_raw_alive(raw));
	assert_int_equal(peer()->up_cnt, 1);
	fake_raw_close(first, 0);
	send_one("second");
}

static void a_request_of_an_older_incarnation_is_refused_when_its_turn_comes(void **state)
{
	struct fake_raw *old;

	request();
	old = raw;
	lie.incarnation++;
	request();
	engine_conn_accept(held[1].conn, &held[1].hello, NULL);
	go(1);
	engine_conn_accept(held[0].conn, &held[0].hello, NULL);
	assert_int_equal(fake_raw_answered(old, &reply), -FI_ECONNRESET);
	fake_raw_close(old, 0);
	assert_int_equal(peer()->up_cnt, 1);
	send_one("new");
}

static void what_was_sent_meanwhile_waits_for_the_answer(void **state)
{
	struct packet p = { 0 };

	request();
	engine_conn_accept(held[0].conn, &held[0].hello, NULL);
	assert_int_equal(fi_tinject(victim.ep, "out", 4, to_liar, 1), 0);
	go(10);
	assert_true(fake_raw_read(raw, &p, NULL, 0));
	assert_int_equal(p.op, PACKET_EAGER);
}

/* The conn breaks as soon as it is up, or never comes up: then the raw peer refuses the next one. */
static void what_waits_ends_when_the_request_was_given_up(void **state)
{
	uint32_t left = 0, failed = 0;
	ssize_t ret;

	for (uint64_t seed = 0; seed < 20; seed++) {
		fake_seed(seed);
		held_cnt = 0;
		request();
		fake_raw_close(raw, 0);
		raw = NULL;
		engine_conn_accept(held[0].conn, &held[0].hello, NULL);
		assert_int_equal(fi_tsend(victim.ep, "out", 4, NULL, to_liar, 1, &contexts[0]),
				 0);
		do
			ret = next(victim.tx_cq);
		while (ret == -FI_EAGAIN);
		assert_true(ret == 1 || error.err == FI_ECONNREFUSED ||
			    error.err == FI_ECONNRESET);
		left += ret == 1;
		failed += ret != 1;
		go(1000);
		assert_int_equal(fake_conn_cnt(), 0);
		fake_end_rests(&victim);
	}
	assert_true(left && failed);
}

static void a_send_waits_for_an_answer_that_comes_later(void **state)
{
	fi_addr_t to_victim;

	fake_end_open(&honest, &victim_attr, NULL);
	to_victim = fake_end_insert(&honest, &victim.name);
	assert_int_equal(fi_trecv(victim.ep, bytes, sizeof(bytes), NULL, FI_ADDR_UNSPEC, 5, 0,
				  &contexts[1]),
			 0);
	assert_int_equal(fi_tsend(honest.ep, "late", 5, NULL, to_victim, 5, &contexts[0]), 0);
	go(1000);
	assert_int_equal(held_cnt, 1);
	assert_int_equal(fi_cq_read(honest.tx_cq, &entry, 1), -FI_EAGAIN);
	engine_conn_accept(held[0].conn, &held[0].hello, NULL);
	assert_int_equal(next(honest.tx_cq), 1);
	assert_int_equal(next(victim.rx_cq), 1);
	assert_string_equal(bytes, "late");
}

static void an_endpoint_that_is_refused_later_fails_what_waits(void **state)
{
	struct hello_data why = data_of("closed");
	fi_addr_t to_victim;

	fake_end_open(&honest, &victim_attr, NULL);
	to_victim = fake_end_insert(&honest, &victim.name);
	assert_int_equal(fi_tsend(honest.ep, "late", 5, NULL, to_victim, 5, &contexts[0]), 0);
	go(1000);
	assert_int_equal(held_cnt, 1);
	engine_conn_refuse(held[0].conn, -FI_EKEYREJECTED, &why);
	assert_int_equal(next(honest.tx_cq), -FI_EAVAIL);
	assert_int_equal(error.err, FI_EKEYREJECTED);
	assert_int_equal(fake_conn_cnt(), 0);
}

/* Sends a message to itself, whose connection waits for the answer. Returns its own address. */
static fi_addr_t request_itself(void)
{
	fi_addr_t self = fake_end_insert(&victim, &victim.name);

	assert_int_equal(
		fi_trecv(victim.ep, bytes, sizeof(bytes), NULL, self, 5, 0, &contexts[1]), 0);
	assert_int_equal(fi_tsend(victim.ep, "self", 5, NULL, self, 5, &contexts[0]), 0);
	while (!held_cnt)
		go(1);
	go(100);
	assert_int_equal(held_cnt, 1);
	assert_int_equal(fi_cq_read(victim.tx_cq, &entry, 1), -FI_EAGAIN);
	return self;
}

static void an_endpoint_answers_itself_later(void **state)
{
	request_itself();
	engine_conn_accept(held[0].conn, &held[0].hello, NULL);
	assert_int_equal(next(victim.tx_cq), 1);
	assert_int_equal(next(victim.rx_cq), 1);
	assert_string_equal(bytes, "self");
}

static void an_endpoint_refuses_itself_later(void **state)
{
	request_itself();
	engine_conn_refuse(held[0].conn, -FI_EKEYREJECTED, NULL);
	assert_int_equal(next(victim.tx_cq), -FI_EAVAIL);
	assert_int_equal(error.err, FI_EKEYREJECTED);
	assert_int_equal(next(victim.rx_cq), -FI_EAVAIL);
	assert_int_equal(error.err, FI_EKEYREJECTED);
}

static void an_endpoint_that_gives_itself_up_may_answer_and_connect_again(void **state)
{
	request_itself();
	engine_conn_broken(fake_end_peer(&victim, &victim.name), -FI_ECONNABORTED);
	assert_int_equal(next(victim.tx_cq), -FI_EAVAIL);
	assert_int_equal(next(victim.rx_cq), -FI_EAVAIL);
	engine_conn_accept(held[0].conn, &held[0].hello, NULL);
	go(10);
	held_cnt = 0;
	request_itself();
	engine_conn_accept(held[0].conn, &held[0].hello, NULL);
	assert_int_equal(next(victim.tx_cq), 1);
	assert_int_equal(next(victim.rx_cq), 1);
}

/* The peer is freed before the wire's poll reports the end of the accepted conn. */
static void an_endpoint_that_forgets_itself_ends_what_it_has_accepted(void **state)
{
	struct engine_ep *ep = fake_end_engine(&victim);
	fi_addr_t self = request_itself();

	engine_conn_accept(held[0].conn, &held[0].hello, NULL);
	engine_conn_broken(fake_end_peer(&victim, &victim.name), -FI_ECONNABORTED);
	assert_int_equal(fi_av_remove(victim.av, &self, 1, 0), 0);
	engine_peers_check(ep, 1);
	assert_null(fake_end_peer(&victim, &victim.name));
	assert_int_equal(next(victim.tx_cq), -FI_EAVAIL);
	assert_int_equal(next(victim.rx_cq), -FI_EAVAIL);
	go(10);
}

static void more_data_than_there_may_be_is_refused(void **state)
{
	lie.data.len = HELLO_DATA_MAX;
	request();
	fake_raw_close(raw, 0);
	raw = NULL;
	engine_conn_refuse(held[0].conn, -FI_EACCES, NULL);
	lie.data.len = HELLO_DATA_MAX + 1;
	assert_int_equal(fake_raw_request(fake_end_engine(&victim), &lie, &raw), -FI_EINVAL);
	lie.data.len = UINT32_MAX;
	assert_int_equal(fake_raw_request(fake_end_engine(&victim), &lie, &raw), -FI_EINVAL);
	lie.data = (struct hello_data){ .reserved = 1 };
	assert_int_equal(fake_raw_request(fake_end_engine(&victim), &lie, &raw), -FI_EINVAL);
	assert_int_equal(held_cnt, 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_request_is_accepted_later_and_carries_data_both_ways),
		TEST(a_request_is_refused_later_with_a_reason),
		TEST(a_request_that_was_given_up_ends_when_it_is_accepted),
		TEST(a_request_that_was_given_up_may_be_refused),
		TEST(an_endpoint_that_closes_refuses_what_it_has_not_answered),
		TEST(a_conn_that_was_accepted_ends_with_its_peer),
		TEST(the_last_of_two_requests_that_are_accepted_stays),
		TEST(a_request_of_an_older_incarnation_is_refused_when_its_turn_comes),
		TEST(what_was_sent_meanwhile_waits_for_the_answer),
		TEST(what_waits_ends_when_the_request_was_given_up),
		TEST(a_send_waits_for_an_answer_that_comes_later),
		TEST(an_endpoint_that_is_refused_later_fails_what_waits),
		TEST(an_endpoint_answers_itself_later),
		TEST(an_endpoint_refuses_itself_later),
		TEST(an_endpoint_that_gives_itself_up_may_answer_and_connect_again),
		TEST(an_endpoint_that_forgets_itself_ends_what_it_has_accepted),
		TEST(more_data_than_there_may_be_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
