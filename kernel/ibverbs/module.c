/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The module kofi_ibverbs: it makes its wire known to the engine and its provider to kofi. */
#include <linux/module.h>

#include "kofi.h"
#include "kofi_ibverbs.h"

static struct kofi_provider ibverbs_provider = {
	.name = "ibverbs",
	.version = FI_VERSION(1, 0),
	.getinfo = kofi_ibverbs_getinfo,
	.freeinfo = kofi_ibverbs_freeinfo,
	.fabric = kofi_ibverbs_fabric,
};

static int __init ibverbs_init(void)
{
	int ret = kib_begin();

	if (ret)
		return ret;
	ret = kofi_engine_register(&ibverbs_provider, &kofi_ibverbs_wire);
	if (ret)
		kib_end();
	return ret;
}

static void __exit ibverbs_exit(void)
{
	kofi_engine_deregister(&ibverbs_provider, &kofi_ibverbs_wire);
	kib_end();
}

module_init(ibverbs_init);
module_exit(ibverbs_exit);
MODULE_DESCRIPTION("Weft: a provider over RDMA devices");
MODULE_LICENSE("Dual BSD/GPL");
