/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Making a cache and ending it, its thread, and forks. Called by the wires that pin, on any thread. */
#include <rdma/fi_errno.h>
#include <unistd.h>
#include "entries.h"
#include "uffd_watch.h"

/*
 * Protects the list of all caches; held during a fork. Before the lock of a cache. Nothing is allocated or
 * called while it is held, so that fork, which takes malloc's locks after it, waits for nobody who holds those.
 */
static pthread_mutex_t caches_lock = PTHREAD_MUTEX_INITIALIZER;
static struct list caches = { &caches, &caches };

/* Hits end here: the pages of a parent may be copied from the fork on, before fork() returns. */
static void fork_prepare(void)
{
	struct mem_cache *cache;

	pthread_mutex_lock(&caches_lock);
	list_for_each_entry(cache, &caches, caches) {
		platform_lock(&cache->lock);
		cache->forking++;
		platform_unlock(&cache->lock);
	}
}

static void fork_parent(void)
{
	struct mem_cache *cache;

	list_for_each_entry(cache, &caches, caches) {
		platform_lock(&cache->lock);
		cache_forked_locked(cache);
		cache->forking--;
		platform_unlock(&cache->lock);
	}
	pthread_mutex_unlock(&caches_lock);
}

/* The locks of caches may be held by threads that are gone. */
static void fork_child(void)
{
	struct mem_cache *cache;

	list_for_each_entry(cache, &caches, caches) {
		atomic_store_explicit(&cache->child, true, memory_order_relaxed);
		if (cache->watch)
			cache->watch->ops->forked(cache->watch);
		list_remove(&cache->caches);
	}
	pthread_mutex_unlock(&caches_lock);
}

static struct platform_fork fork_watcher = { fork_prepare, fork_parent, fork_child, NULL,
					     false };

/* The thread sleeps until the bell is rung. */
static uint64_t reap(void *arg)
{
	struct mem_cache *cache = arg;

	platform_bell_clear(&cache->doom);
	cache_drain(cache);
	return UINT64_MAX;
}

static bool reaper_sleeps_on(void *arg, struct platform_wakers *on)
{
	struct mem_cache *cache = arg;

	*on = (struct platform_wakers){ .bell = &cache->doom, .descriptor = -1 };
	return true;
}

static void reaper_wake(void *arg)
{
	struct mem_cache *cache = arg;

	platform_bell_ring(&cache->doom);
}

/* Returns 0: what @watch tells ends entries, from now on. */
static int start(struct mem_cache *cache, struct mem_watch *watch)
{
	const struct platform_work work = {
		.name = "weft-mem-reap",
		.round = reap,
		.sleep_on = reaper_sleeps_on,
		.wake = reaper_wake,
		.arg = cache,
	};
	int ret = platform_bell_open(&cache->doom);

	if (ret)
		return ret;
	ret = platform_thread_start(&cache->reaper, &work);
	if (ret)
		goto err_bell;
	ret = watch->ops->start(watch, &cache->watcher);
	if (ret)
		goto err_thread;
	cache->watch = watch;
	return 0;

err_thread:
	platform_thread_stop(&cache->reaper);
err_bell:
	platform_bell_close(&cache->doom);
	return ret;
}

static struct mem_cache *make(const struct mem_pin_ops *ops, void *device,
			      const struct mem_cache_limits *limits)
{
	uint32_t cnt = limits && limits->entries ? limits->entries : MEM_CACHE_ENTRIES;
	struct mem_cache *cache = platform_alloc(
		sizeof(*cache) + (size_t)(cnt + ENTRIES_SPARE) * sizeof(struct cache_entry));

	if (!cache)
		return NULL;
	cache->ops = ops;
	cache->device = device;
	cache->page = (uintptr_t)sysconf(_SC_PAGESIZE);
	cache->bytes_max = limits && limits->bytes ? limits->bytes : UINT64_MAX;
	cache->entries_max = cnt;
	platform_lock_init(&cache->lock);
	cache->watcher.lock = &cache->lock;
	cache->watcher.changed = cache_changed;
	list_init(&cache->idle);
	list_init(&cache->doomed);
	list_init(&cache->free);
	removed_init(&cache->removed);
	for (uint32_t i = 0; i < cnt + ENTRIES_SPARE; i++)
		list_add_tail(&cache->free, &cache->all[i].link);
	mem_shown_start();
	cache->part = mem_part_open(WEFT_MEM_PART_CACHE);
	return cache;
}

static int create(const struct mem_pin_ops *ops, void *device,
		  const struct mem_cache_limits *limits, struct mem_watch *watch, int refused,
		  struct mem_cache **out)
{
	struct mem_cache *cache = make(ops, device, limits);
	int ret = cache ? 0 : -FI_ENOMEM;

	if (cache && watch)
		ret = start(cache, watch);
	if (watch && ret)
		watch->ops->close(watch);
	if (!cache)
		return ret;
	cache->refused = ret ? ret : refused;
	platform_fork_watch(&fork_watcher);
	pthread_mutex_lock(&caches_lock);
	list_add_tail(&caches, &cache->caches);
	pthread_mutex_unlock(&caches_lock);
	*out = cache;
	return 0;
}

int mem_cache_create_watched(const struct mem_pin_ops *ops, void *device,
			     const struct mem_cache_limits *limits, struct mem_watch *watch,
			     struct mem_cache **cache)
{
	return create(ops, device, limits, watch, watch ? 0 : -FI_ENOSYS, cache);
}

int mem_cache_create(const struct mem_pin_ops *ops, void *device,
		     const struct mem_cache_limits *limits, struct mem_cache **cache)
{
	struct mem_watch *watch = NULL;
	int refused = mem_uffd_watch_open(&watch);

	return create(ops, device, limits, watch, refused, cache);
}

int mem_cache_refused(const struct mem_cache *cache)
{
	return cache->refused;
}

/* Nothing tells of changes any more, and nobody gets a reference. */
static void unregister_all(struct mem_cache *cache)
{
	platform_lock(&cache->lock);
	while (!list_empty(&cache->idle))
		cache_entry_kill_locked(
			cache, container_of(cache->idle.next, struct cache_entry, link));
	platform_unlock(&cache->lock);
	cache_drain(cache);
	assert(!cache->stats.entries);
}

void mem_cache_destroy(struct mem_cache *cache)
{
	if (!cache)
		return;
	pthread_mutex_lock(&caches_lock);
	list_remove(&cache->caches);
	pthread_mutex_unlock(&caches_lock);
	if (cache->watch) {
		cache->watch->ops->close(cache->watch);
		platform_thread_stop(&cache->reaper);
		platform_bell_close(&cache->doom);
	}
	if (!atomic_load_explicit(&cache->child, memory_order_relaxed)) {
		unregister_all(cache);
		platform_lock_fini(&cache->lock);
	}
	mem_part_close(cache->part);
	platform_free(cache);
}

void mem_cache_stats(struct mem_cache *cache, struct mem_cache_stats *stats)
{
	if (atomic_load_explicit(&cache->child, memory_order_relaxed)) {
		*stats = (struct mem_cache_stats){ 0 };
		return;
	}
	platform_lock(&cache->lock);
	*stats = cache->stats;
	platform_unlock(&cache->lock);
}
