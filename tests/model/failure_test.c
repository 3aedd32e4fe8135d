/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What a broken, closed, late or second connection does to the operations of an endpoint, one
 * case at a time over the fake wires.
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#include <rdma/fi_errno.h>
#include "conns.h"
#include "fake_ends.h"
#include "liveness.h"
#include "peer.h"
#include <cmocka.h>

#define ROUNDS_MAX 200000 /* polls in which anything must happen */

/* Two endpoints that know each other; a third where a test opens it. */
static struct fake_end a, b, c;
static fi_addr_t to_b, to_a;
static struct fi_cq_tagged_entry entry;
static struct fi_cq_err_entry error;
static fi_addr_t source;
static struct fi_context2 contexts[16];

static const struct fake_end_attr plain = {
	.family = FAKE_FAMILY_AB,
	.threading = FI_THREAD_DOMAIN,
	.format = FI_CQ_FORMAT_TAGGED,
	.budget = 64u << 20,
};

static void knobs(uint32_t claim_max, uint32_t eager_max, bool has_get)
{
	struct fake_knobs k;

	fake_knobs_default(&k);
	k.claim_max = claim_max;
	k.eager_max = eager_max;
	k.has_get = has_get;
	fake_knobs_set(FAKE_A, &k);
	fake_knobs_set(FAKE_B, &k);
}

static int setup(void **state)
{
	fake_ends_begin(1);
	knobs(1024, 8192, true);
	fake_end_open(&a, &plain, NULL);
	fake_end_open(&b, &plain, NULL);
	to_b = fake_end_insert(&a, &b.name);
	to_a = fake_end_insert(&b, &a.name);
	return 0;
}

static int teardown(void **state)
{
	fake_ends_close();
	return 0;
}

/*
 * The next completion of a queue; -FI_EAVAIL with the entry in 'error'; -FI_EAGAIN: there is none.
 */
static ssize_t next(struct fid_cq *cq, uint32_t rounds)
{
	return fake_ends_next(cq, rounds, &entry, &source, &error);
}

static void expect_done(struct fid_cq *cq, void *context)
{
	assert_int_equal(next(cq, ROUNDS_MAX), 1);
	assert_ptr_equal(entry.op_context, context);
}

static void expect_error(struct fid_cq *cq, void *context, int err)
{
	assert_int_equal(next(cq, ROUNDS_MAX), -FI_EAVAIL);
	assert_ptr_equal(error.op_context, context);
	assert_int_equal(error.err, err);
}

static void expect_nothing(struct fid_cq *cq)
{
	assert_int_equal(next(cq, 2000), -FI_EAGAIN);
}

static int break_both(int err)
{
	return fake_break(fake_end_engine(&a), fake_end_engine(&b), err);
}

/* Exchange a message, so that they are connected. */
static void meet(void)
{
	char buf[8];

	assert_int_equal(fi_trecv(b.ep, buf, 8, NULL, FI_ADDR_UNSPEC, 1, 0, &contexts[15]), 0);
	assert_int_equal(fi_tsend(a.ep, "meeting", 8, NULL, to_b, 1, &contexts[14]), 0);
	expect_done(b.rx_cq, &contexts[15]);
	assert_string_equal(buf, "meeting");
	expect_done(a.tx_cq, &contexts[14]);
	fake_ends_go(200); /* the better wire too */
}

static void broken_connection_fails_directed_receives_with_their_source(void **state)
{
	char buf[8];

	meet();
	assert_int_equal(fi_trecv(b.ep, buf, 8, NULL, to_a, 5, 0, &contexts[0]), 0);
	assert_int_equal(fi_recv(b.ep, buf, 8, NULL, to_a, &contexts[1]), 0);
	assert_true(break_both(-FI_ETIMEDOUT) > 0);
	expect_error(b.rx_cq, &contexts[0], FI_ETIMEDOUT);
	assert_int_equal(error.src_addr, to_a);
	assert_int_equal(error.flags, FI_RECV | FI_TAGGED);
	expect_error(b.rx_cq, &contexts[1], FI_ETIMEDOUT);
	assert_int_equal(error.src_addr, to_a);
	assert_int_equal(error.flags, FI_RECV | FI_MSG);
}

