/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The TCP wire between well-behaved endpoints of one process, over loopback.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>
#include "iface.h"
#include "mock_engine.h"
#include "mock_random.h"
#include "raw_peer.h"
#include "tcp_bell.h"
#include "tcp_conn.h"
#include "tcp_greet.h"

static void hello_reaches_both_sides(void **state)
{
	struct side *a = side_open(NULL), *b = side_open(NULL);
	struct wire_conn *ab, *ba;

	pair_up(a, b, &ab, &ba);
	assert_int_equal(a->peer_epoch, b->hello.epoch);
	assert_int_equal(b->peer_epoch, a->hello.epoch);
	assert_int_equal(a->conn_cnt, 1);
	side_close(a);
	DRIVE(b, NULL, b->downs);
	assert_int_equal(b->last_err, 0);
	side_close(b);
}

/* Random lengths, both ways, whatever the state of buffers. */
static void packets_arrive_whole_and_in_order(void **state)
{
	struct side *a = side_open(NULL), *b = side_open(NULL);
	struct wire_conn *ab, *ba;
	uint32_t sent_a = 0, sent_b = 0;
	int i;

	pair_up(a, b, &ab, &ba);
	start_clock();
	while (a->got_cnt < 5000 || b->got_cnt < 5000) {
		assert_false(expired());
		for (i = (int)rnd(40); i && sent_a < 5000; i--)
			sent_a += publish(ab, sent_a, rnd(8) ? rnd(64) : rnd(TCP_CLAIM_MAX + 1),
					  !rnd(8));
		for (i = (int)rnd(40); i && sent_b < 5000; i--)
			sent_b += publish(ba, sent_b, rnd(TCP_CLAIM_MAX + 1), false);
		if (rnd(2))
			side_poll(a);
		if (rnd(2))
			side_poll(b);
	}
	for (i = 0; i < 5000; i++) {
		assert_int_equal(a->got[i].packet.seq, i);
		assert_true(payload_right(&a->got[i]));
		assert_int_equal(b->got[i].packet.seq, i);
		assert_int_equal(b->got[i].packet.tag, 3 * i);
		assert_true(payload_right(&b->got[i]));
	}
	side_close(a);
	side_close(b);
}

static void packets_without_progress_leave_with_the_next_poll(void **state)
{
	struct side *a = side_open(NULL), *b = side_open(NULL);
	struct wire_conn *ab, *ba;
	int i;

	pair_up(a, b, &ab, &ba);
	side_poll(a);
	for (i = 0; i < 20; i++)
		assert_true(publish(ab, (uint32_t)i, 8, false));
	DRIVE(b, NULL, b->got_cnt == TCP_BURST);
	side_poll(a);
	DRIVE(b, NULL, b->got_cnt == 20);
	/* more: nothing leaves before the next poll */
	assert_true(publish(ab, 20, 8, true));
	for (i = 0; i < 100; i++)
		side_poll(b);
	assert_int_equal(b->got_cnt, 20);
	side_poll(a);
	DRIVE(b, NULL, b->got_cnt == 21);
	side_close(a);
	side_close(b);
}

static bool hold(struct wire_conn *conn, uint32_t seq)
{
	void *payload;
	struct packet *packet = conn->wire->ops->claim(conn, 0, &payload);

	if (!packet)
		return false;
	*packet = (struct packet){ .op = PACKET_ACK, .seq = seq, .tag = 3 * seq };
	conn->wire->ops->hold(conn, packet);
	return true;
}

static void what_is_held_leaves_with_the_next_packet_or_poll_or_by_itself(void **state)
{
	struct side *a = side_open(NULL), *b = side_open(NULL);
	struct wire_conn *ab, *ba;

	pair_up(a, b, &ab, &ba);
	side_poll(a);
	assert_true(hold(ab, 0));
	assert_true(publish(ab, 1, 8, false));
	DRIVE(b, NULL, b->got_cnt == 2);
	assert_true(hold(ab, 2));
	side_poll(a);
	DRIVE(b, NULL, b->got_cnt == 3);
	assert_true(hold(ab, 3));
	DRIVE(b, NULL, b->got_cnt == 4); /* and a is not polled */
	for (int i = 0; i < 4; i++)
		assert_int_equal(b->got[i].packet.seq, i);
	side_close(a);
	side_close(b);
}

