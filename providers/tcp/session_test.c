/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Connections of the TCP wire that break between well-behaved endpoints: what is under way goes on;
 * and what is told apart from a break. Over loopback.
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>
#include "mock_core.h"
#include "mock_engine.h"
#include "mock_random.h"
#include "raw_peer.h"
#include "tcp_bell.h"
#include "tcp_conn.h"
#include "tcp_hub.h"
#include "tcp_session.h"

/* One end of a socket is ended in one of the ways that networks and hosts know. */
static void break_lane(struct tcp_lane *lane)
{
	if (lane->fd < 0)
		return;
	switch (rnd(4)) {
	case 0:
		shutdown(lane->fd, SHUT_RDWR);
		break;
	case 1:
		shutdown(lane->fd, SHUT_WR);
		break;
	case 2: /* what the kernel has received is lost */
		tcp_lane_reset(lane);
		break;
	default:
		shutdown(lane->fd, SHUT_RD);
	}
}

static void break_some_lane(struct wire_conn *ab, struct wire_conn *ba)
{
	struct tcp_conn *conn = tcp_conn_from(rnd(2) ? ab : ba);

	if (rnd(3))
		break_lane(&conn->control);
	if (rnd(2))
		break_lane(&conn->data);
}

/* Operations of one direction, whose payload may go either lane. */
struct flow_of {
	struct side *to;
	struct wire_conn *conn;
	uint32_t sent, total, bulk_cnt;
	struct sent *done;
	uint8_t *bytes;
	/* By seq: how often it has arrived */
	uint8_t *seen;
};

#define BULK_MAX 200000u

static void flow_init(struct flow_of *flow, struct wire_conn *conn, struct side *to,
		      uint32_t total)
{
	*flow = (struct flow_of){ .to = to, .conn = conn, .total = total };
	flow->done = calloc(total, sizeof(*flow->done));
	flow->bytes = malloc(BULK_MAX);
	flow->seen = calloc(total, 1);
	pattern(flow->bytes, BULK_MAX, 0);
}

static void flow_send(struct flow_of *flow)
{
	struct iovec iov = { flow->bytes, 0 };
	uint32_t kind = rnd(10);

	if (flow->sent == flow->total)
		return;
	if (kind < 7) {
		flow->sent += publish(flow->conn, flow->sent, rnd(6) ? rnd(64) : rnd(8000),
				      !rnd(4));
		return;
	}
	iov.iov_len = kind < 9 ? 1 + rnd(TCP_CARRY_MAX) : 1 + rnd(BULK_MAX);
	if (send_bulk(flow->conn, flow->sent, &iov, 1, &flow->done[flow->sent]))
		return;
	flow->sent++;
	flow->bulk_cnt++;
}

/* Everything has arrived once and whole; packets of the control lane in order. */
static void flow_check(struct flow_of *flow)
{
	uint32_t last = 0, seq, done = 0;

	for (int i = 0; i < flow->to->got_cnt; i++) {
		struct got *got = &flow->to->got[i];

		seq = got->packet.seq;
		assert_true(seq < flow->total && !flow->seen[seq]++);
		if (got->packet.op == PACKET_DATA) {
			assert_memory_equal(got->payload, flow->bytes, got->packet.len);
			continue;
		}
		assert_true(payload_right(got));
		assert_true(!last || seq > last);
		last = seq;
	}
	for (seq = 0; seq < flow->total; seq++) {
		assert_int_equal(flow->seen[seq], 1);
		assert_true(flow->done[seq].done <= 1 && !flow->done[seq].status);
		done += (uint32_t)flow->done[seq].done;
	}
	assert_int_equal(done, flow->bulk_cnt);
	free(flow->done);
	free(flow->bytes);
	free(flow->seen);
}

static bool flow_arrived(const struct flow_of *flow)
{
	uint32_t done = 0;

	if (flow->to->got_cnt != (int)flow->total)
		return false;
	for (int i = 0; i < flow->to->got_cnt; i++)
		if (!flow->to->got[i].payload)
			return false;
	for (uint32_t seq = 0; seq < flow->total; seq++)
		done += (uint32_t)flow->done[seq].done;
	return done == flow->bulk_cnt;
}

