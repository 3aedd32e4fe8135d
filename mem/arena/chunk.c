/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Making chunks. Called with the arena's lock held. */
#include <sys/mman.h>
#include <unistd.h>
#include <rdma/fi_errno.h>
#include "chunk.h"
#include "membarrier.h"
#include "maps.h"
#include "memfd.h"
#include "reserve.h"

/*
 * A chunk costs a descriptor, and peers map it as a whole; its pages cost nothing until they are
 * touched. So each is as large as all before it, within these bounds.
 */
#define CHUNK_MAX (32 * ARENA_SLOT)

/* Returns the bytes of the next chunk of which @len are wanted, or 0: the arena has no such room. */
static size_t chunk_len(const struct arena *arena, size_t len)
{
	size_t used = (size_t)arena->slot_cnt * ARENA_SLOT, room = arena->len - used;
	size_t want = used < CHUNK_MAX ? used : CHUNK_MAX, most = sys_memfd_max();

	if (len > room || len > most || arena->chunk_cnt == ARENA_CHUNKS)
		return 0;
	if (want < len)
		want = len;
	want = (want + ARENA_SLOT - 1) & ~(size_t)(ARENA_SLOT - 1);
	if (!want)
		want = ARENA_SLOT;
	if (want > room)
		want = room;
	return want <= most ? want : (len + ARENA_SLOT - 1) & ~(size_t)(ARENA_SLOT - 1);
}

/* Shows the chunk to this process's threads and to peers. */
static void publish(struct arena *arena, const struct arena_chunk *chunk, uint64_t inode)
{
	struct arena_entry *entry = &arena->directory->entries[arena->chunk_cnt];
	uint32_t first = (uint32_t)((chunk->base - arena->base) >> ARENA_SLOT_SHIFT);
	uint32_t slots = (uint32_t)(chunk->len >> ARENA_SLOT_SHIFT);

	entry->base = chunk->base;
	entry->len = chunk->len;
	entry->inode = inode;
	entry->fd = (uint32_t)chunk->fd;
	entry->kind = chunk->kind;
	arena->chunk_cnt++;
	/* R:arena.slots  the chunk before its slots; pairs A:arena.slots */
	for (uint32_t i = 0; i < slots; i++)
		atomic_store_explicit(&arena->slots[first + i], (uint16_t)arena->chunk_cnt,
				      memory_order_release);
	arena->slot_cnt += slots;
	/* R:arena.cnt  the entry before their number; pairs A:arena.cnt */
	atomic_store_explicit(&arena->directory->head.cnt, arena->chunk_cnt,
			      memory_order_release);
}

int arena_chunk_add(struct arena *arena, size_t len, enum arena_kind kind, uint32_t *idx)
{
	struct arena_chunk *chunk = &arena->chunks[arena->chunk_cnt];
	uint64_t inode;
	int err;

	len = chunk_len(arena, len);
	if (!len)
		return -FI_ENOMEM;
	chunk->base = arena->base + (size_t)arena->slot_cnt * ARENA_SLOT;
	chunk->len = len;
	chunk->kind = kind;
	/* a peer's descriptor is for reading only, unless it is root's, whom no mode holds */
	chunk->fd = sys_memfd_create("weft-arena", len, kind == ARENA_WRITE ? 0600 : 0400);
	if (chunk->fd < 0)
		return chunk->fd;
	err = sys_memfd_inode(chunk->fd, &inode);
	if (!err)
		err = sys_reserve_map((void *)chunk->base, len, chunk->fd);
	if (err) {
		close(chunk->fd);
		return err;
	}
	*idx = arena->chunk_cnt;
	publish(arena, chunk, inode);
	return 0;
}

void arena_chunk_retire(struct arena *arena, uint32_t idx)
{
	atomic_store_explicit(&arena->chunks[idx].retired, true, memory_order_relaxed);
	/* S:arena.retired  before the owner looks for those who use it; pairs S:arena.used */
	atomic_store_explicit(&arena->directory->entries[idx].retired, 1, memory_order_seq_cst);
}

/* Takes those pages of a part of a chunk that have data. */
static int own_part(const struct sys_map *m, void *arg)
{
	const struct arena_chunk *chunk = arg;
	uint64_t at = (uintptr_t)m->addr - chunk->base, end = at + m->len, len;

	if (!(m->prot & PROT_WRITE))
		return 0;
	while (at < end && !sys_memfd_data(chunk->fd, &at, &len) && at < end) {
		len = len < end - at ? len : end - at;
		sys_reserve_take((void *)(chunk->base + at), len);
		at += len;
	}
	return 0;
}

/* Other processes may still store to the chunk: what they store to pages with data is not seen. */
static void own_data(struct arena_chunk *chunk)
{
	sys_maps_each((void *)chunk->base, chunk->len, own_part, chunk);
}

void arena_chunk_leave(struct arena *arena, uint32_t idx)
{
	struct arena_chunk *chunk = &arena->chunks[idx];

	if (chunk->left)
		return;
	/* B:arena.stored  what peers stored before they saw that it is retired is in the pages now */
	sys_membarrier_all();
	if (sys_reserve_leave((void *)chunk->base, chunk->len, chunk->fd,
			      arena->directory->entries[idx].inode))
		return;
	chunk->left = true;
	if (chunk->kind == ARENA_WRITE)
		own_data(chunk);
}

int arena_chunk_punch(const struct arena_chunk *chunk, uint64_t offset, size_t len)
{
	if (chunk->left)
		return sys_reserve_clear((void *)(chunk->base + offset), len);
	return sys_memfd_punch(chunk->fd, offset, len);
}
