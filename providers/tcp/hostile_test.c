/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The TCP wire against whoever can reach its port, or answers at the port that it was given:
 * other versions, other protocols, garbage, and peers that stop in the middle.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>
#include "mock_core.h"
#include "mock_engine.h"
#include "mock_random.h"
#include "raw_peer.h"
#include "tcp_greet.h"

/* What a preamble is answered with: 0, an error, or -1 for nothing at all. */
static int answer_to(struct side *side, const struct tcp_preamble *preamble, size_t len)
{
	struct tcp_answer answer;
	int fd = raw_connect(side), err = -1;

	raw_send(fd, preamble, len);
	if (raw_recv(fd, side, &answer, sizeof(answer)) == sizeof(answer)) {
		assert_int_equal(answer.magic, TCP_ANSWER_MAGIC);
		assert_int_equal(answer.version, TCP_VERSION);
		err = answer.err;
		if (err)
			assert_true(!answer.cookie[0] && !answer.hello.magic);
	}
	close(fd);
	return err;
}

static void a_raw_peer_is_understood(void **state)
{
	struct side *a = side_open(NULL);
	struct tcp_answer answer;
	int fd = raw_peer(a, &answer);

	assert_int_equal(answer.err, 0);
	assert_int_equal(answer.hello.epoch, a->hello.epoch);
	assert_int_equal(a->peer_epoch, 999);
	raw_packet(fd, PACKET_EAGER, 5, 8);
	DRIVE(a, NULL, a->got_cnt == 1);
	assert_int_equal(a->got[0].packet.len, 5);
	raw_packet(fd, TCP_OP_BYE, 0, 0);
	DRIVE(a, NULL, a->downs);
	assert_int_equal(a->last_err, 0);
	close(fd);
	side_close(a);
}

static void preambles_that_are_wrong_are_refused(void **state)
{
	struct side *a = side_open(NULL);
	struct tcp_preamble p, good = raw_preamble(TCP_LANE_CONTROL);

	mock_log_cnt = 0;
	p = good;
	p.version = TCP_VERSION + 1; /* and what follows is of a form that we do not know */
	assert_int_equal(answer_to(a, &p, 8), FI_ENOPROTOOPT);
	assert_non_null(strstr(mock_log, "the peer that connects from 127.0.0.1:"));
	p = good;
	p.hello.version++;
	assert_int_equal(answer_to(a, &p, sizeof(p)), FI_ENOPROTOOPT);
	p = good;
	p.magic ^= 1;
	assert_int_equal(answer_to(a, &p, sizeof(p)), FI_EINVAL);
	p = good;
	p.lane = 9;
	assert_int_equal(answer_to(a, &p, sizeof(p)), FI_EINVAL);
	p = good;
	p.reserved = 1;
	assert_int_equal(answer_to(a, &p, sizeof(p)), FI_EINVAL);
	p = good;
	memset(p.cookie, 0, sizeof(p.cookie));
	assert_int_equal(answer_to(a, &p, sizeof(p)), FI_EINVAL);
	p = good;
	p.hello.rail = HELLO_RAILS;
	assert_int_equal(answer_to(a, &p, sizeof(p)), FI_EINVAL);
	assert_int_equal(mock_log_cnt, 1); /* not a line for each */
	a->refuse = -FI_EACCES;
	assert_int_equal(answer_to(a, &good, sizeof(good)), FI_EACCES);
	a->refuse = 0;
	assert_int_equal(a->conn_cnt + a->downs, 0);
	assert_int_equal(answer_to(a, &good, sizeof(good)), 0);
	DRIVE(a, NULL, a->conn_cnt == 1 && a->downs == 1);
	assert_int_equal(a->last_err, -FI_ECONNRESET);
	side_close(a);
}

