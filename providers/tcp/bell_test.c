/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Unit tests of sleeping on the TCP wire: what its bell rings for, and what arming it says. */
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include "mock_engine.h"
#include "tcp_bell.h"
#include "tcp_conn.h"
#include "tcp_hub.h"

static bool rings(struct side *side, int ms)
{
	struct pollfd p = { .fd = tcp_bell(side->wire, -1), .events = POLLIN };

	assert_true(p.fd >= 0);
	return poll(&p, 1, ms) == 1;
}

/* Armed, and nothing is there. What is under way may come for a while. */
static void settle(struct side *a, struct side *b)
{
	struct side *sides[] = { a, b };

	start_clock();
	for (int quiet = 0; quiet < 20; quiet++) {
		assert_false(expired());
		for (int i = 0; i < 2; i++)
			if (side_poll(sides[i]) || !tcp_arm(sides[i]->wire) ||
			    rings(sides[i], 1))
				quiet = 0;
	}
	a->woken = b->woken = 0;
}

static void the_bell_rings_for_all_that_comes(void **state)
{
	static uint8_t large[4 << 20];
	struct side *a = side_open(NULL), *b = side_open(NULL);
	struct iovec iov = { large, sizeof(large) };
	struct sent sent = { .op.done = sent_done };
	struct wire_conn *ab;

	pattern(large, sizeof(large), 1);
	settle(a, b);
	/* A connection, on both sides. */
	ab = side_connect(a, b);
	while (!ab->up) {
		assert_true(rings(b, 10000) || rings(a, 0));
		side_poll(b);
		assert_true(rings(a, 10000));
		side_poll(a);
	}
	settle(a, b);
	/* A packet. */
	assert_true(publish(ab, 0, 8, false));
	assert_true(rings(b, 10000));
	side_poll(b);
	assert_int_equal(b->got_cnt, 1);
	assert_false(rings(b, 0));
	/* Payload that the kernel takes bit by bit; the lane for it first. */
	assert_int_equal(send_bulk(ab, 1, &iov, 1, &sent), 0);
	start_clock();
	while (b->got_cnt < 2 || !b->got[1].payload || !sent.done) {
		assert_false(expired());
		if (tcp_arm(a->wire) && tcp_arm(b->wire) && !rings(a, 0))
			assert_true(rings(b, 10000) || rings(a, 0));
		side_poll(a);
		side_poll(b);
	}
	assert_true(payload_right(&b->got[1]));
	/* The end. */
	settle(a, b);
	tcp_disconnect(ab);
	assert_true(rings(b, 10000));
	DRIVE(b, NULL, b->downs == 1);
	side_close(a);
	side_close(b);
}

static void what_is_gathered_is_for_poll_before_one_sleeps(void **state)
{
	struct side *a = side_open(NULL), *b = side_open(NULL);
	struct wire_conn *ab, *ba;

	pair_up(a, b, &ab, &ba);
	settle(a, b);
	assert_int_equal(tcp_arm(a->wire), UINT64_MAX);
	tcp_disarm(a->wire);
	assert_true(publish(ab, 0, 8, true));
	assert_int_equal(a->woken, 0); /* no thread sleeps */
	assert_int_equal(tcp_arm(a->wire), 0);
	assert_true(publish(ab, 1, 8, true));
	assert_int_equal(a->woken, 0); /* still no thread sleeps */
	side_poll(a);
	assert_int_equal(tcp_arm(a->wire), UINT64_MAX);
	/* What another thread's call leaves while one sleeps. */
	assert_true(publish(ab, 2, 8, true));
	assert_int_equal(a->woken, 1);
	assert_true(publish(ab, 3, 8, true));
	assert_int_equal(a->woken, 1);
	side_poll(a);
	DRIVE(b, NULL, b->got_cnt == 4);
	side_close(a);
	side_close(b);
}

