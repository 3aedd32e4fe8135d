/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What the orderly end of a connection waits for, and what it leaves to the kernel; over loopback.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <unistd.h>
#include <cmocka.h>
#include "mock_engine.h"
#include "mock_network.h"
#include "raw_peer.h"
#include "tcp_conn.h"
#include "tcp_control.h"
#include "tcp_greet.h"
#include "tcp_hub.h"

static void loopback_has(const char *name, const uint8_t ip[4])
{
	struct ifreq req = { .ifr_flags = 0 };
	struct sockaddr_in addr = { .sin_family = AF_INET };

	memcpy(&addr.sin_addr, ip, 4);
	memcpy(&req.ifr_addr, &addr, sizeof(addr));
	assert_int_equal(mock_network_request(name, SIOCSIFADDR, &req), 0);
}

/* Two sides at addresses of this process's own network, which look like two hosts. */
static bool two_hosts(struct side **a, struct side **b)
{
	static struct weft_addr here = { .family = ADDR_FAMILY_INET, .ip = { 10, 9, 0, 1 } };
	static struct weft_addr there = { .family = ADDR_FAMILY_INET, .ip = { 10, 9, 0, 2 } };

	if (!mock_network())
		return false;
	loopback_has("lo:1", here.ip);
	loopback_has("lo:2", there.ip);
	*a = side_open_dialing(&here);
	*b = side_open(&there);
	return true;
}

static int unacknowledged(const struct wire_conn *conn)
{
	int len = -1;

	assert_int_equal(ioctl(((const struct tcp_conn *)conn)->control.fd, SIOCOUTQ, &len), 0);
	return len;
}

static int unsent(const struct wire_conn *conn)
{
	int len = -1;

	assert_int_equal(ioctl(((const struct tcp_conn *)conn)->control.fd, SIOCOUTQNSD, &len),
			 0);
	return len;
}

/* Returns whether the kernel tells what a socket has received. */
static bool kernel_tells(void)
{
	int fd = socket(AF_NETLINK, SOCK_RAW, NETLINK_SOCK_DIAG);

	if (fd < 0) {
		print_message("no sock_diag here\n");
		return false;
	}
	close(fd);
	return true;
}

/* The peer does not poll, and its kernel takes its time. */
static void what_a_peer_on_this_host_has_needs_no_acknowledgement(void **state)
{
	struct wire_conn *ab, *ba;
	struct side *a, *b;
	uint32_t seq = 0;

	if (!kernel_tells())
		skip();
	a = side_open(NULL);
	b = side_open(NULL);
	pair_up(a, b, &ab, &ba);
	start_clock();
	do {
		assert_false(expired());
		assert_true(publish(ba, seq, 8, false));
		DRIVE(a, b, a->got_cnt == (int)seq + 1 && b->got_cnt == (int)seq);
		assert_true(publish(ab, seq++, 8, false));
		if (unacknowledged(ab))
			break;
		DRIVE(a, b, b->got_cnt == (int)seq);
	} while (true);
	assert_true(tcp_conn_drained(tcp_conn_from(ab)));
	tcp_disconnect(ab);
	DRIVE(b, a, b->downs);
	assert_int_equal(b->last_err, 0);
	assert_int_equal(b->got_cnt, seq);
	side_close(a);
	side_close(b);
}

/* The peer's socket drops what comes, as if it were on its way still. */
static void what_has_left_and_not_arrived_is_waited_for(void **state)
{
	struct sock_filter nothing[] = { BPF_STMT(BPF_RET | BPF_K, 0) };
	const struct sock_fprog program = { .len = 1, .filter = nothing };
	struct side *a = side_open(NULL), *b = side_open(NULL);
	struct wire_conn *ab, *ba;
	int fd;

	pair_up(a, b, &ab, &ba);
	fd = tcp_conn_from(ba)->control.fd;
	if (setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program))) {
		print_message("no socket filters for this user: %s\n", strerror(errno));
		side_close(a);
		side_close(b);
		skip();
	}
	assert_true(publish(ab, 0, 8, false));
	assert_int_equal(unsent(ab), 0);
	assert_false(tcp_conn_drained(tcp_conn_from(ab)));
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_DETACH_FILTER, &fd, sizeof(fd)), 0);
	DRIVE(a, NULL, tcp_conn_drained(tcp_conn_from(ab)));
	tcp_disconnect(ab);
	DRIVE(b, a, b->downs);
	assert_int_equal(b->last_err, 0);
	assert_int_equal(b->got_cnt, 1);
	side_close(a);
	side_close(b);
}

