/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The rds provider of the library: its settings, its name, and the entry point for the core. Called by the core, on any
 * thread.
 */
#include <rdma/fi_errno.h>
#include <rdma/providers/fi_log.h>
#include "bounded.h"
#include "engine.h"
#include "format.h"
#include "mem_ops.h"
#include "rds.h"
#include "report.h"
#include "routed.h"

struct rds_settings rds_settings = { .dead_ms = 10000 };

const uint64_t rds_caps = ENGINE_CAPS;

/* Opening a socket of RDS may have the kernel load its modules. */
const struct info_identity weft_rds_identities[] = {
	{ .name = "rds",
	  .control = FI_PROGRESS_AUTO,
	  .data = FI_PROGRESS_MANUAL,
	  .protocol = FI_PROTO_UNSPEC,
	  .protocol_version = 1,
	  .ctx_cnt = 1,
	  .by_name_alone = true },
	{ 0 },
};

static const struct engine_family in_family = {
	IP_FAMILY_IN,
	.provider = &rds_provider,
	.wires = { "rds" },
	.ops_open = mem_ops_open,
	.closing = report_routes,
};

static const struct engine_family in6_family = {
	IP_FAMILY_IN6,
	.provider = &rds_provider,
	.wires = { "rds" },
	.ops_open = mem_ops_open,
	.closing = report_routes,
};

static int rds_fabric(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context)
{
	return engine_fabric_open(ip_fabric_six(attr) ? &in6_family : &in_family, attr, fabric,
				  context);
}

static void rds_cleanup(void)
{
}

struct fi_provider rds_provider = {
	.version = PROVIDER_VERSION,
	.fi_version = FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION),
	.name = "rds",
	.getinfo = rds_getinfo,
	.fabric = rds_fabric,
	.cleanup = rds_cleanup,
};

struct fi_provider *weft_rds_ini(void)
{
	char *iface = NULL;

	if (wire_register(&rds_wire_provider))
		return NULL;
	rds_beats_init();
	engine_define_params(&rds_provider);
	report_define(&rds_provider);
	fi_param_define(
		&rds_provider, "iface", FI_PARAM_STRING,
		"Use the addresses of this network interface alone (default: all, the one of the default "
		"route first)");
	fi_param_define(
		&rds_provider, "dead_ms", FI_PARAM_INT,
		"A peer that says nothing for so many milliseconds counts as dead, and so does this one "
		"there: the same on all hosts (default: 10000)");
	if (!fi_param_get_str(&rds_provider, "iface", &iface) && iface && *iface)
		rds_settings.iface = iface;
	ip_bounded_setting(&rds_provider, "dead_ms", RDS_DEAD_MS_MIN, RDS_DEAD_MS_MAX,
			   &rds_settings.dead_ms);
	return &rds_provider;
}
