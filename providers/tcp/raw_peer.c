/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A peer of the TCP wire made of plain sockets, for its tests. On the test's thread.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>
#include "raw_peer.h"

uint16_t raw_home_port = 1;

struct hello raw_hello(void)
{
	return (struct hello){ .magic = HELLO_MAGIC,
			       .version = HELLO_VERSION,
			       .epoch = 999,
			       .addr = { .version = ADDR_VERSION,
					 .kind = ADDR_NONCE,
					 .nonce = { 1 },
					 .family = ADDR_FAMILY_INET,
					 .port = raw_home_port,
					 .ip = { 127, 0, 0, 1 } } };
}

struct tcp_preamble raw_preamble(uint8_t lane)
{
	struct tcp_preamble preamble = {
		.magic = TCP_MAGIC,
		.version = TCP_VERSION,
		.lane = lane,
		.turn = lane == TCP_LANE_DATA,
		.fresh = lane == TCP_LANE_CONTROL,
		.hello = raw_hello(),
	};

	assert_int_equal(platform_random(preamble.cookie, sizeof(preamble.cookie)), 0);
	return preamble;
}

struct tcp_preamble raw_member(uint8_t lane, const struct tcp_answer *answer)
{
	struct tcp_preamble preamble = raw_preamble(lane);

	memcpy(preamble.cookie, answer->cookie, sizeof(preamble.cookie));
	preamble.fresh = 0;
	return preamble;
}

int raw_connect(const struct side *side)
{
	struct timeval patience = { .tv_sec = 10 };
	union ip_sockaddr at;
	socklen_t len = ip_sockaddr_set(&at, &side->addr);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	assert_int_equal(connect(fd, &at.sa, len), 0);
	return fd;
}

void raw_send(int fd, const void *bytes, size_t len)
{
	assert_int_equal(send(fd, bytes, len, MSG_NOSIGNAL), len);
}

size_t raw_recv(int fd, struct side *side, void *bytes, size_t len)
{
	size_t have = 0;
	ssize_t n;

	start_clock();
	while (have < len && !expired()) {
		side_poll(side);
		n = recv(fd, (char *)bytes + have, len - have, MSG_DONTWAIT);
		if (!n || (n < 0 && errno != EAGAIN))
			break;
		have += n > 0 ? (size_t)n : 0;
	}
	assert_false(expired());
	return have;
}

int raw_peer(struct side *side, struct tcp_answer *answer)
{
	struct tcp_preamble preamble = raw_preamble(TCP_LANE_CONTROL);
	int fd = raw_connect(side);

	raw_send(fd, &preamble, sizeof(preamble));
	assert_int_equal(raw_recv(fd, side, answer, sizeof(*answer)), sizeof(*answer));
	assert_int_equal(answer->magic, TCP_ANSWER_MAGIC);
	return fd;
}

void raw_packet(int fd, uint8_t op, uint32_t len, size_t payload)
{
	uint8_t frame[sizeof(struct packet) + 8192] = { 0 };
	struct packet packet = { .op = op, .len = len };

	memcpy(frame, &packet, sizeof(packet));
	raw_send(fd, frame, sizeof(packet) + payload);
}

int raw_listen(struct weft_addr *addr)
{
	union ip_sockaddr at = { .in = { .sin_family = AF_INET,
					 .sin_addr.s_addr = htonl(INADDR_LOOPBACK) } };
	socklen_t len = sizeof(at.in);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(bind(fd, &at.sa, len), 0);
	assert_int_equal(listen(fd, SOMAXCONN), 0);
	assert_int_equal(getsockname(fd, &at.sa, &len), 0);
	ip_sockaddr_get(&at, addr);
	return fd;
}

int raw_reserve(struct weft_addr *addr)
{
	union ip_sockaddr at = { .in = { .sin_family = AF_INET,
					 .sin_addr.s_addr = htonl(INADDR_LOOPBACK) } };
	socklen_t len = sizeof(at.in);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;

	assert_true(fd >= 0);
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)), 0);
	assert_int_equal(bind(fd, &at.sa, len), 0);
	assert_int_equal(getsockname(fd, &at.sa, &len), 0);
	ip_sockaddr_get(&at, addr);
	return fd;
}
