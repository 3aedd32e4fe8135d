/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The module kofi_loop: it makes its wire known to the engine and its provider to kofi. */
#include <linux/module.h>

#include "kofi.h"
#include "kofi_loop.h"

static struct kofi_provider loop_provider = {
	.name = "loop",
	.version = FI_VERSION(1, 0),
	.getinfo = kofi_loop_getinfo,
	.freeinfo = kofi_loop_freeinfo,
	.fabric = kofi_loop_fabric,
};

static int __init loop_init(void)
{
	int ret;

	kofi_loop_begin();
	ret = kofi_engine_register(&loop_provider, &kofi_loop_wire);
	if (ret)
		kofi_loop_end();
	return ret;
}

static void __exit loop_exit(void)
{
	kofi_engine_deregister(&loop_provider, &kofi_loop_wire);
	kofi_loop_end();
}

module_init(loop_init);
module_exit(loop_exit);
MODULE_DESCRIPTION("Weft: a provider within one machine's kernel");
MODULE_LICENSE("Dual BSD/GPL");