static void must_not_end(struct side *side, struct wire_conn *conn, int err)
{
	fail_msg("a conn has ended: %d", err);
}

static void whatever_breaks_all_arrives_once(void **state)
{
	struct side *a = side_open(NULL), *b = side_open(NULL);
	uint32_t total = 2500, breaks = 0;
	struct wire_conn *ab, *ba;
	struct flow_of flow[2];
	int i;

	pair_up(a, b, &ab, &ba);
	flow_init(&flow[0], ab, b, total);
	flow_init(&flow[1], ba, a, total);
	a->on_down = b->on_down = must_not_end;
	start_clock();
	while (flow[0].sent < total || flow[1].sent < total) {
		assert_false(expired());
		for (i = (int)rnd(8); i; i--)
			flow_send(&flow[rnd(2)]);
		if (rnd(2))
			side_poll(a);
		if (rnd(2))
			side_poll(b);
		if (!rnd(30)) {
			breaks++;
			break_some_lane(ab, ba);
		}
	}
	DRIVE(a, b, flow_arrived(&flow[0]) && flow_arrived(&flow[1]));
	assert_int_equal(a->downs + b->downs, 0);
	flow_check(&flow[0]);
	flow_check(&flow[1]);
	print_message("%u breaks; %llu and %llu seen, %llu and %llu made again\n", breaks,
		      (unsigned long long)tcp_wire_from(a->wire)->breaks,
		      (unsigned long long)tcp_wire_from(b->wire)->breaks,
		      (unsigned long long)tcp_wire_from(a->wire)->resumes,
		      (unsigned long long)tcp_wire_from(b->wire)->resumes);
	/* and it ends in order */
	a->on_down = b->on_down = NULL;
	DRIVE(a, b,
	      tcp_conn_from(ab)->control.state == TCP_LANE_UP &&
		      tcp_conn_from(ba)->control.state == TCP_LANE_UP);
	side_close(a);
	DRIVE(b, NULL, b->downs);
	side_close(b);
}

static void both_lanes_break_at_once(void **state)
{
	struct side *a = side_open(NULL), *b = side_open(NULL);
	static uint8_t bytes[TCP_CARRY_MAX + 1];
	struct iovec iov = { bytes, sizeof(bytes) };
	struct sent sent[3] = { 0 };
	struct wire_conn *ab, *ba;

	pattern(bytes, sizeof(bytes), 0);
	pair_up(a, b, &ab, &ba);
	assert_int_equal(send_bulk(ab, 0, &iov, 1, &sent[0]), 0);
	DRIVE(a, b, sent[0].done && b->got_cnt == 1);
	mock_log[0] = '\0';
	tcp_lane_reset(&tcp_conn_from(ab)->control);
	tcp_lane_reset(&tcp_conn_from(ab)->data);
	tcp_lane_reset(&tcp_conn_from(ba)->control);
	tcp_lane_reset(&tcp_conn_from(ba)->data);
	assert_int_equal(send_bulk(ab, 0, &iov, 1, &sent[1]), 0);
	assert_int_equal(send_bulk(ba, 0, &iov, 1, &sent[2]), 0);
	DRIVE(a, b, sent[1].done && sent[2].done && b->got_cnt == 2 && a->got_cnt == 1);
	assert_true(payload_right(&b->got[1]) && payload_right(&a->got[0]));
	assert_int_equal(a->downs + b->downs, 0);
	assert_int_equal(tcp_wire_from(a->wire)->resumes, 2);
	assert_non_null(strstr(mock_log, "goes on"));
	side_close(a);
	side_close(b);
}

/* One end alone finds out. The other one is asked, or told on the other lane. */
static void a_break_that_one_side_sees_is_mended(void **state)
{
	struct side *a = side_open(NULL), *b = side_open(NULL);
	static uint8_t bytes[TCP_CARRY_MAX + 1];
	struct iovec iov = { bytes, sizeof(bytes) };
	struct wire_conn *ab, *ba;
	int keep[2], lane;

	pair_up_data(a, b, &ab, &ba, &iov);
	for (lane = 0; lane < 2; lane++) {
		struct tcp_conn *conn = tcp_conn_from(ba);

		side_poll(b);
		keep[lane] = break_unheard(conn, lane ? &conn->data : &conn->control);
		DRIVE(a, b,
		      (lane ? conn->data : conn->control).state == TCP_LANE_UP &&
			      tcp_wire_from(b->wire)->resumes == (uint64_t)lane + 1);
	}
	assert_true(publish(ba, 1, 8, false));
	DRIVE(a, b, a->got_cnt == 1);
	assert_int_equal(a->downs + b->downs, 0);
	side_close(a);
	side_close(b);
	close(keep[0]);
	close(keep[1]);
}

