/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How connections of the TCP wire end, in order and not, and what becomes of them without
 * descriptors, with a silent peer and in the child of a fork; over loopback.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include "mock_engine.h"
#include "mock_network.h"
#include "tcp_conn.h"
#include "tcp_greet.h"

static void *poll_until_down(void *arg)
{
	struct side *side = arg;
	uint64_t end = platform_now_ns() + 20000000000u;

	while (!side->downs && platform_now_ns() < end)
		side_poll(side);
	return NULL;
}

/* Closes @b behind more than the kernel takes. Returns false if that took longer than close() waits. */
static bool closes_behind(struct side *a, struct side *b, uint8_t *bytes, size_t len)
{
	struct iovec iov = { bytes, len };
	struct wire_conn *ab, *ba;
	struct sent sent[2] = { 0 };
	pthread_t thread;
	uint64_t begun;
	uint32_t cnt;
	bool late;
	int i;

	pair_up(a, b, &ab, &ba);
	/* from the side whose lane is not up yet, too */
	assert_int_equal(send_bulk(ba, 1, &iov, 1, &sent[0]), 0);
	assert_int_equal(send_bulk(ba, 1, &iov, 1, &sent[1]), 0);
	for (cnt = 0; cnt < 15 && publish(ba, cnt, TCP_CLAIM_MAX, true); cnt++)
		;
	pthread_create(&thread, NULL, poll_until_down, a);
	begun = platform_now_ns();
	tcp_close(b->wire);
	late = platform_now_ns() - begun >= TCP_END_NS;
	b->wire = NULL;
	pthread_join(thread, NULL);
	assert_int_equal(sent[0].done + sent[1].done, 0);
	assert_int_equal(a->downs, 1);
	if (late)
		return false;
	assert_int_equal(a->last_err, 0);
	assert_int_equal(a->got_cnt, cnt + 2);
	for (i = 0; i < a->got_cnt; i++)
		assert_true(payload_right(&a->got[i]));
	return true;
}

/* close() waits for the peer to read it. Once more where the peer's thread had no core meanwhile. */
static void close_delivers_what_was_published(void **state)
{
	size_t len = 5u << 20;
	uint8_t *bytes = malloc(len);
	bool delivered = false;

	pattern(bytes, len, 1);
	for (int tries = 0; tries < 20 && !delivered; tries++) {
		struct side *a = side_open(NULL), *b = side_open(NULL);

		delivered = closes_behind(a, b, bytes, len);
		side_close(b);
		side_close(a);
	}
	assert_true(delivered);
	free(bytes);
}

/* Two connected endpoints with both lanes up. */
static void pair_of_endpoints(struct side **a, struct side **b, struct wire_conn **ab,
			      struct wire_conn **ba)
{
	static uint8_t bytes[TCP_CARRY_MAX + 1];
	struct iovec iov = { bytes, sizeof(bytes) };

	*a = side_open(NULL);
	*b = side_open(NULL);
	(*a)->hello.kind = (*b)->hello.kind = HELLO_MSG;
	pair_up_data(*a, *b, ab, ba, &iov);
}

/* A program that computes for seconds between two polls gets what the peer has sent before its end. */
static void what_is_in_the_sockets_at_the_end_is_read_however_late(void **state)
{
	size_t len = 3u << 20;
	uint8_t *bytes = malloc(len);
	struct iovec iov = { bytes, len };
	struct wire_conn *ab, *ba;
	struct sent sent = { 0 };
	struct side *a, *b;
	struct tcp_conn *conn;

	pattern(bytes, len, 1);
	pair_of_endpoints(&a, &b, &ab, &ba);
	assert_int_equal(send_bulk(ba, 1, &iov, 1, &sent), 0);
	DRIVE(b, NULL, sent.done);
	side_close(b);
	conn = tcp_conn_from(ab);
	start_clock();
	while (!a->downs && !expired()) {
		if (conn->ending) { /* a second has passed */
			conn->end_ns = platform_now_ns();
			tcp_due(conn, conn->end_ns);
		}
		side_poll(a);
	}
	assert_int_equal(a->got_cnt, 1);
	assert_true(payload_right(&a->got[0]));
	assert_int_equal(a->last_err, 0);
	side_close(a);
	free(bytes);
}

