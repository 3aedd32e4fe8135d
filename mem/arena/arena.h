/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The arena: memory of this process that peers may map, so that they read and write it by loads and
 * stores. It is a reserved range of addresses, filled with chunks. A chunk is a sealed memfd, mapped
 * once at an address that never changes. So an offset in a chunk always names the same page, in this
 * process and in every peer that has mapped the chunk: a translation can't become stale by what the
 * allocator does.
 *
 * A chunk in which something is LIVE when the process forks is retired: it is copied on write from
 * then on, by parent and child, and no peer uses it. What a device has of it keeps its pages in the
 * parent, and the child gets a copy. The chunk ends when nothing in it is LIVE any more.
 * Then its addresses and its index are those of later chunks, which have other serials: what
 * anybody still knows of it is not taken for one of them. A chunk in which nothing is LIVE stays the
 * parent's, and the child has nothing there. So does one of ARENA_HUGE, whatever is in it.
 *
 * There is one arena in a process. It is in libweft-mem.so where that was loaded at program start,
 * else in libfabric.so.1. Both are built from the same files, and either may be asked by both.
 *
 * A range of a chunk is in one of these states:
 *
 *	LIVE		allocated
 *	QUARANTINE	freed: it keeps its pages, and keys over it stay valid. Only this process
 *			allocates it again.
 *	PUNCHED		it has no pages: no peer and no wire used it any more when they were taken away. The next
 *			store gets a page of zeros. Of ARENA_HUGE it is only free, and what was stored there last
 *			stays.
 *
 * and becomes LIVE again from both of these. When what is in QUARANTINE becomes PUNCHED retain.c decides.
 *
 * Any thread. One lock protects all but what arena_find() reads.
 */
#ifndef WEFT_MEM_ARENA_H
#define WEFT_MEM_ARENA_H

#include "chunk.h"

/*
 * arena_get - returns the arena of this process, which is started if it does not exist; NULL: there
 * is none, because the address space is limited, memfd_create(2) is refused, or this is the child of
 * a fork to which what is allocated could not be left
 * arena_started - returns the arena if it was started, else NULL; for looking up addresses
 * arena_own - the same as arena_get() for the library that has the arena: it looks for no other one
 */
struct arena *arena_get(void);
struct arena *arena_started(void);
/* arena_look - takes the arena of libweft-mem.so if that library is loaded; starts none else */
void arena_look(void);
struct arena *arena_own(void);

/*
 * weft_mem_arena - the name under which libweft-mem.so exports arena_own()
 * @version, @size: ARENA_VERSION and the size of struct arena of the caller
 * Returns NULL for others than its own.
 */
typedef struct arena *arena_export(uint32_t version, uint32_t size);
#define ARENA_EXPORT "weft_mem_arena"

/*
 * arena_alloc - allocate memory
 * @len:   bytes, not 0
 * @align: a power of two; at least a page is used
 * @kind:  of the chunk. ARENA_HUGE: memory of ARENA_READ where the pool has not enough pages
 * @addr:  out
 * @zero:  out: all bytes are zero; NULL: not of interest
 *
 * Pages that were freed before are preferred, since they are present.
 * Returns 0; -FI_EINVAL for @len or @align; -FI_ENOMEM.
 */
int arena_alloc(struct arena *arena, size_t len, size_t align, enum arena_kind kind,
		void **addr, bool *zero);

/*
 * arena_free - free what arena_alloc() returned
 * Its pages are kept, and its keys stay valid: see above. Keys are closed before or after.
 * Returns 0, or -FI_EINVAL: no allocation begins at @addr.
 */
int arena_free(struct arena *arena, void *addr);

/*
 * arena_free_part - free LIVE memory, as arena_free(), whatever allocations it was and is a part of
 * @addr, @len: multiples of a page
 * For an allocator on top of the arena, which divides and joins what it has got. It calls arena_keep().
 * Returns 0, or -FI_EINVAL: what is from some address on is not LIVE, or there is no memory to divide it.
 */
int arena_free_part(struct arena *arena, void *addr, size_t len);

/*
 * arena_purge - take the contents away from pages inside a LIVE range: they are PUNCHED now
 * @addr, @len: rounded inwards to pages
 * For an allocator on top of the arena, which knows what of its memory is free.
 * Returns 0: the range is zero; -FI_EBUSY: a peer or a wire uses it and keeps it, or it is of ARENA_HUGE;
 * -FI_E*.
 */
int arena_purge(struct arena *arena, void *addr, size_t len);

