/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A lane that breaks at any byte, in either direction, and is made again by a peer of plain
 * sockets; and who tries to take a session over.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>
#include "mock_core.h"
#include "mock_engine.h"
#include "raw_peer.h"
#include "tcp_conn.h"
#include "tcp_session.h"

#define STREAM_MAX (160u << 10)

/* Where the peer of plain sockets is asked whether it lives: a listener that takes no notice. */
static int home;

static void home_open(void)
{
	struct weft_addr addr;

	home = raw_listen(&addr);
	fcntl(home, F_SETFL, O_NONBLOCK);
	raw_home_port = addr.port;
}

static void home_forget(void)
{
	int fd;

	while ((fd = accept(home, NULL, NULL)) >= 0)
		close(fd);
}

/* One conn of a side with a peer of plain sockets. */
struct raw_conn {
	struct side *side;
	struct tcp_answer answer;
	struct tcp_conn *conn;
	int control, data;
};

static void raw_close(int fd, bool reset)
{
	struct linger linger = { .l_onoff = 1 };

	if (reset)
		setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
	close(fd);
}

/* Makes a lane again, or for the first time: the @turn-th. Returns what the answer says. */
static int raw_resume(struct raw_conn *raw, uint8_t kind, uint32_t turn, uint64_t received,
		      uint64_t *got)
{
	struct tcp_preamble preamble = raw_member(kind, &raw->answer);
	struct tcp_answer answer;
	int fd = raw_connect(raw->side);

	preamble.turn = turn;
	preamble.received = received;
	raw_send(fd, &preamble, sizeof(preamble));
	assert_int_equal(raw_recv(fd, raw->side, &answer, sizeof(answer)), sizeof(answer));
	*got = answer.received;
	if (answer.err)
		close(fd);
	else if (kind == TCP_LANE_CONTROL)
		raw->control = fd;
	else if (kind == TCP_LANE_DATA)
		raw->data = fd;
	else
		close(fd);
	return answer.err;
}

static struct raw_conn raw_begin(struct side *side, bool data)
{
	struct raw_conn raw = { .side = side, .data = -1 };
	uint64_t got;

	raw.control = raw_peer(side, &raw.answer);
	DRIVE(side, NULL, side->conn_cnt);
	raw.conn = tcp_conn_from(side->conns[0]);
	if (data)
		assert_int_equal(raw_resume(&raw, TCP_LANE_DATA, 1, 0, &got), 0);
	return raw;
}

static int *raw_lane(struct raw_conn *raw, uint8_t kind)
{
	return kind == TCP_LANE_CONTROL ? &raw->control : &raw->data;
}

static const struct tcp_stream *stream_of(struct raw_conn *raw, uint8_t kind)
{
	return kind == TCP_LANE_CONTROL ? &raw->conn->session.control : &raw->conn->session.data;
}

static const struct tcp_lane *lane_of(struct raw_conn *raw, uint8_t kind)
{
	return kind == TCP_LANE_CONTROL ? &raw->conn->control : &raw->conn->data;
}

static void raw_break(struct raw_conn *raw, uint8_t kind, bool reset)
{
	raw_close(*raw_lane(raw, kind), reset);
	DRIVE(raw->side, NULL, lane_of(raw, kind)->state != TCP_LANE_UP);
	assert_int_equal(raw->side->downs, 0);
}

static void raw_end(struct raw_conn *raw)
{
	close(raw->control);
	if (raw->data >= 0)
		close(raw->data);
	side_close(raw->side);
	home_forget();
}

/* A packet as publish() and send_bulk() make them. */
static size_t put(uint8_t *at, uint8_t op, uint32_t seq, uint32_t len, bool pad)
{
	struct packet packet = { .op = op, .len = len, .seq = seq };
	size_t end = sizeof(packet) + (pad ? (len + 7) & ~7u : len);

	packet.tag = op == PACKET_EAGER ? 3 * seq : 0;
	memset(at, 0, end);
	memcpy(at, &packet, sizeof(packet));
	pattern(at + sizeof(packet), len, seq);
	return end;
}

