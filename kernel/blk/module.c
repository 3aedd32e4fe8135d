/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The module kofi_blk: disks that are borrowed from other hosts. Here is its file, by which a keeper makes
 * them; kofi_blk.h has the contract.
 */
#include <linux/capability.h>
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/poll.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "blk.h"

/* struct keeper - an open file. @lock: protects @disk */
struct keeper {
	struct mutex lock;
	struct blk_disk *disk;
};

static int keeper_open(struct inode *inode, struct file *file)
{
	struct keeper *k;

	if (!capable(CAP_SYS_ADMIN))
		return -EPERM;
	k = kzalloc(sizeof(*k), GFP_KERNEL);
	if (!k)
		return -ENOMEM;
	mutex_init(&k->lock);
	file->private_data = k;
	return nonseekable_open(inode, file);
}

static int keeper_release(struct inode *inode, struct file *file)
{
	struct keeper *k = file->private_data;

	if (k->disk)
		blk_disk_remove(k->disk, true);
	kfree(k);
	return 0;
}

static int add_disk_of(struct keeper *k, void __user *arg)
{
	struct kofi_blk_add add;
	int ret;

	if (copy_from_user(&add, arg, sizeof(add)))
		return -EFAULT;
	if (k->disk)
		return -EBUSY;
	ret = blk_disk_create(&add, &k->disk);
	if (ret)
		return ret;
	if (!copy_to_user(arg, &add, sizeof(add)))
		return 0;
	blk_disk_remove(k->disk, true);
	k->disk = NULL;
	return -EFAULT;
}

static int connect_disk(struct keeper *k, const void __user *arg)
{
	struct kofi_blk_pair *where;
	int ret;

	if (!k->disk)
		return -ENODEV;
	where = memdup_user(arg, sizeof(*where));
	if (IS_ERR(where))
		return PTR_ERR(where);
	ret = blk_disk_connect(k->disk, where);
	kfree_sensitive(where);
	return ret;
}

static int remove_disk_of(struct keeper *k)
{
	int ret = k->disk ? blk_disk_remove(k->disk, false) : -ENODEV;

	if (!ret)
		k->disk = NULL;
	return ret;
}

static long keeper_ioctl(struct file *file, unsigned int command, unsigned long arg)
{
	struct keeper *k = file->private_data;
	void __user *at = (void __user *)arg;
	int ret = mutex_lock_killable(&k->lock);

	if (ret)
		return ret;
	switch (command) {
	case KOFI_BLK_ADD:
		ret = add_disk_of(k, at);
		break;
	case KOFI_BLK_PAIR:
		ret = connect_disk(k, at);
		break;
	case KOFI_BLK_REMOVE:
		ret = remove_disk_of(k);
		break;
	default:
		ret = -ENOTTY;
	}
	mutex_unlock(&k->lock);
	return ret;
}

static __poll_t keeper_poll(struct file *file, struct poll_table_struct *table)
{
	struct keeper *k = file->private_data;
	bool wanted;

	poll_wait(file, &blk_wanted, table);
	mutex_lock(&k->lock);
	wanted = k->disk && !blk_disk_has_pair(k->disk);
	mutex_unlock(&k->lock);
	return wanted ? EPOLLIN : 0;
}

static const struct file_operations keeper_ops = {
	.owner = THIS_MODULE,
	.open = keeper_open,
	.release = keeper_release,
	.unlocked_ioctl = keeper_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.poll = keeper_poll,
};

static struct miscdevice keeper_file = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "kofi_blk",
	.mode = 0600,
	.fops = &keeper_ops,
};

static int __init keepers_begin(void)
{
	return misc_register(&keeper_file);
}

static void __exit keepers_end(void)
{
	misc_deregister(&keeper_file);
	blk_disks_end();
}

module_init(keepers_begin);
module_exit(keepers_end);
MODULE_DESCRIPTION("Weft: disks that are borrowed from other hosts");
MODULE_LICENSE("Dual BSD/GPL");
