/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What the provider's sources take of <netinet/in.h> and <sys/socket.h>: addresses, which are
 * Linux' own by layout.
 */
#ifndef KOFI_NETINET_IN_H
#define KOFI_NETINET_IN_H

#include <rdma/fi_types.h>

typedef uint32_t socklen_t;

#ifdef __KERNEL__

#include <linux/in.h>
#include <linux/in6.h>
#include <linux/socket.h>

#else

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <arpa/inet.h>

typedef uint16_t sa_family_t;

enum {
	AF_UNSPEC = 0,
	AF_INET = 2,
	AF_INET6 = 10,
};

enum {
	SOCK_STREAM = 1,
	SOCK_DGRAM = 2,
};

enum {
	IPPROTO_IP = 0,
	IPPROTO_TCP = 6,
	IPPROTO_IPV6 = 41,
};

#define INADDR_ANY	 0u
#define IN_LOOPBACKNET	 127
#define INET6_ADDRSTRLEN 46

struct sockaddr {
	sa_family_t sa_family;
	char sa_data[14];
};

struct in_addr {
	uint32_t s_addr;
};

struct sockaddr_in {
	sa_family_t sin_family;
	uint16_t sin_port;
	struct in_addr sin_addr;
	unsigned char sin_zero[8];
};

struct in6_addr {
	union {
		uint8_t u6_addr8[16];
		uint32_t u6_addr32[4];
	} in6_u;
};

struct sockaddr_in6 {
	sa_family_t sin6_family;
	uint16_t sin6_port;
	uint32_t sin6_flowinfo;
	struct in6_addr sin6_addr;
	uint32_t sin6_scope_id;
};

static inline bool IN6_IS_ADDR_UNSPECIFIED(const struct in6_addr *addr)
{
	const uint32_t *word = addr->in6_u.u6_addr32;

	return !(word[0] | word[1] | word[2] | word[3]);
}

static inline bool IN6_IS_ADDR_LOOPBACK(const struct in6_addr *addr)
{
	const uint32_t *word = addr->in6_u.u6_addr32;

	return !(word[0] | word[1] | word[2]) && word[3] == htonl(1);
}

static inline bool IN6_IS_ADDR_LINKLOCAL(const struct in6_addr *addr)
{
	return (addr->in6_u.u6_addr32[0] & htonl(0xffc00000)) == htonl(0xfe800000);
}

static inline bool IN6_ARE_ADDR_EQUAL(const struct in6_addr *one, const struct in6_addr *other)
{
	return !memcmp(one, other, sizeof(*one));
}

#endif

_Static_assert(sizeof(struct sockaddr) == 16, "layout");
_Static_assert(sizeof(struct sockaddr_in) == 16, "layout");
_Static_assert(sizeof(struct sockaddr_in6) == 28, "layout");
_Static_assert(offsetof(struct sockaddr_in6, sin6_scope_id) == 24, "layout");

#endif