static void many_directed_receives_fail_at_once(void **state)
{
	enum { CNT = 100000 };
	static struct fi_context2 many[CNT];
	time_t begin;
	char buf[8];

	meet();
	for (uint64_t i = 0; i < CNT; i++)
		assert_int_equal(fi_trecv(b.ep, buf, 8, NULL, to_a, i, 0, &many[i]), 0);
	begin = time(NULL);
	assert_true(break_both(-FI_ECONNRESET) > 0);
	for (int i = 0; i < CNT; i++)
		expect_error(b.rx_cq, &many[i], FI_ECONNRESET);
	assert_true(time(NULL) - begin < 10);
}

static void directed_receives_of_others_stay_when_one_peer_breaks(void **state)
{
	fi_addr_t to_c;
	char buf[8];

	fake_end_open(&c, &plain, NULL);
	to_c = fake_end_insert(&b, &c.name);
	meet();
	assert_int_equal(fi_trecv(b.ep, buf, 8, NULL, to_c, 5, 0, &contexts[0]), 0);
	assert_int_equal(fi_trecv(b.ep, buf, 8, NULL, to_a, 5, 0, &contexts[1]), 0);
	break_both(-FI_ECONNRESET);
	expect_error(b.rx_cq, &contexts[1], FI_ECONNRESET);
	expect_nothing(b.rx_cq);
	to_c = fake_end_insert(&c, &b.name);
	FAKE_UNTIL_TAKEN(fi_tinject(c.ep, "of c", 5, to_c, 5));
	expect_done(b.rx_cq, &contexts[0]);
	assert_string_equal(buf, "of c");
}

static void wildcards_stay_posted_when_a_connection_breaks(void **state)
{
	char buf[8] = "", other[8] = "";

	meet();
	assert_int_equal(fi_trecv(b.ep, buf, 8, NULL, FI_ADDR_UNSPEC, 5, 0, &contexts[0]), 0);
	assert_int_equal(fi_recv(b.ep, other, 8, NULL, FI_ADDR_UNSPEC, &contexts[1]), 0);
	break_both(-FI_ECONNRESET);
	expect_nothing(b.rx_cq);
	assert_int_equal(fi_tsend(a.ep, "again", 6, NULL, to_b, 5, &contexts[2]), 0);
	assert_int_equal(fi_send(a.ep, "other", 6, NULL, to_b, &contexts[3]), 0);
	expect_done(b.rx_cq, &contexts[0]);
	assert_int_equal(source, to_a);
	assert_string_equal(buf, "again");
	expect_done(b.rx_cq, &contexts[1]);
	assert_string_equal(other, "other");
}

static void sends_that_wait_fail_with_the_connection(void **state)
{
	static char big[100000];

	meet();
	/* Nothing passes: the eager one hangs in the wire, the large one waits for its receiver. */
	fake_stop(fake_end_engine(&a), fake_end_engine(&b), true);
	assert_int_equal(fi_tsend(a.ep, big, 5000, NULL, to_b, 1, &contexts[0]), 0);
	assert_int_equal(fi_tsend(a.ep, big, sizeof(big), NULL, to_b, 2, &contexts[1]), 0);
	expect_nothing(a.tx_cq);
	assert_true(break_both(-FI_ECONNRESET) > 0);
	expect_error(a.tx_cq, &contexts[0], FI_ECONNRESET);
	assert_int_equal(error.flags, FI_SEND | FI_TAGGED);
	expect_error(a.tx_cq, &contexts[1], FI_ECONNRESET);
	expect_nothing(a.tx_cq);
	expect_nothing(b.rx_cq);
}

static void sends_that_found_no_room_fail_with_the_connection(void **state)
{
	struct fake_knobs k;
	int sent = 0;

	fake_knobs_default(&k);
	k.claim_room = 2;
	fake_knobs_set(FAKE_A, &k);
	meet();
	fake_stop(fake_end_engine(&a), fake_end_engine(&b), true);
	for (int i = 0; i < 6; i++)
		assert_int_equal(fi_tsend(a.ep, "queued", 7, NULL, to_b, 1, &contexts[i]), 0);
	while (next(a.tx_cq, 100) == 1)
		sent++;
	assert_int_equal(sent, 2);
	break_both(-FI_ECONNRESET);
	for (int i = sent; i < 6; i++)
		expect_error(a.tx_cq, &contexts[i], FI_ECONNRESET);
	expect_nothing(a.tx_cq);
}

