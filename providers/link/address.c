/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Addresses of the link, which programs hold as strings (FI_ADDR_STR): "link:" followed by the
 * text of an endpoint (tables/addr_text.h), by host and port of an endpoint that listens there, or
 * by nothing: any address. Called by the engine and by getinfo, on any thread.
 */
#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <sys/socket.h>
#include <rdma/fi_errno.h>
#include "addr_text.h"
#include "link.h"

/* Longest text of a service address: "[" IPv6 "%" scope "]:" port, characters */
#define PLACE_MAX 63u

_Static_assert(sizeof(LINK_PREFIX) + ADDR_TEXT_INET <= 48, "programs keep it in 48 bytes");
_Static_assert(sizeof(LINK_PREFIX) + ADDR_TEXT_MAX <= 56, "... with IPv6 in 56");
_Static_assert(sizeof(LINK_PREFIX) + ADDR_TEXT_MAX <= LINK_ADDR_LEN, "it fits");

/* Explains a foreign address: a peer with another libfabric sends, most often, a socket address. */
static void link_foreign_explain(const void *addr, char *why, size_t why_len)
{
	char ip[INET6_ADDRSTRLEN];
	struct sockaddr_in6 in6;
	struct sockaddr_in in;
	sa_family_t family;

	/* A socket address begins with its family, a byte with which no string begins. */
	memcpy(&family, addr, sizeof(family));
	if (family == AF_INET) {
		memcpy(&in, addr, sizeof(in));
		inet_ntop(AF_INET, &in.sin_addr, ip, sizeof(ip));
		snprintf(why, why_len,
			 "no Weft runs on host %s: it sent the socket address %s:%u; install Weft there",
			 ip, ip, ntohs(in.sin_port));
	} else if (family == AF_INET6) {
		memcpy(&in6, addr, sizeof(in6));
		inet_ntop(AF_INET6, &in6.sin6_addr, ip, sizeof(ip));
		snprintf(why, why_len,
			 "no Weft runs on host %s: it sent a socket address; install Weft there",
			 ip);
	} else {
		snprintf(why, why_len, "not a string of printable characters (FI_ADDR_STR)");
	}
}

/* Returns the text behind the prefix, and its length, or @text if there is no prefix. */
static const char *link_body(const char *text, size_t *len)
{
	size_t prefix = sizeof(LINK_PREFIX) - 1;

	if (*len < prefix || memcmp(text, LINK_PREFIX, prefix))
		return text;
	*len -= prefix;
	return text + prefix;
}

static bool link_number(const char *text, uint32_t most, uint32_t *out)
{
	uint64_t value = 0;

	if (!*text)
		return false;
	for (; *text; text++) {
		if (*text < '0' || *text > '9' || value > most)
			return false;
		value = value * 10 + (uint64_t)(*text - '0');
	}
	*out = (uint32_t)value;
	return value <= most;
}

/* Reads "10.0.0.1:7471", "[fe80::1%2]:7471", or nothing: any address. */
static int link_place_read(const char *body, size_t len, struct weft_addr *out)
{
	char text[PLACE_MAX + 1], *ip = text, *port, *scope;
	uint32_t number = 0;
	bool six;

	*out = (struct weft_addr){ .version = ADDR_VERSION, .kind = ADDR_SERVICE };
	if (!len)
		return 0;
	if (len > PLACE_MAX)
		return -FI_EINVAL;
	memcpy(text, body, len);
	text[len] = '\0';
	six = *text == '[';
	port = six ? strchr(text, ']') : strrchr(text, ':');
	if (!port)
		return -FI_EINVAL;
	*port++ = '\0';
	if (six && *port++ != ':')
		return -FI_EINVAL;
	ip += six;
	scope = six ? strchr(ip, '%') : NULL;
	if (scope) {
		*scope++ = '\0';
		if (!link_number(scope, UINT32_MAX, &out->scope))
			return -FI_EINVAL;
	}
	out->family = six ? ADDR_FAMILY_INET6 : ADDR_FAMILY_INET;
	if (inet_pton(out->family, ip, out->ip) != 1 || !link_number(port, UINT16_MAX, &number))
		return -FI_EINVAL;
	out->port = (uint16_t)number;
	return 0;
}