/* A data lane is admitted only with the cookie, the epoch and a conn that waits for it. */
static void data_lanes_must_know_the_cookie(void **state)
{
	struct side *a = side_open(NULL);
	struct tcp_preamble p = raw_preamble(TCP_LANE_DATA);
	struct tcp_answer answer, again;
	int fd, lane;

	assert_int_equal(answer_to(a, &p, sizeof(p)), FI_ECONNRESET);
	fd = raw_peer(a, &answer);
	assert_int_equal(answer_to(a, &p, sizeof(p)), FI_ECONNRESET);
	p = raw_member(TCP_LANE_DATA, &answer);
	p.hello.epoch++;
	assert_int_equal(answer_to(a, &p, sizeof(p)), FI_ECONNRESET);
	p.hello.epoch--;
	lane = raw_connect(a);
	raw_send(lane, &p, sizeof(p));
	assert_int_equal(raw_recv(lane, a, &again, sizeof(again)), sizeof(again));
	assert_int_equal(again.err, 0);
	assert_int_equal(answer_to(a, &p, sizeof(p)), FI_EALREADY); /* it has had that one */
	raw_packet(lane, PACKET_DATA, 7000, 7000);
	DRIVE(a, NULL, a->got_cnt == 1 && a->got[0].payload);
	assert_int_equal(a->downs, 0);

	/* the wire's own packets do not belong there */
	raw_packet(lane, TCP_OP_BYE, 0, 0);
	DRIVE(a, NULL, a->downs);
	assert_int_equal(a->last_err, -FI_EINVAL);
	close(fd);
	close(lane);
	side_close(a);
}

static void packets_that_no_peer_sends_end_the_conn(void **state)
{
	static const struct {
		uint8_t op;
		uint32_t len;
	} wrong[] = {
		{ PACKET_EAGER, TCP_CARRY_MAX + 1 },
		{ PACKET_EAGER, UINT32_MAX },
		{ TCP_OP_BYE, 8 },
		{ TCP_OP_LANE, 0 } /* to the side that was connected to */,
		{ 0xff, 0 },
	};
	struct side *a = side_open(NULL);
	struct tcp_answer answer;
	size_t i;
	int fd;

	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		fd = raw_peer(a, &answer);
		raw_packet(fd, wrong[i].op, wrong[i].len, 8);
		DRIVE(a, NULL, a->downs == (int)i + 1);
		assert_int_equal(a->last_err, -FI_EINVAL);
		close(fd);
	}
	side_close(a);
}

/* Control waits for nothing: what would have to wait is not for this lane. */
static void control_that_has_not_its_turn_ends_the_conn(void **state)
{
	struct side *a = side_open(NULL);
	struct tcp_answer answer;
	int fd = raw_peer(a, &answer);

	a->turn = 1;
	raw_packet(fd, PACKET_WRITE, TCP_CARRY_MAX, 8);
	DRIVE(a, NULL, a->downs);
	assert_int_equal(a->last_err, -FI_EINVAL);
	close(fd);
	side_close(a);
}

static void ends_in_the_middle_are_breaks(void **state)
{
	struct side *a = side_open(NULL);
	struct linger reset = { .l_onoff = 1 };
	struct tcp_preamble p;
	struct tcp_answer answer;
	int fd, lane;

	/* half a frame, then the end */
	fd = raw_peer(a, &answer);
	raw_packet(fd, PACKET_EAGER, 100, 50);
	shutdown(fd, SHUT_WR);
	DRIVE(a, NULL, a->downs == 1);
	assert_int_equal(a->last_err, -FI_ECONNRESET);
	assert_int_equal(a->got_cnt, 0);
	close(fd);

	/* a whole one, then a reset: it is delivered */
	fd = raw_peer(a, &answer);
	raw_packet(fd, PACKET_EAGER, 100, 104);
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
	close(fd);
	DRIVE(a, NULL, a->downs == 2);
	assert_int_equal(a->last_err, -FI_ECONNRESET);
	assert_int_equal(a->got_cnt, 1);

	/* in order on the control lane, cut off on the data lane */
	fd = raw_peer(a, &answer);
	lane = raw_connect(a);
	p = raw_member(TCP_LANE_DATA, &answer);
	raw_send(lane, &p, sizeof(p));
	assert_int_equal(raw_recv(lane, a, &answer, sizeof(answer)), sizeof(answer));
	raw_packet(lane, PACKET_DATA, 100000, 1000);
	raw_packet(fd, TCP_OP_BYE, 0, 0);
	DRIVE(a, NULL, a->got_cnt == 2);
	assert_int_equal(a->downs, 2);
	close(lane);
	DRIVE(a, NULL, a->downs == 3);
	assert_int_equal(a->last_err, -FI_ECONNRESET);
	close(fd);
	side_close(a);
}

