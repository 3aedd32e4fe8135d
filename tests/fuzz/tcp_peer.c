/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The other end of a socket of the TCP wire (tcp_peer.h). */
#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>
#include "input.h"
#include "raw_peer.h"
#include "tcp_conn.h"
#include "tcp_peer.h"

static void reset_at_the_end(int fd)
{
	struct linger reset = { .l_onoff = 1 };

	MUST(!setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset)));
}

int tcp_peer_listen(struct weft_addr *at)
{
	union ip_sockaddr here = { .in = { .sin_family = AF_INET,
					   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) } };
	socklen_t len = sizeof(here.in);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);

	MUST(fd >= 0 && !bind(fd, &here.sa, len) && !listen(fd, 64));
	MUST(!getsockname(fd, &here.sa, &len));
	*at = (struct weft_addr){ .version = ADDR_VERSION, .kind = ADDR_SERVICE };
	ip_sockaddr_get(&here, at);
	return fd;
}

int tcp_peer_connect(const struct side *side)
{
	union ip_sockaddr at;
	socklen_t len = ip_sockaddr_set(&at, &side->addr);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	MUST(fd >= 0 && !connect(fd, &at.sa, len));
	reset_at_the_end(fd);
	return fd;
}

int tcp_peer_take(int listener)
{
	int fd = accept(listener, NULL, NULL);

	if (fd >= 0)
		reset_at_the_end(fd);
	return fd;
}

struct tcp_preamble tcp_peer_preamble(uint8_t lane)
{
	return (struct tcp_preamble){ .magic = TCP_MAGIC,
				      .version = TCP_VERSION,
				      .lane = lane,
				      .turn = lane == TCP_LANE_DATA,
				      .fresh = lane == TCP_LANE_CONTROL,
				      .cookie = { 1 },
				      .hello = raw_hello() };
}

struct tcp_answer tcp_peer_answer(void)
{
	return (struct tcp_answer){ .magic = TCP_ANSWER_MAGIC,
				    .version = TCP_VERSION,
				    .cookie = { 1 },
				    .hello = raw_hello() };
}

void tcp_peer_bend(void *bytes, size_t len, size_t word)
{
	uint8_t how = input_byte(), *at = bytes;
	uint32_t value;

	for (int i = how & 3; i; i--) {
		uint32_t where = input_byte() | (uint32_t)input_byte() << 8;

		at[where % len] = input_byte();
	}
	if (how & 4) {
		value = input_word();
		memcpy(at + word, &value, sizeof(value));
	}
}

bool tcp_peer_say(int fd, const void *bytes, size_t len)
{
	return !len || send(fd, bytes, len, MSG_NOSIGNAL | MSG_DONTWAIT) > 0;
}

bool tcp_peer_says(int fd)
{
	uint8_t bytes[TCP_PEER_SAYS_MAX];
	size_t len = input_byte() * 2u;

	for (size_t i = 0; i < len; i++)
		bytes[i] = input_byte();
	return tcp_peer_say(fd, bytes, len);
}

size_t tcp_peer_hears(int fd, void *bytes, size_t room)
{
	ssize_t n = recv(fd, bytes, room, MSG_DONTWAIT);

	return n > 0 ? (size_t)n : 0;
}

static bool at_rest(const struct tcp_wire *wire)
{
	return list_empty(&wire->conns) && list_empty(&wire->requests) &&
	       list_empty(&wire->arrived) && (!wire->port || !wire->port->guest_cnt);
}

void tcp_peer_rest(struct side *side)
{
	struct tcp_wire *wire = tcp_wire_from(side->wire);
	struct list *node, *after;

	start_clock();
	while (!at_rest(wire)) {
		side_poll(side);
		while ((node = wire->requests.next) != &wire->requests)
			tcp_disconnect(&container_of(node, struct tcp_conn, link)->conn);
		/* What has lost its control lane waits for the peer to come back. */
		list_for_each(node, after, &wire->conns) {
			struct tcp_conn *conn = container_of(node, struct tcp_conn, link);

			if (conn->conn.up ? conn->control.state == TCP_LANE_UP
					  : !conn->session.control.turn)
				continue;
			if (side->on_down)
				side->on_down(side, &conn->conn, -FI_ECONNRESET);
			tcp_disconnect(&conn->conn);
		}
		MUST(!expired());
	}
	for (int i = 0; i < side->got_cnt; i++)
		free(side->got[i].bytes);
	side->got_cnt = 0;
	side->conn_cnt = 0;
	side->request = NULL;
}
