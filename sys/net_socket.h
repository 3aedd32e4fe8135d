/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * TCP sockets that do not block, and sets of them that tell which have events. For the
 * providers tcp and udp, by whom a message takes one of these calls: they are inlined.
 * kernel/sockets has the same interface for the kernel, where a socket has a number too, which
 * is no descriptor. All return -FI_E*, which is -errno, where they fail. No thread that
 * is cancelled ends in them. Any thread; no state but which sockets are private.
 * Source: socket(7), ip(7), tcp(7), epoll(7).
 */
#ifndef WEFT_SYS_NET_SOCKET_H
#define WEFT_SYS_NET_SOCKET_H

#include <errno.h>
#include <ifaddrs.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "descriptor.h"
#include "net_arrived.h"
#include "socket_call.h"

/* A set of sockets is a descriptor, which is readable while one of them has an event. */
#define SYS_EVENTS_DESCRIPTOR 1

/*
 * sys_socket_open - returns a socket, owned, or -FI_E*; @type: SOCK_STREAM, or SOCK_DGRAM to
 * ask for a route
 */
static inline int sys_socket_open(int family, int type)
{
	int fd = sys_descriptor_keep(socket(family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));

	return fd < 0 ? -errno : fd;
}

/*
 * sys_socket_private - a child of fork() does not keep the socket: it ends for who is connected to it when this
 * process closes it, or ends. Until it is closed; nothing for numbers from SYS_SOCKETS_PRIVATE on
 * sys_sockets_leave - in such a child: give the sockets up that its parent had as private ones. Their numbers lead to
 * @instead, a descriptor of no use, until they are closed: so nothing else has them meanwhile. Async-signal-safe
 */
#define SYS_SOCKETS_PRIVATE (1 << 20)
void sys_socket_private(int fd);
void sys_sockets_leave(int instead);

void sys_socket_close(int fd);

static inline int sys_socket_bind(int fd, const struct sockaddr *addr, socklen_t len)
{
	return bind(fd, addr, len) ? -errno : 0;
}

static inline int sys_socket_listen(int fd)
{
	return listen(fd, SOMAXCONN) ? -errno : 0;
}

/* sys_socket_accept - returns a socket, owned, or -FI_E* */
int sys_socket_accept(int fd);

/* sys_socket_connect - returns 0, also when it is under way, or -FI_E* */
static inline int sys_socket_connect(int fd, const struct sockaddr *addr, socklen_t len)
{
	return sys_call_connect(fd, addr, len) && errno != EINPROGRESS ? -errno : 0;
}

/*
 * sys_socket_own, sys_socket_peer - the address of this end, and of the other; @len: in: the
 * room, out: as getsockname(2)
 */
static inline int sys_socket_own(int fd, struct sockaddr *addr, socklen_t *len)
{
	return getsockname(fd, addr, len) ? -errno : 0;
}

static inline int sys_socket_peer(int fd, struct sockaddr *addr, socklen_t *len)
{
	return getpeername(fd, addr, len) ? -errno : 0;
}

/* sys_socket_shut - send the end of the stream */
static inline void sys_socket_shut(int fd)
{
	shutdown(fd, SHUT_WR);
}

/*
 * sys_socket_recv, sys_socket_recvv, sys_socket_send, sys_socket_sendv - as recv(2) and
 * recvmsg(2) of pieces, and so on Return bytes, 0 at the end of the stream, or -FI_E*. Sends
 * raise no signal.
 */
static inline ssize_t sys_socket_recv(int fd, void *room, size_t len, int flags)
{
	ssize_t n = sys_call_recvfrom(fd, room, len, flags, NULL, NULL);

	return n < 0 ? -errno : n;
}

static inline ssize_t sys_socket_recvv(int fd, struct iovec *iov, size_t cnt)
{
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = cnt };
	ssize_t n = sys_call_recvmsg(fd, &msg, 0);

	return n < 0 ? -errno : n;
}

