/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What kofi shows in debugfs, /sys/kernel/debug/kofi. Opened and closed with the module; read by root in process context. */
#include <linux/debugfs.h>
#include <linux/export.h>
#include <linux/seq_file.h>

#include "core.h"
#include "kofi.h"
#include "platform.h"

static struct dentry *folder;

static int providers_show(struct seq_file *file, void *data)
{
	kofi_entries_show(file);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(providers);

static int memory_show(struct seq_file *file, void *data)
{
	seq_printf(file, "held %ld\nfailed %ld\n", kofi_memory_held(), kofi_memory_failed());
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(memory);

void kofi_counters_open(void)
{
	folder = debugfs_create_dir("kofi", NULL);
	debugfs_create_file("providers", 0400, folder, NULL, &providers_fops);
	debugfs_create_file("memory", 0400, folder, NULL, &memory_fops);
}

struct dentry *kofi_counters(void)
{
	return folder;
}
EXPORT_SYMBOL_GPL(kofi_counters);

void kofi_counters_close(void)
{
	debugfs_remove(folder);
}
