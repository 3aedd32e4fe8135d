/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Fuzz target: the streams of the TCP wire, with a conn that is up. The peer, which is the target,
 * sends packets and bytes on the control lane and on the data lane, in pieces of any length, while
 * the wire sends too, and the engine takes payload, lets it wait, or refuses it.
 *
 * Checked: nothing crashes; the engine's double sees no packet of a conn that is not up, no more
 * payload than the packet has, and none after the end; and a conn ends when its peer does.
 */
#include <sys/socket.h>
#include <unistd.h>
#include "fuzz.h"
#include "input.h"
#include "tcp_conn.h"
#include "tcp_control.h"
#include "tcp_peer.h"

#define PAYLOAD_MAX (96u << 10)
#define SENDS	    8
#define BUDGET	    (2u << 20) /* bytes of a run: all could be packets without payload */

static struct {
	struct side *side;
	int control, data; /* the peer's ends; -1: none */
	uint8_t cookie[TCP_COOKIE_LEN];
	struct wire_conn *conn; /* NULL: it has ended */
	struct sent sent[SENDS];
	int sent_cnt;
	size_t budget;
} f;

static void down(struct side *side, struct wire_conn *conn, int err)
{
	if (conn == f.conn)
		f.conn = NULL;
}

/* Brings a conn up as an honest peer does. */
static void begin(void)
{
	struct tcp_preamble preamble = tcp_peer_preamble(TCP_LANE_CONTROL);
	struct tcp_answer answer;
	size_t got = 0;

	f.control = tcp_peer_connect(f.side);
	f.data = -1;
	MUST(tcp_peer_say(f.control, &preamble, sizeof(preamble)));
	start_clock();
	while (got < sizeof(answer)) {
		side_poll(f.side);
		got += tcp_peer_hears(f.control, (char *)&answer + got, sizeof(answer) - got);
		MUST(!expired());
	}
	memcpy(f.cookie, answer.cookie, sizeof(f.cookie));
	f.conn = f.side->conns[0];
	f.sent_cnt = 0;
	f.budget = BUDGET;
	f.side->turn = 0;
	f.side->reject = 0;
}

static void open_data(void)
{
	struct tcp_preamble preamble = tcp_peer_preamble(TCP_LANE_DATA);

	if (f.data >= 0)
		return;
	f.data = tcp_peer_connect(f.side);
	memcpy(preamble.cookie, f.cookie, sizeof(preamble.cookie));
	tcp_peer_say(f.data, &preamble, sizeof(preamble));
}

static size_t some_len(void)
{
	static const size_t lens[] = { 0,    1,	   7,	 8,	64,    250,
				       4096, 8192, 8193, 16384, 65536, PAYLOAD_MAX };

	return lens[input_byte() % (sizeof(lens) / sizeof(lens[0]))];
}

/* A packet as a peer has it, mostly; of its payload as much as the input says. */
static void packet(int fd)
{
	static uint8_t frame[sizeof(struct packet) + PAYLOAD_MAX + 8];
	struct packet p = { .op = (uint8_t)(1 + input_byte() % 9), .len = (uint32_t)some_len() };
	size_t len;

	if (fd < 0)
		return;
	len = sizeof(p) + (fd == f.control ? (p.len + 7) & ~(size_t)7 : p.len);
	memcpy(frame, &p, sizeof(p));
	if (!(input_byte() & 3))
		tcp_peer_bend(frame, sizeof(p), offsetof(struct packet, len));
	if (!(input_byte() & 3))
		len = len * input_byte() / 256;
	if (len > f.budget)
		return;
	f.budget -= len;
	tcp_peer_say(fd, frame, len);
}

/* An own packet of the wire, as it is or bent. */
static void own_packet(int fd)
{
	struct packet p = { .op = input_byte() & 1 ? TCP_OP_BYE : TCP_OP_LANE };

	if (fd < 0)
		return;
	if (input_byte() & 1)
		tcp_peer_bend(&p, sizeof(p), offsetof(struct packet, len));
	tcp_peer_say(fd, &p, sizeof(p));
}

/* What the wire sends meanwhile. */
static void send_something(void)
{
	static uint8_t bytes[1 << 20];
	struct iovec iov = { bytes, some_len() };

	if (!f.conn)
		return;
	if (input_byte() & 1) {
		publish(f.conn, 1, some_len() % 4097, input_byte() & 1);
		return;
	}
	if (f.sent_cnt == SENDS)
		return;
	f.sent[f.sent_cnt] = (struct sent){ 0 };
	if (!send_bulk(f.conn, 1, &iov, 1, &f.sent[f.sent_cnt]))
		f.sent_cnt++;
}

/* How the engine takes the next packets. */
static void engine_changes(void)
{
	uint8_t how = input_byte();

	f.side->turn = how & 1 ? (uint32_t)f.side->got_cnt + (how >> 6) : 0;
	f.side->reject = (how & 0x3e) == 0x3e ? -FI_EINVAL : 0;
}

static void hear(void)
{
	static uint8_t bytes[1 << 16];

	tcp_peer_hears(f.control, bytes, sizeof(bytes));
	if (f.data >= 0)
		tcp_peer_hears(f.data, bytes, sizeof(bytes));
}

static void step(void)
{
	uint8_t what = input_byte();
	int fd = what & 0x80 ? f.data : f.control;

	switch (what & 0x0f) {
	case 0:
		if (fd >= 0)
			tcp_peer_says(fd);
		break;
	case 1:
		own_packet(fd);
		break;
	case 2:
		open_data();
		break;
	case 3:
		send_something();
		break;
	case 4:
		engine_changes();
		break;
	case 5:
		hear();
		break;
	case 6:
		if (fd >= 0)
			shutdown(fd, SHUT_WR);
		break;
	case 7:
		if (f.conn && what & 0x40 && what & 0x20) {
			tcp_disconnect(f.conn);
			f.conn = NULL;
		}
		break;
	case 8:
	case 9:
	case 10:
		side_poll(f.side);
		break;
	default:
		packet(fd);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	if (!f.side) {
		f.side = side_open(NULL);
		f.side->on_down = down;
	}
	input_begin(data, len);
	begin();
	for (int i = 0; i < 64 && input_left(); i++)
		step();
	side_poll(f.side);
	close(f.control);
	if (f.data >= 0)
		close(f.data);
	f.side->turn = 0;
	tcp_peer_rest(f.side);
	MUST(!f.conn);
	return 0;
}