/* One lane ends, the other one stays: not for ever. */
static void half_a_conn_does_not_stay(void **state)
{
	struct side *a = side_open(NULL);
	struct tcp_preamble p;
	struct tcp_answer answer;
	int fd, lane;

	fd = raw_peer(a, &answer);
	lane = raw_connect(a);
	p = raw_member(TCP_LANE_DATA, &answer);
	raw_send(lane, &p, sizeof(p));
	assert_int_equal(raw_recv(lane, a, &answer, sizeof(answer)), sizeof(answer));
	shutdown(fd, SHUT_WR);
	DRIVE(a, NULL, a->downs);
	assert_int_equal(a->last_err, -FI_ECONNRESET);
	close(fd);
	close(lane);
	side_close(a);
}

/* ---- what answers at the port of a peer ---- */

/* What connecting ends with when the other side answers with these bytes and closes. */
static int end_of(const void *bytes, size_t len)
{
	struct side *a = side_open(NULL);
	struct tcp_preamble preamble;
	struct weft_addr addr = { 0 };
	struct wire_conn *conn;
	int listener = raw_listen(&addr), fd, err, asked = 0;

	assert_int_equal(tcp_connect(a->wire, (struct engine_peer *)a, &addr, &a->hello, &conn),
			 0);
	fd = accept(listener, NULL, NULL);
	assert_int_equal(raw_recv(fd, a, &preamble, sizeof(preamble)), sizeof(preamble));
	assert_int_equal(preamble.lane, TCP_LANE_CONTROL);
	assert_int_equal(preamble.hello.epoch, a->hello.epoch);
	raw_send(fd, bytes, len);
	close(fd);
	/* what is cut off is asked for again, but not for ever */
	fcntl(listener, F_SETFL, O_NONBLOCK);
	start_clock();
	while (!a->downs) {
		assert_false(expired());
		side_poll(a);
		fd = accept(listener, NULL, NULL);
		if (fd < 0)
			continue;
		assert_true(asked++ < 8);
		raw_send(fd, bytes, len);
		close(fd);
	}
	assert_int_equal(a->conn_cnt, 0);
	err = a->last_err;
	close(listener);
	side_close(a);
	return err;
}

static void answers_that_are_wrong_end_connecting(void **state)
{
	struct tcp_answer good = { .magic = TCP_ANSWER_MAGIC,
				   .version = TCP_VERSION,
				   .cookie = { 1 },
				   .hello = raw_hello() };
	struct tcp_answer a;

	assert_int_equal(end_of(&good, 0), -FI_ECONNRESET);
	assert_int_equal(end_of(&good, 60), -FI_ECONNRESET);
	a = good;
	a.magic = 0x50545448; /* HTTP */
	assert_int_equal(end_of(&a, sizeof(a)), -FI_ENOPROTOOPT);
	a = good;
	a.version = TCP_VERSION + 1;
	assert_int_equal(end_of(&a, sizeof(a)), -FI_ENOPROTOOPT);
	a = good;
	a.hello.version++;
	assert_int_equal(end_of(&a, sizeof(a)), -FI_ENOPROTOOPT);
	a = good;
	a.hello.magic = 0;
	assert_int_equal(end_of(&a, sizeof(a)), -FI_EINVAL);
	a = (struct tcp_answer){ .magic = TCP_ANSWER_MAGIC,
				 .version = TCP_VERSION,
				 .err = FI_EACCES };
	assert_int_equal(end_of(&a, sizeof(a)), -FI_EACCES);
	a.err = UINT16_MAX;
	assert_int_equal(end_of(&a, sizeof(a)), -FI_EOTHER);
	/* a socket that the kernel connected to itself */
	a.magic = TCP_MAGIC;
	assert_int_equal(end_of(&a, sizeof(a)), -FI_ECONNREFUSED);
}