/* A reader that does not read: claim refuses before memory grows, and nothing is lost. */
static void a_full_lane_refuses_claims_and_goes_on(void **state)
{
	struct side *a = side_open(NULL), *b = side_open(NULL);
	struct wire_conn *ab, *ba;
	uint32_t sent = 0, refused;
	int i;

	pair_up(a, b, &ab, &ba);
	while (publish(ab, sent, TCP_CLAIM_MAX, false) && sent < 20000) {
		side_poll(a);
		sent++;
	}
	refused = sent;
	assert_true(refused < 20000);
	DRIVE(a, b, b->got_cnt == (int)refused);
	while (sent < refused + 1000) {
		sent += publish(ab, sent, 100, false);
		side_poll(a);
		side_poll(b);
	}
	DRIVE(a, b, b->got_cnt == (int)sent);
	for (i = 0; i < (int)sent; i++) {
		assert_int_equal(b->got[i].packet.seq, i);
		assert_true(payload_right(&b->got[i]));
	}
	side_close(a);
	side_close(b);
}

/* From four pieces into three, less than what is sent: the rest is dropped. */
static void bulk_scatters_to_where_it_belongs(void **state)
{
	struct side *a = side_open(NULL), *b = side_open(NULL);
	size_t len = 3000001, part[4] = { 1, 999999, 1000000, 1000001 };
	uint8_t *from = malloc(len), *to = calloc(1, len);
	struct wire_conn *ab, *ba;
	struct sent sent = { 0 };
	struct iovec iov[4];
	size_t off = 0;
	int i;

	pair_up(a, b, &ab, &ba);
	pattern(from, len, 7);
	for (i = 0; i < 4; i++) {
		iov[i] = (struct iovec){ from + off, part[i] };
		off += part[i];
	}
	b->scatter = (struct scatter){
		{ { to + 500000, 1000000 }, { to, 500000 }, { to + 1500000, 1 } }, 3, true
	};
	assert_int_equal(send_bulk(ab, 7, iov, 4, &sent), 0);
	assert_int_equal(sent.done, 0); /* only from poll */
	DRIVE(a, b, sent.done && b->scattered);
	assert_int_equal(sent.status, 0);
	assert_memory_equal(to + 500000, from, 1000000);
	assert_memory_equal(to, from + 1000000, 500000);
	assert_int_equal(to[1500000], from[1500000]);
	assert_int_equal(to[1500001], 0);

	/* all of it is discarded; the next one arrives */
	b->scatter.cnt = 0;
	assert_int_equal(send_bulk(ab, 7, iov, 4, &sent), 0);
	DRIVE(a, b, b->scattered == 2);
	b->scatter.active = false;
	assert_int_equal(send_bulk(ab, 7, iov, 2, &sent), 0);
	DRIVE(a, b, b->got_cnt == 3 && b->got[2].payload);
	assert_true(payload_right(&b->got[2]));
	side_close(a);
	side_close(b);
	free(from);
	free(to);
}

static bool reno(const struct tcp_lane *lane)
{
	char name[16] = "";
	socklen_t len = sizeof(name);

	assert_int_equal(getsockopt(lane->fd, IPPROTO_TCP, TCP_CONGESTION, name, &len), 0);
	return !strcmp(name, "reno");
}

/* What the system prefers between hosts may pace: on some of them, this fails without care. */
static void inside_a_host_nothing_paces(void **state)
{
	struct side *a = side_open(NULL), *b = side_open(NULL);
	uint8_t bytes[TCP_CARRY_MAX + 1] = { 0 };
	struct iovec iov = { bytes, sizeof(bytes) };
	struct wire_conn *ab, *ba;
	struct sent sent = { 0 };

	pair_up(a, b, &ab, &ba);
	assert_int_equal(send_bulk(ab, 1, &iov, 1, &sent), 0);
	DRIVE(a, b, sent.done && b->got_cnt == 1);
	assert_true(reno(&tcp_conn_from(ab)->control));
	assert_true(reno(&tcp_conn_from(ba)->control));
	assert_true(reno(&tcp_conn_from(ab)->data));
	assert_true(reno(&tcp_conn_from(ba)->data));
	side_close(a);
	side_close(b);
}

