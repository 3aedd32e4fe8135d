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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(acknowledgements_alone_never_run_out_of_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