/* The socket has more than the peer has room for, and breaks when nothing but the end is to be sent. */
static void a_break_in_front_of_the_end_is_mended(void **state)
{
	struct side *a = side_open(NULL), *b = side_open(NULL);
	struct wire_conn *ab, *ba;
	struct tcp_conn *conn;
	int cnt = 0;

	pair_up(a, b, &ab, &ba);
	conn = tcp_conn_from(ab);
	while (!unsent(ab)) {
		assert_true(publish(ab, (uint32_t)cnt++, 8000, false));
		side_poll(a);
	}
	assert_true(conn->head == conn->tail);
	tcp_lane_reset(&conn->control);
	assert_false(tcp_conn_drained(conn));
	DRIVE(a, b, tcp_conn_drained(conn));
	assert_int_equal(a->downs, 0);
	tcp_disconnect(ab);
	DRIVE(a, b, b->downs);
	assert_int_equal(b->last_err, 0);
	assert_int_equal(b->got_cnt, cnt);
	for (int i = 0; i < cnt; i++)
		assert_true(b->got[i].packet.seq == (uint32_t)i && payload_right(&b->got[i]));
	side_close(a);
	side_close(b);
}

static void the_end_itself_needs_no_acknowledgement(void **state)
{
	struct wire_conn *ab, *ba;
	struct side *a = NULL, *b = NULL;

	if (!two_hosts(&a, &b))
		skip();
	pair_up(a, b, &ab, &ba);
	assert_true(publish(ab, 0, 8, false));
	DRIVE(a, b, b->got_cnt == 1 && !unacknowledged(ab));
	mock_network_set(false);
	assert_true(tcp_conn_drained(tcp_conn_from(ab)));
	assert_true(unacknowledged(ab) > 0);
	tcp_disconnect(ab);
	mock_network_set(true);
	DRIVE(b, a, b->downs);
	assert_int_equal(b->last_err, 0);
	side_close(a);
	side_close(b);
}

static void what_the_program_sent_is_waited_for(void **state)
{
	struct wire_conn *ab, *ba;
	struct side *a = NULL, *b = NULL;

	if (!two_hosts(&a, &b))
		skip();
	pair_up(a, b, &ab, &ba);
	mock_network_set(false);
	assert_true(publish(ab, 0, 8, false));
	assert_false(tcp_conn_drained(tcp_conn_from(ab)));
	assert_true(tcp_conn_from(ab)->bye_sent);
	mock_network_set(true);
	/* The peer's kernel acknowledges it: the peer does not poll. */
	DRIVE(a, NULL, tcp_conn_drained(tcp_conn_from(ab)));
	assert_int_equal(b->got_cnt, 0);
	tcp_disconnect(ab);
	DRIVE(b, a, b->downs);
	assert_int_equal(b->last_err, 0);
	assert_int_equal(b->got_cnt, 1);
	side_close(a);
	side_close(b);
}

/*
 * The connection breaks behind the orderly end, of which nothing has left: all of it arrives, over
 * the next one. @by_accepted: the side that was connected to closes
 */
static void break_behind_the_end(bool by_accepted)
{
	struct side *a = NULL, *b = NULL, *closing, *other;
	struct wire_conn *ab, *ba, *from;
	struct tcp_conn *conn;
	int i;

	if (!two_hosts(&a, &b))
		skip();
	pair_up(a, b, &ab, &ba);
	closing = by_accepted ? b : a;
	other = by_accepted ? a : b;
	from = by_accepted ? ba : ab;
	conn = tcp_conn_from(from);
	mock_network_set(false);
	for (i = 0; i < 10; i++)
		assert_true(publish(from, (uint32_t)i, 4000, true));
	assert_false(tcp_conn_drained(conn));
	assert_true(conn->bye_sent && conn->shut);
	tcp_lane_reset(&tcp_conn_from(ab)->control);
	tcp_lane_reset(&tcp_conn_from(ba)->control);
	mock_network_set(true);
	DRIVE(a, b, tcp_conn_drained(conn));
	assert_int_equal(closing->downs, 0);
	tcp_disconnect(from);
	DRIVE(a, b, other->downs);
	assert_int_equal(other->last_err, 0);
	assert_int_equal(other->got_cnt, 10);
	for (i = 0; i < 10; i++)
		assert_true(other->got[i].packet.seq == (uint32_t)i &&
			    payload_right(&other->got[i]));
	side_close(a);
	side_close(b);
}

