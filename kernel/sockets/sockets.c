/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The provider kofi_sockets: that of providers/tcp, over TCP sockets of the kernel
 * (net_socket.h). Here is what differs from the library's: its name, what the kernel's engine has,
 * and how a fabric is closed. Process context.
 */
#include <rdma/fi_errno.h>
#include "engine.h"
#include "format.h"
#include "kofi_sockets.h"
#include "routed.h"
#include "tcp.h"
#include "tcp_hub.h"

struct fi_provider tcp_provider = {
	.version = FI_VERSION(1, 0),
	.fi_version = FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION),
	.name = "sockets",
};

struct tcp_settings tcp_settings = { .dead_ms = 10000 };

const uint64_t tcp_caps = ENGINE_KERNEL_CAPS;

struct platform_lock tcp_hubs_lock;

const struct info_identity weft_tcp_identities[] = {
	{ .name = "sockets",
	  .control = FI_PROGRESS_MANUAL,
	  .data = FI_PROGRESS_MANUAL,
	  .protocol = FI_PROTO_SOCK_TCP,
	  .protocol_version = 2,
	  .ctx_cnt = 1 },
	{ 0 },
};

static const struct engine_family in_family = {
	IP_FAMILY_IN,
	.provider = &tcp_provider,
	.wires = { "tcp" },
	.closes_last = true,
};

static const struct engine_family in6_family = {
	IP_FAMILY_IN6,
	.provider = &tcp_provider,
	.wires = { "tcp" },
	.closes_last = true,
};

void kofi_sockets_begin(void)
{
	platform_lock_init(&tcp_hubs_lock);
}

void kofi_sockets_end(void)
{
	platform_lock_fini(&tcp_hubs_lock);
}

void kofi_sockets_freeinfo(struct fi_info *info)
{
	info_free(info);
}

int kofi_sockets_fabric(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context)
{
	return engine_fabric_open(ip_fabric_six(attr) ? &in6_family : &in_family, attr, fabric,
				  context);
}
