/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The arena of the process: how it starts, and what is allocated in it. Any thread.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>
#include <rdma/fi_errno.h>
#include "arena.h"
#include "keeper.h"
#include "leave.h"
#include "ranges.h"
#include "reserve.h"
#include "retain.h"
#include "shown.h"

/* The least addresses that an arena is worth having for. */
#define ARENA_LEN_MIN (8 * ARENA_SLOT)

/* Protects the start of the arena. Rank 1. */
static struct platform_lock start_lock = { PTHREAD_MUTEX_INITIALIZER };
/* The process's arena once it has started: own, or that of libweft-mem.so. R:arena.started */
static struct arena *_Atomic started;
static bool tried;
static struct arena own = { .directory_fd = -1 };

/* Reserves addresses: as many as there are, from the most on. */
static int reserve(struct arena *arena)
{
	void *addr;
	int err;

	arena->len = (size_t)ARENA_SLOTS * ARENA_SLOT;
	while ((err = sys_reserve(arena->len, ARENA_SLOT, arena->len / 8, &addr)) &&
	       arena->len > ARENA_LEN_MIN)
		arena->len /= 2;
	if (err)
		return err;
	arena->base = (uintptr_t)addr;
	arena->usable = arena->len;
	return 0;
}

static int arena_init(struct arena *arena)
{
	int err;

	arena->version = ARENA_VERSION;
	arena->size = sizeof(*arena);
	platform_lock_init(&arena->lock);
	list_init(&arena->watchers);
	keeper_init(arena);
	arena->ranges = ranges_create((size_t)sysconf(_SC_PAGESIZE));
	if (!arena->ranges)
		return -FI_ENOMEM;
	err = arena_directory_make(arena);
	if (err)
		goto err_ranges;
	err = reserve(arena);
	if (err)
		goto err_directory;
	arena->part = mem_part_open(WEFT_MEM_PART_ARENA);
	return 0;

err_directory:
	arena_directory_drop(arena);
err_ranges:
	ranges_destroy(arena->ranges);
	*arena = (struct arena){ .directory_fd = -1 };
	return err;
}

static void fork_prepare(void)
{
	platform_lock(&start_lock);
	if (!own.len)
		return;
	platform_lock(&own.lock);
	arena_fork_prepare_locked(&own);
}

static void fork_parent(void)
{
	if (own.len) {
		arena_fork_parent_locked(&own);
		platform_unlock(&own.lock);
	}
	platform_unlock(&start_lock);
}

static void fork_child(void)
{
	if (own.len) {
		keeper_fork_child(&own);
		arena_fork_child_locked(&own);
		platform_unlock(&own.lock);
	}
	platform_unlock(&start_lock);
}

static struct platform_fork fork_watcher = {
	.prepare = fork_prepare,
	.parent = fork_parent,
	.child = fork_child,
};

/* Starts the arena of this library, or takes that of libweft-mem.so, if @export finds it. The start lock is held. */
static struct arena *start_locked(arena_export *export)
{
	struct arena *arena = export ? export(ARENA_VERSION, sizeof(*arena)) : NULL;

	if (!arena && !tried && !arena_init(&own))
		arena = &own;
	tried = true;
	if (arena)
		/* R:arena.started  the arena before the pointer; pairs A:arena.started */
		atomic_store_explicit(&started, arena, memory_order_release);
	return arena;
}

struct arena *arena_started(void)
{
	/* A:arena.started  pairs R:arena.started */
	return atomic_load_explicit(&started, memory_order_acquire);
}

static struct arena *arena_start(bool look)
{
	struct arena *arena = arena_started();
	arena_export *export;

	if (arena)
		return arena->lost ? NULL : arena;
	platform_fork_watch(&fork_watcher);
	mem_shown_start();
	/* it allocates, which nothing does under a lock that a fork takes */
	export = look ? (arena_export *)dlsym(RTLD_DEFAULT, ARENA_EXPORT) : NULL;
	platform_lock(&start_lock);
	arena = arena_started();
	if (!arena)
		arena = start_locked(export);
	platform_unlock(&start_lock);
	return arena;
}

