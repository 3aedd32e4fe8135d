/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Unit tests of the control lane that is read without asking epoll: it loses nothing, and keeps nothing back. */
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/epoll.h>
#include <cmocka.h>
#include "mock_engine.h"
#include "tcp_bell.h"
#include "tcp_conn.h"
#include "tcp_control.h"
#include "tcp_data.h"
#include "tcp_hub.h"

#define TALK_CNT  200
#define TALK_MAX  100000
#define SPIN_CNT  12
#define VAIN_CNT  600 /* polls in vain after which it does again */
#define LARGE_LEN (TCP_CARRY_MAX + 8)

static bool rings(struct side *side, int ms)
{
	struct pollfd p = { .fd = tcp_bell(side->wire, -1), .events = POLLIN };

	assert_true(p.fd >= 0);
	return poll(&p, 1, ms) == 1;
}

static uint32_t watched(struct wire_conn *conn)
{
	return tcp_conn_from(conn)->control.events;
}

/* @cnt packets in each direction, one after the other; both sides poll in vain before each. */
static void talk(struct side *a, struct side *b, struct wire_conn *ab, struct wire_conn *ba,
		 int cnt)
{
	int to_a = a->got_cnt, to_b = b->got_cnt, i;

	while (cnt--) {
		for (i = 0; i < SPIN_CNT; i++) {
			side_poll(a);
			side_poll(b);
		}
		assert_true(publish(ab, (uint32_t)to_b++, 8, false));
		DRIVE(a, b, b->got_cnt == to_b);
		assert_true(publish(ba, (uint32_t)to_a++, 8, false));
		DRIVE(a, b, a->got_cnt == to_a);
	}
}

/* Until epoll watches neither side: a delay in the kernel makes it watch again. */
static void talk_alone(struct side *a, struct side *b, struct wire_conn *ab,
		       struct wire_conn *ba)
{
	int left = TALK_MAX;

	while (watched(ab) || watched(ba)) {
		assert_true(left--);
		talk(a, b, ab, ba, 1);
	}
}

static void a_conversation_goes_on_without_epoll(void **state)
{
	struct side *a = side_open(NULL), *b = side_open(NULL);
	struct wire_conn *ab, *ba;
	int i;

	pair_up(a, b, &ab, &ba);
	talk_alone(a, b, ab, ba);
	for (i = 0; i < a->got_cnt; i++)
		assert_true(payload_right(&a->got[i]) && a->got[i].packet.seq == (uint32_t)i);
	/* It is watched again when the peer has been silent for a while. */
	for (i = 0; i < VAIN_CNT; i++)
		side_poll(a);
	assert_int_equal(watched(ab), EPOLLIN);
	talk_alone(a, b, ab, ba);
	side_close(a);
	side_close(b);
}

/* The kernel has no memory to watch a lane, once; the hub's descriptor is to blame here. */
static void a_lane_that_can_not_be_watched_is_served_later(void **state)
{
	struct side *a = side_open(NULL), *b = side_open(NULL);
	struct tcp_hub *hub = tcp_wire_from(a->wire)->hub;
	static uint8_t bytes[TCP_CARRY_MAX + 1];
	struct iovec iov = { bytes, sizeof(bytes) };
	struct wire_conn *ab, *ba;
	int epoll_fd = hub->epoll_fd, cnt;
	struct tcp_conn *conn;

	pair_up_data(a, b, &ab, &ba, &iov);
	conn = tcp_conn_from(ab);
	DRIVE(a, b, conn->data.events == EPOLLIN);
	talk_alone(a, b, ab, ba);
	cnt = b->got_cnt;
	assert_true(publish(ab, (uint32_t)cnt, 8, true));
	tcp_watch(hub, &conn->data, 0);
	hub->epoll_fd = -1;
	tcp_control_full(conn);
	tcp_data_watch(conn);
	hub->epoll_fd = epoll_fd;
	assert_int_equal(conn->control.events, 0);
	assert_int_equal(conn->data.events, 0);
	DRIVE(a, b, b->got_cnt == cnt + 1 && conn->data.events == EPOLLIN);
	assert_false(conn->control.want_out);
	side_close(a);
	side_close(b);
}

