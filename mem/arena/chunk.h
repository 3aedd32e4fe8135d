/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Chunks, and the address of each: what arena_find() reads without a lock. See arena.h.
 */
#ifndef WEFT_MEM_CHUNK_H
#define WEFT_MEM_CHUNK_H

#include <weft/mem_stats.h>
#include "directory.h"
#include "list.h"
#include "memfd.h"

/* Grows by one when the layout of struct arena or the meaning of a member changes. */
#define ARENA_VERSION 11u

/* Addresses of the arena are reserved, and a chunk begins and ends, in multiples of this. */
#define ARENA_SLOT	 (32ull << 20)
#define ARENA_SLOT_SHIFT 25
#define ARENA_SLOTS	 32768u /* together 1 TiB, where the address space has it */

/* A chunk, as its owner sees it. With the arena's lock. */
struct arena_chunk {
	uintptr_t base;
	/* bytes, a multiple of ARENA_SLOT; 0: there is no chunk of this index */
	size_t len;
	/*
	 * its memfd, which stays open: peers open it through /proc. -1 once it is left. The program may have
	 * closed it, and opened another file under its number: see id
	 */
	int fd;
	struct sys_memfd_id id;
	enum arena_kind kind;
	/*
	 * arena_entry.serial; 0: the entry is not of this process, to which the chunk was left. Of a chunk
	 * that is not retired it changes only when nothing is LIVE in it
	 */
	_Atomic uint64_t serial;
	/* bytes of LIVE ranges */
	size_t live;
	/*
	 * Peers must not use it any more: a part of it was taken away from one that did not answer,
	 * or it was left to a child. It stays memory of this process until nothing in it is LIVE, and
	 * nothing is allocated in it.
	 */
	bool retired;
	/*
	 * Left to a child: the mapping is private, over a file that both processes read and that nothing
	 * may be stored to. Of ARENA_HUGE, in the child: nothing can be accessed.
	 */
	bool left;
	/* a part of it was: what is mapped there says which */
	bool split;
	/*
	 * The program may have mapped something else in it, or protected a part of it: only the kernel knows
	 * what there is. Read also without the lock
	 */
	_Atomic bool uneven;
	/* the child of the fork under way gets a copy of what was not left */
	bool copied;
};

/* Where an address of this process is. */
struct arena_place {
	/* index in arena.chunks */
	uint32_t chunk;
	/* bytes from its beginning */
	uint64_t offset;
};

/*
 * A word of arena.slots says all that there is to know of a slot, so that it is read at once:
 *
 *	bits 0 to 15	index + 1 of the chunk that has it; 0: none
 *	bits 16 to 31	slots of that chunk before it
 *	bits 32 to 47	slots of that chunk from it on
 *	bit 63		peers may use the chunk: it is not retired
 */
#define ARENA_SLOT_OPEN (1ull << 63)

_Static_assert(ARENA_CHUNKS <= UINT16_MAX - 1 && ARENA_SLOTS <= UINT16_MAX, "bits of a slot");

static inline uint64_t arena_slot_word(uint32_t chunk, uint32_t before, uint32_t left)
{
	return (uint64_t)left << 32 | (uint64_t)before << 16 | (chunk + 1);
}

/* arena_slot_chunk - returns index + 1 of the chunk, or 0 */
static inline uint32_t arena_slot_chunk(uint64_t word)
{
	return word & 0xffff;
}

/* arena_slot_offset - returns the bytes of the chunk before an address in the slot */
static inline uint64_t arena_slot_offset(uint64_t word, uintptr_t at)
{
	return (word >> 16 & 0xffff) << ARENA_SLOT_SHIFT | (at & (ARENA_SLOT - 1));
}

/* arena_slot_room - returns the bytes of the chunk from that address on */
static inline uint64_t arena_slot_room(uint64_t word, uintptr_t at)
{
	return ((word >> 32 & 0xffff) << ARENA_SLOT_SHIFT) - (at & (ARENA_SLOT - 1));
}

struct arena_ranges;

struct arena {
	/* ARENA_VERSION, and the size of this struct: of the library that has started it */
	uint32_t version;
	uint32_t size;
	/* a child of a fork, to which not all could be left: nothing is found, nothing allocated */
	bool lost;
	/* the reserved addresses, from a multiple of ARENA_SLOT on */
	uintptr_t base;
	size_t len;
	/* bytes at their beginning in which chunks may be: what is behind was given back. With the lock */
	size_t usable;
	/* arena_slot_word(), or 0. R:arena.slots */
	_Atomic uint64_t slots[ARENA_SLOTS];
	struct arena_chunk chunks[ARENA_CHUNKS];
	/* indices from this one on were never used */
	uint32_t chunk_cnt;
	/* serial of the last chunk */
	uint64_t serial;
	/*
	 * What peers map: the chunks, and who they belong to. With the lock. NULL in the child of a fork
	 * until it makes a chunk.
	 */
	struct arena_directory *directory;
	int directory_fd;
	struct sys_memfd_id directory_id;
	struct platform_lock lock;
	/* struct arena_watcher */
	struct list watchers;
	struct arena_ranges *ranges;
	/* what arena_show_locked() shows tools, by enum weft_mem_arena_count; and where, or NULL */
	uint64_t shown[WEFT_MEM_ARENA_COUNTS];
	struct weft_mem_part *part;
	/*
	 * Bytes that may be kept of what is free at most, and that are still unused of what this process may
	 * use, as the keeper has read last: with the lock. What follows from both, which any thread reads:
	 * retain.h
	 */
	size_t share, room;
	_Atomic size_t allowed;
	/* how long what is not used again is kept; 0: until the keeper's next round */
	uint32_t decay_ms;
	/* there is a keeper, or somebody is about to start it */
	_Atomic bool keeper_runs;
	/* starts one, in the library that has the arena; keeper.h */
	void (*keeper_start)(struct arena *arena);
	/* of an allocator on top of the arena, or NULL: arena_give_set(); with the lock */
	size_t (*give)(size_t allowed);
};

