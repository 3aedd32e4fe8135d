/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What an arena has, for the program and for tools. Any thread; some are called with the arena's lock held. */
#include "ranges.h"
#include "shown.h"

static bool is_retired(const struct arena_chunk *chunk)
{
	return atomic_load_explicit(&chunk->retired, memory_order_relaxed);
}

void arena_usage(struct arena *arena, struct arena_usage *usage)
{
	*usage = (struct arena_usage){ .chunks = 0 };
	platform_lock(&arena->lock);
	usage->live = arena->ranges->live;
	usage->quarantined = arena->ranges->quarantined;
	for (uint32_t i = 0; i < arena->chunk_cnt; i++) {
		usage->chunks += arena->chunks[i].len;
		if (is_retired(&arena->chunks[i]))
			usage->retired += arena->chunks[i].len;
	}
	platform_unlock(&arena->lock);
}

void arena_show_locked(struct arena *arena)
{
	uint64_t *shown = arena->shown;

	shown[WEFT_MEM_ARENA_LIVE_BYTES] = arena->ranges->live;
	shown[WEFT_MEM_ARENA_QUARANTINED_BYTES] = arena->ranges->quarantined;
	mem_part_show(arena->part, shown, WEFT_MEM_ARENA_COUNTS);
}

void arena_show_chunks_locked(struct arena *arena)
{
	uint64_t *shown = arena->shown;

	shown[WEFT_MEM_ARENA_BASE] = arena->base;
	shown[WEFT_MEM_ARENA_ADDRESSES] = arena->len;
	shown[WEFT_MEM_ARENA_CHUNKS] = shown[WEFT_MEM_ARENA_CHUNK_BYTES] = 0;
	shown[WEFT_MEM_ARENA_RETIRED] = shown[WEFT_MEM_ARENA_RETIRED_BYTES] = 0;
	for (uint32_t i = 0; i < arena->chunk_cnt; i++) {
		const struct arena_chunk *chunk = &arena->chunks[i];

		shown[WEFT_MEM_ARENA_CHUNKS]++;
		shown[WEFT_MEM_ARENA_CHUNK_BYTES] += chunk->len;
		if (!is_retired(chunk))
			continue;
		shown[WEFT_MEM_ARENA_RETIRED]++;
		shown[WEFT_MEM_ARENA_RETIRED_BYTES] += chunk->len;
	}
	arena_show_locked(arena);
}
