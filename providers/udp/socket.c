/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Datagram sockets. Called by endpoints and groups with their domain locked. */
#include <errno.h>
#include <rdma/fi_errno.h>
#include "descriptor.h"
#include "fault.h"
#include "socket.h"
#include "socket_call.h"
#include "udp.h"

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif
#ifndef IPV6_MULTICAST_ALL
#define IPV6_MULTICAST_ALL 29
#endif
#ifndef SO_MEMINFO
#define SO_MEMINFO 55
#endif
#define MEMINFO_DROPS 8 /* SK_MEMINFO_DROPS of linux/sock_diag.h */
#define MEMINFO_CNT   9

#define ERRORS_PASSED 16 /* errors of earlier sends that one call passes over */

static int set_int(int fd, int level, int name, int value)
{
	return setsockopt(fd, level, name, &value, sizeof(value)) ? -errno : 0;
}

/* How datagrams to groups leave. */
static int set_multicast(int fd, int family, unsigned int iface)
{
	const struct ip_mreqn from = { .imr_ifindex = (int)iface };
	int err;

	if (family == AF_INET6) {
		err = iface ? set_int(fd, IPPROTO_IPV6, IPV6_MULTICAST_IF, (int)iface) : 0;
		if (!err)
			err = set_int(fd, IPPROTO_IPV6, IPV6_MULTICAST_HOPS, udp_settings.hops);
		return err ? err
			   : set_int(fd, IPPROTO_IPV6, IPV6_MULTICAST_LOOP, udp_settings.loop);
	}
	if (iface && setsockopt(fd, IPPROTO_IP, IP_MULTICAST_IF, &from, sizeof(from)))
		return -errno;
	err = set_int(fd, IPPROTO_IP, IP_MULTICAST_TTL, udp_settings.hops);
	return err ? err : set_int(fd, IPPROTO_IP, IP_MULTICAST_LOOP, udp_settings.loop);
}

/*
 * A socket gets what is sent to groups that it has joined itself. Without that it gets what is sent
 * to its port in groups that any process of this host has joined.
 */
static void set_own_groups(int fd, int family)
{
	if (family == AF_INET6)
		set_int(fd, IPPROTO_IPV6, IPV6_MULTICAST_ALL, 0);
	else
		set_int(fd, IPPROTO_IP, IP_MULTICAST_ALL, 0);
}