struct arena *arena_get(void)
{
	return arena_start(true);
}

void arena_look(void)
{
	if (!arena_started() && dlsym(RTLD_DEFAULT, ARENA_EXPORT))
		arena_get();
}

struct arena *arena_own(void)
{
	return arena_start(false);
}

/* Finds a free range, in a new chunk if there is none. The lock is held. */
static struct arena_range *take_locked(struct arena *arena, size_t len, size_t align,
				       enum arena_kind kind, enum range_state *state)
{
	struct arena_range *range = ranges_take(arena, len, align, kind, state);
	size_t extra = align > arena->ranges->page ? align : 0;
	uint32_t chunk;
	int err;

	if (range || len > SIZE_MAX - extra)
		return range;
	arena_end_all_locked(arena);
	if (!arena->directory && !arena->part)
		/* that of the parent is shown by the parent */
		arena->part = mem_part_open(WEFT_MEM_PART_ARENA);
	err = arena_chunk_add(arena, len + extra, kind, &chunk);
	if (err == -FI_EADDRNOTAVAIL && arena_end_empty_locked(arena))
		/* there are addresses, or an index, that one had which was too short, or of another kind */
		err = arena_chunk_add(arena, len + extra, kind, &chunk);
	if (err)
		return NULL;
	if (ranges_add_chunk(arena, chunk)) {
		arena_chunk_drop(arena, chunk);
		return NULL;
	}
	arena_show_chunks_locked(arena);
	return ranges_take(arena, len, align, kind, state);
}

int arena_alloc(struct arena *arena, size_t len, size_t align, enum arena_kind kind,
		void **addr, bool *zero)
{
	size_t page = arena->ranges->page;
	struct arena_range *range = NULL;
	enum range_state state = RANGE_LIVE;
	bool fresh = false;

	if (!len || (align & (align - 1)) || kind >= ARENA_KINDS)
		return -FI_EINVAL;
	if (len > SIZE_MAX - page)
		return -FI_ENOMEM;
	len = (len + page - 1) & ~(page - 1);
	align = align < page ? page : align;
	platform_lock(&arena->lock);
	if (!arena->lost)
		range = take_locked(arena, len, align, kind, &state);
	if (!range && !arena->lost && kind == ARENA_HUGE)
		range = take_locked(arena, len, align, ARENA_READ, &state);
	if (range) {
		fresh = state == RANGE_PUNCHED && arena->chunks[range->chunk].kind != ARENA_HUGE;
		if (fresh)
			retain_fresh_locked(arena, len);
		arena->shown[WEFT_MEM_ARENA_ALLOCATIONS]++;
		arena_show_locked(arena);
	}
	platform_unlock(&arena->lock);
	if (!range)
		return -FI_ENOMEM;
	*addr = (void *)range->base;
	if (zero)
		*zero = fresh;
	return 0;
}

static void free_locked(struct arena *arena, struct arena_range *range)
{
	const struct arena_chunk *chunk = &arena->chunks[range->chunk];
	size_t len = range->len;

	if (chunk->retired || chunk->kind == ARENA_HUGE) {
		/* nothing is allocated there again, or it keeps its pages until all of it is free */
		uint32_t idx = range->chunk;

		if (!arena_chunk_punch(chunk, range->base - chunk->base, len))
			arena->shown[WEFT_MEM_ARENA_PUNCHED] += len;
		ranges_give(arena, range, RANGE_PUNCHED);
		if (!chunk->live && !chunk->retired)
			arena_retire_locked(arena, idx);
		arena_end_locked(arena, idx);
		return;
	}
	ranges_give(arena, range, RANGE_QUARANTINE);
	retain_freed_locked(arena);
}

