/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The tcp provider: its settings, the two address formats of its endpoints, and the entry point
 * for the core. Called by the core and, for addresses, by the engine, on any thread.
 */
#include <rdma/fi_errno.h>
#include "address.h"
#include "engine.h"
#include "info.h"
#include "mem_ops.h"
#include "report.h"
#include "routed.h"
#include "tcp.h"
#include "tcp_wire.h"

#define DEAD_MS_MIN 1000
#define DEAD_MS_MAX 3600000

struct tcp_settings tcp_settings = { .dead_ms = 10000 };

/* Addresses: sockaddr_in or sockaddr_in6, by fabric. */

static int family_read(const void *bytes, size_t len, int family, union tcp_sockaddr *sock,
		       char *why, size_t why_len)
{
	if (!tcp_sockaddr_copy(sock, bytes, len) && sock->sa.sa_family == family)
		return 0;
	snprintf(why, why_len, "not an IPv%d socket address", family == AF_INET ? 4 : 6);
	return -FI_EINVAL;
}

static int peer_read(const void *bytes, size_t len, int family, struct weft_addr *out,
		     char *why, size_t why_len)
{
	union tcp_sockaddr sock;
	int ret = family_read(bytes, len, family, &sock, why, why_len);

	if (ret)
		return ret;
	if (!tcp_sockaddr_port(&sock) || tcp_sockaddr_any(&sock)) {
		snprintf(why, why_len,
			 "an address without a port or without a host: it names no endpoint");
		return -FI_EINVAL;
	}
	*out = (struct weft_addr){ .version = ADDR_VERSION, .kind = ADDR_SERVICE };
	tcp_sockaddr_get(&sock, out);
	return 0;
}

static int own_read(const void *bytes, size_t len, int family, struct weft_addr *out, char *why,
		    size_t why_len)
{
	union tcp_sockaddr sock;
	int ret = family_read(bytes, len, family, &sock, why, why_len);

	if (ret)
		return ret;
	*out = (struct weft_addr){ .version = ADDR_VERSION, .kind = ADDR_SERVICE };
	tcp_sockaddr_get(&sock, out);
	return 0;
}

static int in_read(const void *bytes, size_t len, struct weft_addr *out, char *why,
		   size_t why_len)
{
	return peer_read(bytes, len, AF_INET, out, why, why_len);
}

static int in6_read(const void *bytes, size_t len, struct weft_addr *out, char *why,
		    size_t why_len)
{
	return peer_read(bytes, len, AF_INET6, out, why, why_len);
}

static int in_bind_read(const void *bytes, size_t len, struct weft_addr *out, char *why,
			size_t why_len)
{
	return own_read(bytes, len, AF_INET, out, why, why_len);
}

static int in6_bind_read(const void *bytes, size_t len, struct weft_addr *out, char *why,
			 size_t why_len)
{
	return own_read(bytes, len, AF_INET6, out, why, why_len);
}

static size_t addr_write(const struct weft_addr *addr, void *out)
{
	union tcp_sockaddr sock;
	size_t len = tcp_sockaddr_set(&sock, addr);

	memcpy(out, &sock, len);
	return len;
}

static size_t sock_str(const union tcp_sockaddr *sock, const char *scheme, char *buf, size_t len)
{
	char text[80];
	int n;

	tcp_sockaddr_str(sock, text, sizeof(text));
	n = snprintf(buf, len, "%s://%s", scheme, text);
	return n < 0 ? 0 : (size_t)n + 1;
}

static size_t in_str(const void *bytes, size_t bytes_len, char *buf, size_t len)
{
	union tcp_sockaddr sock = { 0 };

	memcpy(&sock, bytes, sizeof(sock.in));
	return sock_str(&sock, "fi_sockaddr_in", buf, len);
}

static size_t in6_str(const void *bytes, size_t bytes_len, char *buf, size_t len)
{
	union tcp_sockaddr sock = { 0 };

	memcpy(&sock, bytes, sizeof(sock.in6));
	return sock_str(&sock, "fi_sockaddr_in6", buf, len);
}

static int resolve(const char *node, const char *service, uint64_t flags, int family,
		   struct weft_addr *out)
{
	const struct tcp_lookup lookup = { node, service, flags, family, SOCK_STREAM };
	union tcp_sockaddr sock;
	char why[128];
	int cnt;

	cnt = tcp_resolve(&lookup, &sock, 1, why, sizeof(why));
	if (cnt < 0) {
		FI_INFO(&tcp_provider, FI_LOG_AV, "%s\n", why);
		return cnt;
	}
	*out = (struct weft_addr){ .version = ADDR_VERSION, .kind = ADDR_SERVICE };
	tcp_sockaddr_get(&sock, out);
	return 0;
}

static int in_resolve(const char *node, const char *service, uint64_t flags,
		      struct weft_addr *out)
{
	return resolve(node, service, flags, AF_INET, out);
}

static int in6_resolve(const char *node, const char *service, uint64_t flags,
		       struct weft_addr *out)
{
	return resolve(node, service, flags, AF_INET6, out);
}

static void info_address(void **addr, size_t *len, const struct weft_addr *to)
{
	union tcp_sockaddr sock;
	void *copy;

	*len = tcp_sockaddr_set(&sock, to);
	copy = *len ? malloc(*len) : NULL;
	if (copy)
		memcpy(copy, &sock, *len);
	free(*addr);
	*addr = copy;
}

