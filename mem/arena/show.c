/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What an arena has, for the program and for tools. Any thread; some are called with the arena's lock held. */
#include "ranges.h"
#include "shown.h"

void arena_usage(struct arena *arena, struct arena_usage *usage)
{
	*usage = (struct arena_usage){ .chunks = 0 };
	platform_lock(&arena->lock);
	usage->live = arena->ranges->live;
	usage->quarantined = arena->ranges->quarantined;
	for (uint32_t i = 0; i < arena->chunk_cnt; i++) {
		usage->chunks += arena->chunks[i].len;
		if (arena->chunks[i].retired)
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
	shown[WEFT_MEM_ARENA_ADDRESSES] = arena->usable;
	shown[WEFT_MEM_ARENA_CHUNKS] = shown[WEFT_MEM_ARENA_CHUNK_BYTES] = 0;
	shown[WEFT_MEM_ARENA_RETIRED] = shown[WEFT_MEM_ARENA_RETIRED_BYTES] = 0;
	for (uint32_t i = 0; i < arena->chunk_cnt; i++) {
		const struct arena_chunk *chunk = &arena->chunks[i];

		if (!chunk->len)
			continue;
		shown[WEFT_MEM_ARENA_CHUNKS]++;
		shown[WEFT_MEM_ARENA_CHUNK_BYTES] += chunk->len;
		if (!chunk->retired)
			continue;
		shown[WEFT_MEM_ARENA_RETIRED]++;
		shown[WEFT_MEM_ARENA_RETIRED_BYTES] += chunk->len;
	}
	arena_show_locked(arena);
}
