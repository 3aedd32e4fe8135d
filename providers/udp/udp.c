/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The udp provider: datagrams, one for each message, without an engine. Its settings, and the entry
 * point for the core, which calls it once.
 */
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include "objects.h"
#include "bounded.h"
#include "udp.h"

#define RECV_BUF     (1 << 20)
#define RECV_BUF_MIN 4096
#define RECV_BUF_MAX (1 << 30)

struct udp_settings udp_settings = {
	.msg_max = UDP_MSG_MAX,
	.recv_buf = RECV_BUF,
	.hops = 1,
	.loop = 1,
};

int udp_refuse(enum fi_log_subsys subsys, int err, const char *call, const char *why)
{
	FI_WARN(&udp_provider, subsys, "%s refused (%s): %s\n", call, fi_strerror(-err), why);
	return err;
}

static void udp_cleanup(void)
{
}

struct fi_provider udp_provider = {
	.version = PROVIDER_VERSION,
	.fi_version = FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION),
	.name = "udp",
	.getinfo = udp_getinfo,
	.fabric = udp_fabric_open,
	.cleanup = udp_cleanup,
};

static void settings_define(void)
{
	fi_param_define(
		&udp_provider, "iface", FI_PARAM_STRING,
		"Use the addresses of this network interface alone (default: all, the one of the default "
		"route first)");
	fi_param_define(
		&udp_provider, "max_msg_size", FI_PARAM_INT,
		"Longest message, in bytes; what is longer than the network's MTU allows is fragmented "
		"(default: 1472)");
	fi_param_define(
		&udp_provider, "recv_buf", FI_PARAM_INT,
		"Memory in which the kernel keeps datagrams until an endpoint has a receive for them, in "
		"bytes; net.core.rmem_max bounds it (default: 1 MiB)");
	fi_param_define(
		&udp_provider, "multicast_hops", FI_PARAM_INT,
		"Networks that a message to a multicast group passes (default: 1, this one alone)");
	fi_param_define(
		&udp_provider, "multicast_loop", FI_PARAM_BOOL,
		"Messages to a multicast group reach members on this host too (default: yes)");
}

static void settings_read(void)
{
	char *iface = NULL;
	int loop;

	if (!fi_param_get_str(&udp_provider, "iface", &iface) && iface && *iface)
		udp_settings.iface = iface;
	ip_bounded_setting(&udp_provider, "max_msg_size", UDP_MSG_LEAST, UDP_MSG_MOST,
			   &udp_settings.msg_max);
	ip_bounded_setting(&udp_provider, "recv_buf", RECV_BUF_MIN, RECV_BUF_MAX,
			   &udp_settings.recv_buf);
	ip_bounded_setting(&udp_provider, "multicast_hops", 1, 255, &udp_settings.hops);
	if (!fi_param_get_bool(&udp_provider, "multicast_loop", &loop))
		udp_settings.loop = loop;
}

struct fi_provider *weft_udp_ini(void)
{
	settings_define();
	settings_read();
	return &udp_provider;
}
