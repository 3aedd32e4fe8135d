/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The slots of struct weft_mem_ops. Programs call them on any thread. */
#include <rdma/fi_errno.h>
#include <weft/mem.h>
#include "arena.h"
#include "mem_ops.h"

static enum arena_kind kind_of(uint64_t flags)
{
	if (flags & WEFT_MEM_REMOTE_WRITE)
		return ARENA_WRITE;
	return flags & WEFT_MEM_HUGE ? ARENA_HUGE : ARENA_READ;
}

static int mem_alloc(size_t len, size_t align, uint64_t flags, void **addr)
{
	struct arena *arena = arena_get();

	if (!addr || flags & ~(WEFT_MEM_REMOTE_WRITE | WEFT_MEM_HUGE))
		return -FI_EINVAL;
	if (!arena)
		return -FI_ENOMEM;
	return arena_alloc(arena, len, align, kind_of(flags), addr, NULL);
}

static int mem_free(void *addr)
{
	struct arena *arena = arena_started();

	return arena ? arena_free(arena, addr) : -FI_EINVAL;
}

static int mem_usage(struct weft_mem_usage *usage)
{
	struct arena *arena = arena_started();
	struct arena_usage now = { .live = 0 };

	if (!usage)
		return -FI_EINVAL;
	if (arena)
		arena_usage(arena, &now);
	usage->live = now.live;
	usage->retained = now.quarantined;
	return 0;
}

static struct weft_mem_ops mem_ops = {
	.size = sizeof(struct weft_mem_ops),
	.alloc = mem_alloc,
	.free = mem_free,
	.usage = mem_usage,
};

int mem_ops_open(const char *name, uint64_t flags, void **ops)
{
	if (strcmp(name, WEFT_MEM_OPS))
		return -FI_ENOSYS;
	if (flags)
		return -FI_EINVAL;
	if (!arena_get())
		return -FI_ENOMEM;
	*ops = &mem_ops;
	return 0;
}
