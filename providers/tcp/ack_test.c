/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Acknowledgements of the TCP wire: when they leave, and the room that they need.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <unistd.h>
#include <cmocka.h>
#include "mock_core.h"
#include "mock_engine.h"
#include "raw_peer.h"
#include "tcp_session.h"

static void forget(struct side *side)
{
	while (side->got_cnt)
		free(side->got[--side->got_cnt].bytes);
}

/* A receiver that sends nothing else, to a peer that is always one behind with its own. */
static void acknowledgements_alone_never_run_out_of_room(void **state)
{
	uint32_t cnt = (TCP_OUT_LEN + TCP_OUT_SPARE) / sizeof(struct packet) + 1000;
	struct side *side = side_open(NULL);
	struct packet ack = { .op = TCP_OP_ACK }, got;
	struct packet packet = { .op = PACKET_EAGER, .len = TCP_ACK_LEN / 2 };
	/* in one piece, or the kernel would gather it */
	static uint8_t bytes[sizeof(ack) + 2 * (sizeof(packet) + TCP_ACK_LEN / 2)];
	struct tcp_answer answer;
	int fd = raw_peer(side, &answer);

	memcpy(bytes + sizeof(ack), &packet, sizeof(packet));
	memcpy(bytes + sizeof(ack) + sizeof(packet) + packet.len, &packet, sizeof(packet));
	for (uint32_t i = 0; i < cnt; i++) {
		ack.tag = i ? (i - 1) * sizeof(ack) : 0;
		memcpy(bytes, &ack, sizeof(ack));
		raw_send(fd, bytes, sizeof(bytes));
		assert_int_equal(raw_recv(fd, side, &got, sizeof(got)), sizeof(got));
		assert_int_equal(got.op, TCP_OP_ACK);
		forget(side);
	}
	assert_int_equal(side->downs, 0);
	close(fd);
	side_close(side);
}

/* A sender that waits for each send, whose receiver takes it in one poll and computes. */
static void payload_that_is_read_is_acknowledged_in_the_same_poll(void **state)
{
	struct side *a = side_open(NULL), *b = side_open(NULL);
	size_t len = TCP_CARRY_MAX + 1;
	uint8_t *bytes = calloc(1, len);
	struct iovec iov = { bytes, len };
	struct wire_conn *ab, *ba;
	struct sent sent;

	pair_up(a, b, &ab, &ba);
	for (uint32_t i = 0; i < 20; i++) {
		sent = (struct sent){ 0 };
		assert_int_equal(send_bulk(ab, i, &iov, 1, &sent), 0);
		/* the receiver polls until it has the message, and not again */
		start_clock();
		while (b->got_cnt <= (int)i || !b->got[i].payload) {
			assert_false(expired());
			side_poll(a);
			side_poll(b);
		}
		DRIVE(a, NULL, sent.done);
	}
	side_close(a);
	side_close(b);
	free(bytes);
}

/* Small ones, of which more is there to read than a poll takes: one tells of several. */
static void payloads_of_a_stream_are_acknowledged_together(void **state)
{
	struct side *side = side_open(NULL);
	struct tcp_preamble preamble;
	struct tcp_answer answer;
	struct packet got, packet = { .op = PACKET_DATA, .len = 9000 };
	static uint8_t bytes[40 * (sizeof(packet) + 9000)];
	int fd = raw_peer(side, &answer), data = raw_connect(side), acks;
	uint64_t told = 0;

	preamble = raw_member(TCP_LANE_DATA, &answer);
	raw_send(data, &preamble, sizeof(preamble));
	assert_int_equal(raw_recv(data, side, &answer, sizeof(answer)), sizeof(answer));
	for (size_t i = 0; i < sizeof(bytes); i += sizeof(packet) + packet.len)
		memcpy(bytes + i, &packet, sizeof(packet));
	raw_send(data, bytes, sizeof(bytes));
	for (acks = 0; told < sizeof(bytes); acks++) {
		assert_int_equal(raw_recv(fd, side, &got, sizeof(got)), sizeof(got));
		assert_int_equal(got.op, TCP_OP_ACK);
		assert_true(got.data > told);
		told = got.data;
	}
	assert_true(acks <= 20);
	close(fd);
	close(data);
	side_close(side);
}

/*
 * Until then a sender has room, whatever part of its output was acknowledged: with a larger payload
 * or by a new socket.
 */
static void a_sender_has_room_until_an_acknowledgement_is_due(void **state)
{
	const uint32_t cnt = TCP_OUT_FIRST /
			     64; /* packets of 64 bytes that fill the output at first */
	struct wire_conn *ab, *ba;
	struct tcp_conn *conn;
	uint32_t part, seq;

	for (part = 1; part < cnt; part++) {
		struct side *a = side_open(NULL), *b = side_open(NULL);

		pair_up(a, b, &ab, &ba);
		conn = tcp_conn_from(ab);
		for (seq = 0; seq < cnt; seq++)
			assert_true(publish(ab, seq, 64 - sizeof(struct packet), false));
		side_poll(a);
		assert_int_equal(
			tcp_session_acked(conn, conn->out_pos + conn->kept + part * 64, 0), 0);
		for (; seq < TCP_ACK_LEN / 64; seq++)
			assert_true(publish(ab, seq, 64 - sizeof(struct packet), false));
		DRIVE(a, b, b->got_cnt == (int)seq);
		side_close(a);
		side_close(b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(acknowledgements_alone_never_run_out_of_room),
		cmocka_unit_test(payload_that_is_read_is_acknowledged_in_the_same_poll),
		cmocka_unit_test(payloads_of_a_stream_are_acknowledged_together),
		cmocka_unit_test(a_sender_has_room_until_an_acknowledgement_is_due),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
