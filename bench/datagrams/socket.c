/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Datagrams of a socket, without a library. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <string.h>
#include <sys/socket.h>
#include "way.h"

static int fd;
static struct sockaddr_in to, from[BURST];
static char bytes[BURST][LEN];
static struct mmsghdr out[BURST], in[BURST];
static struct iovec iov[BURST];

static void socket_open(struct sockaddr_in *name)
{
	socklen_t len = sizeof(*name);

	*name = (struct sockaddr_in){ .sin_family = AF_INET,
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	fd = socket(AF_INET, SOCK_DGRAM, 0);
	must(fd >= 0 && !bind(fd, (struct sockaddr *)name, len) &&
		     !getsockname(fd, (struct sockaddr *)name, &len),
	     "a socket");
}

static void socket_meet(const struct sockaddr_in *peer)
{
	to = *peer;
	for (int i = 0; i < BURST; i++) {
		iov[i] = (struct iovec){ bytes[i], LEN };
		out[i].msg_hdr = (struct msghdr){ .msg_name = &to,
						  .msg_namelen = sizeof(to),
						  .msg_iov = &iov[i],
						  .msg_iovlen = 1 };
		in[i].msg_hdr = out[i].msg_hdr;
		in[i].msg_hdr.msg_name = &from[i];
	}
}

static void socket_send(int cnt)
{
	for (int i = 0; i < cnt; i++)
		must(sendto(fd, bytes[0], LEN, 0, (struct sockaddr *)&to, sizeof(to)) == LEN,
		     "sendto");
}

static int socket_receive(int cnt)
{
	socklen_t len = sizeof(from[0]);
	int got = 0;

	while (got < cnt && recvfrom(fd, bytes[0], LEN, MSG_DONTWAIT,
				     (struct sockaddr *)&from[0], &len) == LEN)
		got++;
	return got;
}

static void batch_send(int cnt)
{
	must(sendmmsg(fd, out, (unsigned int)cnt, 0) == cnt, "sendmmsg");
}

static int batch_receive(int cnt)
{
	int got = recvmmsg(fd, in, (unsigned int)cnt, MSG_DONTWAIT, NULL);

	return got < 0 ? 0 : got;
}

const struct way way_socket = { socket_open, socket_meet, socket_send, socket_receive };
const struct way way_batch = { socket_open, socket_meet, batch_send, batch_receive };
