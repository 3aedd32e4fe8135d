/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The module kofi_talk: ends of exchanges. Writing 'ROLE TYPE END HOST PORT' to /proc/kofi_talk
 * has the writer's thread do that part (exchange.h); the write fails with its error. Several
 * threads may do so at once, which writers of a module's parameters can't.
 */
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/proc_fs.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include "exchange.h"
#include "place.h"

char *place_provider = "sockets";
module_param_named(provider, place_provider, charp, 0600);
MODULE_PARM_DESC(provider, "name of the provider that ends are opened of");

static ssize_t talk_write(struct file *file, const char __user *from, size_t len, loff_t *at)
{
	char line[128] = "", role[16], type[16], end[16], host[64], port[16];
	struct exchange_how how = { .host = host, .port = port };
	int ret;

	if (len >= sizeof(line) || copy_from_user(line, from, len))
		return -EINVAL;
	if (sscanf(line, "%15s %15s %15s %63s %15s", role, type, end, host, port) != 5)
		return -EINVAL;
	ret = exchange_read(&how, role, type, end) ?: exchange_run(&how);
	return ret ?: (ssize_t)len;
}

static const struct proc_ops talk_ops = {
	.proc_write = talk_write,
};

static int __init talk_init(void)
{
	return proc_create("kofi_talk", 0200, NULL, &talk_ops) ? 0 : -ENOMEM;
}

static void __exit talk_exit(void)
{
	remove_proc_entry("kofi_talk", NULL);
}

module_init(talk_init);
module_exit(talk_exit);
MODULE_DESCRIPTION("Weft: an end of an exchange for the tests of virtual machines");
MODULE_LICENSE("Dual BSD/GPL");
