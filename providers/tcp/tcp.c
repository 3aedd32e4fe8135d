/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The tcp provider of the library: its settings, its names, and the entry point for the core.
 * Called by the core, on any thread.
 */
#include <rdma/fi_errno.h>
#include "bounded.h"
#include "engine.h"
#include "format.h"
#include "mem_ops.h"
#include "report.h"
#include "routed.h"
#include "tcp.h"
#include "tcp_hub.h"
#include "tcp_wire.h"

#define DEAD_MS_MIN 1000
#define DEAD_MS_MAX 3600000

struct tcp_settings tcp_settings = { .dead_ms = 10000 };

const uint64_t tcp_caps = ENGINE_CAPS;

struct platform_lock tcp_hubs_lock = { PTHREAD_MUTEX_INITIALIZER };

static const struct engine_family in_family = {
	IP_FAMILY_IN,
	.provider = &tcp_provider,
	.wires = { "tcp" },
	.ops_open = mem_ops_open,
	.closing = report_routes,
};

static const struct engine_family in6_family = {
	IP_FAMILY_IN6,
	.provider = &tcp_provider,
	.wires = { "tcp" },
	.ops_open = mem_ops_open,
	.closing = report_routes,
};

static const char *const rxm_spellings[] = { "ofi_rxm", "ofi_rxm;tcp", NULL };
static const char *const rxd_spellings[] = { "ofi_rxd", "ofi_rxd;udp", NULL };

/*
 * The protocol is the one that programs expect of a provider name, and ask for: they compare it
 * with what their peers have. The wire format is Weft's own under every name: a peer with another
 * libfabric can't use it.
 */
const struct info_identity weft_tcp_identities[] = {
	{ .name = "tcp",
	  .control = FI_PROGRESS_AUTO,
	  .data = FI_PROGRESS_AUTO,
	  .protocol = FI_PROTO_XNET,
	  .protocol_version = 1,
	  .ctx_cnt = 1 },
	{ .name = "tcp;ofi_rxm",
	  .control = FI_PROGRESS_AUTO,
	  .data = FI_PROGRESS_MANUAL,
	  .spellings = rxm_spellings,
	  .protocol = FI_PROTO_RXM,
	  .protocol_version = 1,
	  .ctx_cnt = 1,
	  .size = 2048 },
	{ .name = "sockets",
	  .control = FI_PROGRESS_AUTO,
	  .data = FI_PROGRESS_AUTO,
	  .protocol = FI_PROTO_SOCK_TCP,
	  .protocol_version = 2,
	  .ctx_cnt = 16,
	  .sleeps_on_events = true },
	{ .name = "udp;ofi_rxd",
	  .control = FI_PROGRESS_MANUAL,
	  .data = FI_PROGRESS_MANUAL,
	  .spellings = rxd_spellings,
	  .protocol = FI_PROTO_RXD,
	  .protocol_version = 1,
	  .ctx_cnt = 1 },
	{ 0 },
};

static int tcp_fabric(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context)
{
	const struct fi_info asked = { .fabric_attr = attr };
	int ret = engine_fabric_open(ip_fabric_six(attr) ? &in6_family : &in_family, attr,
				     fabric, context);

	if (!ret)
		container_of(*fabric, struct engine_fabric, fid)->sleeps_on_events =
			info_identity_of(weft_tcp_identities, &asked)->sleeps_on_events;
	return ret;
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
	if (err && tcp_settings.tls)
		FI_WARN(&tcp_provider, FI_LOG_CORE, "FI_TCP_TLS is set and counts as 1\n");
	ip_bounded_setting(&tcp_provider, "port_low_range", 1, 65535, &tcp_settings.port_low);
	ip_bounded_setting(&tcp_provider, "port_high_range", 1, 65535, &tcp_settings.port_high);
	ip_bounded_setting(&tcp_provider, "dead_ms", DEAD_MS_MIN, DEAD_MS_MAX,
			   &tcp_settings.dead_ms);
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