/* A large message whose payload is requested by packets, stopped half way. */
static void stop_in_rendezvous(char *from, char *to, size_t len)
{
	knobs(1024, 8192, false);
	meet();
	assert_int_equal(fi_tsend(a.ep, from, len, NULL, to_b, 7, &contexts[0]), 0);
	fake_ends_go(20);
	fake_stop(fake_end_engine(&a), fake_end_engine(&b), true);
	assert_int_equal(fi_trecv(b.ep, to, len, NULL, FI_ADDR_UNSPEC, 7, 0, &contexts[1]), 0);
	fake_ends_go(100);
	expect_nothing(a.tx_cq);
	expect_nothing(b.rx_cq);
}

static void rendezvous_fails_on_both_sides_with_the_connection(void **state)
{
	static char from[100000], to[100000];

	stop_in_rendezvous(from, to, sizeof(from));
	break_both(-FI_ETIMEDOUT);
	expect_error(a.tx_cq, &contexts[0], FI_ETIMEDOUT);
	expect_error(b.rx_cq, &contexts[1], FI_ETIMEDOUT);
	assert_int_equal(error.src_addr, to_a);
	assert_int_equal(error.tag, 7);
}

static void receive_half_way_fails_when_its_sender_closes(void **state)
{
	static char from[100000], to[100000];

	stop_in_rendezvous(from, to, sizeof(from));
	fake_end_close(&a);
	fake_end_open(&a, &plain, NULL);
	expect_error(b.rx_cq, &contexts[1], FI_ECONNRESET);
	assert_int_equal(error.src_addr, to_a);
}

static void send_half_way_fails_when_its_receiver_closes(void **state)
{
	static char from[100000], to[100000];

	stop_in_rendezvous(from, to, sizeof(from));
	fake_end_close(&b);
	fake_end_open(&b, &plain, NULL);
	expect_error(a.tx_cq, &contexts[0], FI_ECONNRESET);
	assert_int_equal(error.flags, FI_SEND | FI_TAGGED);
}

static void directed_receives_stay_posted_when_their_peer_closes_in_order(void **state)
{
	char buf[8], more[8];

	meet();
	assert_int_equal(fi_trecv(b.ep, buf, 8, NULL, to_a, 5, 0, &contexts[0]), 0);
	assert_int_equal(fi_trecv(b.ep, more, 8, NULL, to_a, 6, 0, &contexts[1]), 0);
	assert_int_equal(fi_tinject(a.ep, "last", 5, to_b, 6), 0);
	fake_end_close(&a);
	fake_end_open(&a, &plain, NULL);
	expect_done(b.rx_cq, &contexts[1]); /* what was sent before arrives */
	assert_string_equal(more, "last");
	expect_nothing(b.rx_cq);
	assert_int_equal(fi_cancel(&b.ep->fid, &contexts[0]), 0);
	expect_error(b.rx_cq, &contexts[0], FI_ECANCELED);
}

static void whole_messages_that_are_stored_survive_their_connection(void **state)
{
	static char big[5000], got[5000];
	char buf[8];

	meet();
	memset(big, 'x', sizeof(big));
	assert_int_equal(fi_tinject(a.ep, "small", 6, to_b, 1), 0);
	assert_int_equal(fi_tsend(a.ep, big, sizeof(big), NULL, to_b, 2, &contexts[0]), 0);
	expect_done(a.tx_cq, &contexts[0]);
	fake_ends_go(100);
	break_both(-FI_ECONNRESET);
	fake_ends_go(100);
	assert_int_equal(fi_trecv(b.ep, buf, 8, NULL, to_a, 1, 0, &contexts[1]), 0);
	expect_done(b.rx_cq, &contexts[1]);
	assert_string_equal(buf, "small");
	assert_int_equal(source, to_a);
	assert_int_equal(fi_trecv(b.ep, got, sizeof(got), NULL, to_a, 2, 0, &contexts[2]), 0);
	expect_done(b.rx_cq, &contexts[2]);
	assert_memory_equal(got, big, sizeof(big));
}

