/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * providers/rds/datagram.h over datagrams of AF_UNIX, which are delivered in order and once as those of RDS are, and whose
 * senders find no room where a receiver has none. A socket's name is the IP address that it stands for. Any thread.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <arpa/inet.h>
#include "mock_datagram.h"

/* Ports that are tried for one that is free */
#define PORT_FIRST 20000u
#define PORTS	   40000u

_Atomic unsigned int mock_refuses_one_in;
_Atomic bool mock_loses_all, mock_is_full;

static _Atomic unsigned int sends, opened;

/* The name, after the byte of abstract ones */
struct name {
	pid_t process;
	union ip_sockaddr sock;
};

static socklen_t name_put(struct sockaddr_un *un, const union ip_sockaddr *sock)
{
	struct name name;

	memset(&name, 0, sizeof(name));
	name.process = getpid();
	memcpy(&name.sock, sock, ip_sockaddr_len(sock));
	memset(un, 0, sizeof(*un));
	un->sun_family = AF_UNIX;
	memcpy(un->sun_path + 1, &name, sizeof(name));
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + sizeof(name));
}

static void port_set(union ip_sockaddr *sock, unsigned int port)
{
	if (sock->sa.sa_family == AF_INET)
		sock->in.sin_port = htons((uint16_t)port);
	else
		sock->in6.sin6_port = htons((uint16_t)port);
}

static bool has_port(const union ip_sockaddr *sock)
{
	return sock->sa.sa_family == AF_INET ? sock->in.sin_port : sock->in6.sin6_port;
}

static int bind_to(int fd, const union ip_sockaddr *sock)
{
	struct sockaddr_un un;
	socklen_t len = name_put(&un, sock);

	return bind(fd, (struct sockaddr *)&un, len) ? -errno : 0;
}

int rds_socket_open(const union ip_sockaddr *at, union ip_sockaddr *where)
{
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), ret;
	union ip_sockaddr own = *at;
	bool any = !has_port(at);

	if (fd < 0)
		return -errno;
	do {
		if (any)
			port_set(&own, PORT_FIRST + opened++ % PORTS);
		ret = bind_to(fd, &own);
	} while (any && ret == -EADDRINUSE);
	if (ret) {
		close(fd);
		return ret;
	}
	*where = own;
	return fd;
}

int rds_socket_send(int fd, const union ip_sockaddr *to, const struct iovec *iov, size_t cnt)
{
	struct sockaddr_un un;
	struct msghdr msg = { .msg_name = &un,
			      .msg_namelen = name_put(&un, to),
			      .msg_iov = (struct iovec *)iov,
			      .msg_iovlen = cnt };
	unsigned int one_in = mock_refuses_one_in;

	if (mock_loses_all)
		return 0;
	if (one_in && sends++ % one_in == 0)
		return -EAGAIN;
	if (sendmsg(fd, &msg, MSG_NOSIGNAL) >= 0)
		return 0;
	/* Who is not there gets nothing, and nobody hears of it. */
	if (errno == ECONNREFUSED || errno == ENOENT)
		return 0;
	return errno == ENOBUFS || errno == ENOMEM ? -EAGAIN : -errno;
}

ssize_t rds_socket_recv(int fd, union ip_sockaddr *from, void *room, size_t len)
{
	struct sockaddr_un un;
	socklen_t un_len = sizeof(un);
	ssize_t n = recvfrom(fd, room, len, MSG_TRUNC, (struct sockaddr *)&un, &un_len);
	struct name name;

	if (n < 0)
		return -errno;
	memcpy(&name, un.sun_path + 1, sizeof(name));
	*from = name.sock;
	return n;
}

bool rds_socket_full(void)
{
	return mock_is_full;
}

void rds_socket_count(int fd)
{
}

bool rds_socket_waiting(int fd)
{
	char byte;

	return recv(fd, &byte, 1, MSG_PEEK) >= 0;
}

bool rds_socket_sent(int fd)
{
	return true;
}