/* Every byte near the ends of packets, and some within the payload. */
static size_t next_cut(size_t cut, size_t len)
{
	return cut < 140 || cut + 140 > len ? cut + 1
	       : cut + 487 < len - 139	    ? cut + 487
					    : len - 139;
}

/* Input that is cut at @cut, whatever state it leaves the receiver in. */
static void cut_in(uint8_t kind, const uint8_t *bytes, size_t len, size_t cut, int cnt)
{
	struct raw_conn raw = raw_begin(side_open(NULL), kind == TCP_LANE_DATA);
	struct side *side = raw.side;
	uint32_t turn = kind == TCP_LANE_DATA ? 2 : 1;
	uint64_t got;

	raw_send(*raw_lane(&raw, kind), bytes, cut);
	DRIVE(side, NULL, stream_of(&raw, kind)->in == cut);
	raw_break(&raw, kind, cut & 1);
	assert_int_equal(raw_resume(&raw, kind, turn, 0, &got), 0);
	assert_int_equal(got, cut);
	raw_send(*raw_lane(&raw, kind), bytes + cut, len - cut);
	DRIVE(side, NULL, side->got_cnt == cnt && side->got[cnt - 1].payload);
	for (int i = 0; i < cnt; i++) {
		assert_int_equal(side->got[i].packet.seq, i);
		assert_true(payload_right(&side->got[i]));
	}
	assert_int_equal(side->downs, 0);
	raw_end(&raw);
}

static void control_input_goes_on_from_any_byte(void **state)
{
	uint8_t *bytes = malloc(STREAM_MAX);
	size_t len = 0, cut;

	len += put(bytes + len, PACKET_EAGER, 0, 5, true);
	len += put(bytes + len, PACKET_EAGER, 1, 0, true);
	len += put(bytes + len, PACKET_DATA, 2, TCP_CLAIM_MAX + 1005, true);
	len += put(bytes + len, PACKET_EAGER, 3, 13, true);
	for (cut = 0; cut <= len; cut = next_cut(cut, len))
		cut_in(TCP_LANE_CONTROL, bytes, len, cut, 4);
	free(bytes);
}

static void data_input_goes_on_from_any_byte(void **state)
{
	uint8_t *bytes = malloc(STREAM_MAX);
	size_t len = 0, cut;

	len += put(bytes + len, PACKET_DATA, 0, 7003, false);
	len += put(bytes + len, PACKET_DATA, 1, 1, false);
	len += put(bytes + len, PACKET_DATA, 2, 40, false);
	for (cut = 0; cut <= len; cut = next_cut(cut, len))
		cut_in(TCP_LANE_DATA, bytes, len, cut, 3);
	free(bytes);
}

/* Reads @cut bytes of @len, breaks the lane, and reads the others over another socket. */
static void cut_out(struct raw_conn *raw, uint8_t kind, const uint8_t *want, size_t len,
		    size_t cut)
{
	uint8_t *bytes = malloc(len);
	uint64_t got;

	assert_int_equal(raw_recv(*raw_lane(raw, kind), raw->side, bytes, cut), cut);
	raw_break(raw, kind, cut & 1);
	if (kind == TCP_LANE_CONTROL) /* what is sent meanwhile follows */
		assert_true(publish(&raw->conn->conn, 3, 9, false));
	assert_int_equal(raw_resume(raw, kind, kind == TCP_LANE_DATA ? 2 : 1, cut, &got), 0);
	assert_int_equal(got, 0);
	assert_int_equal(raw_recv(*raw_lane(raw, kind), raw->side, bytes + cut, len - cut),
			 len - cut);
	assert_memory_equal(bytes, want, len);
	free(bytes);
}

