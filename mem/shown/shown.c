/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The page of shown.h. The public layout is C++ too, so its members are plain, and stored here by atomic
 * built-ins.
 */
#include <stddef.h>
#include <unistd.h>
#include "descriptor.h"
#include "memfd.h"
#include "platform.h"
#include "shown.h"

/* R:shown.page */
static struct weft_mem_stats *_Atomic page;
/* of the page; -1: there is none, or it is just being made */
static _Atomic int page_fd = -1;
/* what it is a descriptor of, unless the program has closed it */
static struct sys_memfd_id page_id;

/*
 * The objects that the child has inherited go on writing, to memory of its own. Without its descriptor it
 * shows nothing, and makes a page when it opens a part.
 */
static void fork_child(void)
{
	struct weft_mem_stats *inherited = atomic_exchange_explicit(&page, NULL,
								    memory_order_relaxed);
	/* A:shown.page_fd  page_id before it; pairs R:shown.page_fd */
	int fd = atomic_exchange_explicit(&page_fd, -1, memory_order_acquire);

	if (inherited)
		sys_memfd_forget(inherited, sizeof(*inherited));
	sys_memfd_close(fd, &page_id);
}

static void fork_other(void)
{
}

static struct platform_fork fork_watcher = {
	.prepare = fork_other,
	.parent = fork_other,
	.child = fork_child,
};

void mem_shown_start(void)
{
	platform_fork_watch(&fork_watcher);
}

/* Makes a page. Returns its descriptor, or -FI_E*. */
static int page_make(struct weft_mem_stats **made)
{
	int fd = sys_memfd_create(WEFT_MEM_STATS_FILE, sizeof(**made), 0400), err;
	void *addr;

	if (fd < 0)
		return fd;
	err = sys_memfd_map(fd, sizeof(**made), SYS_MEMFD_WRITE, &addr);
	if (err) {
		sys_descriptor_close(fd);
		return err;
	}
	*made = addr;
	(*made)->version = WEFT_MEM_STATS_VERSION;
	(*made)->pid = (uint32_t)getpid();
	/* R:shown.magic  the head before it; tools read it first */
	__atomic_store_n(&(*made)->magic, WEFT_MEM_STATS_MAGIC, __ATOMIC_RELEASE);
	return fd;
}

static struct weft_mem_stats *page_get(void)
{
	/* A:shown.page  pairs R:shown.page */
	struct weft_mem_stats *there = atomic_load_explicit(&page, memory_order_acquire), *made;
	int fd = there ? -1 : page_make(&made);

	if (fd < 0)
		return there;
	/* R:shown.page  what is on it before the pointer; pairs A:shown.page */
	if (atomic_compare_exchange_strong_explicit(&page, &there, made, memory_order_acq_rel,
						    memory_order_acquire)) {
		sys_memfd_identify(fd, &page_id);
		/* R:shown.page_fd  pairs A:shown.page_fd */
		atomic_store_explicit(&page_fd, fd, memory_order_release);
		return made;
	}
	sys_memfd_unmap(made, sizeof(*made));
	sys_descriptor_close(fd);
	return there;
}

/* Takes a part that is free: all of it is zero. */
static bool part_take(struct weft_mem_part *part, enum weft_mem_part_kind kind)
{
	uint32_t none = WEFT_MEM_PART_NONE;

	/* A:shown.part  the zeros that its last owner left; pairs R:shown.part */
	return __atomic_compare_exchange_n(&part->kind, &none, (uint32_t)kind, false,
					   __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

struct weft_mem_part *mem_part_open(enum weft_mem_part_kind kind)
{
	struct weft_mem_stats *stats = page_get();

	if (!stats)
		return NULL;
	for (uint32_t i = 0; i < WEFT_MEM_STATS_PARTS; i++)
		if (part_take(&stats->parts[i], kind))
			return &stats->parts[i];
	__atomic_fetch_add(&stats->hidden, 1, __ATOMIC_RELAXED);
	return NULL;
}

void mem_part_show(struct weft_mem_part *part, const uint64_t *counts, uint32_t cnt)
{
	if (!part)
		return;
	for (uint32_t i = 0; i < cnt; i++)
		__atomic_store_n(&part->counts[i], counts[i], __ATOMIC_RELAXED);
}

void mem_part_close(struct weft_mem_part *part)
{
	static const uint64_t none[WEFT_MEM_STATS_COUNTS];

	if (!part)
		return;
	mem_part_show(part, none, WEFT_MEM_STATS_COUNTS);
	/* R:shown.part  the zeros before the part is free; pairs A:shown.part */
	__atomic_store_n(&part->kind, WEFT_MEM_PART_NONE, __ATOMIC_RELEASE);
}