/* The side that was connected to sends first: it asks for the lane. */
static void either_side_may_send_bulk_first(void **state)
{
	struct side *a = side_open(NULL), *b = side_open(NULL);
	uint8_t bytes[TCP_CARRY_MAX + 1];
	struct iovec iov = { bytes, sizeof(bytes) };
	struct wire_conn *ab, *ba;
	struct sent sent[2] = { 0 };

	pattern(bytes, sizeof(bytes), 1);
	pair_up(a, b, &ab, &ba);
	assert_int_equal(send_bulk(ba, 1, &iov, 1, &sent[0]), 0);
	DRIVE(a, b, sent[0].done && a->got_cnt == 1 && a->got[0].payload);
	assert_true(payload_right(&a->got[0]));
	assert_int_equal(send_bulk(ab, 1, &iov, 1, &sent[1]), 0);
	DRIVE(a, b, sent[1].done && b->got_cnt == 1 && b->got[0].payload);
	assert_true(payload_right(&b->got[0]));
	side_close(b);
	DRIVE(a, NULL, a->downs);
	assert_int_equal(a->last_err, 0);
	side_close(a);
}

static void both_sides_send_bulk_at_once(void **state)
{
	struct side *a = side_open(NULL), *b = side_open(NULL);
	size_t len = 300000;
	uint8_t *bytes = malloc(len);
	struct sent sent[2][TCP_SEND_MAX];
	struct iovec iov = { bytes, len };
	struct wire_conn *ab, *ba;
	int i;

	memset(sent, 0, sizeof(sent));
	pattern(bytes, len, 5);
	pair_up(a, b, &ab, &ba);
	for (i = 0; i < (int)TCP_SEND_MAX; i++) {
		assert_int_equal(send_bulk(ab, 5, &iov, 1, &sent[0][i]), 0);
		assert_int_equal(send_bulk(ba, 5, &iov, 1, &sent[1][i]), 0);
	}
	/* one more is too many: nothing happened */
	assert_int_equal(send_bulk(ab, 5, &iov, 1, &sent[0][0]), -FI_EAGAIN);
	DRIVE(a, b,
	      a->got_cnt == (int)TCP_SEND_MAX && b->got_cnt == (int)TCP_SEND_MAX &&
		      a->got[TCP_SEND_MAX - 1].payload && b->got[TCP_SEND_MAX - 1].payload &&
		      sent[0][TCP_SEND_MAX - 1].done && sent[1][TCP_SEND_MAX - 1].done);
	for (i = 0; i < (int)TCP_SEND_MAX; i++) {
		assert_int_equal(sent[0][i].done + sent[1][i].done, 2);
		assert_true(payload_right(&a->got[i]) && payload_right(&b->got[i]));
	}
	side_close(a);
	side_close(b);
	free(bytes);
}

/* A payload that the kernel can't take at once: a control packet does not wait for it. */
static void control_overtakes_bulk(void **state)
{
	struct side *a = side_open(NULL), *b = side_open(NULL);
	size_t len = 40u << 20;
	uint8_t *bytes = malloc(len);
	struct iovec iov = { bytes, len };
	struct wire_conn *ab, *ba;
	struct sent sent = { 0 };
	int i;

	pattern(bytes, len, 1);
	pair_up(a, b, &ab, &ba);
	assert_int_equal(send_bulk(ab, 1, &iov, 1, &sent), 0);
	for (i = 0; i < 1000; i++)
		side_poll(a);
	assert_int_equal(sent.done, 0);
	assert_true(publish(ab, 2, 8, false));
	DRIVE(a, b, b->got_cnt && b->got[b->got_cnt - 1].packet.seq == 2);
	assert_int_equal(sent.done, 0);
	DRIVE(a, b, sent.done && b->got_cnt == 2 && b->got[0].payload && b->got[1].payload);
	assert_true(payload_right(&b->got[0]) && payload_right(&b->got[1]));
	side_close(a);
	side_close(b);
	free(bytes);
}