/*
 * arena_discard - the program takes the contents of LIVE memory away, as by madvise(MADV_DONTNEED)
 * @addr, @len: multiples of a page
 * As arena_purge(); but where a peer or a wire keeps the pages the program gets others, and the chunk is retired,
 * and what the program has mapped there by itself stays mapped, and its file as it is.
 * Returns 0; -FI_EINVAL: no chunk has all of it, or it is a part of a page of ARENA_HUGE; or -FI_E*.
 */
int arena_discard(struct arena *arena, void *addr, size_t len);

/*
 * A user of the arena's pages beyond loads and stores by their address: a wire that has registered
 * them with a device. Belongs to the caller, until arena_unwatch().
 *
 * revoke - give up every use of a range, which is about to lose its pages
 *	Called on any thread, with the arena's lock held. It takes no longer than 10 ms and calls
 *	nothing that takes the arena's lock.
 *	Returns 0: nothing uses it, and nothing will before arena_find() finds it again;
 *	or -FI_EBUSY: the range keeps its pages for now, in the parent also through a fork.
 */
struct arena_watcher {
	struct list link;
	int (*revoke)(struct arena_watcher *watcher, const struct arena_place *place,
		      size_t len);
};

void arena_watch(struct arena *arena, struct arena_watcher *watcher);
void arena_unwatch(struct arena *arena, struct arena_watcher *watcher);

/*
 * arena_directory_at - what leads peers to the arena. Returns false: there is nothing that they could reach
 * @fd: out: descriptor of the directory
 * @nonce: out
 */
bool arena_directory_at(struct arena *arena, uint32_t *fd, uint8_t nonce[ARENA_NONCE]);

/*
 * arena_retire - end the use of the chunk that has an address by peers, see arena_chunk.retired
 * What is allocated in it stays, as memory of this process alone.
 */
void arena_retire(struct arena *arena, const void *addr);

/*
 * arena_protect - the program protects memory in the chunk that has an address: arena_is_uneven() says so
 * Peers go on with it.
 */
void arena_protect(struct arena *arena, const void *addr);

/*
 * arena_cut - retire the chunks of a range that peers may store to (ARENA_WRITE), and take its pages away from them
 * @addr, @len: whatever they are of: other chunks, and what is in none, stay as they are
 * The contents stay, and stores of other threads of this process are not lost; a peer that was stopped
 * in the middle of a store stores to pages that are not ours any more.
 * Returns 0, also if that was done before; -FI_EBUSY: a wire holds a part of it, and its device has these pages;
 * or -FI_E*. Peers may still reach it then.
 */
int arena_cut(struct arena *arena, const void *addr, size_t len);

/*
 * arena_shrink - make no chunk behind those that there are, or behind the first ARENA_SLOT bytes
 * Returns the bytes from arena.base on that stay reserved. The caller gives the others back, which are
 * no part of the arena any more.
 */
size_t arena_shrink(struct arena *arena);

/*
 * arena_keep - something was freed that keeps its pages: there has to be a keeper (keeper.h)
 * Any thread, with no lock that the keeper takes.
 */
static inline void arena_keep(struct arena *arena)
{
	if (!atomic_load_explicit(&arena->keeper_runs, memory_order_relaxed))
		arena->keeper_start(arena);
}

/*
 * arena_give_set - there is an allocator on top of the arena, for good, to which nothing has been freed yet
 * @give: gives back (arena_purge()) what has been free for arena.decay_ms, and what is beyond @allowed bytes.
 *	Called a few times a second, on the keeper's thread, without a lock. Returns the bytes that are
 *	free and keep their pages.
 * After something was freed to the allocator it calls arena_keep(), and sees to it that not much more is kept
 * than arena.allowed.
 */
void arena_give_set(struct arena *arena, size_t (*give)(size_t allowed));

/* Bytes by state, when arena_usage() is called. */
struct arena_usage {
	size_t live, quarantined;
	/* of all chunks; and of those that are retired */
	size_t chunks, retired;
};

void arena_usage(struct arena *arena, struct arena_usage *usage);

/*
 * arena_show_locked - show tools what there is now (include/weft/mem_stats.h), after a change; the lock is held
 * arena_show_chunks_locked - the same after a change of the chunks
 */
void arena_show_locked(struct arena *arena);
void arena_show_chunks_locked(struct arena *arena);

/*
 * arena_trim - take pages away from what is in quarantine, the longest there first, until @keep bytes
 * are left there, but for what is in use; the lock is taken for a few MiB each
 * Returns the bytes that have lost their pages.
 */
size_t arena_trim(struct arena *arena, size_t keep);

#endif
