/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Making chunks and ending them, and the directory of them. Called with the arena's lock held. */
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>
#include <rdma/fi_errno.h>
#include "chunk.h"
#include "descriptor.h"
#include "membarrier.h"
#include "maps.h"
#include "reserve.h"

/*
 * A chunk costs a descriptor, and peers map it as a whole; its pages cost nothing until they are
 * touched. So each is as large as all before it that are in use, within these bounds.
 */
#define CHUNK_MAX (32 * ARENA_SLOT)

/* The directory */

int arena_directory_make(struct arena *arena)
{
	struct arena_directory_head *head;
	void *addr;
	int err, fd;

	fd = sys_memfd_create("weft-arena-directory", sizeof(struct arena_directory), 0400);
	if (fd < 0)
		return fd;
	err = sys_memfd_identify(fd, &arena->directory_id);
	if (!err)
		err = sys_memfd_map(fd, sizeof(struct arena_directory), SYS_MEMFD_WRITE, &addr);
	if (err)
		goto err_close;
	head = &((struct arena_directory *)addr)->head;
	err = platform_random(head->nonce, sizeof(head->nonce));
	if (err)
		goto err_unmap;
	head->magic = ARENA_MAGIC;
	head->layout = ARENA_LAYOUT;
	arena->directory = addr;
	arena->directory_fd = fd;
	return 0;

err_unmap:
	sys_memfd_unmap(addr, sizeof(struct arena_directory));
err_close:
	sys_descriptor_close(fd);
	return err;
}

void arena_directory_drop(struct arena *arena)
{
	if (!arena->directory)
		return;
	sys_memfd_unmap(arena->directory, sizeof(*arena->directory));
	sys_memfd_close(arena->directory_fd, &arena->directory_id);
	arena->directory = NULL;
	arena->directory_fd = -1;
}

/* Chunks */

static uint32_t slots_of(size_t len)
{
	return (uint32_t)((len + ARENA_SLOT - 1) >> ARENA_SLOT_SHIFT);
}

/* Returns the first of so many slots that no chunk has, or ARENA_SLOTS: there are none. */
static uint32_t slots_free(const struct arena *arena, uint32_t cnt)
{
	uint32_t all = (uint32_t)(arena->usable >> ARENA_SLOT_SHIFT), run = 0;

	for (uint32_t i = 0; i < all; i++) {
		run = atomic_load_explicit(&arena->slots[i], memory_order_relaxed) ? 0 : run + 1;
		if (run == cnt)
			return i + 1 - cnt;
	}
	return ARENA_SLOTS;
}

/* Returns an index that no chunk has, or ARENA_CHUNKS: there is none. */
static uint32_t index_free(const struct arena *arena)
{
	uint32_t idx = 0;

	while (idx < arena->chunk_cnt && arena->chunks[idx].len)
		idx++;
	return idx;
}

/* Returns the bytes that the next chunk had better have. The pool's pages are taken from others at once. */
static size_t len_wanted(const struct arena *arena, enum arena_kind kind)
{
	size_t used = 0;

	if (kind == ARENA_HUGE)
		return 0;
	for (uint32_t i = 0; i < arena->chunk_cnt && used < CHUNK_MAX; i++)
		if (!arena->chunks[i].retired)
			used += arena->chunks[i].len;
	return used < CHUNK_MAX ? used : CHUNK_MAX;
}

/*
 * Finds addresses for a chunk of which @len bytes are needed, no more than there can be: as many as are wanted, else
 * only those.
 * Returns its bytes, or 0: the arena has no such room.
 */
static size_t place_find(const struct arena *arena, size_t len, enum arena_kind kind,
			 uint32_t *slot)
{
	size_t want = len_wanted(arena, kind), most = sys_memfd_max();
	uint32_t least = slots_of(len);

	for (uint32_t cnt = slots_of(want < len ? len : want);; cnt = least) {
		*slot = (size_t)cnt * ARENA_SLOT <= most ? slots_free(arena, cnt) : ARENA_SLOTS;
		if (*slot < ARENA_SLOTS)
			return (size_t)cnt * ARENA_SLOT;
		if (cnt == least)
			return 0;
	}
}

/* Sets the words of a chunk's slots. */
static void slots_set(struct arena *arena, uint32_t idx, uint64_t flags)
{
	const struct arena_chunk *chunk = &arena->chunks[idx];
	uint32_t first = (uint32_t)((chunk->base - arena->base) >> ARENA_SLOT_SHIFT);
	uint32_t cnt = slots_of(chunk->len);

	/* R:arena.slots  the chunk before its slots; pairs A:arena.slots */
	for (uint32_t i = 0; i < cnt; i++)
		atomic_store_explicit(&arena->slots[first + i],
				      arena_slot_word(idx, i, cnt - i) | flags,
				      memory_order_release);
}

static void slots_clear(struct arena *arena, const struct arena_chunk *chunk)
{
	uint32_t first = (uint32_t)((chunk->base - arena->base) >> ARENA_SLOT_SHIFT);

	for (uint32_t i = 0; i < slots_of(chunk->len); i++)
		atomic_store_explicit(&arena->slots[first + i], 0, memory_order_relaxed);
}

