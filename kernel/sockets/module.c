/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The module kofi_sockets: its settings, which are parameters; it makes its wire known to the
 * engine and its provider to kofi.
 */
#include <linux/module.h>
#include <linux/moduleparam.h>

#include "kofi.h"
#include "kofi_sockets.h"
#include "socket.h"
#include "tcp.h"

#define DEAD_MS_MIN 1000
#define DEAD_MS_MAX 3600000

static char *iface, *secret;
module_param(iface, charp, 0444);
MODULE_PARM_DESC(iface, "Use the addresses of this network interface alone (default: all)");
module_param_named(port_low, tcp_settings.port_low, int, 0444);
MODULE_PARM_DESC(port_low,
		 "First port that endpoints may listen at (default: the kernel chooses)");
module_param_named(port_high, tcp_settings.port_high, int, 0444);
MODULE_PARM_DESC(port_high, "Last port that endpoints may listen at");
module_param(secret, charp, 0444);
MODULE_PARM_DESC(secret,
		 "Description of the key, logon or user, that peers have to know (default: none, "
		 "anyone who reaches the port may connect)");
module_param_named(dead_ms, tcp_settings.dead_ms, int, 0444);
MODULE_PARM_DESC(dead_ms, "Milliseconds without a sign after which a peer's host is dead "
			  "(default: 10000): the same on all hosts");

static struct kofi_provider sockets_provider = {
	.name = "sockets",
	.version = FI_VERSION(1, 0),
	.getinfo = tcp_getinfo,
	.freeinfo = kofi_sockets_freeinfo,
	.fabric = kofi_sockets_fabric,
};

/*
 * Returns 0, or -EINVAL: what is meant to keep strangers out never falls back to letting them
 * in.
 */
static int settings_take(void)
{
	struct tcp_settings *s = &tcp_settings;

	s->iface = iface;
	s->secret_file = secret;
	if (s->port_low && !s->port_high)
		s->port_high = 65535;
	if (!s->port_low && s->port_high)
		s->port_low = 1024;
	if (s->port_low < 0 || s->port_high > 65535 || s->port_low > s->port_high ||
	    s->dead_ms < DEAD_MS_MIN || s->dead_ms > DEAD_MS_MAX) {
		pr_err("kofi_sockets: ports %d to %d, or dead_ms=%d: out of bounds\n",
		       s->port_low, s->port_high, s->dead_ms);
		return -EINVAL;
	}
	return 0;
}

static int __init sockets_init(void)
{
	int ret = settings_take();

	if (ret)
		return ret;
	kofi_sockets_begin();
	ret = kofi_engine_register(&sockets_provider, &tcp_wire_provider);
	if (ret)
		kofi_sockets_end();
	else
		kofi_shown_open();
	return ret;
}

static void __exit sockets_exit(void)
{
	kofi_shown_close();
	kofi_engine_deregister(&sockets_provider, &tcp_wire_provider);
	kofi_sockets_end();
	WARN(kofi_sockets_left() || kofi_events_left(), "kofi_sockets: sockets are left\n");
}

module_init(sockets_init);
module_exit(sockets_exit);
MODULE_DESCRIPTION("Weft: a provider over TCP");
MODULE_LICENSE("Dual BSD/GPL");
