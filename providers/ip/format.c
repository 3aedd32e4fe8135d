/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The two address formats of endpoints: sockaddr_in or sockaddr_in6, by fabric. Called by the
 * engine, on any thread; no state.
 */
#include <rdma/fi_errno.h>
#include "address.h"
#include "format.h"
#include "info.h"

static int family_read(const void *bytes, size_t len, int family, union ip_sockaddr *sock,
		       char *why, size_t why_len)
{
	if (!ip_sockaddr_copy(sock, bytes, len) && sock->sa.sa_family == family)
		return 0;
	snprintf(why, why_len, "not an IPv%d socket address", family == AF_INET ? 4 : 6);
	return -FI_EINVAL;
}

static int peer_read(const void *bytes, size_t len, int family, struct weft_addr *out,
		     char *why, size_t why_len)
{
	union ip_sockaddr sock;
	int ret = family_read(bytes, len, family, &sock, why, why_len);

	if (ret)
		return ret;
	if (!ip_sockaddr_port(&sock) || ip_sockaddr_any(&sock)) {
		snprintf(why, why_len,
			 "an address without a port or without a host: it names no endpoint");
		return -FI_EINVAL;
	}
	*out = (struct weft_addr){ .version = ADDR_VERSION, .kind = ADDR_SERVICE };
	ip_sockaddr_get(&sock, out);
	return 0;
}

static int own_read(const void *bytes, size_t len, int family, struct weft_addr *out, char *why,
		    size_t why_len)
{
	union ip_sockaddr sock;
	int ret = family_read(bytes, len, family, &sock, why, why_len);

	if (ret)
		return ret;
	*out = (struct weft_addr){ .version = ADDR_VERSION, .kind = ADDR_SERVICE };
	ip_sockaddr_get(&sock, out);
	return 0;
}

int ip_in_read(const void *bytes, size_t len, struct weft_addr *out, char *why, size_t why_len)
{
	return peer_read(bytes, len, AF_INET, out, why, why_len);
}

int ip_in6_read(const void *bytes, size_t len, struct weft_addr *out, char *why, size_t why_len)
{
	return peer_read(bytes, len, AF_INET6, out, why, why_len);
}

int ip_in_bind_read(const void *bytes, size_t len, struct weft_addr *out, char *why,
		    size_t why_len)
{
	return own_read(bytes, len, AF_INET, out, why, why_len);
}

int ip_in6_bind_read(const void *bytes, size_t len, struct weft_addr *out, char *why,
		     size_t why_len)
{
	return own_read(bytes, len, AF_INET6, out, why, why_len);
}

size_t ip_addr_write(const struct weft_addr *addr, void *out)
{
	union ip_sockaddr sock;
	size_t len = ip_sockaddr_set(&sock, addr);

	memcpy(out, &sock, len);
	return len;
}

static size_t sock_str(const union ip_sockaddr *sock, const char *scheme, char *buf, size_t len)
{
	char text[80];
	int n;

	ip_sockaddr_str(sock, text, sizeof(text));
	n = snprintf(buf, len, "%s://%s", scheme, text);
	return n < 0 ? 0 : (size_t)n + 1;
}

size_t ip_in_str(const void *bytes, size_t bytes_len, char *buf, size_t len)
{
	union ip_sockaddr sock = { 0 };

	memcpy(&sock, bytes, sizeof(sock.in));
	return sock_str(&sock, "fi_sockaddr_in", buf, len);
}

size_t ip_in6_str(const void *bytes, size_t bytes_len, char *buf, size_t len)
{
	union ip_sockaddr sock = { 0 };

	memcpy(&sock, bytes, sizeof(sock.in6));
	return sock_str(&sock, "fi_sockaddr_in6", buf, len);
}

static int resolve(const char *node, const char *service, uint64_t flags, int family,
		   struct weft_addr *out)
{
	const struct ip_lookup lookup = { node, service, flags, family, SOCK_STREAM };
	union ip_sockaddr sock;
	char why[128];
	int cnt;

	/* The caller logs what is not found. */
	cnt = ip_resolve(&lookup, &sock, 1, why, sizeof(why));
	if (cnt < 0)
		return cnt;
	*out = (struct weft_addr){ .version = ADDR_VERSION, .kind = ADDR_SERVICE };
	ip_sockaddr_get(&sock, out);
	return 0;
}

int ip_in_resolve(const char *node, const char *service, uint64_t flags, struct weft_addr *out)
{
	return resolve(node, service, flags, AF_INET, out);
}

int ip_in6_resolve(const char *node, const char *service, uint64_t flags, struct weft_addr *out)
{
	return resolve(node, service, flags, AF_INET6, out);
}

bool ip_fabric_six(const struct fi_fabric_attr *attr)
{
	return attr && attr->name && strchr(attr->name, ':');
}

struct fi_info *ip_info_copy(const struct fi_info *info, const struct weft_addr *src,
			     const struct weft_addr *dest)
{
	return info_dup_between(info, info_layout_of_core(fi_version()), ip_addr_write, src,
				dest);
}