/* The side that accepted has no way to tell a peer that has its answer from one that has not. */
static void an_answer_that_is_lost_is_asked_for_again(void **state)
{
	struct side *a = side_open(NULL), *b = side_open(NULL);
	struct wire_conn *ab = side_connect(a, b);

	for (int lost = 0; lost < 3; lost++) {
		DRIVE(a, NULL, tcp_conn_from(ab)->control.state == TCP_LANE_GREETING);
		DRIVE(b, NULL,
		      b->conn_cnt == 1 &&
			      tcp_conn_from(b->conns[0])->control.state == TCP_LANE_UP);
		if (!lost)
			assert_true(publish(b->conns[0], 1, 100, false));
		tcp_lane_reset(&tcp_conn_from(ab)->control);
		DRIVE(b, NULL, tcp_conn_from(b->conns[0])->control.state != TCP_LANE_UP);
		DRIVE(a, NULL, tcp_conn_from(ab)->session.control.turn == (uint32_t)lost + 1);
	}
	DRIVE(a, b, ab->up && a->got_cnt == 1);
	assert_true(publish(ab, 2, 100, false));
	DRIVE(a, b, b->got_cnt == 1);
	assert_int_equal(b->conn_cnt, 1);
	assert_int_equal(a->downs + b->downs, 0);
	side_close(a);
	side_close(b);
}

/* The accepting side may see the second socket before the first one, or that alone. */
static void a_preamble_that_is_lost_is_said_again(void **state)
{
	struct side *a = side_open(NULL), *b = side_open(NULL);
	struct wire_conn *ab = side_connect(a, b);

	DRIVE(a, NULL, tcp_conn_from(ab)->control.state == TCP_LANE_GREETING);
	/* a reset, with what has been sent */
	tcp_lane_reset(&tcp_conn_from(ab)->control);
	DRIVE(a, b, ab->up && b->conn_cnt);
	assert_true(publish(ab, 1, 100, false));
	DRIVE(a, b, b->got_cnt == 1);
	assert_int_equal(a->downs, 0);
	side_close(a);
	side_close(b);
}

/* ---- what is retained ---- */

static void what_is_retained_is_bounded(void **state)
{
	struct side *a = side_open(NULL), *b = side_open(NULL);
	struct wire_conn *ab, *ba;
	struct tcp_conn *conn;
	uint32_t sent = 0;
	int i;

	pair_up(a, b, &ab, &ba);
	conn = tcp_conn_from(ab);
	/* without a peer that reads, and with none at all */
	while (publish(ab, sent, rnd(200), false))
		sent++;
	assert_true(conn->tail - conn->kept <= TCP_OUT_LEN);
	assert_true(conn->tail - conn->kept > TCP_OUT_LEN - 300);
	break_lane(&conn->control);
	for (i = 0; i < 100; i++) {
		side_poll(a);
		assert_false(publish(ab, sent, 300, false));
	}
	DRIVE(a, b, b->got_cnt == (int)sent);
	/* a reader that answers nothing acknowledges all the same, and rarely */
	for (; sent < 20000; side_poll(a), side_poll(b))
		sent += publish(ab, sent, 8, false);
	DRIVE(a, b, b->got_cnt == (int)sent);
	assert_true(conn->tail - conn->kept <= TCP_OUT_LEN * 3 / 4);
	assert_true(conn->session.control.in <
		    sizeof(struct packet) * 40 * sent / TCP_ACK_LEN * 8);
	for (i = 0; i < b->got_cnt; i++)
		assert_true(b->got[i].packet.seq == (uint32_t)i && payload_right(&b->got[i]));
	side_close(a);
	side_close(b);
}