/* Shows the chunk to this process's threads and to peers. */
static void publish(struct arena *arena, uint32_t idx)
{
	struct arena_entry *entry = &arena->directory->entries[idx];
	struct arena_chunk *chunk = &arena->chunks[idx];

	arena->serial++;
	/* F:arena.serial  the entry has no serial before it changes; pairs F:arena.serial */
	platform_fence_release();
	entry->base = chunk->base;
	entry->len = chunk->len;
	entry->inode = chunk->id.inode;
	entry->fd = (uint32_t)chunk->fd;
	entry->kind = chunk->kind;
	atomic_store_explicit(&entry->retired, 0, memory_order_relaxed);
	/* R:arena.serial  the entry before it; pairs A:arena.serial */
	atomic_store_explicit(&entry->serial, arena->serial, memory_order_release);
	atomic_store_explicit(&chunk->serial, arena->serial, memory_order_relaxed);
	if (idx >= arena->chunk_cnt)
		arena->chunk_cnt = idx + 1;
	atomic_store_explicit(&arena->directory->head.cnt, arena->chunk_cnt,
			      memory_order_relaxed);
	slots_set(arena, idx, ARENA_SLOT_OPEN);
}

/* A peer's descriptor is for reading only, unless it is root's, whom no mode holds. */
static int chunk_file(const struct arena_chunk *chunk)
{
	if (chunk->kind == ARENA_HUGE)
		return sys_memfd_create_huge("weft-arena", chunk->len, 0400);
	return sys_memfd_create("weft-arena", chunk->len,
				chunk->kind == ARENA_WRITE ? 0600 : 0400);
}

/* Makes the memory of a chunk. Returns 0 or -FI_E*. */
static int chunk_map(struct arena_chunk *chunk)
{
	int err;

	chunk->fd = chunk_file(chunk);
	if (chunk->fd < 0)
		return chunk->fd;
	err = sys_memfd_identify(chunk->fd, &chunk->id);
	if (!err)
		err = sys_reserve_map((void *)chunk->base, chunk->len, chunk->fd);
	if (!err && chunk->kind == ARENA_HUGE) {
		err = sys_memfd_fix(chunk->fd);
		if (err)
			sys_reserve_again((void *)chunk->base, chunk->len);
	}
	if (err)
		sys_descriptor_close(chunk->fd);
	return err;
}

int arena_chunk_add(struct arena *arena, size_t len, enum arena_kind kind, uint32_t *idx)
{
	struct arena_chunk chunk = { .kind = kind };
	uint32_t slot;
	int err;

	if (len > arena->usable || (size_t)slots_of(len) * ARENA_SLOT > sys_memfd_max())
		return -FI_ENOMEM;
	*idx = index_free(arena);
	chunk.len = place_find(arena, len, kind, &slot);
	if (*idx == ARENA_CHUNKS || !chunk.len)
		return -FI_EADDRNOTAVAIL;
	err = arena->directory ? 0 : arena_directory_make(arena);
	if (err)
		return err;
	chunk.base = arena->base + (size_t)slot * ARENA_SLOT;
	err = chunk_map(&chunk);
	if (err)
		return err;
	arena->chunks[*idx] = chunk;
	publish(arena, *idx);
	return 0;
}

void arena_chunk_retire(struct arena *arena, uint32_t idx)
{
	arena->chunks[idx].retired = true;
	slots_set(arena, idx, 0);
	/* S:arena.retired  before the owner looks for those who use it; pairs S:arena.used */
	if (arena->directory)
		atomic_store_explicit(&arena->directory->entries[idx].retired, 1,
				      memory_order_seq_cst);
}

struct owning {
	uintptr_t base;
	int fd;
	/* of some pages: there is no memory, or nobody says where they are */
	int err;
};

/* Takes those pages of a part of a chunk that have data. */
static int own_part(const struct sys_map *m, void *arg)
{
	struct owning *owning = arg;
	uint64_t at = (uintptr_t)m->addr - owning->base, end = at + m->len, len;
	int err = 0;

	if (!(m->prot & PROT_WRITE))
		return 0;
	while (at < end && !(err = sys_memfd_data(owning->fd, &at, &len)) && at < end) {
		len = len < end - at ? len : end - at;
		err = sys_reserve_take((void *)(owning->base + at), len);
		owning->err = err ? err : owning->err;
		at += len;
	}
	if (err && err != -ENXIO)
		owning->err = err;
	return 0;
}

void arena_chunk_left(struct arena_chunk *chunk)
{
	chunk->left = true;
	/* The mapping has the file; nobody opens it any more. */
	sys_memfd_close(chunk->fd, &chunk->id);
	chunk->fd = -1;
}

/*
 * Other processes may still store to the chunk: what they store to pages with data is not seen.
 * @even: all of the range is of the chunk, and writable
 * Returns 0, or -FI_EBUSY: of some pages it is seen, since there is no memory, or the kernel can't be asked.
 */