/* ---- noise ---- */

/* Bytes mostly of the right form, so that they get somewhere. @answer: NULL: for a control lane */
static size_t noise(uint8_t *bytes, size_t max, const struct tcp_answer *answer)
{
	struct tcp_preamble preamble = answer ? raw_member(TCP_LANE_DATA, answer)
					      : raw_preamble(TCP_LANE_CONTROL);
	struct packet packet;
	size_t len = 0;
	uint32_t i;

	if (rnd(8)) {
		if (answer && !rnd(4)) { /* it tries to take the session over */
			preamble.lane = (uint8_t)(TCP_LANE_CONTROL + rnd(3));
			preamble.turn = rnd(3);
			preamble.received = rnd(4) ? 0 : rnd(2000);
			preamble.fresh = rnd(2);
		}
		if (!rnd(4))
			((uint8_t *)&preamble)[rnd(sizeof(preamble))] ^= (uint8_t)(1u << rnd(8));
		memcpy(bytes, &preamble, sizeof(preamble));
		len = sizeof(preamble);
	}
	while (len + sizeof(packet) + 5000 < max && rnd(16)) {
		packet = (struct packet){ .op = (uint8_t)rnd(9),
					  .flags = (uint8_t)rnd(256),
					  .seq = rnd(UINT32_MAX),
					  .tag = rnd(UINT32_MAX),
					  .data = rnd(UINT32_MAX) };
		packet.len = rnd(4) ? rnd(200) : rnd(5000);
		if (!rnd(16))
			packet.len = rnd(UINT32_MAX);
		if (!rnd(8))
			packet.op = (uint8_t)rnd(256);
		memcpy(bytes + len, &packet, sizeof(packet));
		len += sizeof(packet);
		for (i = 0; i < packet.len % 5000; i++)
			bytes[len++] = (uint8_t)i;
		len += rnd(8) ? (8 - len % 8) % 8 : 0;
	}
	return len;
}

