/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Strangers to kofi_rds: a process with sockets of RDS, which any user may open. Some send random bytes, some datagrams
 * that are nearly right, and some say a hello that is, and then what no peer does.
 *
 * usage: rds_stranger COUNT HOST PORT    of the endpoint, which may come later; HOST is this machine
 */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "protocol.h"

#define WAIT_MS 10000

struct stranger {
	int fd;
	struct sockaddr_in at, endpoint, to;
	uint64_t id, to_id;
	uint32_t number;
};

static uint32_t state = 1;
static unsigned int answered, ended;

static uint32_t chance(uint32_t below)
{
	state = state * 1664525u + 1013904223u;
	return (state >> 8) % below;
}

static int stranger_open(struct stranger *s, const char *host, const char *port)
{
	socklen_t len = sizeof(s->at);

	memset(s, 0, sizeof(*s));
	s->at.sin_family = AF_INET;
	inet_pton(AF_INET, host, &s->at.sin_addr);
	s->endpoint = s->at;
	s->endpoint.sin_port = htons((uint16_t)atoi(port));
	s->to = s->endpoint;
	s->id = 1 + chance(1u << 20);
	s->fd = socket(AF_RDS, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (s->fd < 0 || bind(s->fd, (struct sockaddr *)&s->at, sizeof(s->at)) ||
	    getsockname(s->fd, (struct sockaddr *)&s->at, &len)) {
		perror("a socket of RDS");
		return 1;
	}
	return 0;
}

static void say(struct stranger *s, const struct rds_head *head, const void *body, size_t len)
{
	struct iovec iov[2] = { { (void *)head, sizeof(*head) }, { (void *)body, len } };
	struct msghdr msg = { .msg_name = &s->to,
			      .msg_namelen = sizeof(s->to),
			      .msg_iov = iov,
			      .msg_iovlen = 2 };

	if (sendmsg(s->fd, &msg, MSG_DONTWAIT) < 0 && errno != EAGAIN && errno != ENOBUFS)
		perror("sendmsg");
}

static struct rds_head head_of(const struct stranger *s, uint8_t op, size_t len)
{
	return (struct rds_head){ .magic = RDS_MAGIC,
				  .version = RDS_VERSION,
				  .op = op,
				  .to = s->to_id,
				  .number = s->number,
				  .len = (uint32_t)len };
}

/* Takes what has come. Returns true if it is a datagram with that op. */
static bool hears(struct stranger *s, uint8_t op)
{
	uint8_t bytes[sizeof(struct rds_head) + sizeof(struct rds_greeting)];
	struct sockaddr_in from;
	socklen_t len = sizeof(from);
	struct rds_greeting greeting;
	struct rds_head head;

	if (recvfrom(s->fd, bytes, sizeof(bytes), MSG_DONTWAIT, (struct sockaddr *)&from,
		     &len) < (ssize_t)sizeof(head))
		return false;
	memcpy(&head, bytes, sizeof(head));
	if (head.op != op)
		return false;
	if (op == RDS_ANSWER) {
		memcpy(&greeting, bytes + sizeof(head), sizeof(greeting));
		s->to = from;
		s->to_id = greeting.id;
	}
	return true;
}

static struct rds_greeting greeting_of(const struct stranger *s)
{
	struct rds_greeting g = { .id = s->id,
				  .hello = { .magic = HELLO_MAGIC,
					     .version = HELLO_VERSION,
					     .kind = HELLO_RDM,
					     .epoch = 77,
					     .window = 65536,
					     .seq = 5 } };
	uint32_t nonce = chance(UINT32_MAX) | 1;

	g.hello.addr = (struct weft_addr){ .version = ADDR_VERSION,
					   .kind = ADDR_NONCE,
					   .family = ADDR_FAMILY_INET,
					   .port = ntohs(s->at.sin_port) };
	memcpy(g.hello.addr.nonce, &nonce, sizeof(nonce));
	memcpy(g.hello.addr.ip, &s->at.sin_addr, 4);
	return g;
}

static void say_random(struct stranger *s)
{
	uint8_t body[512];
	uint32_t len = chance(sizeof(body));
	struct rds_head head = head_of(s, (uint8_t)chance(10), len);

	for (uint32_t i = 0; i < len; i++)
		body[i] = (uint8_t)chance(i % 4 ? 3 : 256);
	if (chance(4) == 0)
		memcpy(&head, body, sizeof(head));
	s->number++;
	say(s, &head, body, len);
}

/* Is let in, and does wrong until it is thrown out. */
static void says_hello(struct stranger *s)
{
	struct rds_greeting g = greeting_of(s);
	struct rds_head head = head_of(s, RDS_HELLO, sizeof(g));
	struct pollfd poll_fd = { .fd = s->fd, .events = POLLIN };
	int left;

	for (left = WAIT_MS; left > 0 && !s->to_id; left -= 20) {
		say(s, &head, &g, sizeof(g));
		poll(&poll_fd, 1, 20);
		while (!s->to_id && hears(s, RDS_ANSWER))
			answered++;
	}
	for (left = WAIT_MS; left > 0 && s->to_id; left -= 20) {
		say_random(s);
		poll(&poll_fd, 1, 20);
		if (hears(s, RDS_END)) {
			ended++;
			return;
		}
	}
}

/* A hello of which one byte is another */
static void says_nearly_hello(struct stranger *s)
{
	struct rds_greeting g = greeting_of(s);
	struct rds_head head = head_of(s, RDS_HELLO, sizeof(g));
	uint8_t *all = chance(2) ? (uint8_t *)&head : (uint8_t *)&g;

	all[chance(all == (uint8_t *)&head ? sizeof(head) : 96)] ^= (uint8_t)(1 + chance(255));
	say(s, &head, &g, sizeof(g));
}

static int run(int cnt, const char *host, const char *port)
{
	struct stranger s;

	for (int i = 0; i < cnt; i++) {
		if (stranger_open(&s, host, port))
			return 77;
		if (i % 3 == 0)
			says_hello(&s);
		else if (i % 3 == 1)
			says_nearly_hello(&s);
		for (int j = 0; i % 3 == 2 && j < 8; j++)
			say_random(&s);
		close(s.fd);
	}
	printf("%d strangers, of whom %u were let in, and %u thrown out\n", cnt, answered,
	       ended);
	return answered >= (unsigned int)cnt / 3 && ended >= answered / 2 ? 0 : 1;
}

int main(int argc, char **argv)
{
	if (argc != 4)
		return 2;
	return run(atoi(argv[1]), argv[2], argv[3]);
}