static void stored_rendezvous_of_a_lost_sender_fails_the_receive_that_gets_it(void **state)
{
	static char big[100000], got[100000];

	meet();
	assert_int_equal(fi_tsend(a.ep, big, sizeof(big), NULL, to_b, 2, &contexts[0]), 0);
	fake_ends_go(100);
	break_both(-FI_ECONNRESET);
	expect_error(a.tx_cq, &contexts[0], FI_ECONNRESET);
	expect_nothing(b.rx_cq);
	assert_int_equal(
		fi_trecv(b.ep, got, sizeof(got), NULL, FI_ADDR_UNSPEC, 2, 0, &contexts[1]), 0);
	expect_error(b.rx_cq, &contexts[1], FI_ECONNRESET);
	assert_int_equal(error.src_addr, to_a);
	assert_int_equal(error.tag, 2);
	/* It took that message and no other. */
	assert_int_equal(
		fi_trecv(b.ep, got, sizeof(got), NULL, FI_ADDR_UNSPEC, 2, 0, &contexts[2]), 0);
	expect_nothing(b.rx_cq);
}

static void after_a_break_a_new_connection_carries_on(void **state)
{
	char buf[8];

	for (int i = 0; i < 20; i++) {
		meet();
		assert_true(break_both(i % 2 ? -FI_ECONNRESET : -FI_ETIMEDOUT) > 0);
		fake_ends_go(10);
		assert_int_equal(fi_tsend(b.ep, "back", 5, NULL, to_a, 9, &contexts[0]), 0);
		assert_int_equal(fi_trecv(a.ep, buf, 8, NULL, to_b, 9, 0, &contexts[1]), 0);
		expect_done(a.rx_cq, &contexts[1]);
		expect_done(b.tx_cq, &contexts[0]);
	}
}

static void sequence_numbers_wrap_around(void **state)
{
	struct engine_peer *peer;
	char buf[8];

	assert_int_equal(fi_trecv(a.ep, buf, 8, NULL, to_b, 9, 0, &contexts[1]),
			 0); /* makes the peer */
	peer = fake_end_peer(&a, &b.name);
	assert_non_null(peer);
	peer->tx_seq = UINT32_MAX - 10;
	for (int i = 0; i < 30; i++)
		meet();
	assert_true(peer->tx_seq > UINT32_MAX);
}

static void restarted_peer_is_another_life_of_a_service_address(void **state)
{
	struct weft_addr service = b.name;
	char buf[8];

	addr_to_service(&service);
	fi_av_remove(a.av, &to_b, 1, 0);
	to_b = fake_end_insert(&a, &service);
	meet();
	assert_int_equal(fi_trecv(a.ep, buf, 8, NULL, to_b, 3, 0, &contexts[0]), 0);
	/* The same address, where another endpoint listens. */
	fake_end_close(&b);
	fake_listen_at(&service);
	fake_end_open(&b, &plain, NULL);
	to_a = fake_end_insert(&b, &a.name);
	FAKE_UNTIL_TAKEN(fi_tinject(b.ep, "new", 4, to_a, 4));
	expect_error(a.rx_cq, &contexts[0], FI_ECONNRESET);
	assert_int_equal(error.src_addr, to_b);
	assert_int_equal(fi_trecv(a.ep, buf, 8, NULL, to_b, 4, 0, &contexts[1]), 0);
	expect_done(a.rx_cq, &contexts[1]);
	assert_int_equal(source, to_b);
	assert_string_equal(buf, "new");
}

static void service_address_is_upgraded_to_the_better_wire_before_the_first_message(void **state)
{
	struct weft_addr service = b.name;
	struct engine_peer *peer;

	addr_to_service(&service);
	fi_av_remove(a.av, &to_b, 1, 0);
	to_b = fake_end_insert(&a, &service);
	meet();
	peer = fake_end_peer(&a, &b.name);
	assert_string_equal(peer->wire->name, "fake-a");
	assert_int_equal(engine_conn_at(peer, FAKE_A, 0)->tx_msgs, 1);
	assert_int_equal(engine_conn_at(peer, FAKE_B, 0)->tx_msgs, 0);
}