static int own_data(void *addr, size_t len, bool even, struct owning *owning)
{
	const struct sys_map all = { .addr = addr, .len = len, .prot = PROT_READ | PROT_WRITE };

	int err = sys_maps_each(addr, len, own_part, owning);

	if (err && even)
		err = own_part(&all, owning);
	return err || owning->err ? -FI_EBUSY : 0;
}

/* Returns a descriptor of a chunk, which is its own where the process can't have another one; or -FI_E*. */
static int chunk_fd(const struct arena_chunk *chunk)
{
	int fd = sys_memfd_dup(chunk->fd, &chunk->id);

	if (fd < 0 && fd != -FI_EBADF && sys_memfd_is(chunk->fd, &chunk->id))
		return chunk->fd;
	return fd;
}

void arena_chunks_settle(void)
{
	/* B:arena.stored  what peers stored before they saw that it is retired is in the pages now */
	if (sys_membarrier_all())
		platform_settle();
}

int arena_chunk_leave(struct arena *arena, uint32_t idx, uint64_t offset, size_t len)
{
	struct arena_chunk *chunk = &arena->chunks[idx];
	void *addr = (void *)(chunk->base + offset);
	struct owning owning = { .base = chunk->base };
	bool even = !chunk->split && !atomic_load_explicit(&chunk->uneven, memory_order_relaxed);
	int err;

	if (chunk->left)
		return 0;
	owning.fd = chunk_fd(chunk);
	if (owning.fd < 0)
		return owning.fd;
	chunk->split = true;
	err = sys_reserve_leave(addr, len, owning.fd, &chunk->id, even ? &offset : NULL);
	if (!err && chunk->kind == ARENA_WRITE)
		err = own_data(addr, len, even, &owning);
	if (owning.fd != chunk->fd)
		sys_descriptor_close(owning.fd);
	if (!err && len == chunk->len)
		arena_chunk_left(chunk);
	return err;
}

/* Peers find no chunk in the entry any more. */
static void entry_clear(struct arena *arena, uint32_t idx)
{
	struct arena_directory_head *head = &arena->directory->head;
	struct arena_entry *entry = &arena->directory->entries[idx];

	atomic_store_explicit(&entry->retired, 1, memory_order_seq_cst);
	atomic_store_explicit(&entry->serial, 0, memory_order_relaxed);
	/* R:arena.dropped  the serial before it; pairs A:arena.dropped */
	atomic_fetch_add_explicit(&head->dropped, 1, memory_order_release);
}

int arena_chunk_drop(struct arena *arena, uint32_t idx)
{
	struct arena_chunk *chunk = &arena->chunks[idx];
	/* a peer with a key over what was freed may have us load and store there still */
	int err = sys_reserve_zeros((void *)chunk->base, chunk->len);

	if (err)
		return err;
	if (arena->directory)
		entry_clear(arena, idx);
	slots_clear(arena, chunk);
	sys_memfd_close(chunk->fd, &chunk->id);
	*chunk = (struct arena_chunk){ .fd = -1 };
	return 0;
}

int arena_chunk_lack(struct arena *arena, uint32_t idx)
{
	struct arena_chunk *chunk = &arena->chunks[idx];
	int err = sys_reserve_again((void *)chunk->base, chunk->len);

	if (err)
		return err;
	arena_chunk_retire(arena, idx);
	chunk->left = true;
	sys_memfd_close(chunk->fd, &chunk->id);
	chunk->fd = -1;
	return 0;
}

/* Takes pages of the file away. Returns 0, also where a child has them too and they stay; or -FI_E*. */
static int file_punch(const struct arena_chunk *chunk, uint64_t offset, size_t len)
{
	void *addr = (void *)(chunk->base + offset);
	int err;

	if (chunk->left)
		return 0;
	if (chunk->split)
		return sys_reserve_remove(addr, len, &chunk->id);
	if (chunk->kind == ARENA_HUGE)
		return -FI_EBUSY;
	err = sys_memfd_punch(chunk->fd, &chunk->id, offset, len);
	/* the descriptor is not ours any more, or fallocate(2) is forbidden (seccomp) */
	return err ? sys_reserve_remove(addr, len, &chunk->id) : 0;
}

int arena_chunk_punch(const struct arena_chunk *chunk, uint64_t offset, size_t len)
{
	bool uneven = atomic_load_explicit(&chunk->uneven, memory_order_relaxed);
	int err = file_punch(chunk, offset, len);

	/* what else is mapped there goes too */
	if (chunk->left || chunk->split || (chunk->retired && uneven))
		return sys_reserve_clear((void *)(chunk->base + offset), len);
	return err;
}

int arena_chunk_discard(const struct arena_chunk *chunk, uint64_t offset, size_t len, bool held)
{
	if (!held)
		file_punch(chunk, offset, len);
	return sys_reserve_discard((void *)(chunk->base + offset), len, &chunk->id);
}