/* The peer has ended, so that its port refuses: what it has sent before is in the other socket. */
static void a_data_lane_that_is_refused_takes_nothing_away(void **state)
{
	static uint8_t bytes[TCP_CARRY_MAX + 1];
	struct iovec iov = { bytes, sizeof(bytes) };
	struct side *a = side_open(NULL), *b = side_open(NULL);
	struct wire_conn *ab, *ba;
	struct sent sent = { 0 };
	uint32_t cnt = 0;

	a->hello.kind = b->hello.kind = HELLO_MSG;
	pair_up(a, b, &ab, &ba);
	while (cnt < 60 && publish(ba, cnt, TCP_CLAIM_MAX, false)) {
		side_poll(b);
		cnt++;
	}
	side_close(b);
	assert_int_equal(send_bulk(ab, 0, &iov, 1, &sent), 0);
	DRIVE(a, NULL, a->downs);
	assert_int_equal(a->got_cnt, cnt);
	for (uint32_t i = 0; i < cnt; i++)
		assert_true(payload_right(&a->got[i]));
	assert_int_equal(a->last_err, 0);
	side_close(a);
}

/* The peer never reads: close() takes its second, and then gives up. */
static void close_does_not_wait_for_ever(void **state)
{
	struct side *a = side_open(NULL), *b = side_open(NULL);
	size_t len = 40u << 20;
	uint8_t *bytes = calloc(1, len);
	struct iovec iov = { bytes, len };
	struct wire_conn *ab, *ba;
	struct sent sent = { 0 };
	uint64_t start;

	pair_up(a, b, &ab, &ba);
	assert_int_equal(send_bulk(ab, 0, &iov, 1, &sent), 0);
	DRIVE(a, b, b->got_cnt == 1);
	start = platform_now_ns();
	side_close(a);
	assert_true(platform_now_ns() - start < 10000000000u);
	DRIVE(b, NULL, b->downs);
	assert_int_equal(b->last_err, -FI_ECONNRESET);
	side_close(b);
	free(bytes);
}

static void disconnect_with_nothing_under_way_is_orderly(void **state)
{
	struct side *a = side_open(NULL), *b = side_open(NULL);
	struct wire_conn *ab, *ba;

	pair_up(a, b, &ab, &ba);
	assert_true(publish(ab, 1, 8, true));
	assert_true(
		publish(ba, 2, 8, false)); /* never read: must not cut off what b has to read */
	tcp_disconnect(ab);
	DRIVE(b, a, b->downs);
	assert_int_equal(b->last_err, 0);
	assert_int_equal(b->got_cnt, 1);
	assert_int_equal(a->downs, 0);
	/* and again, a conn is made as before */
	pair_up(b, a, &ba, &ab);
	side_close(a);
	side_close(b);
}

static void drop_conn(struct side *side, struct wire_conn *conn, const struct packet *packet)
{
	if (packet->seq == 1)
		tcp_disconnect(conn);
}

static void the_engine_may_disconnect_within_poll(void **state)
{
	struct side *a = side_open(NULL), *b = side_open(NULL);
	struct wire_conn *ab, *ba;
	uint8_t bytes[TCP_CARRY_MAX + 1] = { 0 };
	struct iovec iov = { bytes, sizeof(bytes) };
	struct sent sent = { 0 };
	int i;

	pair_up(a, b, &ab, &ba);
	b->on_packet = drop_conn;
	for (i = 0; i < 4; i++)
		publish(ab, (uint32_t)i, 64, false);
	DRIVE(a, b, a->downs);
	assert_int_equal(a->last_err, 0);
	assert_int_equal(b->got_cnt, 2);
	assert_int_equal(b->downs, 0);

	pair_up(a, b, &ab, &ba);
	assert_int_equal(send_bulk(ab, 1, &iov, 1, &sent), 0);
	DRIVE(a, b, a->downs == 2);
	side_close(a);
	side_close(b);
}