static void endpoint_of_another_host_is_reached_by_the_second_wire(void **state)
{
	fi_addr_t far;
	char buf[8];

	fake_host(2);
	fake_end_open(&c, &plain, NULL);
	far = fake_end_insert(&c, &b.name);
	FAKE_UNTIL_TAKEN(fi_tinject(c.ep, "far", 4, far, 1));
	assert_int_equal(
		fi_trecv(b.ep, buf, 8, NULL, fake_end_insert(&b, &c.name), 1, 0, &contexts[0]),
		0);
	expect_done(b.rx_cq, &contexts[0]);
	assert_string_equal(buf, "far");
	assert_string_equal(fake_end_peer(&b, &c.name)->wire->name, "fake-b");
}

static void both_connecting_at_once_makes_one_connection(void **state)
{
	char buf[8], other[8];

	for (int i = 0; i < 50; i++) {
		teardown(state);
		setup(state);
		fake_seed((uint64_t)i);
		assert_int_equal(fi_tsend(a.ep, "to b", 5, NULL, to_b, 1, &contexts[2]), 0);
		assert_int_equal(fi_tsend(b.ep, "to a", 5, NULL, to_a, 1, &contexts[3]), 0);
		assert_int_equal(fi_trecv(b.ep, buf, 8, NULL, to_a, 1, 0, &contexts[0]), 0);
		assert_int_equal(fi_trecv(a.ep, other, 8, NULL, to_b, 1, 0, &contexts[1]), 0);
		expect_done(b.rx_cq, &contexts[0]);
		expect_done(a.rx_cq, &contexts[1]);
		fake_ends_go(100);
		assert_int_equal(fake_conn_cnt(), 2); /* its two ends */
	}
}

static void endpoint_that_no_wire_reaches_fails_the_send(void **state)
{
	struct fake_end_attr attr = plain;

	attr.family = FAKE_FAMILY_A;
	fake_host(2);
	fake_end_open(&c, &attr, NULL);
	assert_int_equal(
		fi_tsend(c.ep, "lost", 5, NULL, fake_end_insert(&c, &b.name), 1, &contexts[0]),
		0);
	expect_error(c.tx_cq, &contexts[0], FI_EHOSTUNREACH);
}

static void endpoint_that_does_not_answer_yet_is_tried_until_the_send_is_cancelled(void **state)
{
	struct weft_addr nobody = b.name;
	fi_addr_t to_nobody;

	nobody.port = 9999;
	addr_to_service(&nobody);
	to_nobody = fake_end_insert(&a, &nobody);
	assert_int_equal(fi_tsend(a.ep, "hello?", 7, NULL, to_nobody, 1, &contexts[0]), 0);
	assert_int_equal(next(a.tx_cq, 50000), -FI_EAGAIN);
	assert_int_equal(fi_cancel(&a.ep->fid, &contexts[0]), 0);
	expect_error(a.tx_cq, &contexts[0], FI_ECANCELED);
	assert_int_equal(fi_cancel(&a.ep->fid, &contexts[0]), 0);
}

/* Its address is of one endpoint alone, which had it: it does not come any more. */
static void endpoint_that_was_never_met_and_refuses_is_gone(void **state)
{
	struct weft_addr gone = b.name;

	memset(gone.nonce, 0x77, sizeof(gone.nonce));
	gone.port = 9999;
	assert_int_equal(
		fi_tsend(a.ep, "hello?", 7, NULL, fake_end_insert(&a, &gone), 1, &contexts[0]),
		0);
	expect_error(a.tx_cq, &contexts[0], FI_ECONNREFUSED);
}

static uint32_t refusals;

static void count_refusal(const struct wire_conn *conn, int err)
{
	refusals += err == -FI_ECONNREFUSED;
}