/* The control lane continues meanwhile, also to the end that waits, and nothing is lost. */
static void bulk_waits_for_its_turn_and_nothing_else_does(void **state)
{
	struct side *a = side_open(NULL), *b = side_open(NULL);
	size_t len = 3000000;
	uint8_t *bytes = malloc(len);
	struct iovec iov = { bytes, len };
	struct wire_conn *ab, *ba;
	struct sent sent[2] = { 0 };
	int i;

	pair_up(a, b, &ab, &ba);
	pattern(bytes, len, 7);
	b->turn = 10;
	for (i = 0; i < 2; i++)
		assert_int_equal(send_bulk(ab, 7, &iov, 1, &sent[i]), 0);
	DRIVE(a, b, !list_empty(&tcp_wire_from(b->wire)->waiting));
	for (i = 0; i < 9; i++) {
		assert_true(publish(ab, (uint32_t)i, 100, false));
		DRIVE(a, b, b->got_cnt == i + 1);
		assert_int_equal(tcp_conn_from(ba)->data.events, 0); /* it does not ring */
		assert_true(tcp_arm(b->wire) <= TCP_TURN_NS);
		tcp_disarm(b->wire);
	}
	assert_true(publish(ba, 1, 100, false));
	DRIVE(a, b, a->got_cnt == 1);
	assert_true(publish(ab, 9, 100, false));
	DRIVE(a, b, b->got_cnt == 12 && b->got[10].payload && b->got[11].payload);
	for (i = 0; i < 12; i++)
		assert_true(payload_right(&b->got[i]));
	DRIVE(a, b, sent[0].done && sent[1].done);

	/* an end is seen, and so is one of our own */
	b->turn = 100;
	assert_int_equal(send_bulk(ab, 7, &iov, 1, &sent[0]), 0);
	DRIVE(a, b, !list_empty(&tcp_wire_from(b->wire)->waiting));
	tcp_disconnect(ab);
	DRIVE(b, NULL, b->downs == 1);
	pair_up(a, b, &ab, &ba);
	assert_int_equal(send_bulk(ab, 7, &iov, 1, &sent[0]), 0);
	DRIVE(a, b, !list_empty(&tcp_wire_from(b->wire)->waiting));
	side_close(b);
	DRIVE(a, NULL, a->downs == 1);
	assert_int_equal(a->last_err, 0);
	side_close(a);
	free(bytes);
}

/* One payload of medium size, in pieces, behind packets that are gathered. */
static void exchange(struct side *from, struct wire_conn *conn, struct side *to, size_t len)
{
	static uint8_t bytes[TCP_CARRY_MAX];
	size_t cut = rnd((uint32_t)len + 1);
	struct iovec iov[3] = { { bytes, cut }, { bytes, 0 }, { bytes + cut, len - cut } };
	uint32_t seq = (uint32_t)to->got_cnt;
	struct sent sent = { 0 };

	while (rnd(3))
		assert_true(publish(conn, seq++, rnd(200), rnd(2)));
	pattern(bytes, len, seq);
	assert_int_equal(send_bulk(conn, seq, iov, 3, &sent), 0);
	assert_int_equal(sent.done, 0); /* only from poll */
	seq++;
	while (rnd(3)) /* there may be no room behind what the kernel did not take */
		seq += publish(conn, seq, rnd(TCP_CLAIM_MAX), false);
	DRIVE(from, to, sent.done && to->got_cnt == (int)seq && to->got[seq - 1].payload);
	for (int i = 0; i < to->got_cnt; i++) {
		assert_int_equal(to->got[i].packet.seq, i);
		assert_true(payload_right(&to->got[i]));
		free(to->got[i].bytes);
		to->got[i] = (struct got){ 0 };
	}
	assert_int_equal(sent.done, 1);
	to->got_cnt = 0;
}

/* Whatever the kernel takes of it at once. */
static void medium_payload_that_is_answered_needs_one_lane(void **state)
{
	struct side *a = side_open(NULL), *b = side_open(NULL);
	struct wire_conn *ab, *ba;
	int i, small = 4096;

	pair_up(a, b, &ab, &ba);
	for (i = 0; i < 300; i++) {
		exchange(a, ab, b, i < 20 ? (size_t)i : rnd(TCP_CARRY_MAX + 1));
		exchange(b, ba, a, rnd(2) ? rnd(TCP_CARRY_MAX + 1) : TCP_CARRY_MAX);
		if (i == 150)
			setsockopt(tcp_conn_from(ab)->control.fd, SOL_SOCKET, SO_SNDBUF, &small,
				   sizeof(small));
	}
	assert_int_equal(tcp_conn_from(ab)->data.state, TCP_LANE_NONE);
	side_close(a);
	side_close(b);
}

/* Control would wait behind all of it. */
static void a_stream_of_medium_payload_takes_the_data_lane(void **state)
{
	struct side *a = side_open(NULL), *b = side_open(NULL);
	size_t len = 40000;
	uint8_t *bytes = malloc(len);
	struct iovec iov = { bytes, len };
	struct sent sent = { 0 };
	struct wire_conn *ab, *ba;
	int i, cnt = 0;

	pattern(bytes, len, 1);
	pair_up(a, b, &ab, &ba);
	/* without a reader: more than any buffer of the kernel takes */
	for (i = 0; i < 100000 && cnt < 4000; i++) {
		cnt += !send_bulk(ab, 1, &iov, 1, &sent);
		side_poll(a);
		if (cnt == 2)
			DRIVE(a, b, tcp_conn_from(ab)->data.state == TCP_LANE_UP);
	}
	assert_true(sent.done < cnt);
	assert_true(publish(ab, 2, 8, false));
	assert_false(tcp_conn_from(ab)->control.want_out);
	DRIVE(a, b, sent.done == cnt && b->got_cnt == cnt + 1 && b->got[cnt].payload);
	for (i = 0; i < b->got_cnt; i++)
		assert_true(payload_right(&b->got[i]));
	side_close(a);
	side_close(b);
	free(bytes);
}

