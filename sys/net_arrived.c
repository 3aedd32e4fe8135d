/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The other end of a connection within this host, as the kernel's sock_diag knows it; net_arrived.h has the
 * contract. Any thread; no state. <linux/tcp.h> has the counters, and excludes <netinet/tcp.h>.
 */
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "descriptor.h"
#include "net_arrived.h"
#include "socket_call.h"

struct question {
	struct nlmsghdr head;
	struct inet_diag_req_v2 what;
};

union name {
	struct sockaddr sa;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
};

static void end_name(const union name *end, __be32 ip[4], __be16 *port)
{
	if (end->sa.sa_family == AF_INET6) {
		memcpy(ip, &end->in6.sin6_addr, sizeof(end->in6.sin6_addr));
		*port = end->in6.sin6_port;
	} else {
		memcpy(ip, &end->in.sin_addr, sizeof(end->in.sin_addr));
		*port = end->in.sin_port;
	}
}

/* Asks for the socket whose ends are those of @fd, the other way round. Returns false if it has none. */
static bool question_make(int fd, struct question *question)
{
	union name here = { 0 }, there = { 0 };
	socklen_t here_len = sizeof(here), there_len = sizeof(there);
	struct inet_diag_sockid *id = &question->what.id;

	if (getsockname(fd, &here.sa, &here_len) || getpeername(fd, &there.sa, &there_len))
		return false;
	*question = (struct question){
		.head = { .nlmsg_len = sizeof(*question),
			  .nlmsg_type = SOCK_DIAG_BY_FAMILY,
			  .nlmsg_flags = NLM_F_REQUEST },
		.what = { .sdiag_family = (uint8_t)here.sa.sa_family,
			  .sdiag_protocol = IPPROTO_TCP,
			  .idiag_ext = 1 << (INET_DIAG_INFO - 1),
			  .idiag_states = ~0u,
			  .id.idiag_cookie = { INET_DIAG_NOCOOKIE, INET_DIAG_NOCOOKIE } },
	};
	end_name(&there, id->idiag_src, &id->idiag_sport);
	end_name(&here, id->idiag_dst, &id->idiag_dport);
	return true;
}

/* Returns the bytes that the socket of an answer has received; 0: it does not tell. */
static uint64_t received(const struct nlmsghdr *head, size_t len)
{
	const struct rtattr *attr;
	struct tcp_info info = { 0 };
	size_t at, attr_len;

	if (!NLMSG_OK(head, len) || head->nlmsg_type != SOCK_DIAG_BY_FAMILY)
		return 0;
	at = NLMSG_LENGTH(NLMSG_ALIGN(sizeof(struct inet_diag_msg)));
	for (; at + sizeof(*attr) <= head->nlmsg_len; at += RTA_ALIGN(attr->rta_len)) {
		attr = (const struct rtattr *)((const char *)head + at);
		if (attr->rta_len < sizeof(*attr) || attr->rta_len > head->nlmsg_len - at)
			return 0;
		if (attr->rta_type != INET_DIAG_INFO)
			continue;
		attr_len = RTA_PAYLOAD(attr);
		memcpy(&info, RTA_DATA(attr), attr_len < sizeof(info) ? attr_len : sizeof(info));
		return info.tcpi_bytes_received;
	}
	return 0;
}

/* Returns the bytes that have left a socket, each once; UINT64_MAX: the kernel does not tell. */
static uint64_t sent(int fd)
{
	struct tcp_info info;
	socklen_t len = sizeof(info);

	if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) ||
	    len < offsetof(struct tcp_info, tcpi_bytes_retrans) +
			    sizeof(info.tcpi_bytes_retrans))
		return UINT64_MAX;
	return info.tcpi_bytes_sent - info.tcpi_bytes_retrans;
}

bool sys_socket_arrived(int fd)
{
	union {
		struct nlmsghdr head;
		char bytes[4096];
	} answer;
	struct question question;
	bool all = false;
	ssize_t len;
	int diag;

	if (!question_make(fd, &question))
		return false;
	diag = sys_descriptor_keep(
		socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG));
	if (diag < 0)
		return false;
	/* The answer is there when send() returns. */
	if (sys_call_sendto(diag, &question, sizeof(question), 0, NULL, 0) == sizeof(question)) {
		len = sys_call_recvfrom(diag, &answer, sizeof(answer), MSG_DONTWAIT, NULL, NULL);
		all = len > 0 && received(&answer.head, (size_t)len) >= sent(fd);
	}
	sys_descriptor_close(diag);
	return all;
}