/* What one wire proves and another one does not contradict needs no time to be believed. */
static void endpoint_whose_process_is_gone_fails_sends_at_the_first_refusal(void **state)
{
	struct fake_knobs k;
	fi_addr_t to_c;

	fake_knobs_default(&k);
	k.proof = 256;
	fake_knobs_set(FAKE_A, &k);
	fake_end_open(&c, &plain, NULL);
	to_c = fake_end_insert(&a, &c.name);
	assert_int_equal(fi_tsend(a.ep, "hello", 6, NULL, to_c, 1, &contexts[0]), 0);
	expect_done(a.tx_cq, &contexts[0]);
	fake_end_close(&c);
	fake_ends_go(100);
	refusals = 0;
	fake_watch.ended = count_refusal;
	assert_int_equal(fi_tsend(a.ep, "anybody?", 9, NULL, to_c, 1, &contexts[0]), 0);
	expect_error(a.tx_cq, &contexts[0], FI_ECONNREFUSED);
	fake_watch.ended = NULL;
	assert_int_equal(refusals, 1);
}

static void endpoint_that_comes_late_gets_what_was_sent_to_it(void **state)
{
	struct weft_addr service = b.name;
	char buf[8];

	service.port = 4321;
	addr_to_service(&service);
	to_b = fake_end_insert(&a, &service);
	assert_int_equal(fi_tsend(a.ep, "early", 6, NULL, to_b, 1, &contexts[0]), 0);
	assert_int_equal(next(a.tx_cq, 5000), -FI_EAGAIN);
	fake_listen_at(&service);
	fake_end_open(&c, &plain, NULL);
	assert_int_equal(fi_trecv(c.ep, buf, 8, NULL, FI_ADDR_UNSPEC, 1, 0, &contexts[1]), 0);
	expect_done(c.rx_cq, &contexts[1]);
	assert_string_equal(buf, "early");
	expect_done(a.tx_cq, &contexts[0]);
}

static void addresses_of_both_kinds_lead_to_one_peer(void **state)
{
	struct weft_addr service = b.name;
	fi_addr_t also_to_b;
	char buf[4][8];

	addr_to_service(&service);
	also_to_b = fake_end_insert(&a, &service);
	assert_int_not_equal(also_to_b, to_b);
	for (int i = 0; i < 4; i++)
		assert_int_equal(fi_tsend(a.ep, i % 2 ? "uneven" : "even  ", 7, NULL,
					  i % 2 ? also_to_b : to_b, 1, &contexts[i]),
				 0);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(fi_trecv(b.ep, buf[i], 8, NULL, to_a, 1, 0, &contexts[4 + i]),
				 0);
		expect_done(b.rx_cq, &contexts[4 + i]);
		assert_string_equal(buf[i], i % 2 ? "uneven" : "even  ");
		expect_done(a.tx_cq, &contexts[i]);
	}
	assert_int_equal(fake_conn_cnt(), 2);
	/* An endpoint that comes up again is found by either. */
	assert_int_equal(fi_trecv(a.ep, buf[0], 8, NULL, also_to_b, 2, 0, &contexts[0]), 0);
	assert_int_equal(fi_tinject(b.ep, "back", 5, to_a, 2), 0);
	expect_done(a.rx_cq, &contexts[0]);
}

static void last_of_a_thousand_addresses_is_reached(void **state)
{
	struct weft_addr name = b.name;
	fi_addr_t to_last;
	char buf[8];

	for (uint32_t i = 0; i < 1000; i++) {
		memcpy(name.nonce, &i, sizeof(i));
		fake_end_insert(&a, &name);
	}
	fake_end_open(&c, &plain, NULL);
	to_last = fake_end_insert(&a, &c.name);
	FAKE_UNTIL_TAKEN(fi_tinject(a.ep, "last", 5, to_last, 1));
	assert_int_equal(fi_trecv(c.ep, buf, 8, NULL, FI_ADDR_UNSPEC, 1, 0, &contexts[0]), 0);
	expect_done(c.rx_cq, &contexts[0]);
	assert_string_equal(buf, "last");
	meet();
}

#define SILENT_MAX 700

static struct wire_conn silent[SILENT_MAX];
static uint32_t looks[SILENT_MAX];

static int look(struct wire_conn *conn)
{
	looks[conn - silent]++;
	return 0;
}

