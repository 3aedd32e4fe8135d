/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Entries of the cache, what changes do to them, and unregistering them. */
#include "entries.h"

static struct cache_entry *entry_of(struct interval *range)
{
	return container_of(range, struct cache_entry, range);
}

_Static_assert((int)WEFT_MEM_CACHE_ONCE_REFUSED + (int)MEM_ONCE_CNT ==
		       (int)WEFT_MEM_CACHE_EVICTED,
	       "every reason is shown");

void cache_show_locked(const struct mem_cache *cache)
{
	const struct mem_cache_stats *stats = &cache->stats;
	uint64_t counts[WEFT_MEM_CACHE_COUNTS] = {
		[WEFT_MEM_CACHE_HITS] = stats->hits,
		[WEFT_MEM_CACHE_MISSES] = stats->misses,
		[WEFT_MEM_CACHE_EVICTED] = stats->evictions,
		[WEFT_MEM_CACHE_CAUGHT] = stats->caught,
		[WEFT_MEM_CACHE_UNMAPPED] = stats->unmapped,
		[WEFT_MEM_CACHE_MOVED] = stats->moved,
		[WEFT_MEM_CACHE_REMOVED] = stats->removed,
		[WEFT_MEM_CACHE_MISSED] = stats->missed,
		[WEFT_MEM_CACHE_FORKED] = stats->forked,
		[WEFT_MEM_CACHE_BYTES] = stats->bytes,
		[WEFT_MEM_CACHE_ENTRIES] = stats->entries,
	};

	for (int why = 0; why < MEM_ONCE_CNT; why++)
		counts[WEFT_MEM_CACHE_ONCE_REFUSED + why] = stats->once[why];
	mem_part_show(cache->part, counts, WEFT_MEM_CACHE_COUNTS);
}

struct cache_entry *cache_entry_take_locked(struct mem_cache *cache,
					    const struct cache_want *want)
{
	struct list *link = list_pop(&cache->free);
	struct cache_entry *entry;

	if (!link)
		return NULL;
	entry = container_of(link, struct cache_entry, link);
	entry->range.start = want->start;
	entry->range.end = want->end;
	entry->access = want->access;
	entry->users = 1;
	entry->state = ENTRY_PINNING;
	intervals_insert(&cache->entries, &entry->range);
	cache->stats.bytes += want->end - want->start;
	cache->stats.entries++;
	return entry;
}

/* What is doomed is not counted: whoever makes room by that unregisters it before anything else. */
static void uncount_locked(struct mem_cache *cache, const struct cache_entry *entry)
{
	cache->stats.bytes -= entry->range.end - entry->range.start;
	cache->stats.entries--;
}

void cache_entry_kill_locked(struct mem_cache *cache, struct cache_entry *entry)
{
	intervals_remove(&cache->entries, &entry->range);
	entry->state = ENTRY_DEAD;
	if (!entry->users) {
		list_remove(&entry->link);
		cache_entry_doom_locked(cache, entry);
	}
}

void cache_entry_doom_locked(struct mem_cache *cache, struct cache_entry *entry)
{
	uncount_locked(cache, entry);
	list_add_tail(&cache->doomed, &entry->link);
}

static void free_locked(struct mem_cache *cache, struct cache_entry *entry)
{
	entry->state = ENTRY_FREE;
	list_insert_after(&cache->free, &entry->link);
}

void cache_entry_drop_locked(struct mem_cache *cache, struct cache_entry *entry)
{
	uncount_locked(cache, entry);
	free_locked(cache, entry);
}

bool cache_entry_evict_locked(struct mem_cache *cache)
{
	struct cache_entry *entry;

	if (list_empty(&cache->idle))
		return false;
	entry = container_of(cache->idle.next, struct cache_entry, link);
	cache->watch->ops->remove(cache->watch, entry->range.start, entry->range.end);
	cache_entry_kill_locked(cache, entry);
	cache->stats.evictions++;
	return true;
}

static uint64_t *counter_of(struct mem_cache *cache, enum mem_change_kind kind)
{
	switch (kind) {
	case MEM_UNMAPPED:
		return &cache->stats.unmapped;
	case MEM_MOVED:
		return &cache->stats.moved;
	case MEM_REMOVED:
		return &cache->stats.removed;
	default:
		return &cache->stats.missed;
	}
}

/*
 * What is left of an entry is watched no more, but where pages were removed: those addresses are remembered
 * until it is told that they were unmapped.
 */
static void kill_range_locked(struct mem_cache *cache, uintptr_t start, uintptr_t end,
			      bool watched_on, uint64_t *counter)
{
	struct interval *range;

	while ((range = intervals_first(&cache->entries, start, end))) {
		struct cache_entry *entry = entry_of(range);

		if (!watched_on)
			cache->watch->ops->remove(cache->watch, range->start, range->end);
		cache_entry_kill_locked(cache, entry);
		(*counter)++;
	}
}

void cache_changed(struct mem_watcher *watcher, const struct mem_change *change)
{
	struct mem_cache *cache = container_of(watcher, struct mem_cache, watcher);

	kill_range_locked(cache, change->start, change->end, change->kind == MEM_REMOVED,
			  counter_of(cache, change->kind));
	switch (change->kind) {
	case MEM_UNMAPPED:
		removed_drop(&cache->removed, change->start, change->end);
		break;
	case MEM_MOVED:
		removed_drop(&cache->removed, change->start, change->end);
		cache->watch->ops->remove(cache->watch, change->start, change->end);
		break;
	case MEM_REMOVED:
		/* Watched still, or again: it is to be told when they are unmapped. */
		cache->watch->ops->add(cache->watch, change->start, change->end);
		removed_add(&cache->removed, change->start, change->end);
		break;
	case MEM_MISSED:
		removed_add(&cache->removed, change->start, change->end);
		break;
	}
	cache_show_locked(cache);
	if (!list_empty(&cache->doomed))
		platform_bell_ring(&cache->doom);
}

void cache_forked_locked(struct mem_cache *cache)
{
	kill_range_locked(cache, 0, UINTPTR_MAX, false, &cache->stats.forked);
	cache_show_locked(cache);
	if (!list_empty(&cache->doomed))
		platform_bell_ring(&cache->doom);
}

bool cache_drain(struct mem_cache *cache)
{
	bool any = false;
	struct list *link;

	platform_lock(&cache->lock);
	cache->draining++;
	while ((link = list_pop(&cache->doomed))) {
		struct cache_entry *entry = container_of(link, struct cache_entry, link);

		platform_unlock(&cache->lock);
		cache->ops->unpin(cache->device, entry->handle);
		any = true;
		platform_lock(&cache->lock);
		free_locked(cache, entry);
	}
	cache->draining--;
	platform_unlock(&cache->lock);
	return any;
}
