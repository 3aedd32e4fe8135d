/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What the files of the cache share: its entries, and how they come and go. Functions that end in _locked are
 * called with the cache's lock held, and call nothing of the device.
 *
 * The lock is never held while memory is allocated or freed, and nothing waits for it while a watch
 * waits to be told: see uffd_watch.c.
 */
#ifndef WEFT_MEM_CACHE_ENTRIES_H
#define WEFT_MEM_CACHE_ENTRIES_H

#include "cache.h"
#include "interval.h"
#include "list.h"
#include "removed.h"
#include "shown.h"

enum entry_state {
	ENTRY_FREE,
	/* listed, watched; one thread registers it */
	ENTRY_PINNING,
	/* listed, watched, registered */
	ENTRY_READY,
	/* not found any more; given up when nobody uses it */
	ENTRY_DEAD,
};

/* Entries beyond the limit, for those that are doomed. */
#define ENTRIES_SPARE 64u

struct cache_entry {
	/* whole pages */
	struct interval range;
	/* in cache.idle, cache.doomed or cache.free */
	struct list link;
	uint64_t access;
	uint64_t handle;
	uint32_t users;
	enum entry_state state;
};

struct mem_cache {
	const struct mem_pin_ops *ops;
	void *device;
	uintptr_t page;
	uint64_t bytes_max;
	uint32_t entries_max;
	/* NULL: nothing is cached, for the reason refused */
	struct mem_watch *watch;
	int refused;
	struct mem_watcher watcher;
	/* what unregisters entries that a change has ended, since the watch's thread can't */
	struct platform_thread reaper;
	struct platform_bell doom;
	/* in the child of a fork nothing of the cache is used */
	_Atomic bool child;
	/* of all caches, under their lock in cache.c */
	struct list caches;

	/* Protects what follows. */
	struct platform_lock lock;
	/* those that are PINNING or READY */
	struct intervals entries;
	/* READY without users; least recently used first */
	struct list idle;
	/* DEAD without users: to be unregistered */
	struct list doomed;
	struct list free;
	/* threads that unregister some now */
	uint32_t draining;
	/* forks under way */
	uint32_t forking;
	struct removed removed;
	struct mem_cache_stats stats;
	/* where tools see stats, or NULL */
	struct weft_mem_part *part;
	struct cache_entry all[];
};

/* The pages of a request. */
struct cache_want {
	uintptr_t start;
	uintptr_t end;
	uint64_t access;
};

/* cache_entry_take_locked - a free entry that is listed as PINNING, with one user; NULL: none is free */
struct cache_entry *cache_entry_take_locked(struct mem_cache *cache,
					    const struct cache_want *want);

/* cache_entry_kill_locked - it is not found any more: doomed, or left to its users */
void cache_entry_kill_locked(struct mem_cache *cache, struct cache_entry *entry);

/* cache_entry_doom_locked - a DEAD entry without users, in no list, is to be unregistered */
void cache_entry_doom_locked(struct mem_cache *cache, struct cache_entry *entry);

/* cache_entry_drop_locked - a DEAD entry, in no list, was never registered */
void cache_entry_drop_locked(struct mem_cache *cache, struct cache_entry *entry);

/* cache_entry_evict_locked - kill the one that was not used for longest. Returns false if all are in use */
bool cache_entry_evict_locked(struct mem_cache *cache);

/* cache_show_locked - show tools the statistics, after a change of them */
void cache_show_locked(const struct mem_cache *cache);

/* cache_changed - struct mem_watcher's changed() */
void cache_changed(struct mem_watcher *watcher, const struct mem_change *change);

/* cache_forked_locked - a fork has ended, in the parent */
void cache_forked_locked(struct mem_cache *cache);

/* cache_drain - unregister what is doomed; the lock is not held. Returns true if something was */
bool cache_drain(struct mem_cache *cache);

#endif
