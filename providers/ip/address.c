/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Socket addresses: conversions, printing, name resolution. Called by the providers tcp and udp, on
 * any thread; no state.
 */
#include <arpa/inet.h>
#include <netdb.h>
#include <rdma/fabric.h>
#include <rdma/fi_errno.h>
#include "address.h"

_Static_assert(ADDR_FAMILY_INET == AF_INET && ADDR_FAMILY_INET6 == AF_INET6,
	       "families are the kernel's");

socklen_t ip_sockaddr_len(const union ip_sockaddr *sock)
{
	switch (sock->sa.sa_family) {
	case AF_INET:
		return sizeof(sock->in);
	case AF_INET6:
		return sizeof(sock->in6);
	default:
		return 0;
	}
}

socklen_t ip_sockaddr_set(union ip_sockaddr *sock, const struct weft_addr *addr)
{
	memset(sock, 0, sizeof(*sock));
	if (addr->family == ADDR_FAMILY_INET) {
		sock->in.sin_family = AF_INET;
		sock->in.sin_port = htons(addr->port);
		memcpy(&sock->in.sin_addr, addr->ip, sizeof(sock->in.sin_addr));
	} else if (addr->family == ADDR_FAMILY_INET6) {
		sock->in6.sin6_family = AF_INET6;
		sock->in6.sin6_port = htons(addr->port);
		sock->in6.sin6_scope_id = addr->scope;
		memcpy(&sock->in6.sin6_addr, addr->ip, sizeof(sock->in6.sin6_addr));
	}
	return ip_sockaddr_len(sock);
}

void ip_sockaddr_get(const union ip_sockaddr *sock, struct weft_addr *addr)
{
	memset(addr->ip, 0, sizeof(addr->ip));
	addr->family = sock->sa.sa_family;
	addr->port = ip_sockaddr_port(sock);
	addr->scope = 0;
	if (sock->sa.sa_family == AF_INET) {
		memcpy(addr->ip, &sock->in.sin_addr, sizeof(sock->in.sin_addr));
	} else {
		memcpy(addr->ip, &sock->in6.sin6_addr, sizeof(sock->in6.sin6_addr));
		addr->scope = sock->in6.sin6_scope_id;
	}
}

uint16_t ip_sockaddr_port(const union ip_sockaddr *sock)
{
	return ntohs(sock->sa.sa_family == AF_INET ? sock->in.sin_port : sock->in6.sin6_port);
}

void ip_sockaddr_set_port(union ip_sockaddr *sock, uint16_t port)
{
	if (sock->sa.sa_family == AF_INET)
		sock->in.sin_port = htons(port);
	else
		sock->in6.sin6_port = htons(port);
}

bool ip_sockaddr_any(const union ip_sockaddr *sock)
{
	if (sock->sa.sa_family == AF_INET)
		return sock->in.sin_addr.s_addr == htonl(INADDR_ANY);
	return IN6_IS_ADDR_UNSPECIFIED(&sock->in6.sin6_addr);
}

bool ip_sockaddr_loopback(const union ip_sockaddr *sock)
{
	if (sock->sa.sa_family == AF_INET)
		return ntohl(sock->in.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
	return IN6_IS_ADDR_LOOPBACK(&sock->in6.sin6_addr);
}

bool ip_sockaddr_of_link(const union ip_sockaddr *sock)
{
	return sock->sa.sa_family == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&sock->in6.sin6_addr);
}

bool ip_sockaddr_same_ip(const union ip_sockaddr *a, const union ip_sockaddr *b)
{
	if (a->sa.sa_family != b->sa.sa_family)
		return false;
	if (a->sa.sa_family == AF_INET)
		return a->in.sin_addr.s_addr == b->in.sin_addr.s_addr;
	return IN6_ARE_ADDR_EQUAL(&a->in6.sin6_addr, &b->in6.sin6_addr) &&
	       (!a->in6.sin6_scope_id || !b->in6.sin6_scope_id ||
		a->in6.sin6_scope_id == b->in6.sin6_scope_id);
}

int ip_sockaddr_copy(union ip_sockaddr *sock, const void *bytes, size_t len)
{
	union ip_sockaddr copy = { 0 };

	if (!bytes || len < sizeof(copy.sa.sa_family))
		return -FI_EINVAL;
	memcpy(&copy.sa.sa_family, (const char *)bytes + offsetof(struct sockaddr, sa_family),
	       sizeof(copy.sa.sa_family));
	if (!ip_sockaddr_len(&copy) || len < ip_sockaddr_len(&copy))
		return -FI_EINVAL;
	memcpy(&copy, bytes, ip_sockaddr_len(&copy));
	*sock = copy;
	return 0;
}

void ip_sockaddr_str(const union ip_sockaddr *sock, char *buf, size_t len)
{
	char ip[INET6_ADDRSTRLEN] = "?";

	if (sock->sa.sa_family == AF_INET) {
		inet_ntop(AF_INET, &sock->in.sin_addr, ip, sizeof(ip));
		snprintf(buf, len, "%s:%u", ip, ip_sockaddr_port(sock));
	} else if (sock->sa.sa_family == AF_INET6) {
		inet_ntop(AF_INET6, &sock->in6.sin6_addr, ip, sizeof(ip));
		if (sock->in6.sin6_scope_id)
			snprintf(buf, len, "[%s%%%u]:%u", ip, sock->in6.sin6_scope_id,
				 ip_sockaddr_port(sock));
		else
			snprintf(buf, len, "[%s]:%u", ip, ip_sockaddr_port(sock));
	} else {
		snprintf(buf, len, "no network address");
	}
}

/* getaddrinfo takes the low 16 bits of any number. */
static bool service_wrong(const char *service)
{
	char *end;
	unsigned long port;

	if (!service || *service < '0' || *service > '9')
		return false;
	port = strtoul(service, &end, 10);
	return !*end && port > UINT16_MAX;
}

int ip_resolve(const struct ip_lookup *lookup, union ip_sockaddr *out, int max, char *why,
	       size_t why_len)
{
	struct addrinfo hints = { .ai_family = lookup->family, .ai_socktype = lookup->socktype };
	const char *node = lookup->node, *service = lookup->service;
	struct addrinfo *found, *a;
	int cnt = 0, err;

	if (service_wrong(service)) {
		snprintf(why, why_len, "%s is no port", service);
		return -FI_ENODATA;
	}
	if (lookup->flags & FI_SOURCE)
		hints.ai_flags |= AI_PASSIVE;
	if (lookup->flags & FI_NUMERICHOST)
		hints.ai_flags |= AI_NUMERICHOST;
	/* getaddrinfo refuses a call with neither; it asks for port 0 of the wildcard or loopback */
	err = getaddrinfo(node, service || node ? service : "0", &hints, &found);
	if (err) {
		snprintf(why, why_len, "%s%s%s can't be resolved: %s", node ? node : "port ",
			 node && service ? " port " : "", service ? service : "",
			 gai_strerror(err));
		return -FI_ENODATA;
	}
	for (a = found; a && cnt < max; a = a->ai_next) {
		if (!ip_sockaddr_copy(&out[cnt], a->ai_addr, a->ai_addrlen))
			cnt++;
	}
	freeaddrinfo(found);
	if (cnt)
		return cnt;
	snprintf(why, why_len, "%s has no address of this kind", node ? node : "the host");
	return -FI_ENODATA;
}