static void acknowledge_by(struct raw_conn *raw, uint8_t op, uint64_t control, uint64_t data)
{
	struct packet ack = { .op = op, .tag = control, .data = data };

	raw_send(raw->control, &ack, sizeof(ack));
}

static void acknowledge(struct raw_conn *raw, uint64_t control, uint64_t data)
{
	acknowledge_by(raw, TCP_OP_ACK, control, data);
}

/* What is retained: packets, and a payload whose memory is the program's again. */
static void control_output_goes_on_from_any_byte(void **state)
{
	uint8_t *want = malloc(STREAM_MAX), *carried = malloc(20000);
	struct iovec iov = { carried, 20000 };
	size_t len = 0, before, cut;
	struct raw_conn raw;
	struct sent sent;

	len += put(want + len, PACKET_EAGER, 0, 5, true);
	len += put(want + len, PACKET_EAGER, 1, 300, true);
	before = len += put(want + len, PACKET_DATA, 2, 20000, true);
	len += put(want + len, PACKET_EAGER, 3, 9, true);
	for (cut = 0; cut <= before; cut = next_cut(cut, before)) {
		raw = raw_begin(side_open(NULL), false);
		sent = (struct sent){ 0 };
		pattern(carried, iov.iov_len, 2);
		assert_true(publish(&raw.conn->conn, 0, 5, false));
		assert_true(publish(&raw.conn->conn, 1, 300, true));
		assert_int_equal(send_bulk(&raw.conn->conn, 2, &iov, 1, &sent), 0);
		DRIVE(raw.side, NULL, sent.done);
		memset(carried, 0, iov.iov_len);
		cut_out(&raw, TCP_LANE_CONTROL, want, len, cut);
		assert_int_equal(raw.conn->tail - raw.conn->kept, len - cut);
		acknowledge(&raw, len, 0);
		DRIVE(raw.side, NULL, !raw.conn->tail);
		raw_end(&raw);
	}
	free(carried);
	free(want);
}

/* Operations end when they are acknowledged, and not before. */
static void data_output_goes_on_from_any_byte(void **state)
{
	uint8_t *want = malloc(STREAM_MAX), *large = malloc(140000);
	struct iovec iov[2] = { { large, 70001 }, { large + 70001, TCP_CARRY_MAX + 1 } };
	size_t first, len, cut;
	struct raw_conn raw;
	struct sent sent[2];

	first = put(want, PACKET_DATA, 0, (uint32_t)iov[0].iov_len, false);
	len = first + put(want + first, PACKET_DATA, 1, (uint32_t)iov[1].iov_len, false);
	for (int i = 0; i < 2; i++)
		pattern(iov[i].iov_base, iov[i].iov_len, (uint32_t)i);
	for (cut = 0; cut <= len; cut = next_cut(cut, len)) {
		raw = raw_begin(side_open(NULL), true);
		memset(sent, 0, sizeof(sent));
		for (int i = 0; i < 2; i++)
			assert_int_equal(
				send_bulk(&raw.conn->conn, (uint32_t)i, &iov[i], 1, &sent[i]),
				0);
		cut_out(&raw, TCP_LANE_DATA, want, len, cut);
		assert_int_equal(sent[0].done, cut >= first); /* the new socket has told */
		assert_int_equal(sent[1].done, cut == len);
		acknowledge(&raw, 0, len);
		DRIVE(raw.side, NULL, sent[0].done && sent[1].done);
		assert_int_equal(sent[0].done + sent[1].done, 2);
		assert_int_equal(sent[0].status + sent[1].status, 0);
		raw_end(&raw);
	}
	free(large);
	free(want);
}