int arena_free(struct arena *arena, void *addr)
{
	struct arena_range *range;

	platform_lock(&arena->lock);
	range = ranges_at(arena, addr);
	if (range) {
		free_locked(arena, range);
		arena->shown[WEFT_MEM_ARENA_FREES]++;
		arena_show_locked(arena);
	}
	platform_unlock(&arena->lock);
	if (!range)
		return -FI_EINVAL;
	/* also where nothing is kept: the keeper finds out when there is room again */
	arena_keep(arena);
	return 0;
}

int arena_free_part(struct arena *arena, void *addr, size_t len)
{
	struct arena_range *range = NULL;
	size_t page = arena->ranges->page, part;

	if ((uintptr_t)addr % page || len % page)
		return -FI_EINVAL;
	platform_lock(&arena->lock);
	for (; len && (range = ranges_part(arena, addr, len)); len -= part) {
		part = range->len;
		addr = (char *)addr + part;
		free_locked(arena, range);
	}
	arena->shown[WEFT_MEM_ARENA_FREES]++;
	arena_show_locked(arena);
	platform_unlock(&arena->lock);
	return len ? -FI_EINVAL : 0;
}

/* Finds the chunk of a range, also one that peers don't use any more. Returns index + 1, or 0. */
static uint32_t find_any(const struct arena *arena, const void *addr, size_t len)
{
	uint64_t word = arena_slot_at(arena, (uintptr_t)addr);

	return word && len <= arena_slot_room(word, (uintptr_t)addr) ? arena_slot_chunk(word)
								     : 0;
}

int arena_purge(struct arena *arena, void *addr, size_t len)
{
	size_t page = arena->ranges->page, skip = -(uintptr_t)addr & (page - 1);
	int err = -FI_EINVAL;
	uint32_t idx;

	if (len < skip)
		return 0;
	addr = (char *)addr + skip;
	len = (len - skip) & ~(page - 1);
	if (!len)
		return 0;
	platform_lock(&arena->lock);
	idx = find_any(arena, addr, len);
	if (idx)
		err = arena_revoke_locked(arena, idx - 1, (uintptr_t)addr, len);
	arena_show_locked(arena);
	platform_unlock(&arena->lock);
	return err;
}

size_t arena_shrink(struct arena *arena)
{
	size_t keep = ARENA_SLOT;

	platform_lock(&arena->lock);
	for (uint32_t i = 0; i < arena->chunk_cnt; i++) {
		const struct arena_chunk *chunk = &arena->chunks[i];

		if (chunk->len && chunk->base + chunk->len - arena->base > keep)
			keep = chunk->base + chunk->len - arena->base;
	}
	if (keep < arena->usable)
		arena->usable = keep;
	keep = arena->usable;
	platform_unlock(&arena->lock);
	return keep;
}

bool arena_directory_at(struct arena *arena, uint32_t *fd, uint8_t nonce[ARENA_NONCE])
{
	bool has;

	platform_lock(&arena->lock);
	has = arena->directory && !arena->lost;
	if (has) {
		*fd = (uint32_t)arena->directory_fd;
		memcpy(nonce, arena->directory->head.nonce, ARENA_NONCE);
	}
	platform_unlock(&arena->lock);
	return has;
}

void arena_watch(struct arena *arena, struct arena_watcher *watcher)
{
	platform_lock(&arena->lock);
	list_add_tail(&arena->watchers, &watcher->link);
	platform_unlock(&arena->lock);
}

void arena_give_set(struct arena *arena, size_t (*give)(size_t allowed))
{
	platform_lock(&arena->lock);
	arena->give = give;
	platform_unlock(&arena->lock);
}

void arena_unwatch(struct arena *arena, struct arena_watcher *watcher)
{
	platform_lock(&arena->lock);
	list_remove(&watcher->link);
	platform_unlock(&arena->lock);
}
