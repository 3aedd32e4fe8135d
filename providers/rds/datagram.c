/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Sockets of RDS by system calls; datagram.h has the contract. What kernels do with the options of their rooms is in
 * socket(7): RDS takes half of what they answer.
 */
#include <errno.h>
#include <rdma/fi_errno.h>
#include <stdbool.h>
#include "datagram.h"
#include "net_socket.h"
#include "protocol.h"

#ifndef AF_RDS
#define AF_RDS 21
#endif

/*
 * Room to send is little, so that packets do not wait for long behind payload; room to receive is much: each time that
 * there is none, RDS tells all hosts. net.core.wmem_max and rmem_max bound them, but for who administers the network.
 */
#define SEND_BYTES (1 << 19)
#define RECV_BYTES (1 << 21)

static void room_set(int fd, int force, int option, int bytes)
{
	if (sys_socket_set(fd, SOL_SOCKET, force, &bytes, sizeof(bytes)))
		sys_socket_set(fd, SOL_SOCKET, option, &bytes, sizeof(bytes));
}

/* Returns 0, or -FI_ENOBUFS where the kernel's bounds leave no room for a datagram. */
static int rooms_make(int fd)
{
	socklen_t len = sizeof(int);
	int bytes = 0;

	room_set(fd, SO_SNDBUFFORCE, SO_SNDBUF, SEND_BYTES);
	room_set(fd, SO_RCVBUFFORCE, SO_RCVBUF, RECV_BYTES);
	if (getsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, &len))
		return -errno;
	return bytes / 2 < (int)RDS_DATAGRAM_MAX ? -ENOBUFS : 0;
}

int rds_socket_open(const union ip_sockaddr *at, union ip_sockaddr *where)
{
	int fd = sys_socket_open(AF_RDS, SOCK_SEQPACKET), ret;

	if (fd < 0)
		return fd;
	ret = rooms_make(fd);
	if (ret) {
		sys_socket_close(fd);
		return ret;
	}
	return rds_socket_bound(fd, at, where);
}

int rds_socket_send(int fd, const union ip_sockaddr *to, const struct iovec *iov, size_t cnt)
{
	struct msghdr msg = { .msg_name = (void *)to,
			      .msg_namelen = ip_sockaddr_len(to),
			      .msg_iov = (struct iovec *)iov,
			      .msg_iovlen = cnt };

	/* RDS raises no signal, and refuses to hear of MSG_NOSIGNAL. */
	if (sys_call_sendmsg(fd, &msg, MSG_DONTWAIT) >= 0)
		return 0;
	/* No room in the socket, at the receiver, or in memory */
	return errno == ENOBUFS || errno == ENOMEM ? -FI_EAGAIN : -errno;
}

ssize_t rds_socket_recv(int fd, union ip_sockaddr *from, void *room, size_t len)
{
	struct iovec iov = { room, len };
	struct msghdr msg = {
		.msg_name = from, .msg_namelen = sizeof(*from), .msg_iov = &iov, .msg_iovlen = 1
	};
	ssize_t n;

	from->sa.sa_family = AF_UNSPEC;
	n = sys_call_recvmsg(fd, &msg, MSG_DONTWAIT | MSG_TRUNC);
	return n < 0 ? -errno : n;
}

bool rds_socket_full(void)
{
	return false;
}

void rds_socket_count(int fd)
{
}

static short events_of(int fd, short events)
{
	struct pollfd p = { .fd = fd, .events = events };

	return sys_descriptor_poll(&p, 1, 0) > 0 ? p.revents : 0;
}

bool rds_socket_waiting(int fd)
{
	return events_of(fd, POLLIN);
}

/*
 * The kernel makes the least that it allows of a room of none, a few KiB. While half of that is on the way there is no
 * room, and a RDS_END is longer: it is on the way as long as anything is.
 */
bool rds_socket_sent(int fd)
{
	const int none = 0;

	sys_socket_set(fd, SOL_SOCKET, SO_SNDBUF, &none, sizeof(none));
	return events_of(fd, POLLOUT);
}
