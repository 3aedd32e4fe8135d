/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The provider kofi_rds: that of providers/rds, over sockets of the kernel (datagram.c). Here is what differs from the
 * library's: what it offers, and how a fabric is closed. Process context.
 */
#include <rdma/fi_errno.h>
#include "engine.h"
#include "format.h"
#include "kofi_rds.h"
#include "rds.h"
#include "routed.h"

struct fi_provider rds_provider = {
	.version = FI_VERSION(1, 0),
	.fi_version = FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION),
	.name = "rds",
};

struct rds_settings rds_settings = { .dead_ms = 10000 };

const uint64_t rds_caps = ENGINE_KERNEL_CAPS;

const struct info_identity weft_rds_identities[] = {
	{ .name = "rds",
	  .control = FI_PROGRESS_MANUAL,
	  .data = FI_PROGRESS_MANUAL,
	  .protocol = FI_PROTO_UNSPEC,
	  .protocol_version = 1,
	  .ctx_cnt = 1 },
	{ 0 },
};

static const struct engine_family in_family = {
	IP_FAMILY_IN,
	.provider = &rds_provider,
	.wires = { "rds" },
	.closes_last = true,
};

static const struct engine_family in6_family = {
	IP_FAMILY_IN6,
	.provider = &rds_provider,
	.wires = { "rds" },
	.closes_last = true,
};

void kofi_rds_freeinfo(struct fi_info *info)
{
	info_free(info);
}

int kofi_rds_fabric(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context)
{
	return engine_fabric_open(ip_fabric_six(attr) ? &in6_family : &in_family, attr, fabric,
				  context);
}