static void payload_is_acknowledged_when_it_is_complete(void **state)
{
	uint8_t *bytes = malloc(STREAM_MAX);
	size_t len = put(bytes, PACKET_DATA, 0, 100000, false);
	struct raw_conn raw = raw_begin(side_open(NULL), true);
	struct packet ack;

	raw_send(raw.data, bytes, len - 1);
	DRIVE(raw.side, NULL, raw.conn->session.data.in == len - 1);
	assert_int_equal(raw.conn->tail, 0);
	raw_send(raw.data, bytes + len - 1, 1);
	assert_int_equal(raw_recv(raw.control, raw.side, &ack, sizeof(ack)), sizeof(ack));
	assert_int_equal(ack.op, TCP_OP_ACK);
	assert_int_equal(ack.tag, 0);
	assert_int_equal(ack.data, len);
	raw_end(&raw);
	free(bytes);
}

/* ---- who has no right to a session, or misuses it ---- */

static void a_session_is_taken_over_by_nobody(void **state)
{
	struct raw_conn raw = raw_begin(side_open(NULL), true), other;
	struct tcp_preamble preamble;
	struct tcp_answer answer;
	uint64_t got;
	size_t i;
	int fd;

	assert_true(publish(&raw.conn->conn, 0, 8, false));
	other = raw;
	for (i = 0; i < TCP_COOKIE_LEN; i++) {
		other.answer.cookie[i] ^= 0x80;
		assert_int_equal(raw_resume(&other, TCP_LANE_CONTROL, 1, 0, &got),
				 FI_ECONNRESET);
		assert_int_equal(raw_resume(&other, TCP_LANE_DATA, 2, 0, &got), FI_ECONNRESET);
		other.answer.cookie[i] ^= 0x80;
	}
	/* the side that was connected to asks, and is asked by none */
	assert_int_equal(raw_resume(&other, TCP_LANE_PROBE, 0, 0, &got), FI_ECONNRESET);
	/* attempts of before, which the network has kept back */
	preamble = raw_member(TCP_LANE_CONTROL, &raw.answer);
	preamble.fresh = 1;
	fd = raw_connect(raw.side);
	raw_send(fd, &preamble, sizeof(preamble));
	assert_int_equal(raw_recv(fd, raw.side, &answer, sizeof(answer)), sizeof(answer));
	assert_int_equal(answer.err, FI_EALREADY);
	close(fd);
	assert_int_equal(raw_resume(&other, TCP_LANE_DATA, 1, 0, &got), FI_EALREADY);
	assert_int_equal(raw.conn->control.state, TCP_LANE_UP);
	assert_int_equal(raw.conn->data.state, TCP_LANE_UP);
	assert_int_equal(raw.side->downs, 0);
	raw_end(&raw);
}

static void a_newer_socket_replaces_one_that_is_half_open(void **state)
{
	struct raw_conn raw = raw_begin(side_open(NULL), true);
	int control = raw.control, data = raw.data;
	struct packet packet = { 0 };
	uint64_t got;

	assert_int_equal(raw_resume(&raw, TCP_LANE_CONTROL, 1, 0, &got), 0);
	assert_int_equal(raw_resume(&raw, TCP_LANE_DATA, 2, 0, &got), 0);
	assert_true(publish(&raw.conn->conn, 0, 0, false));
	assert_int_equal(raw_recv(raw.control, raw.side, &packet, sizeof(packet)),
			 sizeof(packet));
	assert_int_equal(packet.op, PACKET_EAGER);
	raw_packet(raw.data, PACKET_DATA, 100, 100);
	DRIVE(raw.side, NULL, raw.side->got_cnt == 1 && raw.side->got[0].payload);
	close(control);
	close(data);
	assert_int_equal(raw.side->downs, 0);
	raw_end(&raw);
}