/* So many peers with which nothing is under way; their connections are our own. */
static void silent_meet(uint32_t cnt, struct wire *wire)
{
	struct engine_ep *ep = fake_end_engine(&a);
	struct weft_addr name = b.name;

	for (uint32_t i = 0; i < cnt; i++) {
		struct engine_peer *peer;

		memcpy(name.nonce, &i, sizeof(i));
		peer = engine_peer_open(ep, fake_end_insert(&a, &name));
		assert_non_null(peer);
		silent[i] = (struct wire_conn){
			.wire = wire, .peer = peer, .up = true, .joined = true
		};
		list_add_tail(&peer->conns, &silent[i].link);
		peer->up_cnt = 1;
		looks[i] = 0;
	}
}

static void silent_part(uint32_t cnt)
{
	for (uint32_t i = 0; i < cnt; i++) {
		list_remove(&silent[i].link);
		silent[i].peer->up_cnt = 0;
	}
}

static void each_of_many_silent_peers_is_checked_as_often_as_the_others(void **state)
{
	static const uint32_t cnts[] = { 1, 16, 17, 100, 127, 128, 256, 640, SILENT_MAX };
	struct wire_ops ops = { .check = look };
	struct wire wire = { .ops = &ops };

	for (size_t k = 0; k < sizeof(cnts) / sizeof(cnts[0]); k++) {
		uint32_t cnt = cnts[k], least = UINT32_MAX, most = 0;

		silent_meet(cnt, &wire);
		for (uint32_t i = 0; i < 1000; i++)
			engine_peers_check(fake_end_engine(&a), 1);
		for (uint32_t i = 0; i < cnt; i++) {
			least = looks[i] < least ? looks[i] : least;
			most = looks[i] > most ? looks[i] : most;
		}
		assert_true(least >= 1000 * 16 / 2 / (cnt < 16 ? 16 : cnt));
		assert_true(most - least <= 1);
		silent_part(cnt);
		teardown(state);
		setup(state);
	}
}

static void who_has_slept_checks_as_many_as_if_it_had_not(void **state)
{
	struct wire_ops ops = { .check = look };
	struct wire wire = { .ops = &ops };
	uint32_t checked = 0;

	silent_meet(SILENT_MAX, &wire);
	engine_peers_check(fake_end_engine(&a), 30);
	for (uint32_t i = 0; i < SILENT_MAX; i++)
		checked += looks[i];
	assert_int_equal(checked, 30 * 16);
	engine_peers_check(fake_end_engine(&a), UINT64_MAX);
	for (uint32_t i = 0; i < SILENT_MAX; i++)
		assert_in_range(looks[i], 1, 2);
	silent_part(SILENT_MAX);
}

/*
 * Messages whose payload is under way when their receiver closes: stored, early, claimed, matched.
 */
static void endpoint_closes_while_payload_is_on_its_way_to_stored_messages(void **state)
{
	static char from[6][4000];
	struct fi_msg_tagged peek = { .tag = 3, .context = &contexts[9], .addr = FI_ADDR_UNSPEC };
	struct fake_knobs k;
	char to[4000];

	for (uint64_t seed = 1; seed < 40; seed++) {
		teardown(state);
		setup(state);
		meet();
		fake_seed(seed);
		fake_knobs_default(&k);
		k.split = 256;
		k.move = 64;
		k.burst = 1;
		k.stall = 16;
		fake_knobs_set(FAKE_A, &k);
		assert_int_equal(fi_trecv(b.ep, to, sizeof(to), NULL, FI_ADDR_UNSPEC, 5, 0,
					  &contexts[8]),
				 0);
		for (uint64_t i = 0; i < 6; i++)
			assert_int_equal(fi_tsend(a.ep, from[i], sizeof(from[i]), NULL, to_b, i,
						  &contexts[i]),
					 0);
		fake_ends_go(3 + (uint32_t)seed % 7);
		assert_int_equal(fi_trecvmsg(b.ep, &peek, FI_PEEK | FI_CLAIM), 0);
		peek.tag = 4;
		assert_int_equal(fi_trecvmsg(b.ep, &peek, FI_PEEK | FI_DISCARD), 0);
		peek.tag = 3;
		fake_end_close(&b);
		fake_end_open(&b, &plain, NULL);
		fake_ends_go(1000);
	}
}