static void a_break_behind_the_end_is_mended(void **state)
{
	break_behind_the_end(false);
}

static void a_break_behind_the_end_of_who_accepted_is_mended(void **state)
{
	break_behind_the_end(true);
}

/* Packets of any length, cut anywhere, are discarded; the orderly end behind them is seen. */
static void who_closes_sees_the_end_of_the_other(void **state)
{
	static const size_t lens[] = { 8, 1, 4000, 0, 63, 8000, 20, 4096 };
	static uint8_t bytes[TCP_CARRY_MAX];
	struct side *a = side_open(NULL), *b = side_open(NULL);
	struct iovec iov = { bytes, sizeof(bytes) };
	struct wire_conn *ab, *ba;
	struct tcp_conn *conn;
	struct sent sent[2];
	uint32_t seq = 0;
	int got, round;

	for (round = 0; round < 40; round++) {
		memset(sent, 0, sizeof(sent));
		pair_up(a, b, &ab, &ba);
		conn = tcp_conn_from(ab);
		iov.iov_len = sizeof(bytes) - (size_t)round;
		assert_int_equal(send_bulk(ba, seq, &iov, 1, &sent[0]), 0);
		for (int i = 0; i < round; i++)
			side_poll(a);
		got = a->got_cnt;
		tcp_wire_from(a->wire)->closing = true;
		tcp_control_discard(conn);
		for (size_t i = 0; i < sizeof(lens) / sizeof(*lens); i++)
			assert_true(publish(ba, seq++, lens[i], i % 2));
		tcp_disconnect(ba);
		DRIVE(a, b, list_empty(&tcp_wire_from(a->wire)->conns));
		assert_int_equal(tcp_wire_from(a->wire)->breaks, 0);
		assert_int_equal(a->got_cnt, got);
		tcp_wire_from(a->wire)->closing = false;
	}
	side_close(a);
	side_close(b);
}

static void next_one_waits(struct side *side, struct wire_conn *conn,
			   const struct packet *packet)
{
	side->turn = (uint32_t)side->got_cnt + 1;
}

/*
 * @cnt payloads from @a, which does not look until @b has received the first one and has closed.
 * @told: the acknowledgement has left before
 */
static void close_behind_payload(int cnt, bool told)
{
	static uint8_t bytes[TCP_CARRY_MAX + 1];
	struct side *a = side_open(NULL), *b = side_open(NULL);
	struct iovec iov = { bytes, sizeof(bytes) };
	struct sent sent[2] = { 0 };
	struct wire_conn *ab, *ba;
	struct tcp_stream *stream;

	pair_up(a, b, &ab, &ba);
	b->turn = 1;
	for (int i = 0; i < cnt; i++)
		assert_int_equal(send_bulk(ab, (uint32_t)i, &iov, 1, &sent[i]), 0);
	DRIVE(a, b,
	      !list_empty(&tcp_conn_from(ba)->waiting) &&
		      tcp_conn_from(ab)->bulk->written == (uint32_t)cnt);
	b->turn = 0;
	b->on_packet = next_one_waits;
	stream = &tcp_conn_from(ba)->session.data;
	DRIVE(b, NULL,
	      b->got_cnt == 1 && b->got[0].payload && (stream->in_told == stream->in) == told);
	tcp_disconnect(ba);
	assert_int_equal(sent[0].done, 0);
	DRIVE(a, NULL, a->downs);
	assert_int_equal(a->last_err, 0);
	assert_int_equal(sent[0].done, 1);
	assert_int_equal(sent[0].status, 0);
	assert_int_equal(sent[1].done, 0);
	side_close(a);
	side_close(b);
}

