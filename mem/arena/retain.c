/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Retention: freed ranges keep their pages, since what is allocated next is likely to want them, up to
 * a share of the memory that the machine has, or that the process's control groups may use. Called with the arena's lock held.
 */
#include "limit.h"
#include "ranges.h"
#include "retain.h"

/* Of the memory that this process may use, 1 / RETAIN_SHARE may be kept. */
#define RETAIN_SHARE 8u

static size_t retain_max(void)
{
	struct limit limit;

	limit_process(&limit);
	return limit.most / RETAIN_SHARE;
}

void retain_trim_locked(struct arena *arena, size_t keep)
{
	struct arena_ranges *r = arena->ranges;
	size_t spared = 0;

	while (r->quarantined > keep + spared) {
		struct arena_range *range = ranges_oldest(arena);
		size_t len = range->len;

		if (arena_revoke_locked(arena, range->chunk, range->base, len)) {
			ranges_spare(arena, range);
			arena->shown[WEFT_MEM_ARENA_SPARED]++;
			spared += len;
			continue;
		}
		ranges_punched(arena, range);
	}
	arena_show_locked(arena);
}

void retain_freed_locked(struct arena *arena)
{
	static size_t most;

	if (!most)
		most = retain_max();
	if (arena->ranges->quarantined > most)
		retain_trim_locked(arena, most - most / 8);
}
