/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The module kofi_rds: its settings, which are parameters; it makes its wire known to the engine and its provider to
 * kofi.
 */
#include <linux/module.h>
#include <linux/moduleparam.h>

#include "kofi.h"
#include "kofi_rds.h"
#include "rds.h"
#include "socket.h"

static char *iface;
module_param(iface, charp, 0444);
MODULE_PARM_DESC(iface, "Use the addresses of this network interface alone (default: all)");
module_param_named(dead_ms, rds_settings.dead_ms, int, 0444);
MODULE_PARM_DESC(dead_ms, "Milliseconds without a sign after which a peer is dead (default: "
			  "10000): the same on all hosts");

static struct kofi_provider provider = {
	.name = "rds",
	.version = FI_VERSION(1, 0),
	.getinfo = rds_getinfo,
	.freeinfo = kofi_rds_freeinfo,
	.fabric = kofi_rds_fabric,
};

static int __init kofi_rds_init(void)
{
	int ret;

	rds_settings.iface = iface;
	if (rds_settings.dead_ms < RDS_DEAD_MS_MIN || rds_settings.dead_ms > RDS_DEAD_MS_MAX) {
		pr_err("kofi_rds: dead_ms=%d: out of bounds\n", rds_settings.dead_ms);
		return -EINVAL;
	}
	rds_beats_init();
	ret = kofi_engine_register(&provider, &rds_wire_provider);
	if (ret)
		rds_beats_fini();
	return ret;
}

static void __exit kofi_rds_exit(void)
{
	kofi_engine_deregister(&provider, &rds_wire_provider);
	rds_beats_fini();
	WARN(kofi_sockets_left() || kofi_events_left(), "kofi_rds: sockets are left\n");
}

module_init(kofi_rds_init);
module_exit(kofi_rds_exit);
MODULE_DESCRIPTION("Weft: a provider over RDS");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_SOFTDEP("pre: rds rds_tcp");
