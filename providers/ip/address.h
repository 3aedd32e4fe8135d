/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Socket addresses: struct weft_addr inside the library, struct sockaddr_in and sockaddr_in6 in
 * the hands of the program.
 */
#ifndef WEFT_IP_ADDRESS_H
#define WEFT_IP_ADDRESS_H

#include "addr.h"
#include "sockaddr.h"

/*
 * ip_sockaddr_set - set the network part of @addr. Returns its length in bytes, or 0 when it has
 * none
 */
socklen_t ip_sockaddr_set(union ip_sockaddr *sock, const struct weft_addr *addr);

/* ip_sockaddr_get - write the network part of @addr (family, port, ip, scope) and nothing else */
void ip_sockaddr_get(const union ip_sockaddr *sock, struct weft_addr *addr);

/* ip_sockaddr_port, ip_sockaddr_set_port - the port in host byte order */
uint16_t ip_sockaddr_port(const union ip_sockaddr *sock);
void ip_sockaddr_set_port(union ip_sockaddr *sock, uint16_t port);

/* ip_sockaddr_any - returns true for the wildcard address of its family */
bool ip_sockaddr_any(const union ip_sockaddr *sock);
bool ip_sockaddr_loopback(const union ip_sockaddr *sock);

/* ip_sockaddr_of_link - returns true for an address that is valid on its link alone, which sin6_scope_id names */
bool ip_sockaddr_of_link(const union ip_sockaddr *sock);

/* ip_sockaddr_same_ip - returns true if both have the same IP address, whatever the port */
bool ip_sockaddr_same_ip(const union ip_sockaddr *a, const union ip_sockaddr *b);

/*
 * ip_sockaddr_copy - copy an address from untrusted memory
 * @len: bytes at @bytes
 *
 * Returns 0, or -FI_EINVAL when the bytes are too few or of another family.
 */
int ip_sockaddr_copy(union ip_sockaddr *sock, const void *bytes, size_t len);

/* ip_sockaddr_str - write the address as text: "10.0.0.1:7471", "[fe80::1%2]:7471" */
void ip_sockaddr_str(const union ip_sockaddr *sock, char *buf, size_t len);

/* What is resolved. */
struct ip_lookup {
	/* name or number of a host, or NULL: the wildcard with FI_SOURCE, else loopback */
	const char *node;
	/* port number or name, or NULL: port 0 */
	const char *service;
	/* FI_SOURCE, FI_NUMERICHOST */
	uint64_t flags;
	/* AF_INET, AF_INET6 or AF_UNSPEC */
	int family;
	/* SOCK_STREAM or SOCK_DGRAM: a service may be one of the two alone */
	int socktype;
};

/*
 * ip_resolve - resolve node and service to addresses
 * @out: receives up to @max addresses, in the resolver's order
 * @why: one sentence on failure
 *
 * May ask a name server and block as long as that takes. Returns the number of addresses, or
 * -FI_ENODATA. Source: fi_getinfo(3), getaddrinfo(3).
 */
int ip_resolve(const struct ip_lookup *lookup, union ip_sockaddr *out, int max, char *why,
	       size_t why_len);

#endif
