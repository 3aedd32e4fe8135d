/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What kofi_sockets shows in debugfs, /sys/kernel/debug/kofi/sockets: the sums of what its hubs
 * count (shown.h). Opened and closed with the module; read by root.
 */
#include <linux/container_of.h>
#include <linux/debugfs.h>
#include <linux/list.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/string.h>

#include "kofi.h"
#include "shown.h"
#include "socket.h"

struct part {
	struct list_head link;
	struct weft_mem_part shown;
};

/* Protects what follows, and the counts of all parts. */
static DEFINE_SPINLOCK(parts_lock);
static LIST_HEAD(parts);
/* Of parts that are closed */
static u64 closed[WEFT_MEM_TCP_COUNTS];

static struct dentry *file;

static const char *const names[WEFT_MEM_TCP_COUNTS] = {
	[WEFT_MEM_TCP_CONNS] = "connections",
	[WEFT_MEM_TCP_BROKEN] = "broken",
	[WEFT_MEM_TCP_RETAINED_BYTES] = "retained_bytes",
	[WEFT_MEM_TCP_MADE] = "made",
	[WEFT_MEM_TCP_LOST] = "lost",
	[WEFT_MEM_TCP_BREAKS] = "breaks",
	[WEFT_MEM_TCP_RESUMES] = "resumes",
	[WEFT_MEM_TCP_ACKS_SENT] = "acks_sent",
	[WEFT_MEM_TCP_ACKS_RECEIVED] = "acks_received",
	[WEFT_MEM_TCP_SENT_BYTES] = "sent_bytes",
	[WEFT_MEM_TCP_RECEIVED_BYTES] = "received_bytes",
	[WEFT_MEM_TCP_PROVED] = "proved",
	[WEFT_MEM_TCP_ENCRYPTED] = "encrypted",
	[WEFT_MEM_TCP_REFUSED_SECRET] = "refused_other_secret",
	[WEFT_MEM_TCP_REFUSED_NONE] = "refused_no_secret",
	[WEFT_MEM_TCP_REFUSED_TLS] = "refused_tls",
};

/* Whether a count is of what there is now, which is nothing when a hub is closed */
static bool is_now(u32 count)
{
	switch (count) {
	case WEFT_MEM_TCP_CONNS:
	case WEFT_MEM_TCP_BROKEN:
	case WEFT_MEM_TCP_RETAINED_BYTES:
	case WEFT_MEM_TCP_PROVED:
	case WEFT_MEM_TCP_ENCRYPTED:
		return true;
	default:
		return false;
	}
}

struct weft_mem_part *mem_part_open(enum weft_mem_part_kind kind)
{
	struct part *part = kzalloc(sizeof(*part), GFP_KERNEL);

	if (!part)
		return NULL;
	spin_lock(&parts_lock);
	list_add_tail(&part->link, &parts);
	spin_unlock(&parts_lock);
	return &part->shown;
}

void mem_part_show(struct weft_mem_part *shown, const uint64_t *counts, uint32_t cnt)
{
	u32 i;

	if (!shown)
		return;
	spin_lock(&parts_lock);
	for (i = 0; i < cnt; i++)
		shown->counts[i] = counts[i];
	spin_unlock(&parts_lock);
}

void mem_part_close(struct weft_mem_part *shown)
{
	struct part *part = container_of(shown, struct part, shown);
	u32 i;

	if (!shown)
		return;
	spin_lock(&parts_lock);
	for (i = 0; i < WEFT_MEM_TCP_COUNTS; i++)
		closed[i] += is_now(i) ? 0 : shown->counts[i];
	list_del(&part->link);
	spin_unlock(&parts_lock);
	kfree(part);
}

static int sockets_show(struct seq_file *out, void *data)
{
	u64 sums[WEFT_MEM_TCP_COUNTS];
	const struct part *part;
	u32 i;

	spin_lock(&parts_lock);
	memcpy(sums, closed, sizeof(sums));
	list_for_each_entry(part, &parts, link)
		for (i = 0; i < WEFT_MEM_TCP_COUNTS; i++)
			sums[i] += part->shown.counts[i];
	spin_unlock(&parts_lock);
	for (i = 0; i < WEFT_MEM_TCP_COUNTS; i++)
		seq_printf(out, "%s %llu\n", names[i], sums[i]);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(sockets);

void kofi_shown_open(void)
{
	file = debugfs_create_file("sockets", 0400, kofi_counters(), NULL, &sockets_fops);
}

void kofi_shown_close(void)
{
	debugfs_remove(file);
}
