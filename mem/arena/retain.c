/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Retention: freed ranges keep their pages, since what is allocated next is likely to want them, within
 * bounds. Any thread.
 */
#include "leave.h"
#include "limit.h"
#include "ranges.h"
#include "retain.h"

/* Of the memory that this process may use, 1 / RETAIN_SHARE may be kept. */
#define RETAIN_SHARE 8u
/* No more pages are taken away in one hold of the lock. */
#define RETAIN_STEP ((size_t)8 << 20)

static void allow_locked(struct arena *arena)
{
	size_t half = arena->room / 2;

	atomic_store_explicit(&arena->allowed, half < arena->share ? half : arena->share,
			      memory_order_relaxed);
}

void retain_limit_locked(struct arena *arena, const struct limit *limit)
{
	arena->share = limit->most / RETAIN_SHARE;
	arena->room = limit->room;
	allow_locked(arena);
}

/* Returns what has been in quarantine for the longest time, and only the end of it if that has @len bytes. */
static struct arena_range *oldest_part(struct arena *arena, size_t len)
{
	struct arena_range *range = ranges_oldest(arena), *part;
	uintptr_t at = (range->base + range->len - len) & ~(RETAIN_GRAIN - 1);

	/* The beginning is what is allocated next. */
	if (range->len <= len || at <= range->base)
		return range;
	part = ranges_divide(arena, range, at);
	return part ? part : range;
}

/* Takes pages away, of about @most bytes. Returns the bytes. */
static size_t trim_locked(struct arena *arena, size_t keep, size_t most)
{
	struct arena_ranges *r = arena->ranges;
	size_t given = 0, spared = 0;

	while (given < most && r->quarantined > keep && r->quarantined - keep > spared) {
		size_t need = r->quarantined - keep - spared, left = most - given;
		struct arena_range *range = oldest_part(arena, need < left ? need : left);
		size_t len = range->len;

		if (arena_revoke_locked(arena, range->chunk, range->base, len)) {
			ranges_spare(arena, range);
			arena->shown[WEFT_MEM_ARENA_SPARED]++;
			spared += len;
			continue;
		}
		ranges_punched(arena, range);
		given += len;
	}
	if (given || spared)
		arena_show_locked(arena);
	return given;
}

size_t arena_trim(struct arena *arena, size_t keep)
{
	size_t given = 0, step;

	do {
		platform_lock(&arena->lock);
		step = arena->lost ? 0 : trim_locked(arena, keep, RETAIN_STEP);
		platform_unlock(&arena->lock);
		given += step;
	} while (step);
	return given;
}

/* What is beyond goes at once, and a little more, so that the next free does not have to take pages away. */
void retain_freed_locked(struct arena *arena)
{
	size_t allowed = atomic_load_explicit(&arena->allowed, memory_order_relaxed);

	if (arena->ranges->quarantined > allowed)
		trim_locked(arena, allowed - allowed / 8, SIZE_MAX);
}

void retain_fresh_locked(struct arena *arena, size_t len)
{
	arena->room -= len < arena->room ? len : arena->room;
	allow_locked(arena);
	retain_freed_locked(arena);
}