static void what_the_end_comes_with_is_acknowledged(void **state)
{
	close_behind_payload(1, true);
}

/* The receiver would have told of several at once. */
static void what_was_received_is_acknowledged_before_the_end(void **state)
{
	close_behind_payload(2, false);
}

/* The packet in front of the payload was never sent: nothing is left to wait for. */
static void payload_without_its_turn_ends_with_the_packets(void **state)
{
	static uint8_t bytes[TCP_CARRY_MAX + 1];
	struct side *a = side_open(NULL), *b = side_open(NULL);
	struct iovec iov = { bytes, sizeof(bytes) };
	struct wire_conn *ab, *ba;
	struct sent sent = { 0 };

	a->hello.kind = b->hello.kind = HELLO_MSG;
	pair_up(a, b, &ab, &ba);
	tcp_conn_from(ab)->remote = tcp_wire_from(b->wire)->local;
	b->turn = 1;
	assert_int_equal(send_bulk(ab, 1, &iov, 1, &sent), 0);
	DRIVE(a, b, !list_empty(&tcp_conn_from(ba)->waiting));
	/* as the kernel of a process that is killed */
	shutdown(tcp_conn_from(ab)->control.fd, SHUT_RDWR);
	shutdown(tcp_conn_from(ab)->data.fd, SHUT_RDWR);
	DRIVE(b, NULL, b->downs || tcp_conn_from(ba)->control.state == TCP_LANE_ENDED);
	side_poll(b);
	assert_int_equal(b->downs, 1);
	assert_int_equal(b->last_err, -FI_ECONNRESET);
	assert_int_equal(b->got_cnt, 0);
	side_close(a);
	side_close(b);
}

/*
 * The peer's kernel has accepted, and then forgets the socket: nothing says so, and nothing is under
 * way.
 */
static void an_answer_that_can_not_come_is_asked_for_again(void **state)
{
	struct tcp_preamble preamble;
	int listener, fd = -1, on = 1;
	struct wire_conn *conn;
	struct weft_addr at = { .family = ADDR_FAMILY_INET };
	struct side *a;

	if (!mock_network())
		skip();
	tcp_settings.dead_ms = 100000;
	a = side_open(NULL);
	listener = raw_listen(&at);
	assert_int_equal(fcntl(listener, F_SETFL, O_NONBLOCK), 0);
	assert_int_equal(tcp_connect(a->wire, (struct engine_peer *)a, &at, &a->hello, &conn),
			 0);
	DRIVE(a, NULL, (fd = accept4(listener, NULL, NULL, 0)) >= 0);
	assert_int_equal(raw_recv(fd, a, &preamble, sizeof(preamble)), sizeof(preamble));
	assert_int_equal(setsockopt(fd, IPPROTO_TCP, TCP_REPAIR, &on, sizeof(on)), 0);
	close(fd);
	DRIVE(a, NULL, (fd = accept4(listener, NULL, NULL, 0)) >= 0);
	assert_int_equal(raw_recv(fd, a, &preamble, sizeof(preamble)), sizeof(preamble));
	assert_int_equal(preamble.turn, 1);
	assert_int_equal(a->downs, 0);
	close(fd);
	close(listener);
	tcp_settings.dead_ms = 10000;
	side_close(a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_a_peer_on_this_host_has_needs_no_acknowledgement),
		cmocka_unit_test(what_has_left_and_not_arrived_is_waited_for),
		cmocka_unit_test(a_break_in_front_of_the_end_is_mended),
		cmocka_unit_test(who_closes_sees_the_end_of_the_other),
		cmocka_unit_test(what_the_end_comes_with_is_acknowledged),
		cmocka_unit_test(what_was_received_is_acknowledged_before_the_end),
		cmocka_unit_test(payload_without_its_turn_ends_with_the_packets),
		/* last: they move the process to a network of its own */
		cmocka_unit_test(the_end_itself_needs_no_acknowledgement),
		cmocka_unit_test(what_the_program_sent_is_waited_for),
		cmocka_unit_test(a_break_behind_the_end_is_mended),
		cmocka_unit_test(a_break_behind_the_end_of_who_accepted_is_mended),
		cmocka_unit_test(an_answer_that_can_not_come_is_asked_for_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
