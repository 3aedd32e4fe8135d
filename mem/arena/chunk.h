/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Chunks, and the address of each: what arena_find() reads without a lock. See arena.h.
 */
#ifndef WEFT_MEM_CHUNK_H
#define WEFT_MEM_CHUNK_H

#include <weft/mem_stats.h>
#include "directory.h"
#include "list.h"

/* Grows by one when the layout of struct arena or the meaning of a member changes. */
#define ARENA_VERSION 3u

/* Addresses of the arena are reserved, and a chunk begins and ends, in multiples of this. */
#define ARENA_SLOT	 (32ull << 20)
#define ARENA_SLOT_SHIFT 25
#define ARENA_SLOTS	 32768u /* together 1 TiB, where the address space has it */

/* A chunk, as its owner sees it. Nothing changes once it is published, but retired. */
struct arena_chunk {
	uintptr_t base;
	/* bytes, a multiple of ARENA_SLOT */
	size_t len;
	/* its memfd, which stays open: peers open it through /proc */
	int fd;
	enum arena_kind kind;
	/*
	 * Peers must not use it any more: a part of it was taken away from one that did not answer,
	 * or it was left to a child. It stays memory of this process, and nothing is allocated in it.
	 */
	_Atomic bool retired;
	/*
	 * Left to a child: the mapping is private, over a file that both processes read and that nothing
	 * may be stored to. With the arena's lock.
	 */
	bool left;
};

/* Where an address of this process is. */
struct arena_place {
	/* index in arena.chunks */
	uint32_t chunk;
	/* bytes from its beginning */
	uint64_t offset;
};

struct arena_ranges;

struct arena {
	/* ARENA_VERSION, and the size of this struct: of the library that has started it */
	uint32_t version;
	uint32_t size;
	/* a child of a fork, to which the chunks were left: nothing is found, nothing allocated */
	bool forked;
	/* the reserved addresses */
	uintptr_t base;
	size_t len;
	/* index + 1 of the chunk at each slot; 0: none. R:arena.slots */
	_Atomic uint16_t slots[ARENA_SLOTS];
	struct arena_chunk chunks[ARENA_CHUNKS];
	uint32_t chunk_cnt;
	/* slots in use, from base on */
	uint32_t slot_cnt;
	/* what peers map: the chunks, and who they belong to */
	struct arena_directory *directory;
	int directory_fd;
	struct platform_lock lock;
	/* struct arena_watcher */
	struct list watchers;
	struct arena_ranges *ranges;
	/* what arena_show_locked() shows tools, by enum weft_mem_arena_count; and where, or NULL */
	uint64_t shown[WEFT_MEM_ARENA_COUNTS];
	struct weft_mem_part *part;
};

/*
 * arena_find - find the chunk of a range of addresses
 * @place: out, on success
 * Returns true if one chunk has the whole range, and peers may use it. Any thread, no lock.
 */
static inline bool arena_find(const struct arena *arena, const void *addr, size_t len,
			      struct arena_place *place)
{
	uintptr_t at = (uintptr_t)addr;
	const struct arena_chunk *chunk;
	uint32_t idx;

	if (!arena || at - arena->base >= arena->len)
		return false;
	/* A:arena.slots  the chunk before its slot; pairs R:arena.slots */
	idx = atomic_load_explicit(&arena->slots[(at - arena->base) >> ARENA_SLOT_SHIFT],
				   memory_order_acquire);
	if (!idx)
		return false;
	chunk = &arena->chunks[idx - 1];
	if (len > chunk->len - (at - chunk->base) ||
	    atomic_load_explicit(&chunk->retired, memory_order_relaxed))
		return false;
	*place = (struct arena_place){ .chunk = idx - 1, .offset = at - chunk->base };
	return true;
}

/*
 * arena_chunk_add - make a chunk and publish it; the lock is held
 * @len: bytes that it must have at least
 * Returns 0 and its index, or -FI_E*.
 */
int arena_chunk_add(struct arena *arena, size_t len, enum arena_kind kind, uint32_t *idx);

/* arena_chunk_retire - end the use of a chunk by peers, see arena_chunk.retired; the lock is held */
void arena_chunk_retire(struct arena *arena, uint32_t idx);

/*
 * arena_chunk_leave - leave a retired chunk to the child of a fork that follows: both processes have all its
 * contents, and neither sees what the other one stores from then on; the lock is held
 */
void arena_chunk_leave(struct arena *arena, uint32_t idx);

/* arena_chunk_punch - take pages of a chunk away; their next load or store finds zeros. 0 or -FI_E* */
int arena_chunk_punch(const struct arena_chunk *chunk, uint64_t offset, size_t len);

#endif
