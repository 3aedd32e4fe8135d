/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * An arena of the tests of this folder, which has addresses and no memory: of mem/arena it has
 * arena_started(), arena_watch() and arena_unwatch(), and arena_find() finds its chunks.
 */
#ifndef WEFT_MEM_FAKE_ARENA_H
#define WEFT_MEM_FAKE_ARENA_H

#include "arena.h"

/* What arena_started() returns while @started. */
struct fake_arena {
	struct arena arena;
	bool started;
};

extern struct fake_arena fake_arena;

/* fake_arena_start - start it anew, with chunks of so many slots each, one behind the other, at a base */
void fake_arena_start(uintptr_t base, const uint32_t *slots, uint32_t chunk_cnt);

#endif