/* One page that is mapped as often as memory is needed. */
static char *much_memory(int fd, size_t page_len, size_t len)
{
	char *all = mmap(NULL, len, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
			 0);

	assert_true(all != MAP_FAILED);
	for (size_t at = 0; at < len; at += page_len)
		assert_true(mmap(all + at, page_len, PROT_READ | PROT_WRITE,
				 MAP_SHARED | MAP_FIXED, fd, 0) != MAP_FAILED);
	return all;
}

static void message_above_a_gigabyte_goes_in_several_pieces(void **state)
{
	size_t page_len = 4u << 20, len = (1u << 30) + page_len;
	int from_fd = memfd_create("from", 0), to_fd = memfd_create("to", 0);
	char *from, *to;

	assert_true(from_fd >= 0 && to_fd >= 0);
	assert_int_equal(
		ftruncate(from_fd, (off_t)page_len) | ftruncate(to_fd, (off_t)page_len), 0);
	from = much_memory(from_fd, page_len, len);
	to = much_memory(to_fd, page_len, len);
	for (size_t i = 0; i < page_len; i++)
		from[i] = (char)(i * 31 + i / 4096);
	knobs(1024, 8192, false);
	meet();
	assert_int_equal(fi_tsend(a.ep, from, len, NULL, to_b, 1, &contexts[0]), 0);
	assert_int_equal(fi_trecv(b.ep, to, len, NULL, to_a, 1, 0, &contexts[1]), 0);
	expect_done(b.rx_cq, &contexts[1]);
	assert_true(entry.len == len);
	expect_done(a.tx_cq, &contexts[0]);
	assert_memory_equal(from, to, page_len);
	assert_true(engine_conn_at(fake_end_peer(&a, &b.name), FAKE_A, 0)->tx_msgs == 2);
	munmap(from, len);
	munmap(to, len);
	close(from_fd);
	close(to_fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		TEST(broken_connection_fails_directed_receives_with_their_source),
		TEST(many_directed_receives_fail_at_once),
		TEST(directed_receives_of_others_stay_when_one_peer_breaks),
		TEST(wildcards_stay_posted_when_a_connection_breaks),
		TEST(sends_that_wait_fail_with_the_connection),
		TEST(sends_that_found_no_room_fail_with_the_connection),
		TEST(rendezvous_fails_on_both_sides_with_the_connection),
		TEST(receive_half_way_fails_when_its_sender_closes),
		TEST(send_half_way_fails_when_its_receiver_closes),
		TEST(directed_receives_stay_posted_when_their_peer_closes_in_order),
		TEST(whole_messages_that_are_stored_survive_their_connection),
		TEST(stored_rendezvous_of_a_lost_sender_fails_the_receive_that_gets_it),
		TEST(after_a_break_a_new_connection_carries_on),
		TEST(sequence_numbers_wrap_around),
		TEST(restarted_peer_is_another_life_of_a_service_address),
		TEST(service_address_is_upgraded_to_the_better_wire_before_the_first_message),
		TEST(endpoint_of_another_host_is_reached_by_the_second_wire),
		TEST(both_connecting_at_once_makes_one_connection),
		TEST(endpoint_that_no_wire_reaches_fails_the_send),
		TEST(endpoint_that_does_not_answer_yet_is_tried_until_the_send_is_cancelled),
		TEST(endpoint_that_was_never_met_and_refuses_is_gone),
		TEST(endpoint_whose_process_is_gone_fails_sends_at_the_first_refusal),
		TEST(endpoint_that_comes_late_gets_what_was_sent_to_it),
		TEST(addresses_of_both_kinds_lead_to_one_peer),
		TEST(last_of_a_thousand_addresses_is_reached),
		TEST(each_of_many_silent_peers_is_checked_as_often_as_the_others),
		TEST(who_has_slept_checks_as_many_as_if_it_had_not),
		TEST(endpoint_closes_while_payload_is_on_its_way_to_stored_messages),
		TEST(message_above_a_gigabyte_goes_in_several_pieces),
#undef TEST
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
