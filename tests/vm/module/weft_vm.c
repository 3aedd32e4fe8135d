/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A kernel module for the tests of the machines: it is built, loaded, and answers.
 *
 * Its parameter reads as the number of processors. Writing it is a warning of the kernel's, as a bug of
 * a module would be.
 */
#include <linux/cpumask.h>
#include <linux/kernel.h>
#include <linux/module.h>

static int cpus_get(char *buffer, const struct kernel_param *param)
{
	return sprintf(buffer, "%u\n", num_online_cpus());
}

static int cpus_set(const char *value, const struct kernel_param *param)
{
	WARN(1, "weft_vm: %s was asked for\n", value);
	return 0;
}

static const struct kernel_param_ops cpus_ops = {
	.set = cpus_set,
	.get = cpus_get,
};

module_param_cb(cpus, &cpus_ops, NULL, 0644);
MODULE_PARM_DESC(cpus, "how many processors there are; a warning when it is written");
MODULE_DESCRIPTION("Weft: a module for the tests of virtual machines");
MODULE_LICENSE("Dual BSD/GPL");