static void a_side_connects_to_itself(void **state)
{
	struct side *a = side_open(NULL);
	struct wire_conn *out, *in;

	out = side_connect(a, a);
	DRIVE(a, NULL, a->conn_cnt == 2);
	in = a->conns[0] == out ? a->conns[1] : a->conns[0];
	assert_true(publish(in, 1, 100, false));
	assert_true(publish(out, 2, 100, false));
	DRIVE(a, NULL, a->got_cnt == 2);
	side_close(a);
}

static void forget_yield(struct side *side, struct wire_conn *conn, int err)
{
	if (side->yield == conn)
		side->yield = NULL;
}

/* Both connect; a refuses b's because its own takes precedence, b gives its own up. */
static void simultaneous_open_leaves_one_conn(void **state)
{
	struct side *a = side_open(NULL), *b = side_open(NULL);
	struct wire_conn *ab, *ba;

	ab = side_connect(a, b);
	ba = side_connect(b, a);
	a->refuse = -FI_EALREADY;
	b->yield = ba;
	b->on_down = forget_yield;
	DRIVE(a, b, ab->up && b->conn_cnt == 1);
	assert_true(publish(ab, 1, 8, false));
	assert_true(publish(b->conns[0], 2, 8, false));
	DRIVE(a, b, a->got_cnt == 1 && b->got_cnt == 1);
	assert_int_equal(a->conn_cnt, 1);
	assert_int_equal(a->downs, 0);
	assert_true(!b->downs || b->last_err == -FI_EALREADY);

	/* now b certainly reads the refusal */
	b->downs = 0;
	ba = side_connect(b, a);
	DRIVE(a, b, b->downs == 1);
	assert_ptr_equal(b->last_down, ba);
	assert_int_equal(b->last_err, -FI_EALREADY);
	side_close(a);
	side_close(b);
}

static void a_port_where_nobody_listens_refuses(void **state)
{
	struct weft_addr addr = { .version = ADDR_VERSION };
	int port = raw_reserve(&addr);
	struct side *a = side_open(NULL), *b = side_open(&addr);
	struct wire_conn *conn;

	side_close(b);
	assert_int_equal(tcp_connect(a->wire, (struct engine_peer *)a, &addr, &a->hello, &conn),
			 0);
	DRIVE(a, NULL, a->downs);
	assert_int_equal(a->last_err, -FI_ECONNREFUSED);
	assert_ptr_equal(a->last_down, conn);
	addr.family = ADDR_FAMILY_NONE;
	assert_int_equal(tcp_connect(a->wire, (struct engine_peer *)a, &addr, &a->hello, &conn),
			 -FI_EHOSTUNREACH);
	side_close(a);
	close(port);
}

static void ipv6_works(void **state)
{
	struct weft_addr loop6 = { .family = ADDR_FAMILY_INET6, .ip = { [15] = 1 } };
	int fd = socket(AF_INET6, SOCK_STREAM, 0);
	struct sockaddr_in6 at = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	struct wire_conn *ab, *ba;
	struct side *a, *b;
	char name[64];

	if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof(at))) {
		print_message("no IPv6 here\n");
		close(fd);
		skip();
	}
	close(fd);
	a = side_open(&loop6);
	b = side_open(&loop6);
	tcp_local(a->wire, name, sizeof(name));
	assert_memory_equal(name, "[::1]:", 6);
	pair_up(a, b, &ab, &ba);
	assert_true(publish(ab, 1, 8, false));
	DRIVE(a, b, b->got_cnt == 1);
	side_close(a);
	side_close(b);
}

