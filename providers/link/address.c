/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Addresses of the link: 64 bytes that programs pass around as they are. Called by the engine
 * and by getinfo, on any thread.
 */
#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <sys/socket.h>
#include <rdma/fi_errno.h>
#include "link.h"

/* A peer without Weft sends the address of its own provider, most often a socket address. */
static void link_addr_explain(const void *addr, char *why, size_t why_len)
{
	char ip[INET6_ADDRSTRLEN];
	struct sockaddr_in6 in6;
	struct sockaddr_in in;

	memcpy(&in, addr, sizeof(in));
	memcpy(&in6, addr, sizeof(in6));
	if (in.sin_family == AF_INET && inet_ntop(AF_INET, &in.sin_addr, ip, sizeof(ip)))
		snprintf(
			why, why_len,
			"no Weft runs on host %s: it sent the socket address %s:%u; install Weft there",
			ip, ip, ntohs(in.sin_port));
	else if (in6.sin6_family == AF_INET6 &&
		 inet_ntop(AF_INET6, &in6.sin6_addr, ip, sizeof(ip)))
		snprintf(
			why, why_len,
			"no Weft runs on host %s: it sent a socket address; install Weft there",
			ip);
	else if (*(const uint8_t *)addr && *(const uint8_t *)addr != ADDR_VERSION)
		snprintf(why, why_len,
			 "not an address of this version of Weft (it begins with %u)",
			 *(const uint8_t *)addr);
	else
		snprintf(why, why_len, "not a Weft address");
}

int link_addr_read(const void *addr, struct weft_addr *out, char *why, size_t why_len)
{
	struct weft_addr copy;

	memcpy(&copy, addr, sizeof(copy));
	if (!addr_valid(&copy)) {
		link_addr_explain(addr, why, why_len);
		return -FI_EINVAL;
	}
	*out = copy;
	return 0;
}

int link_bind_read(const void *addr, struct weft_addr *out, char *why, size_t why_len)
{
	struct weft_addr copy, whole;

	memcpy(&copy, addr, sizeof(copy));
	whole = copy;
	if (copy.kind == ADDR_SERVICE && copy.family != ADDR_FAMILY_LOCAL) {
		/* Zero asks for any port, for any interface, and for the default. */
		whole.port = 1;
		whole.ip[0] |= 1;
		if (!copy.family)
			whole.family = ADDR_FAMILY_INET;
	}
	if (!addr_valid(&whole)) {
		link_addr_explain(addr, why, why_len);
		return -FI_EINVAL;
	}
	*out = copy;
	return 0;
}

void link_addr_write(const struct weft_addr *addr, void *out)
{
	memcpy(out, addr, sizeof(*addr));
}

static size_t link_append(char *buf, size_t len, size_t at, const char *fmt, ...)
{
	va_list args;
	int n;

	va_start(args, fmt);
	n = vsnprintf(at < len ? buf + at : NULL, at < len ? len - at : 0, fmt, args);
	va_end(args);
	return at + (n > 0 ? (size_t)n : 0);
}

size_t link_addr_str(const void *addr, char *buf, size_t len)
{
	char ip[INET6_ADDRSTRLEN] = "?";
	struct weft_addr a;
	size_t at;

	memcpy(&a, addr, sizeof(a));
	at = link_append(buf, len, 0, "%s", LINK_ADDR_STR);
	if (!addr_valid(&a))
		return link_append(buf, len, at, "invalid") + 1;
	if (a.family != ADDR_FAMILY_NONE) {
		inet_ntop(a.family, a.ip, ip, sizeof(ip));
		at = link_append(buf, len, at,
				 a.family == ADDR_FAMILY_INET6 ? "[%s]:%u" : "%s:%u", ip,
				 a.port);
	}
	if (a.kind == ADDR_NONCE) {
		at = link_append(buf, len, at, "/");
		for (size_t i = 0; i < sizeof(a.nonce); i++)
			at = link_append(buf, len, at, "%02x", a.nonce[i]);
		if (a.pid)
			at = link_append(buf, len, at, "@%08x/%u", a.place, a.pid);
	}
	return at + 1;
}

static int link_from_sockaddr(const struct sockaddr *sa, struct weft_addr *out)
{
	*out = (struct weft_addr){ .version = ADDR_VERSION,
				   .kind = ADDR_SERVICE,
				   .family = sa->sa_family };
	if (sa->sa_family == AF_INET) {
		const struct sockaddr_in *in = (const struct sockaddr_in *)sa;

		memcpy(out->ip, &in->sin_addr, sizeof(in->sin_addr));
		out->port = ntohs(in->sin_port);
	} else if (sa->sa_family == AF_INET6) {
		const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)sa;

		memcpy(out->ip, &in6->sin6_addr, sizeof(in6->sin6_addr));
		out->port = ntohs(in6->sin6_port);
		out->scope = in6->sin6_scope_id;
	} else {
		return -FI_ENODATA;
	}
	return 0;
}

/* getaddrinfo takes the low 16 bits of any number; and nobody listens at port 0. */
static bool link_service_wrong(const char *service, uint64_t flags)
{
	char *end;
	unsigned long port;

	if (!service || *service < '0' || *service > '9')
		return false;
	port = strtoul(service, &end, 10);
	return !*end && (port > UINT16_MAX || (!port && !(flags & FI_SOURCE)));
}

int link_resolve(const char *node, const char *service, uint64_t flags, struct weft_addr *out)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_family = AF_UNSPEC };
	struct addrinfo *list, *best;
	int ret;

	if (!node && !service)
		return -FI_EINVAL;
	if (link_service_wrong(service, flags))
		return -FI_ENODATA;
	if (flags & FI_SOURCE)
		hints.ai_flags |= AI_PASSIVE;
	if (flags & FI_NUMERICHOST)
		hints.ai_flags |= AI_NUMERICHOST;
	if (getaddrinfo(node, service, &hints, &list))
		return -FI_ENODATA;
	best = list;
	for (struct addrinfo *ai = list; ai; ai = ai->ai_next) {
		if (ai->ai_family == AF_INET) { /* where both exist, the wire listens at IPv4 */
			best = ai;
			break;
		}
	}
	ret = link_from_sockaddr(best->ai_addr, out);
	freeaddrinfo(list);
	return ret;
}