static void packets_that_the_engine_rejects_end_the_conn(void **state)
{
	struct side *a = side_open(NULL), *b = side_open(NULL);
	struct wire_conn *ab, *ba;
	uint8_t bytes[TCP_CARRY_MAX + 1] = { 0 };
	struct iovec iov = { bytes, sizeof(bytes) };
	struct sent sent = { 0 };

	pair_up(a, b, &ab, &ba);
	b->reject = -FI_EINVAL;
	publish(ab, 1, 64, false);
	DRIVE(a, b, b->downs && a->downs);
	assert_int_equal(b->last_err, -FI_EINVAL);
	assert_int_equal(a->last_err, -FI_ECONNRESET);

	pair_up(a, b, &ab, &ba);
	assert_int_equal(send_bulk(ab, 1, &iov, 1, &sent), 0);
	DRIVE(a, b, b->downs == 2 && a->downs == 2);
	assert_int_equal(b->last_err, -FI_EINVAL);
	side_close(a);
	side_close(b);
}

static void memory_that_is_not_there_ends_the_conn(void **state)
{
	struct side *a = side_open(NULL), *b = side_open(NULL);
	struct iovec iov = { (void *)64, 100000 };
	struct wire_conn *ab, *ba;
	struct sent sent = { 0 };

	pair_up(a, b, &ab, &ba);
	assert_int_equal(send_bulk(ab, 1, &iov, 1, &sent), 0);
	DRIVE(a, b, a->downs && b->downs);
	assert_int_equal(a->last_err, -FI_EFAULT);
	assert_int_equal(sent.done, 0);
	side_close(a);
	side_close(b);
}

/* ---- descriptors and dead hosts ---- */

static rlim_t limit_descriptors(int more)
{
	struct rlimit limit;
	rlim_t before;
	int fd = dup(0);

	assert_true(fd >= 0);
	close(fd);
	getrlimit(RLIMIT_NOFILE, &limit);
	before = limit.rlim_cur;
	limit.rlim_cur = (rlim_t)(fd + more);
	setrlimit(RLIMIT_NOFILE, &limit);
	return before;
}

static void restore_descriptors(rlim_t cur)
{
	struct rlimit limit;

	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = cur;
	setrlimit(RLIMIT_NOFILE, &limit);
}

static void without_descriptors_peers_wait_and_nothing_spins(void **state)
{
	struct side *a = side_open(NULL), *b = side_open(NULL);
	struct tcp_wire *wire = tcp_wire_from(b->wire);
	struct wire_conn *conn, *other;
	uint8_t bytes[TCP_CARRY_MAX + 1] = { 0 };
	struct iovec iov = { bytes, sizeof(bytes) };
	struct sent sent = { 0 };
	rlim_t before;
	int i;

	before = limit_descriptors(1);
	conn = side_connect(a, b); /* the last descriptor */
	assert_int_equal(
		tcp_connect(a->wire, (struct engine_peer *)b, &b->addr, &a->hello, &other),
		-FI_EAGAIN);
	/* between a rest and the next one it is not paused, for one poll */
	DRIVE(a, b, wire->hub->shortage_logged && wire->port->rearm_ns);
	for (i = 0; i < 1000; i++) {
		side_poll(a);
		side_poll(b);
	}
	assert_int_equal(b->conn_cnt, 0);
	restore_descriptors(before);
	DRIVE(a, b, conn->up && b->conn_cnt);

	/* a data lane, from the side that has none left */
	before = limit_descriptors(0);
	assert_int_equal(send_bulk(b->conns[0], 0, &iov, 1, &sent), 0);
	for (i = 0; i < 1000; i++) {
		side_poll(a);
		side_poll(b);
	}
	assert_int_equal(a->downs + b->downs + sent.done, 0);
	restore_descriptors(before);
	DRIVE(a, b, sent.done && a->got_cnt == 1 && a->got[0].payload);
	side_close(a);
	side_close(b);
}

