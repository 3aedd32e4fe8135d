/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Fuzz target: how lanes of the TCP wire come up, on both sides. The peer, which is the target,
 * connects to the port of a wire and says preambles, whole, cut, bent, or something else; and it
 * listens where another wire connects to, and answers so. The engine's double accepts or refuses
 * requests at once or later, in that wire or in another one.
 *
 * Checked: nothing crashes; no conn comes up by a hello that hello_check() refuses; whatever the
 * peer leaves behind is gone when it is.
 */
#include <sys/socket.h>
#include <unistd.h>
#include "fuzz.h"
#include "input.h"
#include "tcp_conn.h"
#include "tcp_greet.h"
#include "tcp_peer.h"

#define SOCKETS 8

static struct {
	struct side *port, *caller; /* listens; connects */
	int listener;		    /* where the caller connects to */
	struct weft_addr at;
	int fds[SOCKETS];		/* the peer's; -1: free */
	uint8_t cookie[TCP_COOKIE_LEN]; /* that an answer of the port has had */
} f;

static int *some_fd(void)
{
	return &f.fds[input_byte() % SOCKETS];
}

static void say_preamble(int fd)
{
	uint8_t how = input_byte();
	struct tcp_preamble p = tcp_peer_preamble(how & 1 ? TCP_LANE_DATA : TCP_LANE_CONTROL);
	size_t len = sizeof(p);

	if (how & 1)
		memcpy(p.cookie, f.cookie, sizeof(p.cookie));
	if (how & 2)
		memcpy(p.to, f.port->addr.nonce, sizeof(p.to));
	if (how & 4)
		p.hello.data.len = input_word();
	if (how & 8)
		tcp_peer_bend(&p, sizeof(p), offsetof(struct tcp_preamble, version));
	if (how & 16)
		len = input_word() % (sizeof(p) + 1);
	tcp_peer_say(fd, &p, len);
}

static void say_answer(int fd)
{
	struct tcp_answer a = tcp_peer_answer();
	uint8_t how = input_byte();
	size_t len = sizeof(a);

	if (how & 1)
		a.hello.kind = HELLO_MSG;
	if (how & 2)
		a = (struct tcp_answer){ .magic = a.magic,
					 .version = a.version,
					 .err = input_byte() | (uint16_t)(input_byte() << 8) };
	if (how & 4)
		a.hello.data.len = input_word();
	if (how & 8)
		tcp_peer_bend(&a, sizeof(a), offsetof(struct tcp_answer, version));
	if (how & 16)
		len = input_word() % (sizeof(a) + 1);
	tcp_peer_say(fd, &a, len);
}

static void hear(int fd)
{
	struct tcp_answer answer;

	if (tcp_peer_hears(fd, &answer, sizeof(answer)) < sizeof(answer))
		return;
	if (answer.magic == TCP_ANSWER_MAGIC && !answer.err)
		memcpy(f.cookie, answer.cookie, sizeof(f.cookie));
}

/* The engine answers the request that waits, in the wire that it came to or in another one. */
static void answer_request(void)
{
	struct wire_conn *conn = f.port->request;
	uint8_t how = input_byte();

	if (!conn)
		return;
	f.port->request = NULL;
	if (how & 1) {
		tcp_part(conn);
		if (how & 2) {
			tcp_drop(conn);
			return;
		}
		MUST(!tcp_join(conn, f.caller->wire));
	}
	if (how & 4)
		tcp_conn_refuse(conn, -FI_ECONNREFUSED, how & 8 ? &f.port->peer_data : NULL);
	else
		side_accept(how & 1 ? f.caller : f.port, conn);
}

/* An end of a request that the engine had kept: the double forgets it. */
static void down(struct side *side, struct wire_conn *conn, int err)
{
	if (f.port->request == conn)
		f.port->request = NULL;
}

static void call(void)
{
	struct wire_conn *conn;
	int err = tcp_connect(f.caller->wire, (struct engine_peer *)f.port, &f.at,
			      &f.caller->hello, &conn);

	MUST(!err || err == -FI_EAGAIN);
}

/* The conn that came up last opens its data lane, or asks for it. */
static void use_data(struct side *side)
{
	if (side->conn_cnt && !side->downs)
		tcp_data_open(tcp_conn_from(side->conns[(side->conn_cnt - 1) % SIDE_CONN_MAX]));
}

static void step(void)
{
	uint8_t what = input_byte();
	int *fd = some_fd();

	switch (what % 12) {
	case 0:
		if (*fd < 0)
			*fd = tcp_peer_connect(f.port);
		break;
	case 1:
		call();
		break;
	case 2:
		if (*fd < 0)
			*fd = tcp_peer_take(f.listener);
		break;
	case 3:
		if (*fd >= 0)
			say_preamble(*fd);
		break;
	case 4:
		if (*fd >= 0)
			say_answer(*fd);
		break;
	case 5:
		if (*fd >= 0)
			tcp_peer_says(*fd);
		break;
	case 6:
		if (*fd >= 0 && what & 0x80)
			hear(*fd);
		else if (*fd >= 0)
			shutdown(*fd, SHUT_WR);
		break;
	case 7:
		if (*fd >= 0)
			close(*fd);
		*fd = -1;
		break;
	case 8:
		answer_request();
		break;
	case 9:
		use_data(what & 0x80 ? f.port : f.caller);
		break;
	case 10:
		f.port->later = what & 0x80 && !f.port->request;
		f.port->refuse = what & 0x40 ? -FI_EACCES : 0;
		break;
	default:
		side_poll(f.port);
		side_poll(f.caller);
	}
}

static void begin(void)
{
	if (!f.port) {
		f.port = side_open(NULL);
		f.caller = side_open_dialing(NULL);
		f.port->on_down = f.caller->on_down = down;
		f.listener = tcp_peer_listen(&f.at);
	}
	for (int i = 0; i < SOCKETS; i++)
		f.fds[i] = -1;
	f.cookie[0] = 1;
	f.port->downs = f.caller->downs = 0;
}

/* The peer goes, and with it all that it has left in the queues of the two ports. */
static void end(void)
{
	int fd;

	for (int i = 0; i < SOCKETS; i++)
		if (f.fds[i] >= 0)
			close(f.fds[i]);
	side_poll(f.port);
	side_poll(f.caller);
	do {
		while ((fd = tcp_peer_take(f.listener)) >= 0)
			close(fd);
		tcp_peer_rest(f.port);
		tcp_peer_rest(f.caller);
	} while ((fd = tcp_peer_take(f.listener)) >= 0 && !close(fd));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	input_begin(data, len);
	begin();
	for (int i = 0; i < 64 && input_left(); i++)
		step();
	f.port->later = false;
	f.port->refuse = 0;
	end();
	return 0;
}
