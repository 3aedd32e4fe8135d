/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The module: what begins and ends with it. Its exports for consumers are beside their functions. */
#include <linux/bug.h>
#include <linux/module.h>

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>

#include "core.h"
#include "platform.h"

char *kofi_text_copy(const char *text)
{
	size_t len = strlen(text) + 1;
	char *copy = platform_alloc(len);

	return copy ? memcpy(copy, text, len) : NULL;
}

void kofi_text_free(char *text)
{
	platform_free(text);
}

static int __init kofi_init(void)
{
	kofi_counters_open();
	return 0;
}

/* No provider is registered any more: each has a reference to this module. */
static void __exit kofi_exit(void)
{
	long held = kofi_memory_held();

	kofi_counters_close();
	WARN(held, "kofi: %ld allocations are left\n", held);
}

module_init(kofi_init);
module_exit(kofi_exit);
MODULE_DESCRIPTION("Weft: the OpenFabrics Interfaces in the kernel");
MODULE_LICENSE("Dual BSD/GPL");