/* Both sides are full of what the other one has not read: acknowledgements find room. */
static void two_that_are_full_go_on(void **state)
{
	struct side *a = side_open(NULL), *b = side_open(NULL);
	struct wire_conn *ab, *ba;
	uint32_t sent[2] = { 0 };

	pair_up(a, b, &ab, &ba);
	for (int round = 0; round < 40; round++) {
		while (publish(ab, sent[0], 1000, true))
			sent[0]++;
		while (publish(ba, sent[1], 1000, true))
			sent[1]++;
		for (int i = (int)rnd(4); i; i--) {
			side_poll(a);
			if (rnd(2))
				side_poll(b);
		}
	}
	DRIVE(a, b, b->got_cnt == (int)sent[0] && a->got_cnt == (int)sent[1]);
	side_close(a);
	side_close(b);
}

/* ---- what is no break ---- */

/* Ends at once: the process at the port has another epoch, or has given the session up. */
static void a_peer_that_was_restarted_ends_the_session_at_once(void **state)
{
	struct weft_addr addr = { .version = ADDR_VERSION };
	int port = raw_reserve(&addr);
	struct side *a = side_open(NULL), *b = side_open(&addr), *again;
	struct wire_conn *ab, *ba;

	pair_up(a, b, &ab, &ba);
	assert_true(publish(ab, 0, 8, false));
	DRIVE(a, b, b->got_cnt == 1);
	/* killed: its sockets end without a word */
	tcp_lane_reset(&tcp_conn_from(ba)->control);
	tcp_lane_close(tcp_wire_from(b->wire)->hub, &tcp_wire_from(b->wire)->port->listener);
	addr.kind = ADDR_SERVICE;
	memset(addr.nonce, 0, sizeof(addr.nonce));
	again = side_open(&addr);
	memset(tcp_conn_from(ab)->to, 0, sizeof(tcp_conn_from(ab)->to));
	DRIVE(a, again, a->downs == 1);
	assert_int_equal(a->last_err, -FI_ECONNRESET);
	assert_int_equal(again->conn_cnt, 0);
	pair_up(a, again, &ab, &ba);
	assert_true(publish(ab, 0, 8, false));
	DRIVE(a, again, again->got_cnt == 1);
	side_close(a);
	side_close(again);
	side_close(b);
	close(port);
}

/* Both the side that connected and the other one find out within a second. */
static void a_process_that_ends_is_found_out(void **state)
{
	struct side *a, *b;
	struct wire_conn *ab, *ba;

	for (int connects = 0; connects < 2; connects++) {
		struct weft_addr at = { .version = ADDR_VERSION };
		int port = raw_reserve(&at); /* nobody else listens there afterwards */
		uint64_t start;

		a = side_open(NULL);
		b = side_open(&at);
		if (connects)
			pair_up(a, b, &ab, &ba);
		else
			pair_up(b, a, &ba, &ab);
		/* as the kernel does it for a process that was killed */
		tcp_lane_close(tcp_wire_from(b->wire)->hub,
			       &tcp_wire_from(b->wire)->port->listener);
		shutdown(tcp_conn_from(ba)->control.fd, SHUT_RDWR);
		start = platform_now_ns();
		DRIVE(a, NULL, a->downs);
		assert_true(platform_now_ns() - start >= TCP_REFUSED_NS);
		assert_int_equal(a->last_err, -FI_ECONNRESET);
		side_close(a);
		side_close(b);
		close(port);
	}
}

/* Its kernel accepts the socket, and nobody answers: for longer than a dead host is given. */
static void a_peer_that_computes_is_waited_for(void **state)
{
	struct side *a, *b;
	struct wire_conn *ab, *ba;
	uint64_t end;

	tcp_settings.dead_ms = 1000;
	for (int connects = 0; connects < 2; connects++) {
		a = side_open(NULL);
		b = side_open(NULL);
		if (connects)
			pair_up(a, b, &ab, &ba);
		else
			pair_up(b, a, &ba, &ab);
		assert_true(publish(ab, 0, 8, true));
		assert_true(publish(ba, 0, 8, true));
		shutdown(tcp_conn_from(ba)->control.fd, SHUT_RDWR);
		for (end = platform_now_ns() + 2500000000u; platform_now_ns() < end;) {
			side_poll(a);
			assert_int_equal(tcp_check(ab), 0);
			assert_true(tcp_arm(a->wire) > 0);
			tcp_disarm(a->wire);
			platform_sleep(NULL, 1000000);
		}
		assert_int_equal(a->downs, 0);
		DRIVE(a, b, a->got_cnt == 1 && b->got_cnt == 1);
		assert_int_equal(a->downs + b->downs, 0);
		side_close(a);
		side_close(b);
	}
	tcp_settings.dead_ms = 10000;
}