/* Counts are checked against what is retained, whoever knows the secret. */
static void counts_that_can_not_be_end_the_conn(void **state)
{
	static const struct {
		uint8_t kind;
		uint64_t received;
	} wrong[] = {
		{ TCP_LANE_CONTROL, 41 },
		{ TCP_LANE_CONTROL, UINT64_MAX },
		{ TCP_LANE_CONTROL, 1ull << 32 },
		{ TCP_LANE_CONTROL, 39 },
		{ TCP_LANE_DATA, 1 },
		{ TCP_LANE_DATA, UINT64_MAX },
	};
	struct raw_conn raw;
	uint64_t got;
	size_t i;

	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		raw = raw_begin(side_open(NULL), true);
		assert_true(publish(&raw.conn->conn, 0, 8, false)); /* 40 bytes */
		acknowledge(&raw, 40, 0);
		DRIVE(raw.side, NULL, !raw.conn->tail);
		assert_int_equal(raw_resume(&raw, wrong[i].kind, 2, wrong[i].received, &got),
				 FI_EINVAL);
		assert_int_equal(raw.side->downs, 1);
		assert_int_equal(raw.side->last_err, -FI_EINVAL);
		raw_end(&raw);
	}
}

static void acknowledgements_of_what_was_not_sent_end_the_conn(void **state)
{
	static const uint64_t wrong[][2] = {
		{ 41, 0 }, { UINT64_MAX, 0 }, { 40, 1 }, { 40, UINT64_MAX }, { 1ull << 32, 0 },
	};
	struct raw_conn raw;
	size_t i;

	for (i = 0; i < 2 * sizeof(wrong) / sizeof(wrong[0]); i++) {
		raw = raw_begin(side_open(NULL), i % 2);
		assert_true(publish(&raw.conn->conn, 0, 8, false));
		acknowledge_by(&raw, i % 2 ? TCP_OP_IDLE : TCP_OP_ACK, wrong[i / 2][0],
			       wrong[i / 2][1]);
		DRIVE(raw.side, NULL, raw.side->downs == 1);
		assert_int_equal(raw.side->last_err, -FI_EINVAL);
		raw_end(&raw);
	}
	/* what was acknowledged before is no news */
	raw = raw_begin(side_open(NULL), false);
	assert_true(publish(&raw.conn->conn, 0, 8, false));
	acknowledge(&raw, 40, 0);
	acknowledge(&raw, 39, 0);
	raw_packet(raw.control, PACKET_EAGER, 0, 0);
	DRIVE(raw.side, NULL, raw.side->got_cnt == 1);
	assert_int_equal(raw.conn->tail, 0);
	assert_int_equal(raw.side->downs, 0);
	raw_end(&raw);
}

static void a_conn_that_ends_in_order_is_not_made_again(void **state)
{
	struct raw_conn raw = raw_begin(side_open(NULL), true);

	raw_packet(raw.control, TCP_OP_BYE, 0, 0);
	shutdown(raw.control, SHUT_WR);
	shutdown(raw.data, SHUT_WR);
	DRIVE(raw.side, NULL, raw.side->downs == 1);
	assert_int_equal(raw.side->last_err, 0);
	raw_end(&raw);

	/* but what was sent on the data lane has not arrived */
	raw = raw_begin(side_open(NULL), true);
	raw_send(raw.control, &(struct packet){ .op = TCP_OP_BYE, .data = 100 },
		 sizeof(struct packet));
	shutdown(raw.data, SHUT_WR);
	DRIVE(raw.side, NULL, raw.side->downs == 1);
	assert_int_equal(raw.side->last_err, -FI_ECONNRESET);
	raw_end(&raw);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(control_input_goes_on_from_any_byte),
		cmocka_unit_test(data_input_goes_on_from_any_byte),
		cmocka_unit_test(control_output_goes_on_from_any_byte),
		cmocka_unit_test(data_output_goes_on_from_any_byte),
		cmocka_unit_test(payload_is_acknowledged_when_it_is_complete),
		cmocka_unit_test(a_session_is_taken_over_by_nobody),
		cmocka_unit_test(a_newer_socket_replaces_one_that_is_half_open),
		cmocka_unit_test(counts_that_can_not_be_end_the_conn),
		cmocka_unit_test(acknowledgements_of_what_was_not_sent_end_the_conn),
		cmocka_unit_test(a_conn_that_ends_in_order_is_not_made_again),
	};

	home_open();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
