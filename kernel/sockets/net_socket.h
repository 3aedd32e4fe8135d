/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * sys/net_socket.h in the kernel: the same functions, over Linux' own sockets. A socket and a
 * set have a number, which is no descriptor. Process context, where sleeping is allowed; a
 * socket, and a set with what it holds, by one thread at a time. Included by sources of the
 * provider, which see no header of Linux, and by those that carry it out.
 */
#ifndef KOFI_NET_SOCKET_H
#define KOFI_NET_SOCKET_H

#include <ifaddrs.h>
#include <netinet/in.h>
#include <rdma/fi_types.h>

/* A set is no descriptor: it rings. */
#define SYS_EVENTS_DESCRIPTOR 0

/* What sys_events_take() finds. Linux' struct epoll_event is another one. */
struct sys_event {
	uint32_t events;
	union {
		void *ptr;
	} data;
};

#ifndef __KERNEL__

#define epoll_event sys_event

enum {
	EPOLLIN = 1,
	EPOLLOUT = 4,
};

enum {
	EPOLL_CTL_ADD = 1,
	EPOLL_CTL_DEL = 2,
	EPOLL_CTL_MOD = 3,
};

/* Those of each processor that the modules are built for */
enum {
	MSG_PEEK = 0x2,
	MSG_MORE = 0x8000,
};

enum {
	SOL_SOCKET = 1,
	SO_REUSEADDR = 2,
	SO_KEEPALIVE = 9,
	SO_RCVLOWAT = 18,
};

enum {
	IP_BIND_ADDRESS_NO_PORT = 24,
	IPV6_V6ONLY = 26,
};

enum {
	TCP_NODELAY = 1,
	TCP_KEEPIDLE = 4,
	TCP_KEEPINTVL = 5,
	TCP_KEEPCNT = 6,
	TCP_CONGESTION = 13,
	TCP_USER_TIMEOUT = 18,
};

/* Errors that the interface has no name for */
enum {
	ENFILE = 23,
	ENOTSOCK = 88,
	EAFNOSUPPORT = 97,
};

#endif

struct sys_socket_state {
	uint32_t silent_ms;
	uint32_t unacked;
	uint32_t retransmits;
	uint32_t probes;
};

int sys_socket_open(int family, int type);
void sys_socket_close(int fd);

/* Nothing forks here. */
static inline void sys_socket_private(int fd)
{
}

static inline void sys_sockets_leave(int instead)
{
}

int sys_socket_bind(int fd, const struct sockaddr *addr, socklen_t len);
int sys_socket_listen(int fd);
int sys_socket_accept(int fd);
int sys_socket_connect(int fd, const struct sockaddr *addr, socklen_t len);
int sys_socket_own(int fd, struct sockaddr *addr, socklen_t *len);
int sys_socket_peer(int fd, struct sockaddr *addr, socklen_t *len);
void sys_socket_shut(int fd);
ssize_t sys_socket_recv(int fd, void *room, size_t len, int flags);
ssize_t sys_socket_recvv(int fd, struct iovec *iov, size_t cnt);
ssize_t sys_socket_send(int fd, const void *bytes, size_t len, int flags);
ssize_t sys_socket_sendv(int fd, struct iovec *iov, size_t cnt);
int sys_socket_set(int fd, int level, int option, const void *value, size_t len);
int sys_socket_error(int fd);
int sys_socket_congestion(int fd, char *name, size_t len);
int sys_socket_state(int fd, struct sys_socket_state *state);
int sys_socket_unacked(int fd);
int sys_socket_unsent(int fd);

bool sys_socket_arrived(int fd);

int sys_interfaces(struct ifaddrs **all);

int sys_events_open(void);
void sys_events_close(int set);
int sys_events_hold(int set, int op, int fd, struct sys_event *event);
int sys_events_take(int set, struct sys_event *events, int max);
bool sys_events_arm(int set, void (*ring)(void *arg), void *arg);
void sys_events_disarm(int set, void *arg);

#endif
