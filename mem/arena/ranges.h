/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What is allocated and what is free in the chunks of an arena. Each chunk is divided into ranges,
 * without gaps; see the states in arena.h. The caller holds the arena's lock, and may be in a fork handler. No allocator is
 * called: another one may take its locks around a fork before the arena's turn comes, and they are those of a thread
 * that has the arena's lock then.
 */
#ifndef WEFT_MEM_RANGES_H
#define WEFT_MEM_RANGES_H

#include "arena.h"

enum range_state {
	/* free, with pages */
	RANGE_QUARANTINE,
	/* free, without pages: never used, or PUNCHED; all that is free of ARENA_HUGE */
	RANGE_PUNCHED,
	RANGE_FREE_STATES,
	RANGE_LIVE = RANGE_FREE_STATES,
};

struct arena_range {
	uintptr_t base;
	/* bytes, a multiple of a page */
	size_t len;
	uint32_t chunk;
	enum range_state state;
	/* neighbours in the chunk, or NULL. What is spare has the next one in after */
	struct arena_range *before, *after;
	/* free: others of about the same length and state */
	struct list alike;
	/* RANGE_QUARANTINE: arena_ranges.aged */
	struct list aged;
};

/* Free ranges are kept by length: four bins for each power of two of pages. */
#define RANGE_BINS 128u

struct arena_bins {
	struct list bins[RANGE_BINS];
	/* bit i: bins[i] is not empty */
	uint64_t filled[RANGE_BINS / 64];
};

struct arena_ranges {
	size_t page;
	struct arena_bins free[ARENA_KINDS][RANGE_FREE_STATES];
	/* in quarantine, the longest first */
	struct list aged;
	/* by chunk: the range that begins at each page, or NULL */
	struct arena_range **starts[ARENA_CHUNKS];
	/* describe no range now; memory that is mapped for them stays */
	struct arena_range *spare;
	/* bytes by state; punched ones are not counted */
	size_t live, quarantined;
	/* the least bytes in quarantine at any time since the keeper looked */
	size_t least;
};

/*
 * ranges_create - returns the ranges of an arena that has no chunk, or NULL without memory
 * ranges_destroy - takes them; no chunk has any
 */
struct arena_ranges *ranges_create(size_t page);
void ranges_destroy(struct arena_ranges *ranges);

/*
 * ranges_add_chunk - make a free range of a chunk that has been added. Returns 0 or -FI_ENOMEM
 * ranges_drop_chunk - a chunk in which nothing is LIVE is about to end
 */
int ranges_add_chunk(struct arena *arena, uint32_t chunk);
void ranges_drop_chunk(struct arena *arena, uint32_t chunk);

/*
 * ranges_take - make a range LIVE
 * @len, @align: multiples of a page
 * @state: out: what it was before
 * Returns it, or NULL: no free one has the room.
 */
struct arena_range *ranges_take(struct arena *arena, size_t len, size_t align,
				enum arena_kind kind, enum range_state *state);

/* ranges_at - returns the LIVE range that begins at @addr, or NULL */
struct arena_range *ranges_at(const struct arena *arena, const void *addr);

/*
 * ranges_part - make a LIVE range of its own of what one has from @addr on, @len bytes or up to its end
 * @addr, @len: multiples of a page
 * Returns it, or NULL: @addr is not in a LIVE range, or there is no memory.
 */
struct arena_range *ranges_part(struct arena *arena, const void *addr, size_t len);

/*
 * ranges_give - free a LIVE range
 * @state: what it becomes; in a retired chunk nothing is allocated again
 * It may join its neighbours: @range is not valid afterwards.
 */
void ranges_give(struct arena *arena, struct arena_range *range, enum range_state state);

/*
 * ranges_retire - nothing is allocated in a chunk any more, which has been retired. What was free gives its
 * pages back, where nobody uses them
 */
void ranges_retire(struct arena *arena, uint32_t chunk);

/* ranges_oldest - returns the range that has been in quarantine for the longest time, or NULL */
struct arena_range *ranges_oldest(const struct arena *arena);

/*
 * ranges_divide - divide a range of the quarantine at an address inside it
 * Returns the second part; the first one keeps its age. Without memory: NULL, and nothing happened.
 */
struct arena_range *ranges_divide(struct arena *arena, struct arena_range *range, uintptr_t at);

/*
 * ranges_spare - a range of the quarantine keeps its pages for now: it is the youngest again, and may join
 *	its neighbours
 * ranges_punched - its pages are gone. It may join its neighbours: @range is not valid afterwards
 */
void ranges_spare(struct arena *arena, struct arena_range *range);
void ranges_punched(struct arena *arena, struct arena_range *range);

#endif