static void before_one_sleeps_all_is_watched(void **state)
{
	struct side *a = side_open(NULL), *b = side_open(NULL);
	struct wire_conn *ab, *ba;
	int cnt;

	pair_up(a, b, &ab, &ba);
	talk_alone(a, b, ab, ba);
	assert_int_not_equal(tcp_arm(a->wire), 0);
	assert_int_equal(watched(ab), EPOLLIN);
	assert_false(rings(a, 0));
	cnt = a->got_cnt;
	assert_true(publish(ba, (uint32_t)cnt, 8, false));
	assert_true(rings(a, 10000));
	DRIVE(a, b, a->got_cnt == cnt + 1);
	/* Another thread's polls do not stop that while one may sleep. */
	talk(a, b, ab, ba, TALK_CNT);
	assert_int_equal(watched(ab), EPOLLIN);
	tcp_disarm(a->wire);
	talk_alone(a, b, ab, ba);
	/* What came before arming rings too. */
	cnt = a->got_cnt;
	assert_true(publish(ba, (uint32_t)cnt, 8, false));
	assert_int_not_equal(tcp_arm(a->wire), 0);
	assert_true(rings(a, 10000));
	DRIVE(a, b, a->got_cnt == cnt + 1);
	side_close(a);
	side_close(b);
}

static void who_does_not_spin_is_watched(void **state)
{
	struct side *a = side_open(NULL), *b = side_open(NULL);
	struct wire_conn *ab, *ba;

	pair_up(a, b, &ab, &ba);
	for (int i = 0; i < TALK_CNT; i++) {
		assert_true(publish(ab, (uint32_t)i, 8, false));
		assert_true(rings(b, 10000));
		DRIVE(b, NULL, b->got_cnt == i + 1);
		assert_true(publish(ba, (uint32_t)i, 8, false));
		assert_true(rings(a, 10000));
		DRIVE(a, NULL, a->got_cnt == i + 1);
	}
	assert_int_equal(watched(ab), EPOLLIN);
	assert_int_equal(watched(ba), EPOLLIN);
	side_close(a);
	side_close(b);
}

/* Other conns, new ones too, and the other lane of the same. */
static void others_are_heard_beside_a_hot_conn(void **state)
{
	static uint8_t large[LARGE_LEN];
	struct side *a = side_open(NULL), *b = side_open(NULL), *c = side_open(NULL);
	struct iovec iov = { large, sizeof(large) };
	struct sent sent = { .op.done = sent_done };
	struct wire_conn *ab, *ba, *ca, *ac;
	int cnt;

	pair_up(a, b, &ab, &ba);
	talk_alone(a, b, ab, ba);
	pair_up(c, a, &ca, &ac);
	cnt = a->got_cnt;
	assert_true(publish(ca, (uint32_t)cnt, 8, false));
	DRIVE(a, c, a->got_cnt == cnt + 1);
	/* Packets of several peers in turns: each is watched. */
	talk(a, b, ab, ba, 1);
	talk(a, c, ac, ca, 1);
	assert_int_equal(watched(ab), EPOLLIN);
	talk_alone(a, b, ab, ba);
	pattern(large, sizeof(large), (uint32_t)a->got_cnt);
	cnt = a->got_cnt;
	assert_int_equal(send_bulk(ba, (uint32_t)cnt, &iov, 1, &sent), 0);
	DRIVE(a, b, sent.done && a->got_cnt == cnt + 1 && a->got[cnt].payload);
	assert_true(payload_right(&a->got[cnt]));
	talk(a, b, ab, ba, 2);
	side_close(a);
	side_close(b);
	side_close(c);
}

static void the_end_of_a_hot_conn_is_seen(void **state)
{
	struct side *a = side_open(NULL), *b = side_open(NULL);
	struct wire_conn *ab, *ba;

	for (int i = 0; i < 2; i++) {
		pair_up(a, b, &ab, &ba);
		talk_alone(a, b, ab, ba);
		if (i) /* it breaks */
			tcp_conn_fail(tcp_conn_from(ba), -FI_ECONNRESET);
		else
			tcp_disconnect(ba);
		DRIVE(a, b, a->downs == i + 1);
	}
	side_close(a);
	side_close(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_conversation_goes_on_without_epoll),
		cmocka_unit_test(a_lane_that_can_not_be_watched_is_served_later),
		cmocka_unit_test(before_one_sleeps_all_is_watched),
		cmocka_unit_test(who_does_not_spin_is_watched),
		cmocka_unit_test(others_are_heard_beside_a_hot_conn),
		cmocka_unit_test(the_end_of_a_hot_conn_is_seen),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
