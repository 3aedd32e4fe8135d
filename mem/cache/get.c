/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * References to registrations. A hit is found and checked under the cache's lock. A miss lists an entry and
 * has it watched under the lock, then asks what is mapped and registers it without; what changes
 * meanwhile is told, which kills the entry. Any thread.
 */
#include <rdma/fi_errno.h>
#include "entries.h"
#include "maps.h"

static struct cache_entry *entry_of(struct interval *range)
{
	return container_of(range, struct cache_entry, range);
}

/* Returns false for a range that is empty or wraps around. */
static bool pages_of(const struct mem_cache *cache, const void *addr, size_t len,
		     uint64_t access, struct cache_want *want)
{
	uintptr_t start = (uintptr_t)addr, last;

	if (!len || __builtin_add_overflow(start, len - 1, &last) ||
	    last > UINTPTR_MAX - cache->page)
		return false;
	want->start = start & ~(cache->page - 1);
	want->end = (last & ~(cache->page - 1)) + cache->page;
	want->access = access;
	return true;
}

static bool covers(const struct cache_entry *entry, const struct cache_want *want)
{
	return entry->state == ENTRY_READY && entry->range.start <= want->start &&
	       entry->range.end >= want->end && !(want->access & ~entry->access);
}

/* Asks the watch; an entry that is not as it was is killed. Returns valid()'s answer. */
static int check_locked(struct mem_cache *cache, struct cache_entry *entry)
{
	const struct interval *r = &entry->range;
	int ret = cache->watch->ops->valid(cache->watch, r->start, r->end);

	if (ret && ret != -FI_EAGAIN) {
		cache->watch->ops->remove(cache->watch, r->start, r->end);
		cache_entry_kill_locked(cache, entry);
	}
	return ret;
}

static void use_locked(struct cache_entry *entry)
{
	if (!entry->users++)
		list_remove(&entry->link);
}

/* Returns 0: @ref is one; -FI_EAGAIN: it would be, but something changes; -FI_ENOENT: there is none. */
static int hit_locked(struct mem_cache *cache, const struct cache_want *want,
		      struct mem_cache_ref *ref)
{
	struct interval *range = intervals_first(&cache->entries, want->start, want->end);
	struct cache_entry *entry;
	int ret;

	if (!range || !covers(entry_of(range), want))
		return -FI_ENOENT;
	entry = entry_of(range);
	ret = check_locked(cache, entry);
	if (ret) {
		cache->stats.caught++;
		return ret == -FI_EAGAIN ? ret : -FI_ENOENT;
	}
	use_locked(entry);
	cache->stats.hits++;
	*ref = (struct mem_cache_ref){ .handle = entry->handle, .entry = entry };
	return 0;
}

/*
 * Makes @want the union of itself and of what it overlaps, which the new entry replaces. What is no longer
 * as it was is killed first: watching its addresses anew would make it look valid.
 * Returns 0; -FI_EBUSY: another thread registers memory there; -FI_EAGAIN: something changes.
 */
static int join_locked(struct mem_cache *cache, struct cache_want *want)
{
	uintptr_t end = want->end;
	struct interval *range;

	for (uintptr_t at = want->start; (range = intervals_first(&cache->entries, at, end));) {
		struct cache_entry *entry = entry_of(range);
		int ret;

		at = range->end;
		if (entry->state == ENTRY_PINNING)
			return -FI_EBUSY;
		ret = check_locked(cache, entry);
		if (ret == -FI_EAGAIN)
			return ret;
		if (ret)
			continue;
		want->start = range->start < want->start ? range->start : want->start;
		want->end = range->end > want->end ? range->end : want->end;
		want->access |= entry->access;
	}
	return 0;
}

/* What the new entry replaces stays watched by it. */
static void replace_locked(struct mem_cache *cache, const struct cache_want *want)
{
	struct interval *range;

	while ((range = intervals_first(&cache->entries, want->start, want->end)))
		cache_entry_kill_locked(cache, entry_of(range));
}

/* Returns true if an entry of so many bytes fits, once others were evicted. */
static bool room_locked(struct mem_cache *cache, uint64_t len)
{
	if (len > cache->bytes_max)
		return false;
	while (cache->stats.entries >= cache->entries_max ||
	       cache->stats.bytes > cache->bytes_max - len) {
		if (!cache_entry_evict_locked(cache))
			return false;
	}
	return !list_empty(&cache->free);
}

/* Lists an entry for @want, which may grow. Returns why not, or MEM_ONCE_CNT: @entry was. */
static enum mem_cache_once list_locked(struct mem_cache *cache, struct cache_want *want,
				       struct cache_entry **entry)
{
	int ret;

	if (!cache->watch)
		return MEM_ONCE_REFUSED;
	if (cache->forking)
		return MEM_ONCE_CHANGING;
	if (removed_has(&cache->removed, want->start, want->end))
		return MEM_ONCE_REMOVED;
	ret = join_locked(cache, want);
	if (ret)
		return ret == -FI_EBUSY ? MEM_ONCE_BUSY : MEM_ONCE_CHANGING;
	if (cache->watch->ops->add(cache->watch, want->start, want->end))
		return MEM_ONCE_OTHER;
	replace_locked(cache, want);
	if (!room_locked(cache, want->end - want->start)) {
		/* a change of what nobody has registered would make the program wait until it is told */
		cache->watch->ops->remove(cache->watch, want->start, want->end);
		return MEM_ONCE_FULL;
	}
	*entry = cache_entry_take_locked(cache, want);
	return MEM_ONCE_CNT;
}