static struct fi_info *info_copy(const struct fi_info *info, const struct weft_addr *src,
				 const struct weft_addr *dest)
{
	struct fi_info *copy = info_dup(info, info_layout_of_core(fi_version()));

	if (!copy)
		return NULL;
	copy->handle = NULL;
	if (src)
		info_address(&copy->src_addr, &copy->src_addrlen, src);
	if (dest)
		info_address(&copy->dest_addr, &copy->dest_addrlen, dest);
	if ((!src || copy->src_addr) && (!dest || copy->dest_addr))
		return copy;
	info_free(copy);
	return NULL;
}

static const struct engine_family in_family = {
	.provider = &tcp_provider,
	.wires = { "tcp" },
	.addr_format = FI_SOCKADDR_IN,
	.addr_len = sizeof(struct sockaddr_in),
	.addr_read = in_read,
	.bind_read = in_bind_read,
	.addr_write = addr_write,
	.addr_str = in_str,
	.resolve = in_resolve,
	.msg = &engine_routed_msg_ops,
	.tagged = &engine_routed_tagged_ops,
	.ops_open = mem_ops_open,
	.info_copy = info_copy,
	.info_free = info_free,
	.closing = report_routes,
};

static const struct engine_family in6_family = {
	.provider = &tcp_provider,
	.wires = { "tcp" },
	.addr_format = FI_SOCKADDR_IN6,
	.addr_len = sizeof(struct sockaddr_in6),
	.addr_read = in6_read,
	.bind_read = in6_bind_read,
	.addr_write = addr_write,
	.addr_str = in6_str,
	.resolve = in6_resolve,
	.msg = &engine_routed_msg_ops,
	.tagged = &engine_routed_tagged_ops,
	.ops_open = mem_ops_open,
	.info_copy = info_copy,
	.info_free = info_free,
	.closing = report_routes,
};

/* A fabric is named after its IP network, which distinguishes IPv6 from IPv4. */
static int tcp_fabric(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context)
{
	bool six = attr && attr->name && strchr(attr->name, ':');

	return engine_fabric_open(six ? &in6_family : &in_family, attr, fabric, context);
}

static void tcp_cleanup(void)
{
}

struct fi_provider tcp_provider = {
	.version = PROVIDER_VERSION,
	.fi_version = FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION),
	.name = "tcp",
	.getinfo = tcp_getinfo,
	.fabric = tcp_fabric,
	.cleanup = tcp_cleanup,
};

/* Reads a number from the environment; one out of bounds is logged and ignored. */
static void setting(const char *name, int low, int high, int *value)
{
	int got;

	if (fi_param_get_int(&tcp_provider, name, &got))
		return;
	if (got >= low && got <= high)
		*value = got;
	else
		FI_WARN(&tcp_provider, FI_LOG_CORE,
			"%s=%d is not between %d and %d and is ignored\n", name, got, low, high);
}

static void settings_define(void)
{
	fi_param_define(
		&tcp_provider, "iface", FI_PARAM_STRING,
		"Use the addresses of this network interface alone (default: all, the one of the default "
		"route first)");
	fi_param_define(&tcp_provider, "port_low_range", FI_PARAM_INT,
			"First port that endpoints may listen at (default: the kernel chooses)");
	fi_param_define(&tcp_provider, "port_high_range", FI_PARAM_INT,
			"Last port that endpoints may listen at");
	fi_param_define(
		&tcp_provider, "secret_file", FI_PARAM_STRING,
		"File with a secret, mode 0600: only peers that have the same secret may connect "
		"(default: none, anyone who reaches the port may)");
	fi_param_define(
		&tcp_provider, "tls", FI_PARAM_BOOL,
		"Encrypt connections with TLS 1.3, by the secret of FI_TCP_SECRET_FILE: the same on "
		"all hosts (default: no)");
	fi_param_define(
		&tcp_provider, "dead_ms", FI_PARAM_INT,
		"A peer's host that does not answer for so many milliseconds counts as dead, and so "
		"does this one there: the same on all hosts (default: 10000)");
}

static void settings_read(void)
{
	char *iface = NULL, *secret = NULL;
	int tls = 0, err;

	if (!fi_param_get_str(&tcp_provider, "iface", &iface) && iface && *iface)
		tcp_settings.iface = iface;
	/* What is meant to keep strangers out never falls back to letting them in. */
	if (!fi_param_get_str(&tcp_provider, "secret_file", &secret) && secret)
		tcp_settings.secret_file = secret;
	err = fi_param_get_bool(&tcp_provider, "tls", &tls);
	tcp_settings.tls = err ? err != -FI_ENODATA : tls;
	setting("port_low_range", 1, 65535, &tcp_settings.port_low);
	setting("port_high_range", 1, 65535, &tcp_settings.port_high);
	setting("dead_ms", DEAD_MS_MIN, DEAD_MS_MAX, &tcp_settings.dead_ms);
	if (tcp_settings.port_low && !tcp_settings.port_high)
		tcp_settings.port_high = 65535;
	if (!tcp_settings.port_low && tcp_settings.port_high)
		tcp_settings.port_low = 1024;
	if (tcp_settings.port_low <= tcp_settings.port_high)
		return;
	FI_WARN(&tcp_provider, FI_LOG_CORE,
		"no port is between %d and %d: the range is ignored\n", tcp_settings.port_low,
		tcp_settings.port_high);
	tcp_settings.port_low = tcp_settings.port_high = 0;
}

struct fi_provider *weft_tcp_ini(void)
{
	if (wire_register(&tcp_wire_provider))
		return NULL;
	engine_define_params(&tcp_provider);
	report_define(&tcp_provider);
	settings_define();
	settings_read();
	return &tcp_provider;
}
