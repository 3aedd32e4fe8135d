/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A cache of a device's registrations of the program's own memory, which are never stale: while a
 * reference is held that mem_cache_get() returned, the device reaches the pages that were at these
 * addresses when it returned. What the program does to memory that it has in use is its own affair.
 *
 * Only private anonymous memory is cached, one mapping at a time. A watch (watch.h) tells of changes, and is
 * asked at each hit whether one is under way. By kind of change:
 *
 *	munmap, mremap, MAP_FIXED, brk	told after the change, and seen by the check before that
 *	MADV_DONTNEED, MADV_FREE	told before the change, which comes later: what it concerns is registered
 *					per operation until it is unmapped. (After MADV_FREE a page that is
 *					pinned stays; but the two can't be told apart.)
 *	MADV_REMOVE			is for shared memory, which is never cached
 *	shmat(SHM_REMAP)		not told, and seen by the check
 *	fork				the parent registers anew: a page that it writes to may be copied.
 *					One by the raw system call is seen by nobody; there what is pinned as
 *					io_uring and verbs do stays the parent's since Linux 5.10. The child has
 *					nothing of the cache
 *	MADV_GUARD_INSTALL		of Linux 6.13 is not told, and not seen. It is for guard pages
 *
 * A MADV_DONTNEED that is under way while another thread unmaps the same range and maps it again may
 * also hit the new pages; a program can't know which. Nor is that seen here.
 *
 * Where a range can't be cached it is registered with the device for each operation: that is slower, never
 * wrong. Any thread. The device's operations are called without a lock.
 */
#ifndef WEFT_MEM_CACHE_H
#define WEFT_MEM_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "pin_ops.h"
#include "watch.h"

struct mem_cache;
struct cache_entry;

struct mem_cache_limits {
	/* bytes that are pinned at most by the cache itself; 0: no limit */
	uint64_t bytes;
	/* registrations at most; 0: MEM_CACHE_ENTRIES */
	uint32_t entries;
};

#define MEM_CACHE_ENTRIES 1024u

/* A registration that is in use. Belongs to the caller, from get to put. */
struct mem_cache_ref {
	/* of pin() */
	uint64_t handle;
	/* NULL: registered for this operation */
	struct cache_entry *entry;
};

/* Why a range is registered for one operation. */
enum mem_cache_once {
	MEM_ONCE_REFUSED,  /* nothing can tell of changes here */
	MEM_ONCE_CHANGING, /* something changed just then, or the process forked */
	MEM_ONCE_REMOVED,  /* its pages were removed before */
	MEM_ONCE_BUSY,	   /* another thread registered memory there just then */
	MEM_ONCE_FULL,	   /* the limits are reached by what is in use */
	MEM_ONCE_OTHER,	   /* not private anonymous memory, or several mappings */
	MEM_ONCE_CNT,
};

struct mem_cache_stats {
	uint64_t hits;
	/* ranges that were registered and kept */
	uint64_t misses;
	/* ranges that were registered for one operation, and why */
	uint64_t once[MEM_ONCE_CNT];
	/* registrations that were given up for want of room */
	uint64_t evictions;
	/* hits that the check prevented */
	uint64_t caught;
	/* registrations given up by what was told, and by forks */
	uint64_t unmapped;
	uint64_t moved;
	uint64_t removed;
	uint64_t missed;
	uint64_t forked;
	/* what is held now */
	uint64_t bytes;
	uint32_t entries;
};

/*
 * mem_cache_create - a cache over a userfaultfd. Where that is refused it caches nothing, and works
 * @ops, @device: borrowed until mem_cache_destroy()
 * @limits: NULL: as all zeros
 * Takes about 300 us. Returns 0, -FI_ENOMEM or another -FI_E*.
 */
int mem_cache_create(const struct mem_pin_ops *ops, void *device,
		     const struct mem_cache_limits *limits, struct mem_cache **cache);

/* mem_cache_create_watched - the same over @watch, which it takes, also when it fails; NULL: caches nothing */
int mem_cache_create_watched(const struct mem_pin_ops *ops, void *device,
			     const struct mem_cache_limits *limits, struct mem_watch *watch,
			     struct mem_cache **cache);

/* mem_cache_refused - returns 0, or the -FI_E* for which it caches nothing: for one line in the caller's log */
int mem_cache_refused(const struct mem_cache *cache);

/* mem_cache_destroy - takes @cache, or NULL. No reference is held, but in the child of a fork */
void mem_cache_destroy(struct mem_cache *cache);

/*
 * mem_cache_get - have the device reach a range
 * @len:    not 0
 * @access: FI_* access
 * @ref:    out: its handle reaches whole pages, or the range alone
 *
 * A hit takes one system call. If the device has no room, registrations that are not in use make some.
 * Returns 0; -FI_EINVAL: the range is empty or wraps around; -FI_EOPBADSTATE in the child of a fork; or an
 * error of pin(): -FI_EFAULT where memory is not mapped, or not for this access, -FI_ENOMEM, -FI_ENOSPC.
 */
int mem_cache_get(struct mem_cache *cache, void *addr, size_t len, uint64_t access,
		  struct mem_cache_ref *ref);

/* mem_cache_put - the device does not use the range any more by this reference */
void mem_cache_put(struct mem_cache *cache, struct mem_cache_ref *ref);

/*
 * mem_cache_give - give up what was used least recently, for want of room on the device
 * Returns true if it gave something up, or another thread does just then; false if all is in use.
 */
bool mem_cache_give(struct mem_cache *cache);

void mem_cache_stats(struct mem_cache *cache, struct mem_cache_stats *stats);

#endif