static void make_noise(struct side *side, int fd, uint8_t *bytes,
		       const struct tcp_answer *answer)
{
	size_t len = noise(bytes, 65536, answer), off, step;

	for (off = 0; off < len; off += step) {
		step = rnd(4) ? len - off : 1 + rnd((uint32_t)(len - off));
		if (send(fd, bytes + off, step, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
			break;
		side_poll(side);
	}
}

/* Strangers come and go, on both lanes; a peer that behaves notices nothing of it. */
static void noise_does_no_harm(void **state)
{
	struct side *a = side_open(NULL), *b = side_open(NULL);
	uint8_t *bytes = calloc(1, 65536);
	struct tcp_wire *wire = tcp_wire_from(b->wire);
	struct tcp_answer answer;
	struct wire_conn *ab, *ba;
	int round, fd, peer, i, right = 0;
	uint32_t sent = 0;

	pair_up(a, b, &ab, &ba);
	for (round = 0; round < 1000; round++) {
		peer = -1;
		if (rnd(2))
			peer = raw_peer(b, &answer);
		fd = raw_connect(b);
		make_noise(b, fd, bytes, peer >= 0 ? &answer : NULL);
		for (i = (int)rnd(4); i; i--)
			side_poll(b);
		close(fd);
		if (peer >= 0)
			close(peer);
		sent += publish(ab, sent, 32, false);
		side_poll(a);
		side_poll(b);
	}
	/* only the one that behaves is left */
	DRIVE(a, b, list_empty(&wire->port->guests) && wire->conns.next->next == &wire->conns);
	DRIVE(a, b, a->downs || publish(ab, sent, 32, false));
	start_clock();
	while (right <= (int)sent) {
		side_poll(a);
		side_poll(b);
		for (i = 0, right = 0; i < b->got_cnt; i++)
			right += b->got[i].conn == ba && payload_right(&b->got[i]);
		assert_false(expired());
	}
	assert_true(ba->up && ab->up);
	assert_int_equal(a->downs, 0);
	print_message("%d packets of strangers, %d conns of theirs ended\n", b->got_cnt - right,
		      b->downs);
	side_close(a);
	side_close(b);
	free(bytes);
}

/* Many silent guests wait at a bounded cost, and guests with a preamble are admitted. */
static void silent_strangers_are_bounded(void **state)
{
	struct side *a = side_open(NULL), *b = side_open(NULL);
	struct tcp_wire *wire = tcp_wire_from(b->wire);
	struct wire_conn *conn;
	int fds[TCP_GUEST_MAX + 20], i;
	struct tcp_guest *guest;

	for (i = 0; i < (int)TCP_GUEST_MAX + 20; i++) {
		fds[i] = raw_connect(b);
		side_poll(b);
	}
	for (i = 0; i < 100; i++)
		side_poll(b);
	assert_in_range(wire->port->guest_cnt, 1, TCP_GUEST_MAX);
	conn = side_connect(a, b);
	for (i = 0; i < 1000; i++) {
		side_poll(a);
		side_poll(b);
		assert_in_range(wire->port->guest_cnt, 1, TCP_GUEST_MAX);
	}
	/* as if much time had passed */
	list_for_each_entry(guest, &wire->port->guests, link)
		guest->since_ns -= 20000000000u;
	DRIVE(a, b, conn->up);
	for (i = 0; i < (int)TCP_GUEST_MAX + 20; i++)
		close(fds[i]);
	DRIVE(a, b, !wire->port->guest_cnt);
	side_close(a);
	side_close(b);
}

/* Few strangers may be all that there are descriptors for. */
static void silent_strangers_give_their_descriptors(void **state)
{
	struct side *a = side_open(NULL), *b = side_open(NULL);
	struct tcp_wire *wire = tcp_wire_from(b->wire);
	struct rlimit before, full;
	struct tcp_guest *guest;
	struct wire_conn *conn;
	int strangers[3], fds[128];

	for (size_t i = 0; i < 3; i++) {
		strangers[i] = raw_connect(b);
		DRIVE(b, NULL, wire->port->guest_cnt == i + 1);
	}
	conn = side_connect(a, b);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	for (size_t i = 0; i < 128; i++)
		fds[i] = dup(strangers[0]);
	full = before;
	full.rlim_cur = (rlim_t)fds[127] + 1;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &full), 0);
	/* as if much time had passed */
	list_for_each_entry(guest, &wire->port->guests, link)
		guest->since_ns -= 20000000000u;
	DRIVE(a, b, conn->up);
	/* One for each of the peer's sockets that was accepted meanwhile */
	assert_true(wire->port->guest_cnt < 3);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	for (size_t i = 0; i < 128; i++)
		close(fds[i]);
	for (size_t i = 0; i < 3; i++)
		close(strangers[i]);
	side_close(a);
	side_close(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_raw_peer_is_understood),
		cmocka_unit_test(preambles_that_are_wrong_are_refused),
		cmocka_unit_test(data_lanes_must_know_the_cookie),
		cmocka_unit_test(packets_that_no_peer_sends_end_the_conn),
		cmocka_unit_test(control_that_has_not_its_turn_ends_the_conn),
		cmocka_unit_test(ends_in_the_middle_are_breaks),
		cmocka_unit_test(half_a_conn_does_not_stay),
		cmocka_unit_test(answers_that_are_wrong_end_connecting),
		cmocka_unit_test(noise_does_no_harm),
		cmocka_unit_test(silent_strangers_are_bounded),
		cmocka_unit_test(silent_strangers_give_their_descriptors),
	};

	rnd_begin();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
