/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What jemalloc has given up and the heap still keeps. By its own decay jemalloc gives up whole extents, also
 * where a page of one is all that is to go: so the pages of a large one stay here, and go piece by piece as
 * the curve of all that is free says (decay.h), or are used again together with their addresses.
 *
 * A range is free memory of the heap whose pages are there, with what the program stored last. Any
 * thread. The lock is taken within jemalloc's, before the arena's.
 */
#ifndef WEFT_MEM_KEPT_H
#define WEFT_MEM_KEPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Shorter ranges are not kept. */
#define KEPT_LEAST ((size_t)2 << 20)

/*
 * kept_start - ranges may be kept from now on
 * @purge:    takes the pages of a range away, with the lock held; returns 0, or another value: they stay
 * @decay_ms: what was free for so long goes; 0: nothing is kept
 */
void kept_start(int (*purge)(void *addr, size_t len), uint32_t decay_ms);

/* kept_add - keep a range. Returns false if it is not: it is short, or there is no room for another one */
bool kept_add(void *addr, size_t len);

/*
 * kept_take - a range, of which any part may be kept, is used again
 * @zero: it has to be zero
 */
void kept_take(void *addr, size_t len, bool zero);

/*
 * kept_trim - take pages away, the longest kept first, until @keep bytes are left, and less than KEPT_LEAST more
 * What can't lose its pages stays as well.
 */
void kept_trim(size_t keep);

/* kept_len - returns the bytes that are kept */
size_t kept_len(void);

/* kept_gone - so many bytes lost their pages by other ways than these */
void kept_gone(size_t len);

/*
 * kept_decay - give back what has not been used for long, as of now; another thread that is doing that goes on alone
 * @dirty:  bytes that are free and kept by jemalloc
 * @unused: of those and these, the least that were free at any time since the last call
 */
void kept_decay(uint64_t now_ns, size_t dirty, size_t unused);

/* Around fork(): what is free in the child is what was free in the parent. */
void kept_fork_prepare(void);
void kept_fork_parent(void);
void kept_fork_child(void);

#endif