/* Reads an address of any kind, also one to listen at. */
static int link_read(const void *addr, size_t len, struct weft_addr *out, char *why,
		     size_t why_len)
{
	const char *body;
	int version;

	if (!len && *(const char *)addr) {
		link_foreign_explain(addr, why, why_len);
		return -FI_EINVAL;
	}
	if (!len) {
		snprintf(why, why_len, "an empty string");
		return -FI_EINVAL;
	}
	body = link_body(addr, &len);
	version = addr_text_version(body, len);
	if (version < 0 ? !link_place_read(body, len, out) : !addr_text_read(body, len, out))
		return 0;
	if (version >= 0 && version != ADDR_VERSION)
		snprintf(why, why_len,
			 "an address of another version of Weft (%d, this is %u): install the "
			 "same on all hosts",
			 version, ADDR_VERSION);
	else
		snprintf(why, why_len,
			 "'%.*s' is neither an address from fi_getname nor " LINK_PREFIX
			 "ADDRESS:PORT",
			 (int)len, body);
	return -FI_EINVAL;
}

int link_addr_read(const void *addr, size_t len, struct weft_addr *out, char *why,
		   size_t why_len)
{
	struct weft_addr read;
	int ret = link_read(addr, len, &read, why, why_len);

	if (!ret && !addr_valid(&read)) {
		snprintf(why, why_len,
			 "an address without a port or without a host: it names no endpoint");
		ret = -FI_EINVAL;
	}
	if (!ret)
		*out = read;
	return ret;
}

int link_bind_read(const void *addr, size_t len, struct weft_addr *out, char *why,
		   size_t why_len)
{
	return link_read(addr, len, out, why, why_len);
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

/* Appends the text of a service address. Returns the end of the text. */
static size_t link_place_write(const struct weft_addr *addr, char *text, size_t at)
{
	char ip[INET6_ADDRSTRLEN] = "";
	static const uint8_t link_local[] = { 0xfe, 0x80 };

	if (addr->family == ADDR_FAMILY_NONE)
		return at;
	inet_ntop(addr->family, addr->ip, ip, sizeof(ip));
	if (addr->family == ADDR_FAMILY_INET)
		return link_append(text, LINK_ADDR_LEN, at, "%s:%u", ip, addr->port);
	/* The scope has a meaning in link-local addresses alone */
	if (addr->scope && !memcmp(addr->ip, link_local, sizeof(link_local)))
		return link_append(text, LINK_ADDR_LEN, at, "[%s%%%u]:%u", ip, addr->scope,
				   addr->port);
	return link_append(text, LINK_ADDR_LEN, at, "[%s]:%u", ip, addr->port);
}

size_t link_addr_write(const struct weft_addr *addr, void *out)
{
	char *text = out;
	size_t at = sizeof(LINK_PREFIX) - 1;

	memcpy(text, LINK_PREFIX, sizeof(LINK_PREFIX));
	if (addr->kind == ADDR_NONCE) {
		at += addr_text_write(addr, text + at);
		text[at] = '\0';
	} else {
		at = link_place_write(addr, text, at);
	}
	return at + 1;
}

size_t link_addr_str(const void *addr, size_t len, char *buf, size_t buf_len)
{
	char text[LINK_ADDR_LEN] = LINK_PREFIX "invalid", why[8];
	struct weft_addr read;

	if (!link_read(addr, len, &read, why, sizeof(why)))
		link_addr_write(&read, text);
	return link_append(buf, buf_len, 0, "%s", text) + 1;
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

/* getaddrinfo takes the low 16 bits of any number, and port 0 is not an address of a listener. */
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