/* Published packets arrive although the socket breaks while the wire closes. */
static void close_delivers_over_a_break(void **state)
{
	struct side *a = side_open(NULL), *b = side_open(NULL);
	struct wire_conn *ab, *ba;
	int i, round;

	for (round = 0; round < 2; round++) {
		pair_up(a, b, &ab, &ba);
		for (i = 0; i < 15; i++)
			assert_true(publish(ab, (uint32_t)i, 4000, true));
		tcp_lane_reset(&tcp_conn_from(ba)->control);
		tcp_lane_reset(&tcp_conn_from(ab)->control);
		DRIVE(a, b, b->got_cnt == 15 * (round + 1));
		assert_int_equal(a->downs + b->downs, round);
		tcp_disconnect(ab);
		DRIVE(a, b, b->downs == round + 1);
		assert_int_equal(b->last_err, 0);
	}
	side_close(a);
	side_close(b);
}

/* Peers that come and go without an end: what is kept for them is bounded. */
static void conns_that_wait_are_bounded(void **state)
{
	struct side *a = side_open(NULL), *b = side_open(NULL);
	struct tcp_wire *wire = tcp_wire_from(b->wire);
	static uint8_t bytes[TCP_CARRY_MAX + 1];
	struct iovec iov = { bytes, sizeof(bytes) };
	struct wire_conn *ab, *ba;
	struct sent sent = { 0 };

	pair_up(a, b, &ab, &ba);
	wire->lost_cnt = TCP_LOST_MAX;
	shutdown(tcp_conn_from(ba)->control.fd, SHUT_RDWR);
	DRIVE(b, NULL, b->downs == 1);
	assert_int_equal(b->last_err, -FI_ECONNRESET);
	DRIVE(a, b, a->downs == 1);
	pair_up(a, b, &ab, &ba);
	wire->lost_cnt = TCP_LOST_MAX - 1;
	shutdown(tcp_conn_from(ba)->control.fd, SHUT_RDWR);
	DRIVE(a, b, wire->resumes == 1);
	assert_int_equal(wire->lost_cnt, TCP_LOST_MAX - 1);
	assert_int_equal(b->downs, 1);
	/* one that has lost its data lane alone does not count, however often */
	assert_int_equal(send_bulk(ab, 0, &iov, 1, &sent), 0);
	DRIVE(a, b, sent.done);
	for (int i = 0; i < 3; i++) {
		shutdown(tcp_conn_from(ba)->data.fd, SHUT_RDWR);
		DRIVE(a, b, wire->resumes == 2 + (uint64_t)i);
		assert_int_equal(wire->lost_cnt, TCP_LOST_MAX - 1);
	}
	wire->lost_cnt = 0;
	side_close(a);
	side_close(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whatever_breaks_all_arrives_once),
		cmocka_unit_test(both_lanes_break_at_once),
		cmocka_unit_test(a_break_that_one_side_sees_is_mended),
		cmocka_unit_test(an_answer_that_is_lost_is_asked_for_again),
		cmocka_unit_test(a_preamble_that_is_lost_is_said_again),
		cmocka_unit_test(what_is_retained_is_bounded),
		cmocka_unit_test(two_that_are_full_go_on),
		cmocka_unit_test(a_peer_that_was_restarted_ends_the_session_at_once),
		cmocka_unit_test(a_process_that_ends_is_found_out),
		cmocka_unit_test(a_peer_that_computes_is_waited_for),
		cmocka_unit_test(close_delivers_over_a_break),
		cmocka_unit_test(conns_that_wait_are_bounded),
	};

	rnd_begin();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
