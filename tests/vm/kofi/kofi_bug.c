/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Errors on purpose, which the debugging kernel has to report. Writing a name to the parameter 'run' makes that one, in the
 * writer's thread, with what a consumer of kofi has.
 */
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/spinlock.h>

#include <rdma/fabric.h>

static int answer(struct fi_info **info)
{
	return fi_getinfo(FI_VERSION(1, 18), NULL, NULL, 0, NULL, info);
}

static int use_after_free(void)
{
	struct fi_info *info;
	int ret = answer(&info);

	if (ret)
		return ret;
	fi_freeinfo(info);
	return READ_ONCE(info->caps) ? 0 : 1;
}

static int sleep(void)
{
	static DEFINE_SPINLOCK(lock);
	struct fi_info *info = NULL;
	int ret;

	spin_lock(&lock);
	ret = answer(&info);
	spin_unlock(&lock);
	fi_freeinfo(info);
	return ret;
}

static int leak(void)
{
	struct fi_info *info;

	return answer(&info);
}

static int inversion(void)
{
	static DEFINE_MUTEX(first);
	static DEFINE_MUTEX(second);

	mutex_lock(&first);
	mutex_lock(&second);
	mutex_unlock(&second);
	mutex_unlock(&first);
	mutex_lock(&second);
	mutex_lock(&first);
	mutex_unlock(&first);
	mutex_unlock(&second);
	return 0;
}

static int run_set(const char *value, const struct kernel_param *param)
{
	if (sysfs_streq(value, "use after free"))
		return use_after_free();
	if (sysfs_streq(value, "sleep"))
		return sleep();
	if (sysfs_streq(value, "leak"))
		return leak();
	return sysfs_streq(value, "inversion") ? inversion() : -EINVAL;
}

static const struct kernel_param_ops run_ops = {
	.set = run_set,
};

module_param_cb(run, &run_ops, NULL, 0200);
MODULE_PARM_DESC(run, "use after free, sleep, leak or inversion: makes that error");
MODULE_DESCRIPTION("Weft: errors on purpose for the tests of virtual machines");
MODULE_LICENSE("Dual BSD/GPL");
