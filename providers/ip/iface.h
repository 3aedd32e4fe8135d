/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The host's interface addresses in order of preference: the one that the default route leaves
 * from, other IPv4, IPv6, loopback last. Used by tcp and by udp; the setting
 * FI_TCP_IFACE, or FI_UDP_IFACE, narrows them to one interface.
 */
#ifndef WEFT_IP_IFACE_H
#define WEFT_IP_IFACE_H

#include <net/if.h>
#include "address.h"

enum tcp_iface_rank {
	TCP_RANK_ROUTE4, /* source address of the IPv4 default route */
	TCP_RANK_INET4,
	TCP_RANK_ROUTE6,
	TCP_RANK_INET6,
	TCP_RANK_LINK, /* IPv6, valid on its link alone */
	TCP_RANK_LOOP4,
	TCP_RANK_LOOP6,
};

struct tcp_iface {
	char name[IF_NAMESIZE];
	/* The port is 0 */
	union tcp_sockaddr addr;
	/* Bits of the network prefix */
	unsigned int prefix;
	enum tcp_iface_rank rank;
};

/* The setting that narrows them to one interface. */
struct tcp_iface_setting {
	/* FI_TCP_IFACE or FI_UDP_IFACE: for the reason of a failure */
	const char *variable;
	/* its value; NULL: any interface */
	const char *iface;
};

/*
 * tcp_ifaces - list the addresses of all interfaces that are up
 * @list: out: best first, owned: free()
 * @why:  one sentence on failure
 *
 * Returns their number, at least 1, -FI_ENODATA (none, or none that the setting allows), or another -FI_E*.
 */
int tcp_ifaces(const struct tcp_iface_setting *setting, struct tcp_iface **list, char *why,
	       size_t why_len);

/*
 * tcp_iface_default - find the best address of a family
 * @family: AF_INET, AF_INET6 or AF_UNSPEC
 *
 * Returns 0 or what tcp_ifaces() returns.
 */
int tcp_iface_default(const struct tcp_iface_setting *setting, int family,
		      union tcp_sockaddr *out, char *why, size_t why_len);

/*
 * tcp_iface_route - find the local address from which packets to @dest leave; its port is 0
 *
 * Sends nothing. Returns 0, -FI_EHOSTUNREACH when there is no route, or another -FI_E*.
 */
int tcp_iface_route(const union tcp_sockaddr *dest, union tcp_sockaddr *out);

/* tcp_iface_net - write the network of an interface as text: "10.1.0.0/16" */
void tcp_iface_net(const struct tcp_iface *iface, char *buf, size_t len);

#endif
