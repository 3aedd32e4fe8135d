/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The system calls of a datagram socket, with their errors converted. The caller serializes: it
 * holds a lock, so that a thread that is cancelled does not end in them.
 * Source: udp(7), ip(7), ipv6(7), recvmmsg(2), sendmmsg(2).
 */
#ifndef WEFT_UDP_SOCKET_H
#define WEFT_UDP_SOCKET_H

#include <sys/socket.h>
#include "address.h"

/* Datagrams of one system call, at most */
#define UDP_BATCH 32

/* Work memory of a receive: what recvmmsg() fills. */
struct udp_batch {
	struct mmsghdr hdrs[UDP_BATCH];
	union ip_sockaddr names[UDP_BATCH];
};

/*
 * udp_socket_open - a socket that does not block, bound to @at
 * @multicasts: it will send to groups
 * @iface: index of the interface that these datagrams leave by; 0: the kernel chooses
 * Returns it, owned, or -FI_E*: -FI_EADDRINUSE, -FI_EADDRNOTAVAIL, -FI_EMFILE, ...
 */
int udp_socket_open(const union ip_sockaddr *at, bool multicasts, unsigned int iface);

/*
 * udp_socket_join - a socket that gets what is sent to a group and port, and nothing else
 * @group: a multicast address with a port; others of this host may have joined it too
 * @iface: index of the interface; 0: the kernel chooses
 * Returns it, owned, or -FI_E*.
 */
int udp_socket_join(const union ip_sockaddr *group, unsigned int iface);

/* udp_socket_name - the address that a socket is bound to. Returns 0 or -FI_E* */
int udp_socket_name(int fd, union ip_sockaddr *name);

/*
 * udp_socket_receive - take up to @cnt datagrams
 * @hdrs: filled by the caller; msg_len: out: the datagram's bytes, also where that is more than
 *	  there was room for
 * Returns their number; 0: there is none now. What the network reported of earlier sends is passed
 * over.
 */
int udp_socket_receive(int fd, struct mmsghdr *hdrs, unsigned int cnt);

/*
 * udp_socket_send - hand one datagram, or several, to the kernel
 * udp_socket_send_several returns how many of the first of them were taken, at least 1.
 * Returns 0 and that number respectively, or -FI_E*: -FI_EAGAIN when the kernel has no room now,
 * -FI_EMSGSIZE, -FI_EHOSTUNREACH, -FI_ENETUNREACH, -FI_EPERM (a filter), ...: of the first one.
 */
int udp_socket_send(int fd, const struct msghdr *msg);
int udp_socket_send_several(int fd, struct mmsghdr *hdrs, unsigned int cnt);

/*
 * udp_socket_send_segments - hand to the kernel what it sends as several datagrams, all or none of
 * them
 * @segment: bytes of each but the last, which may be shorter and is not empty
 * Returns 0, -FI_EAGAIN, or another -FI_E*: also where the kernel or the interface can't, and for a
 * segment that is longer than the MTU.
 */
int udp_socket_send_segments(int fd, struct msghdr *msg, uint16_t segment);

/*
 * udp_socket_dropped - datagrams that the kernel received and had no room to keep until they were
 * taken
 */
uint32_t udp_socket_dropped(int fd);

#endif