static int check_conn(struct wire_conn *conn, struct side *side)
{
	int err = tcp_check(conn);

	side_poll(side);
	return err;
}

/* A peer that does not read for longer than a dead one is given is not dead; a cut cable is. */
static void silence_is_death_and_a_full_window_is_not(void **state)
{
	size_t len = 40u << 20;
	uint8_t *bytes = calloc(1, len);
	struct iovec iov = { bytes, len };
	struct wire_conn *ab, *ba;
	struct sent sent = { 0 };
	struct side *a, *b;
	uint64_t end;

	if (!mock_network()) {
		free(bytes);
		skip();
	}
	tcp_settings.dead_ms = 1000;
	a = side_open(NULL);
	b = side_open(NULL);
	pair_up(a, b, &ab, &ba);
	assert_int_equal(send_bulk(ab, 0, &iov, 1, &sent), 0);
	DRIVE(a, b, b->got_cnt == 1);
	for (end = platform_now_ns() + 3000000000u; platform_now_ns() < end; usleep(1000)) {
		assert_int_equal(check_conn(ab, a), 0);
		assert_int_equal(a->downs, 0);
	}
	DRIVE(a, b, sent.done && b->got[0].payload);

	assert_true(publish(ab, 1, 8, false));
	mock_network_set(false);
	assert_true(publish(ab, 2, 8, false));
	end = platform_now_ns() + 20000000000u;
	while (!a->downs && !check_conn(ab, a)) {
		assert_true(platform_now_ns() < end);
		usleep(1000);
	}
	tcp_disconnect(ab);
	mock_network_set(true);
	tcp_settings.dead_ms = 10000;
	side_close(a);
	side_close(b);
	free(bytes);
}

/* A peer that is given up may live, and the network heal. */
static void what_a_lost_peer_was_sent_does_not_arrive(void **state)
{
	uint8_t bytes[TCP_CARRY_MAX + 1] = { 0 };
	struct iovec iov = { bytes, sizeof(bytes) };
	struct wire_conn *ab, *ba;
	struct sent sent[2] = { 0 };
	struct side *a, *b;
	uint64_t end;

	if (!mock_network())
		skip();
	a = side_open(NULL);
	b = side_open(NULL);
	pair_up(a, b, &ab, &ba);
	assert_int_equal(send_bulk(ab, 0, &iov, 1, &sent[0]), 0);
	DRIVE(a, b, sent[0].done && b->got_cnt == 1 && b->got[0].payload);
	/* the peer does not find out */
	tcp_settings.dead_ms = 1000;
	mock_network_set(false);
	assert_int_equal(send_bulk(ab, 1, &iov, 1, &sent[1]), 0);
	assert_true(publish(ab, 2, 8, false));
	end = platform_now_ns() + 20000000000u;
	while (!check_conn(ab, a)) {
		assert_true(platform_now_ns() < end);
		usleep(1000);
	}
	tcp_disconnect(ab);
	mock_network_set(true);
	/* longer than it takes until it would be sent again */
	end = platform_now_ns() + 10000000000u;
	while (platform_now_ns() < end && b->got_cnt == 1 && !b->downs) {
		side_poll(b);
		usleep(1000);
	}
	assert_int_equal(b->got_cnt, 1);
	tcp_settings.dead_ms = 10000;
	side_close(a);
	side_close(b);
}