static inline ssize_t sys_socket_send(int fd, const void *bytes, size_t len, int flags)
{
	ssize_t n = sys_call_send(fd, bytes, len, MSG_NOSIGNAL | flags);

	return n < 0 ? -errno : n;
}

static inline ssize_t sys_socket_sendv(int fd, struct iovec *iov, size_t cnt)
{
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = cnt };
	ssize_t n = sys_call_sendmsg(fd, &msg, MSG_NOSIGNAL);

	return n < 0 ? -errno : n;
}

/* sys_socket_set - as setsockopt(2) */
static inline int sys_socket_set(int fd, int level, int option, const void *value, size_t len)
{
	return setsockopt(fd, level, option, value, (socklen_t)len) ? -errno : 0;
}

/* sys_socket_error - take the error by which the socket has failed. Returns 0 or -FI_E* */
static inline int sys_socket_error(int fd)
{
	socklen_t len = sizeof(int);
	int err;

	return getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &len) ? -errno : -err;
}

/*
 * sys_socket_congestion - write the name of its congestion control, cut to @len bytes with its
 * end
 */
static inline int sys_socket_congestion(int fd, char *name, size_t len)
{
	socklen_t room = (socklen_t)len - 1;

	if (getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, &room))
		return -errno;
	name[room] = '\0';
	return 0;
}

/* What the kernel knows of a connection. */
struct sys_socket_state {
	/* Since an acknowledgement came, ms */
	uint32_t silent_ms;
	/* Segments that are not acknowledged; of a listening socket: connections that wait */
	uint32_t unacked;
	/* How often the first of these was sent again */
	uint32_t retransmits;
	/* Questions that were not answered */
	uint32_t probes;
};

int sys_socket_state(int fd, struct sys_socket_state *state);

/*
 * sys_socket_unacked, sys_socket_unsent - returns bytes that the peer has not acknowledged, or
 * that were not sent, or -FI_E*
 */
static inline int sys_socket_unacked(int fd)
{
	int len;

	return ioctl(fd, SIOCOUTQ, &len) ? -errno : len;
}

static inline int sys_socket_unsent(int fd)
{
	int len;

	return ioctl(fd, SIOCOUTQNSD, &len) ? -errno : len;
}

/* sys_interfaces - as getifaddrs(3) */
static inline int sys_interfaces(struct ifaddrs **all)
{
	int state = sys_uncancelled(), ret = getifaddrs(all) ? -errno : 0;

	sys_uncancelled_end(state);
	return ret;
}

/* ---- sets of sockets ---- */

/* sys_events_open - returns a set that holds nothing, owned, or -FI_E* */
static inline int sys_events_open(void)
{
	int set = sys_descriptor_keep(epoll_create1(EPOLL_CLOEXEC));

	return set < 0 ? -errno : set;
}

static inline void sys_events_close(int set)
{
	sys_descriptor_close(set);
}

/* sys_events_hold - as epoll_ctl(2): @op is EPOLL_CTL_ADD, EPOLL_CTL_MOD or EPOLL_CTL_DEL */
static inline int sys_events_hold(int set, int op, int fd, struct epoll_event *event)
{
	return epoll_ctl(set, op, fd, event) ? -errno : 0;
}

/* sys_events_take - as epoll_wait(2), without waiting */
static inline int sys_events_take(int set, struct epoll_event *events, int max)
{
	int cnt = (int)syscall(SYS_epoll_pwait, set, events, max, 0, NULL, (size_t)0);

	return cnt < 0 ? -errno : cnt;
}

/*
 * sys_events_arm - call @ring, in any context, when a socket of the set has an event, until
 * sys_events_disarm()
 * One @ring at a time: the last. Returns false if it has one already, and nothing is called.
 * Where a set is a descriptor, who sleeps polls that: nothing is done.
 * sys_events_disarm - no call of @ring with this @arg is made any more, nor under way
 */
static inline bool sys_events_arm(int set, void (*ring)(void *arg), void *arg)
{
	return true;
}

static inline void sys_events_disarm(int set, void *arg)
{
}

#endif