/* arena_slot_at - returns the word of the slot that an address is in, 0 of one outside. Any thread */
static inline uint64_t arena_slot_at(const struct arena *arena, uintptr_t at)
{
	if (at - arena->base >= arena->len)
		return 0;
	/* A:arena.slots  the chunk before its slot; pairs R:arena.slots */
	return atomic_load_explicit(&arena->slots[(at - arena->base) >> ARENA_SLOT_SHIFT],
				    memory_order_acquire);
}

/*
 * arena_find - find the chunk of a range of addresses
 * @place: out, on success
 * Returns true if one chunk has the whole range, and peers may use it. Any thread, no lock.
 */
static inline bool arena_find(const struct arena *arena, const void *addr, size_t len,
			      struct arena_place *place)
{
	uintptr_t at = (uintptr_t)addr;
	uint64_t word;

	if (!arena)
		return false;
	word = arena_slot_at(arena, at);
	if (!(word & ARENA_SLOT_OPEN) || len > arena_slot_room(word, at))
		return false;
	*place = (struct arena_place){ .chunk = arena_slot_chunk(word) - 1,
				       .offset = arena_slot_offset(word, at) };
	return true;
}

/*
 * arena_is_uneven - returns whether the program may have mapped something else in the chunk that has an address,
 * or protected a part of it. Any thread, no lock; true where that was done by the program's own order before
 */
static inline bool arena_is_uneven(const struct arena *arena, const void *addr)
{
	uint32_t idx = arena_slot_chunk(arena_slot_at(arena, (uintptr_t)addr));

	return idx && atomic_load_explicit(&arena->chunks[idx - 1].uneven, memory_order_relaxed);
}

/*
 * arena_directory_make - make the directory of an arena that has none; the lock is held
 * arena_directory_drop - the directory is that of the parent of this process
 */
int arena_directory_make(struct arena *arena);
void arena_directory_drop(struct arena *arena);

/*
 * arena_chunk_add - make a chunk and publish it; the lock is held
 * @len: bytes that it must have at least
 * Returns 0 and its index; -FI_EADDRNOTAVAIL: other chunks have the addresses, or all indices; -FI_ENOMEM: no chunk may
 * have so many bytes, whatever ends; or another -FI_E*.
 */
int arena_chunk_add(struct arena *arena, size_t len, enum arena_kind kind, uint32_t *idx);

/* arena_chunk_retire - end the use of a chunk by peers, see arena_chunk.retired; the lock is held */
void arena_chunk_retire(struct arena *arena, uint32_t idx);

/*
 * arena_chunks_settle - have the pages of chunks that are retired, and ARENA_WRITE, contain all that peers take for
 * stored. Where membarrier(2) is forbidden, also since peers rely on it, that takes platform_settle()
 */
void arena_chunks_settle(void);

/*
 * arena_chunk_leave - leave a part of a retired chunk to the child of a fork that follows: both processes have
 * its contents, and neither sees what the other one stores from then on; the lock is held
 * Nobody else uses it but peers, whose later stores to pages with data are not seen; what they stored before has
 * settled. One to a page without, which nobody has stored to yet, may be seen by both until they store there: such pages
 * are not taken here, since they would all become memory (arena_cut() takes those of one region).
 * Returns 0, also if that was done before; -FI_EBADF: the program has closed the descriptor; -FI_EBUSY: both
 * have it, and later stores of peers to some pages may be seen, since there is no memory, or the kernel can't be asked
 * where they are; or another -FI_E*.
 */
int arena_chunk_leave(struct arena *arena, uint32_t idx, uint64_t offset, size_t len);

/* arena_chunk_left - all that is mapped of a chunk is private: nothing needs its descriptor */
void arena_chunk_left(struct arena_chunk *chunk);

/*
 * arena_chunk_drop - end a chunk in which nothing is LIVE, and that nobody uses; the lock is held
 * Its addresses have memory of zeros, and they and its index may become those of another one.
 * Returns 0 or -FI_E*: it is as it was.
 */
int arena_chunk_drop(struct arena *arena, uint32_t idx);

/*
 * arena_chunk_lack - the child of a fork has nothing of a chunk of its parent; the lock is held
 * Its addresses stay reserved until nothing in it is LIVE: what the child does with pointers that it has
 * inherited reaches nothing else. Returns 0 or -FI_E*.
 */
int arena_chunk_lack(struct arena *arena, uint32_t idx);

/*
 * arena_chunk_punch - take pages of a chunk away; their next load or store finds zeros
 * Also where the program has closed the chunk's descriptor. Returns 0; -FI_EBUSY of ARENA_HUGE; or another -FI_E*.
 */
int arena_chunk_punch(const struct arena_chunk *chunk, uint64_t offset, size_t len);

/*
 * arena_chunk_discard - the program takes the contents of a part of a retired chunk away; the lock is held
 * @held: others keep the pages of the chunk, and the program gets zeros of its own
 * What the program has mapped there itself stays mapped: sys_reserve_discard(). Returns 0 or -FI_E*.
 */
int arena_chunk_discard(const struct arena_chunk *chunk, uint64_t offset, size_t len, bool held);

#endif
