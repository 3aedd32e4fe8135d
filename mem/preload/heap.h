/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The heap of large allocations: jemalloc over extents of the process's arena. jemalloc gives an extent
 * back to it only when all that was allocated before a fork is freed, so that what is freed keeps its pages, and keys over it stay valid, until
 * it was free for some seconds or more is kept than is allowed: then its pages are taken away (arena_purge()).
 *
 * Any thread. Before heap_allow(), in the heap's own allocations, and above the limit it has no memory: the
 * caller goes to the next allocator.
 */
#ifndef WEFT_MEM_HEAP_H
#define WEFT_MEM_HEAP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The addresses of the arena; len is 0 until it has started, and becomes less by heap_shrink() */
extern uintptr_t heap_base;
extern _Atomic size_t heap_len;

/* heap_has - returns true if memory was allocated here. Reads no lock */
static inline bool heap_has(const void *ptr)
{
	/* A:heap.len  before heap_base; pairs R:heap.len */
	size_t len = atomic_load_explicit(&heap_len, memory_order_acquire);

	return (uintptr_t)ptr - heap_base < len;
}

/* heap_end - returns the first address behind those of the arena; 0: it has not started */
static inline uintptr_t heap_end(void)
{
	/* A:heap.len  before heap_base; pairs R:heap.len */
	size_t len = atomic_load_explicit(&heap_len, memory_order_acquire);

	return heap_base + len;
}

/*
 * heap_allow - the process has come so far that the heap may start, when it is needed first
 * @limit: bytes that it may take from the arena; SIZE_MAX: half of what the process may use
 *
 * Called before any other code may install fork handlers: the heap's run inside theirs, since a lock of theirs
 * may be held by a thread that allocates.
 */
void heap_allow(size_t limit);

/*
 * heap_alloc - allocate memory
 * @align: a power of two; 0: as malloc()
 * Returns it, or NULL: the heap has none. errno is as it was.
 */
void *heap_alloc(size_t len, size_t align, bool zero);

/* heap_resize - as realloc(), of heap memory and to a length that is not 0. NULL: as heap_alloc() */
void *heap_resize(void *ptr, size_t len);

/* heap_free - as free(), of heap memory. errno is as it was */
void heap_free(void *ptr);

/*
 * heap_make_even - heap memory can be loaded and stored to again, whatever the program has protected and advised: it is
 * about to be copied, or freed for the next one. Its contents stay
 * Returns false where it can't be, since something else is mapped there.
 */
bool heap_make_even(void *ptr, size_t len);

/* heap_size - returns the bytes that heap memory has */
size_t heap_size(const void *ptr);

/*
 * heap_shrink - give the addresses back that the heap has reserved and does not use: the program limits those that
 * it may have. What is allocated later comes from what the arena has already
 */
void heap_shrink(void);

struct arena;
/* heap_memory - returns the arena in which heap_has() finds addresses, or NULL */
struct arena *heap_memory(void);
/* heap_arena - returns the arena, which is started if it does not exist, or NULL */
struct arena *heap_arena(void);

#endif
