/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* See fake_arena.h. */
#include "fake_arena.h"

struct fake_arena fake_arena;

struct arena *arena_started(void)
{
	return fake_arena.started ? &fake_arena.arena : NULL;
}

void arena_watch(struct arena *arena, struct arena_watcher *watcher)
{
	platform_lock(&arena->lock);
	list_add_tail(&arena->watchers, &watcher->link);
	platform_unlock(&arena->lock);
}

void arena_unwatch(struct arena *arena, struct arena_watcher *watcher)
{
	platform_lock(&arena->lock);
	list_remove(&watcher->link);
	platform_unlock(&arena->lock);
}

void fake_arena_start(uintptr_t base, const uint32_t *slots, uint32_t chunk_cnt)
{
	struct arena *arena = &fake_arena.arena;
	uint32_t slot = 0;

	*arena = (struct arena){ .base = base, .chunk_cnt = chunk_cnt };
	for (uint32_t i = 0; i < chunk_cnt; i++) {
		arena->chunks[i] = (struct arena_chunk){ .base = base + slot * ARENA_SLOT,
							 .len = slots[i] * ARENA_SLOT };
		for (uint32_t n = 0; n < slots[i]; n++, slot++)
			arena->slots[slot] = arena_slot_word(i, n, slots[i] - n) |
					     ARENA_SLOT_OPEN;
	}
	arena->len = slot * ARENA_SLOT;
	platform_lock_init(&arena->lock);
	list_init(&arena->watchers);
	fake_arena.started = true;
}