static void what_is_sent_is_told_before_one_sleeps(void **state)
{
	static uint8_t bytes[TCP_CARRY_MAX + 1];
	struct side *a = side_open(NULL), *b = side_open(NULL);
	struct iovec iov = { bytes, sizeof(bytes) }, carried = { bytes, TCP_CARRY_MAX };
	struct sent sent = { .op.done = sent_done };
	struct wire_conn *ab, *ba;

	pair_up(a, b, &ab, &ba);
	assert_int_equal(send_bulk(ab, 0, &iov, 1, &sent), 0);
	DRIVE(a, b, sent.done && b->got_cnt == 1);
	for (int i = 0; i < 2; i++) {
		settle(a, b);
		if (!i)
			tcp_disarm(a->wire);
		assert_int_equal(send_bulk(ab, 1, &iov, 1, &sent), 0);
		DRIVE(b, NULL, b->got_cnt == 2 + i && b->got[1 + i].payload);
		/* The acknowledgement rings. */
		DRIVE(b, NULL, rings(a, 0));
		DRIVE(a, NULL, sent.done == 2 + i);
		assert_int_equal(a->woken, 0);
	}
	/* and what the control lane takes, once something has come */
	assert_true(publish(ba, 1, 8, false));
	DRIVE(a, b, a->got_cnt == 1);
	assert_true(publish(ba, 2, 8, false));
	DRIVE(a, b, a->got_cnt == 2);
	settle(a, b);
	assert_int_equal(send_bulk(ab, 2, &carried, 1, &sent), 0);
	assert_int_equal(a->woken, 1);
	assert_int_equal(sent.done, 3);
	assert_int_equal(tcp_arm(a->wire), 0);
	side_poll(a);
	assert_int_equal(sent.done, 4);
	side_close(a);
	side_close(b);
}

/* A conn that ends at a given time, and a listener that is watched again at one. */
static void arming_says_when_poll_has_to_look(void **state)
{
	struct side *a = side_open(NULL), *b = side_open(NULL);
	struct tcp_wire *wire = tcp_wire_from(a->wire);
	struct wire_conn *ab, *ba;
	uint64_t ns;

	pair_up(a, b, &ab, &ba);
	settle(a, b);
	tcp_due(tcp_conn_from(ab), platform_now_ns() + 60000000000);
	assert_int_equal(a->woken, 1);
	ns = tcp_arm(a->wire);
	assert_true(ns > 30000000000 && ns <= 60000000000);
	tcp_port_rest(wire->port, platform_now_ns());
	ns = tcp_arm(a->wire);
	assert_true(ns <= TCP_RETRY_NS);
	tcp_due(tcp_conn_from(ab), platform_now_ns());
	assert_int_equal(tcp_arm(a->wire), 0);
	DRIVE(a, b, list_empty(&wire->timed));
	side_close(a);
	side_close(b);
}

/* A poll of another thread finds that a socket has broken: it is made again by a timer. */
static void a_timer_that_a_poll_sets_wakes_who_sleeps(void **state)
{
	struct side *a = side_open(NULL), *b = side_open(NULL);
	struct wire_conn *ab, *ba;

	pair_up(a, b, &ab, &ba);
	settle(a, b);
	shutdown(tcp_conn_from(ab)->control.fd, SHUT_RDWR);
	DRIVE(a, NULL, tcp_conn_from(ab)->control.state != TCP_LANE_UP);
	assert_int_equal(a->woken, 1);
	DRIVE(a, b, tcp_conn_from(ab)->control.state == TCP_LANE_UP);
	DRIVE(a, b, list_empty(&tcp_wire_from(a->wire)->timed));
	settle(a, b);
	/* but not by one that expires after it looks by itself */
	tcp_due(tcp_conn_from(ab), platform_now_ns() + 60000000000);
	tcp_disarm(a->wire);
	assert_true(tcp_arm(a->wire) > 30000000000);
	a->woken = 0;
	tcp_wire_from(a->wire)->polling = true;
	tcp_due(tcp_conn_from(ab), platform_now_ns() + 70000000000);
	tcp_wire_from(a->wire)->polling = false;
	side_poll(a);
	assert_int_equal(a->woken, 0);
	side_close(a);
	side_close(b);
}

static void a_forked_child_hears_nothing_of_its_parent(void **state)
{
	struct side *a = side_open(NULL), *b = side_open(NULL);
	struct wire_conn *ab, *ba;
	int status;
	pid_t pid;

	pair_up(a, b, &ab, &ba);
	settle(a, b);
	pid = fork();
	if (!pid) {
		if (tcp_bell(a->wire, -1) != -FI_EOPBADSTATE || tcp_arm(a->wire))
			_exit(1);
		side_poll(a);
		_exit(a->downs != 1 || !tcp_arm(a->wire));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_true(tcp_bell(a->wire, -1) >= 0);
	side_close(a);
	side_close(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_bell_rings_for_all_that_comes),
		cmocka_unit_test(what_is_gathered_is_for_poll_before_one_sleeps),
		cmocka_unit_test(what_is_sent_is_told_before_one_sleeps),
		cmocka_unit_test(arming_says_when_poll_has_to_look),
		cmocka_unit_test(a_timer_that_a_poll_sets_wakes_who_sleeps),
		cmocka_unit_test(a_forked_child_hears_nothing_of_its_parent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