/* Returns a socket that is bound to @at, or -FI_E*. */
static int bound(const union ip_sockaddr *at, bool shared)
{
	int err = sys_fault(SYS_CALL_SOCKET), fd;

	if (err)
		return -err;
	fd = sys_descriptor_keep(
		socket(at->sa.sa_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
	if (fd < 0)
		return -errno;
	/* As much as the kernel allows: less than what was asked for is no error. */
	set_int(fd, SOL_SOCKET, SO_RCVBUF, udp_settings.recv_buf);
	set_own_groups(fd, at->sa.sa_family);
	if (shared)
		err = set_int(fd, SOL_SOCKET, SO_REUSEADDR, 1);
	if (!err && at->sa.sa_family == AF_INET6)
		err = set_int(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1);
	if (!err)
		err = -sys_fault(SYS_CALL_BIND);
	if (!err && bind(fd, &at->sa, ip_sockaddr_len(at)))
		err = -errno;
	if (!err)
		return fd;
	sys_descriptor_close(fd);
	return err;
}

int udp_socket_open(const union ip_sockaddr *at, bool multicasts, unsigned int iface)
{
	int fd = bound(at, false), err;

	if (fd < 0 || !multicasts)
		return fd;
	err = set_multicast(fd, at->sa.sa_family, iface);
	if (!err)
		return fd;
	sys_descriptor_close(fd);
	return err;
}

static int join(int fd, const union ip_sockaddr *group, unsigned int iface)
{
	const struct ip_mreqn four = { .imr_multiaddr = group->in.sin_addr,
				       .imr_ifindex = (int)iface };
	const struct ipv6_mreq six = { .ipv6mr_multiaddr = group->in6.sin6_addr,
				       .ipv6mr_interface = iface };

	if (group->sa.sa_family == AF_INET6)
		return setsockopt(fd, IPPROTO_IPV6, IPV6_JOIN_GROUP, &six, sizeof(six)) ? -errno
											: 0;
	return setsockopt(fd, IPPROTO_IP, IP_ADD_MEMBERSHIP, &four, sizeof(four)) ? -errno : 0;
}

int udp_socket_join(const union ip_sockaddr *group, unsigned int iface)
{
	union ip_sockaddr at = *group;
	int fd, err;

	if (at.sa.sa_family == AF_INET6 && !at.in6.sin6_scope_id)
		at.in6.sin6_scope_id = iface;
	fd = bound(&at, true);
	if (fd < 0)
		return fd;
	err = join(fd, group, iface);
	if (!err)
		return fd;
	sys_descriptor_close(fd);
	return err;
}

int udp_socket_name(int fd, union ip_sockaddr *name)
{
	union ip_sockaddr got = { 0 };
	socklen_t len = sizeof(got);

	if (getsockname(fd, &got.sa, &len))
		return -errno;
	*name = got;
	return 0;
}

/* One datagram: without vectors, and a struct msghdr, the kernel copies less in. */
static int receive_one(int fd, struct mmsghdr *hdr)
{
	struct msghdr *msg = &hdr->msg_hdr;
	ssize_t len;

	if (msg->msg_iovlen == 1)
		len = sys_call_recvfrom(fd, msg->msg_iov->iov_base, msg->msg_iov->iov_len,
					MSG_DONTWAIT | MSG_TRUNC, msg->msg_name,
					&msg->msg_namelen);
	else
		len = sys_call_recvmsg(fd, msg, MSG_DONTWAIT | MSG_TRUNC);
	hdr->msg_len = len < 0 ? 0 : (unsigned int)len;
	return len < 0 ? -1 : 1;
}

int udp_socket_receive(int fd, struct mmsghdr *hdrs, unsigned int cnt)
{
	int got;

	for (int i = 0; i < ERRORS_PASSED; i++) {
		errno = sys_fault(SYS_CALL_RECVMSG);
		if (errno)
			got = -1;
		else if (cnt == 1)
			got = receive_one(fd, hdrs);
		else
			got = (int)SYS_SOCKET_CALL(recvmmsg, fd, hdrs, cnt,
						   MSG_DONTWAIT | MSG_TRUNC, NULL);
		if (got >= 0)
			return got;
		/* Memory that can't be written: the datagram is lost already. */
		if (errno == EAGAIN || errno == EFAULT)
			break;
	}
	return 0;
}

/* Returns the error of a send, or 0 for one of an earlier send: it is to be tried again. */
static int send_error(int err)
{
	switch (err) {
	case EINTR:
	case ECONNREFUSED:
		return 0;
	case EAGAIN:
	case ENOBUFS:
	case ENOMEM:
		return -FI_EAGAIN;
	default:
		return -err;
	}
}

static ssize_t send_one(int fd, const struct msghdr *msg)
{
	if (msg->msg_iovlen == 1 && !msg->msg_controllen)
		return sys_call_sendto(fd, msg->msg_iov->iov_base, msg->msg_iov->iov_len,
				       MSG_DONTWAIT | MSG_NOSIGNAL, msg->msg_name,
				       msg->msg_namelen);
	return sys_call_sendmsg(fd, msg, MSG_DONTWAIT | MSG_NOSIGNAL);
}

int udp_socket_send(int fd, const struct msghdr *msg)
{
	int err = 0;

	for (int i = 0; i < ERRORS_PASSED && !err; i++) {
		errno = sys_fault(SYS_CALL_SENDMSG);
		if (!errno && send_one(fd, msg) >= 0)
			return 0;
		err = send_error(errno);
	}
	return err ? err : -FI_EAGAIN;
}

int udp_socket_send_several(int fd, struct mmsghdr *hdrs, unsigned int cnt)
{
	int err = 0, sent;

	for (int i = 0; i < ERRORS_PASSED && !err; i++) {
		errno = sys_fault(SYS_CALL_SENDMSG);
		sent = errno ? -1
			     : (int)SYS_SOCKET_CALL(sendmmsg, fd, hdrs, cnt,
						    MSG_DONTWAIT | MSG_NOSIGNAL);
		if (sent > 0)
			return sent;
		err = send_error(errno);
	}
	return err ? err : -FI_EAGAIN;
}

int udp_socket_send_segments(int fd, struct msghdr *msg, uint16_t segment)
{
	union {
		char bytes[CMSG_SPACE(sizeof(segment))];
		struct cmsghdr align;
	} control = { 0 };
	struct cmsghdr *first;

	msg->msg_control = control.bytes;
	msg->msg_controllen = sizeof(control.bytes);
	first = CMSG_FIRSTHDR(msg);
	first->cmsg_level = IPPROTO_UDP;
	first->cmsg_type = UDP_SEGMENT;
	first->cmsg_len = CMSG_LEN(sizeof(segment));
	memcpy(CMSG_DATA(first), &segment, sizeof(segment));
	return udp_socket_send(fd, msg);
}

uint32_t udp_socket_dropped(int fd)
{
	uint32_t info[MEMINFO_CNT] = { 0 };
	socklen_t len = sizeof(info);

	if (getsockopt(fd, SOL_SOCKET, SO_MEMINFO, info, &len) || len < sizeof(info))
		return 0;
	return info[MEMINFO_DROPS];
}