/* What a child of fork() may do with its parent's endpoint: @ab is up and @a has sent on it. */
static int misuse(struct side *a, struct side *b, struct wire_conn *ab)
{
	uint8_t bytes[100] = { 0 };
	struct iovec iov = { bytes, sizeof(bytes) };
	struct wire_conn *conn;
	struct sent sent = { 0 };
	int i;

	if (publish(ab, 100, 8, false) || send_bulk(ab, 101, &iov, 1, &sent) != -FI_EAGAIN ||
	    tcp_check(ab) != -FI_EOPBADSTATE)
		return 1;
	for (i = 0; i < 100; i++)
		side_poll(a);
	if (a->downs != 1 || a->last_err != -FI_EOPBADSTATE || a->got_cnt || sent.done)
		return 2;
	if (tcp_connect(a->wire, NULL, &b->addr, &a->hello, &conn) != -FI_EOPBADSTATE)
		return 3;
	side_close(a);
	tcp_disconnect(b->conns[0]);
	side_close(b);
	a = side_open(NULL); /* endpoints of its own */
	b = side_open(NULL);
	pair_up(a, b, &ab, &conn);
	if (!publish(ab, 0, 8, false))
		return 4;
	DRIVE(a, b, b->got_cnt == 1);
	return 0;
}

static void a_copy_made_by_fork_can_do_no_harm(void **state)
{
	struct side *a = side_open(NULL), *b = side_open(NULL);
	uint8_t bytes[50000] = { 0 };
	struct iovec iov = { bytes, sizeof(bytes) };
	struct wire_conn *ab, *ba;
	struct sent sent[2] = { 0 };
	int status, i;
	pid_t copy;

	pair_up(a, b, &ab, &ba);
	assert_int_equal(send_bulk(ab, 0, &iov, 1, &sent[0]), 0);
	DRIVE(a, b, sent[0].done && b->got_cnt == 1 && b->got[0].payload);
	/* on their way: what the child reads or writes of them is lost or doubled */
	assert_true(publish(ab, 1, 8, true));
	assert_true(publish(ba, 0, 8, false));
	copy = fork();
	assert_true(copy >= 0);
	if (!copy) {
		alarm(600);
		_exit(misuse(a, b, ab));
	}
	assert_int_equal(waitpid(copy, &status, 0), copy);
	assert_int_equal(status, 0);
	DRIVE(a, b, a->got_cnt == 1 && b->got_cnt == 2);
	for (i = 2; i < 10; i++) {
		assert_true(publish(ab, (uint32_t)i, 800, false));
		DRIVE(a, b, b->got_cnt == i + 1);
		assert_int_equal(b->got[i].packet.seq, i);
	}
	assert_int_equal(send_bulk(ab, 10, &iov, 1, &sent[1]), 0);
	DRIVE(a, b, sent[1].done && b->got_cnt == 11 && b->got[10].payload);
	assert_int_equal(a->downs + b->downs, 0);
	side_close(a);
	DRIVE(b, NULL, b->downs);
	assert_int_equal(b->last_err, 0);
	side_close(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(close_delivers_what_was_published),
		cmocka_unit_test(what_is_in_the_sockets_at_the_end_is_read_however_late),
		cmocka_unit_test(a_data_lane_that_is_refused_takes_nothing_away),
		cmocka_unit_test(close_does_not_wait_for_ever),
		cmocka_unit_test(disconnect_with_nothing_under_way_is_orderly),
		cmocka_unit_test(the_engine_may_disconnect_within_poll),
		cmocka_unit_test(packets_that_the_engine_rejects_end_the_conn),
		cmocka_unit_test(memory_that_is_not_there_ends_the_conn),
		cmocka_unit_test(without_descriptors_peers_wait_and_nothing_spins),
		cmocka_unit_test(a_copy_made_by_fork_can_do_no_harm),
		/* last: it moves the process to a network of its own */
		cmocka_unit_test(silence_is_death_and_a_full_window_is_not),
		cmocka_unit_test(what_a_lost_peer_was_sent_does_not_arrive),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
