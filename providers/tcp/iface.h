/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The host's interface addresses in the order in which we prefer them: the one that the
 * default route leaves from, other IPv4, IPv6, loopback last. FI_TCP_IFACE narrows them
 * to one interface.
 */
#ifndef WEFT_TCP_IFACE_H
#define WEFT_TCP_IFACE_H

#include <net/if.h>
#include "address.h"

enum tcp_iface_rank {
	TCP_RANK_ROUTE4, /* source address of the IPv4 default route */
	TCP_RANK_INET4,
	TCP_RANK_ROUTE6,
	TCP_RANK_INET6,
	TCP_RANK_LINK, /* IPv6 that is valid on its link alone */
	TCP_RANK_LOOP4,
	TCP_RANK_LOOP6,
};

struct tcp_iface {
	char name[IF_NAMESIZE];
	/* port 0 */
	union tcp_sockaddr addr;
	/* bits of the network's part */
	unsigned int prefix;
	enum tcp_iface_rank rank;
};

/*
 * tcp_ifaces - the addresses of all interfaces that are up
 * @list: out: best first, owned: free()
 * @why:  one sentence on failure
 * Returns their number, at least 1, or -FI_ENODATA (none, or none of FI_TCP_IFACE), -FI_E*.
 */
int tcp_ifaces(struct tcp_iface **list, char *why, size_t why_len);

/*
 * tcp_iface_default - the best address of a family
 * @family: AF_INET, AF_INET6 or AF_UNSPEC
 */
int tcp_iface_default(int family, union tcp_sockaddr *out, char *why, size_t why_len);

/*
 * tcp_iface_route - the local address from which packets to @dest would leave, port 0
 * Sends nothing. Returns 0 or -FI_EHOSTUNREACH when no route leads there, -FI_E*.
 */
int tcp_iface_route(const union tcp_sockaddr *dest, union tcp_sockaddr *out);

/* tcp_iface_net - "10.1.0.0/16": the network that an interface is on */
void tcp_iface_net(const struct tcp_iface *iface, char *buf, size_t len);

#endif