static void listening_says_why_it_can_not(void **state)
{
	struct weft_addr bind = { .family = ADDR_FAMILY_INET, .ip = { 127, 0, 0, 1 } },
			 addr = { 0 };
	struct wire_attr attr = { .bind = &bind };
	struct side *a = side_open(NULL);
	struct wire *wire;
	char why[128] = "";

	bind.port = a->addr.port;
	assert_int_equal(tcp_open((struct engine_ep *)a, &attr, &addr, &wire, why, sizeof(why)),
			 -FI_EADDRINUSE);
	assert_non_null(strstr(why, "can't listen at 127.0.0.1:"));
	bind.port = 0;
	bind.ip[0] = 192;
	bind.ip[2] = 2;
	assert_int_equal(tcp_open((struct engine_ep *)a, &attr, &addr, &wire, why, sizeof(why)),
			 -FI_EADDRNOTAVAIL);
	bind.family = 77;
	assert_int_equal(tcp_open((struct engine_ep *)a, &attr, &addr, &wire, why, sizeof(why)),
			 -FI_EINVAL);
	tcp_settings.iface = "no-such-if0";
	attr.bind = NULL;
	assert_int_equal(tcp_open((struct engine_ep *)a, &attr, &addr, &wire, why, sizeof(why)),
			 -FI_ENODATA);
	assert_non_null(strstr(why, "FI_TCP_IFACE is no-such-if0"));
	tcp_settings.iface = NULL;
	side_close(a);
}

static void a_port_range_is_kept(void **state)
{
	struct weft_addr bind = { .family = ADDR_FAMILY_INET, .ip = { 127, 0, 0, 1 } },
			 addr = { 0 };
	struct wire_attr attr = { .bind = &bind };
	struct side *a = side_open(NULL), *b;
	struct wire *wire;
	char why[128] = "", range[64];

	/* the first port is taken, and maybe more */
	tcp_settings.port_low = a->addr.port;
	tcp_settings.port_high = a->addr.port + 200 < 65535 ? a->addr.port + 200 : 65535;
	b = side_open(NULL);
	assert_in_range(b->addr.port, a->addr.port + 1, tcp_settings.port_high);
	tcp_settings.port_high = tcp_settings.port_low;
	assert_int_equal(tcp_open((struct engine_ep *)a, &attr, &addr, &wire, why, sizeof(why)),
			 -FI_EADDRINUSE);
	snprintf(range, sizeof(range), ": no port from %u to %u is free", a->addr.port,
		 a->addr.port);
	assert_non_null(strstr(why, range));
	tcp_settings.port_low = tcp_settings.port_high = 0;
	side_close(a);
	side_close(b);
}

static void a_wildcard_names_an_address_to_connect_to(void **state)
{
	struct weft_addr any = { .family = ADDR_FAMILY_INET };
	struct side *a = side_open(&any), *b = side_open(NULL);
	struct wire_conn *ba, *ab;
	char why[128];
	union ip_sockaddr best, got;
	const struct ip_iface_setting every = { TCP_IFACE_VARIABLE, NULL };

	assert_int_equal(ip_iface_default(&every, AF_INET, &best, why, sizeof(why)), 0);
	ip_sockaddr_set(&got, &a->addr);
	assert_true(ip_sockaddr_same_ip(&best, &got));
	assert_int_not_equal(a->addr.port, 0);
	pair_up(b, a, &ba, &ab);
	side_close(a);
	side_close(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hello_reaches_both_sides),
		cmocka_unit_test(packets_arrive_whole_and_in_order),
		cmocka_unit_test(packets_without_progress_leave_with_the_next_poll),
		cmocka_unit_test(what_is_held_leaves_with_the_next_packet_or_poll_or_by_itself),
		cmocka_unit_test(a_full_lane_refuses_claims_and_goes_on),
		cmocka_unit_test(bulk_scatters_to_where_it_belongs),
		cmocka_unit_test(inside_a_host_nothing_paces),
		cmocka_unit_test(either_side_may_send_bulk_first),
		cmocka_unit_test(both_sides_send_bulk_at_once),
		cmocka_unit_test(control_overtakes_bulk),
		cmocka_unit_test(bulk_waits_for_its_turn_and_nothing_else_does),
		cmocka_unit_test(medium_payload_that_is_answered_needs_one_lane),
		cmocka_unit_test(a_stream_of_medium_payload_takes_the_data_lane),
		cmocka_unit_test(a_side_connects_to_itself),
		cmocka_unit_test(simultaneous_open_leaves_one_conn),
		cmocka_unit_test(a_port_where_nobody_listens_refuses),
		cmocka_unit_test(ipv6_works),
		cmocka_unit_test(listening_says_why_it_can_not),
		cmocka_unit_test(a_port_range_is_kept),
		cmocka_unit_test(a_wildcard_names_an_address_to_connect_to),
	};

	rnd_begin();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
