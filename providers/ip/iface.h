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

enum ip_iface_rank {
	IP_RANK_ROUTE4, /* source address of the IPv4 default route */
	IP_RANK_INET4,
	IP_RANK_ROUTE6,
	IP_RANK_INET6,
	IP_RANK_LINK, /* IPv6, valid on its link alone */
	IP_RANK_LOOP4,
	IP_RANK_LOOP6,
};

struct ip_iface {
	char name[IF_NAMESIZE];
	/* The port is 0 */
	union ip_sockaddr addr;
	/* Bits of the network prefix */
	unsigned int prefix;
	enum ip_iface_rank rank;
};

/* The setting that narrows them to one interface. */
struct ip_iface_setting {
	/* FI_TCP_IFACE or FI_UDP_IFACE: for the reason of a failure */
	const char *variable;
	/* its value; NULL: any interface */
	const char *iface;
};

/*
 * ip_ifaces - list the addresses of all interfaces that are up
 * @list: out: best first, owned: free()
 * @why:  one sentence on failure
 *
 * Returns their number, at least 1, -FI_ENODATA (none, or none that the setting allows), or another -FI_E*.
 */
int ip_ifaces(const struct ip_iface_setting *setting, struct ip_iface **list, char *why,
	      size_t why_len);

/*
 * ip_iface_default - find the best address of a family
 * @family: AF_INET, AF_INET6 or AF_UNSPEC
 *
 * Returns 0 or what ip_ifaces() returns.
 */
int ip_iface_default(const struct ip_iface_setting *setting, int family, union ip_sockaddr *out,
		     char *why, size_t why_len);

/*
 * ip_iface_route - find the local address from which packets to @dest leave; its port is 0
 *
 * Sends nothing. Returns 0, -FI_EHOSTUNREACH when there is no route, or another -FI_E*.
 */
int ip_iface_route(const union ip_sockaddr *dest, union ip_sockaddr *out);

/* ip_iface_net - write the network of an interface as text: "10.1.0.0/16" */
void ip_iface_net(const struct ip_iface *iface, char *buf, size_t len);

#endif