bool mem_cache_give(struct mem_cache *cache)
{
	bool evicted, draining;

	platform_lock(&cache->lock);
	evicted = cache_entry_evict_locked(cache);
	draining = cache->draining;
	cache_show_locked(cache);
	platform_unlock(&cache->lock);
	return cache_drain(cache) || evicted || draining;
}

/* Registers a range; where the device has no room registrations that nobody uses are given up. */
static int pin(struct mem_cache *cache, void *addr, size_t len, uint64_t access,
	       uint64_t *handle)
{
	int ret;

	do {
		ret = cache->ops->pin(cache->device, addr, len, access, handle);
	} while ((ret == -FI_ENOMEM || ret == -FI_ENOSPC) && mem_cache_give(cache));
	return ret;
}

static int get_once(struct mem_cache *cache, void *addr, size_t len, uint64_t access,
		    struct mem_cache_ref *ref)
{
	uint64_t handle;
	int ret = pin(cache, addr, len, access, &handle);

	if (!ret)
		*ref = (struct mem_cache_ref){ .handle = handle };
	return ret;
}

static bool one_private_mapping(const struct cache_want *want)
{
	struct sys_map m;

	return !sys_maps_find((void *)want->start, &m) && m.private_anonymous &&
	       (uintptr_t)m.addr + m.len >= want->end;
}

/* Ends the registration of an entry, with what pin() returned. Returns 0: it is ready, and used once. */
static int settle_locked(struct mem_cache *cache, struct cache_entry *entry, int ret)
{
	if (!ret && entry->state == ENTRY_PINNING && !cache->forking)
		ret = check_locked(cache, entry);
	else if (!ret)
		ret = -FI_EAGAIN;
	if (!ret) {
		entry->state = ENTRY_READY;
		cache->stats.misses++;
		return 0;
	}
	if (entry->state == ENTRY_PINNING) {
		cache->watch->ops->remove(cache->watch, entry->range.start, entry->range.end);
		cache_entry_kill_locked(cache, entry);
	}
	cache_entry_drop_locked(cache, entry);
	return ret;
}

/* Registers what is listed. Returns 0: @ref is it; else it is listed no more, and @why says why. */
static int fill(struct mem_cache *cache, struct cache_entry *entry,
		const struct cache_want *want, struct mem_cache_ref *ref,
		enum mem_cache_once *why)
{
	uint64_t handle;
	int pinned = -FI_EINVAL, ret;

	*why = MEM_ONCE_OTHER;
	if (one_private_mapping(want))
		pinned = pin(cache, (void *)want->start, want->end - want->start, want->access,
			     &handle);
	platform_lock(&cache->lock);
	if (!pinned)
		entry->handle = handle;
	ret = settle_locked(cache, entry, pinned);
	cache_show_locked(cache);
	platform_unlock(&cache->lock);
	if (!ret) {
		*ref = (struct mem_cache_ref){ .handle = handle, .entry = entry };
	} else if (!pinned) {
		cache->ops->unpin(cache->device, handle);
		*why = MEM_ONCE_CHANGING;
	}
	return ret;
}

int mem_cache_get(struct mem_cache *cache, void *addr, size_t len, uint64_t access,
		  struct mem_cache_ref *ref)
{
	struct cache_entry *entry = NULL;
	enum mem_cache_once why;
	struct cache_want want;
	bool doomed;
	int ret;

	if (atomic_load_explicit(&cache->child, memory_order_relaxed))
		return -FI_EOPBADSTATE;
	if (!pages_of(cache, addr, len, access, &want))
		return -FI_EINVAL;
	platform_lock(&cache->lock);
	ret = cache->forking ? -FI_EAGAIN : hit_locked(cache, &want, ref);
	why = ret == -FI_ENOENT ? list_locked(cache, &want, &entry) : MEM_ONCE_CHANGING;
	doomed = !list_empty(&cache->doomed);
	cache_show_locked(cache);
	platform_unlock(&cache->lock);
	if (doomed)
		cache_drain(cache);
	if (!ret || (entry && !fill(cache, entry, &want, ref, &why)))
		return 0;
	platform_lock(&cache->lock);
	cache->stats.once[why]++;
	cache_show_locked(cache);
	platform_unlock(&cache->lock);
	return get_once(cache, addr, len, access, ref);
}

void mem_cache_put(struct mem_cache *cache, struct mem_cache_ref *ref)
{
	struct cache_entry *entry = ref->entry;
	bool doomed = false;

	if (atomic_load_explicit(&cache->child, memory_order_relaxed))
		return;
	if (!entry) {
		cache->ops->unpin(cache->device, ref->handle);
		return;
	}
	platform_lock(&cache->lock);
	if (!--entry->users) {
		doomed = entry->state == ENTRY_DEAD;
		if (doomed) {
			cache_entry_doom_locked(cache, entry);
			cache_show_locked(cache);
		} else {
			list_add_tail(&cache->idle, &entry->link);
		}
	}
	platform_unlock(&cache->lock);
	if (doomed)
		cache_drain(cache);
}
