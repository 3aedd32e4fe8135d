/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Socket addresses: struct weft_addr inside the library, struct sockaddr_in and sockaddr_in6 in
 * the hands of the program.
 */
#ifndef WEFT_IP_ADDRESS_H
#define WEFT_IP_ADDRESS_H

#include <netinet/in.h>
#include "addr.h"

union tcp_sockaddr {
	struct sockaddr sa;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
};

/* tcp_sockaddr_len - bytes of an address of its family, 0 for a family that is not of IP */
socklen_t tcp_sockaddr_len(const union tcp_sockaddr *sock);

/*
 * tcp_sockaddr_set - set the network part of @addr. Returns its length in bytes, or 0 when it has
 * none
 */
socklen_t tcp_sockaddr_set(union tcp_sockaddr *sock, const struct weft_addr *addr);

/* tcp_sockaddr_get - write the network part of @addr (family, port, ip, scope) and nothing else */
void tcp_sockaddr_get(const union tcp_sockaddr *sock, struct weft_addr *addr);

/* tcp_sockaddr_port, tcp_sockaddr_set_port - the port in host byte order */
uint16_t tcp_sockaddr_port(const union tcp_sockaddr *sock);
void tcp_sockaddr_set_port(union tcp_sockaddr *sock, uint16_t port);

/* tcp_sockaddr_any - returns true for the wildcard address of its family */
bool tcp_sockaddr_any(const union tcp_sockaddr *sock);
bool tcp_sockaddr_loopback(const union tcp_sockaddr *sock);

/* tcp_sockaddr_same_ip - returns true if both have the same IP address, whatever the port */
bool tcp_sockaddr_same_ip(const union tcp_sockaddr *a, const union tcp_sockaddr *b);

/*
 * tcp_sockaddr_copy - copy an address from untrusted memory
 * @len: bytes at @bytes
 *
 * Returns 0, or -FI_EINVAL when the bytes are too few or of another family.
 */
int tcp_sockaddr_copy(union tcp_sockaddr *sock, const void *bytes, size_t len);

/* tcp_sockaddr_str - write the address as text: "10.0.0.1:7471", "[fe80::1%2]:7471" */
void tcp_sockaddr_str(const union tcp_sockaddr *sock, char *buf, size_t len);

/* What is resolved. */
struct tcp_lookup {
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
 * tcp_resolve - resolve node and service to addresses
 * @out: receives up to @max addresses, in the resolver's order
 * @why: one sentence on failure
 *
 * May ask a name server and block as long as that takes. Returns the number of addresses, or
 * -FI_ENODATA. Source: fi_getinfo(3), getaddrinfo(3).
 */
int tcp_resolve(const struct tcp_lookup *lookup, union tcp_sockaddr *out, int max, char *why,
		size_t why_len);

#endif
