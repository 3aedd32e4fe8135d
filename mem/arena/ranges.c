/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The ranges of an arena: best fit by bins, neighbours joined when one is freed. Called with the
 * arena's lock held.
 */
#include <rdma/fi_errno.h>
#include "leave.h"
#include "ranges.h"
#include "reserve.h"

/* Ranges of a bin that are compared with a request; larger bins hold only ranges that fit. */
#define LOOK_MAX 32u

/* Bytes that are mapped for structs of ranges at a time. */
#define SPARE_LEN ((size_t)16 << 10)

static struct arena_range **start_of(const struct arena *arena, uint32_t chunk, uintptr_t at)
{
	const struct arena_ranges *r = arena->ranges;

	return &r->starts[chunk][(at - arena->chunks[chunk].base) / r->page];
}

/* Returns the bin of ranges of @len bytes. */
static uint32_t bin_of(const struct arena_ranges *r, size_t len)
{
	uint64_t pages = len / r->page;
	uint32_t log = 63 - (uint32_t)__builtin_clzll(pages);
	uint32_t quarter = log < 2 ? (uint32_t)(pages << (2 - log))
				   : (uint32_t)(pages >> (log - 2));

	return log * 4 + (quarter & 3);
}

static struct arena_bins *bins_of(const struct arena *arena, const struct arena_range *range)
{
	return &arena->ranges->free[arena->chunks[range->chunk].kind][range->state];
}

/* A free range begins to be found. Those of a retired chunk are not. */
static void bin_insert(struct arena *arena, struct arena_range *range)
{
	struct arena_bins *b = bins_of(arena, range);
	uint32_t bin = bin_of(arena->ranges, range->len);

	if (range->state == RANGE_QUARANTINE) {
		list_add_tail(&arena->ranges->aged, &range->aged);
		arena->ranges->quarantined += range->len;
	}
	if (arena->chunks[range->chunk].retired)
		return;
	list_add_tail(&b->bins[bin], &range->alike);
	b->filled[bin / 64] |= 1ull << bin % 64;
}

static void bin_remove(struct arena *arena, struct arena_range *range)
{
	struct arena_bins *b = bins_of(arena, range);
	uint32_t bin = bin_of(arena->ranges, range->len);

	if (range->state == RANGE_QUARANTINE) {
		list_remove(&range->aged);
		arena->ranges->quarantined -= range->len;
	}
	list_remove(&range->alike);
	if (list_empty(&b->bins[bin]))
		b->filled[bin / 64] &= ~(1ull << bin % 64);
}

/* Maps memory for more of them, if there is none to spare. */
static void spare_make(struct arena_ranges *r)
{
	size_t len = r->page < SPARE_LEN ? SPARE_LEN : r->page;
	struct arena_range *made = r->spare ? NULL : sys_reserve_zero(len);

	for (size_t i = 0; made && i < len / sizeof(*made); i++) {
		made[i].after = r->spare;
		r->spare = &made[i];
	}
}

static void range_end(struct arena_ranges *r, struct arena_range *range)
{
	range->after = r->spare;
	r->spare = range;
}

static struct arena_range *range_new(struct arena *arena, uint32_t chunk, uintptr_t base,
				     size_t len)
{
	struct arena_ranges *r = arena->ranges;
	struct arena_range *range;

	spare_make(r);
	range = r->spare;
	if (!range)
		return NULL;
	r->spare = range->after;
	*range = (struct arena_range){ .base = base, .len = len, .chunk = chunk };
	list_init(&range->alike);
	list_init(&range->aged);
	*start_of(arena, chunk, base) = range;
	return range;
}

/* Divides a range that is in no bin, @len bytes from its beginning. Returns the second part or NULL. */
static struct arena_range *range_split(struct arena *arena, struct arena_range *range,
				       size_t len)
{
	struct arena_range *rest = range_new(arena, range->chunk, range->base + len,
					     range->len - len);

	if (!rest)
		return NULL;
	rest->state = range->state;
	rest->before = range;
	rest->after = range->after;
	if (rest->after)
		rest->after->before = rest;
	range->after = rest;
	range->len = len;
	return rest;
}

/* Adds the range behind it to a range. Neither is in a bin. */
static void range_absorb(struct arena *arena, struct arena_range *range)
{
	struct arena_range *next = range->after;

	range->len += next->len;
	range->after = next->after;
	if (range->after)
		range->after->before = range;
	*start_of(arena, next->chunk, next->base) = NULL;
	range_end(arena->ranges, next);
}

/* A range has become free: it joins those of its neighbours that are free in the same way. */
static void range_free(struct arena *arena, struct arena_range *range)
{
	struct arena_range *before = range->before, *next = range->after;

	if (next && next->state == range->state) {
		bin_remove(arena, next);
		range_absorb(arena, range);
	}
	if (before && before->state == range->state) {
		bin_remove(arena, before);
		range_absorb(arena, before);
		range = before;
	}
	bin_insert(arena, range);
}

struct arena_ranges *ranges_create(size_t page)
{
	struct arena_ranges *r = sys_reserve_zero(sizeof(*r));

	if (!r)
		return NULL;
	r->page = page;
	list_init(&r->aged);
	for (int kind = 0; kind < ARENA_KINDS; kind++)
		for (int state = 0; state < RANGE_FREE_STATES; state++)
			for (uint32_t bin = 0; bin < RANGE_BINS; bin++)
				list_init(&r->free[kind][state].bins[bin]);
	return r;
}

void ranges_destroy(struct arena_ranges *r)
{
	sys_reserve_end(r, sizeof(*r));
}

int ranges_add_chunk(struct arena *arena, uint32_t idx)
{
	const struct arena_chunk *chunk = &arena->chunks[idx];
	struct arena_ranges *r = arena->ranges;
	size_t len = chunk->len / r->page * sizeof(void *);
	struct arena_range *range;

	r->starts[idx] = sys_reserve_zero(len);
	if (!r->starts[idx])
		return -FI_ENOMEM;
	range = range_new(arena, idx, chunk->base, chunk->len);
	if (!range) {
		sys_reserve_end(r->starts[idx], len);
		r->starts[idx] = NULL;
		return -FI_ENOMEM;
	}
	range->state = RANGE_PUNCHED;
	bin_insert(arena, range);
	return 0;
}

void ranges_drop_chunk(struct arena *arena, uint32_t chunk)
{
	struct arena_ranges *r = arena->ranges;
	struct arena_range *range = r->starts[chunk] ? r->starts[chunk][0] : NULL, *next;

	for (; range; range = next) {
		next = range->after;
		bin_remove(arena, range);
		range_end(r, range);
	}
	sys_reserve_end(r->starts[chunk], arena->chunks[chunk].len / r->page * sizeof(void *));
	r->starts[chunk] = NULL;
}

/* Returns where @len bytes begin in a range, SIZE_MAX if it does not have them. */
static size_t range_fits(const struct arena_range *range, size_t len, size_t align)
{
	size_t skip = -range->base & (align - 1);

	return skip <= range->len && len <= range->len - skip ? skip : SIZE_MAX;
}

/* Returns a range of these bins that has the room, and where that begins, or NULL. */
static struct arena_range *bins_find(const struct arena *arena, const struct arena_bins *b,
				     size_t len, size_t align, size_t *skip)
{
	uint32_t bin = bin_of(arena->ranges, len), looked = 0;

	while (bin < RANGE_BINS) {
		uint64_t left = b->filled[bin / 64] & ~0ull << bin % 64;
		struct arena_range *range;

		if (!left) {
			bin = (bin / 64 + 1) * 64;
			continue;
		}
		bin = bin / 64 * 64 + (uint32_t)__builtin_ctzll(left);
		list_for_each_entry(range, &b->bins[bin], alike) {
			*skip = range_fits(range, len, align);
			if (*skip != SIZE_MAX)
				return range;
			if (++looked % LOOK_MAX == 0)
				break;
		}
		bin++;
	}
	return NULL;
}

/* Cuts a LIVE range out of a free one, which is in no bin. Returns it, or NULL without memory. */
static struct arena_range *range_cut(struct arena *arena, struct arena_range *range,
				     size_t skip, size_t len)
{
	struct arena_range *rest;

	if (range->len - skip > len) {
		rest = range_split(arena, range, skip + len);
		if (!rest)
			return NULL;
		bin_insert(arena, rest);
	}
	if (skip) {
		rest = range_split(arena, range, skip);
		if (!rest)
			return NULL;
		bin_insert(arena, range);
		range = rest;
	}
	range->state = RANGE_LIVE;
	return range;
}

struct arena_range *ranges_take(struct arena *arena, size_t len, size_t align,
				enum arena_kind kind, enum range_state *state)
{
	struct arena_range *range, *taken;
	size_t skip;

	/* with pages first */
	for (*state = RANGE_QUARANTINE; *state < RANGE_FREE_STATES; (*state)++) {
		range = bins_find(arena, &arena->ranges->free[kind][*state], len, align, &skip);
		if (!range)
			continue;
		bin_remove(arena, range);
		taken = range_cut(arena, range, skip, len);
		if (!taken) {
			range_free(arena, range);
			return NULL;
		}
		arena->ranges->live += len;
		arena->chunks[taken->chunk].live += len;
		if (arena->ranges->quarantined < arena->ranges->least)
			arena->ranges->least = arena->ranges->quarantined;
		return taken;
	}
	return NULL;
}

struct arena_range *ranges_at(const struct arena *arena, const void *addr)
{
	uintptr_t at = (uintptr_t)addr;
	uint32_t idx = arena_slot_chunk(arena_slot_at(arena, at));
	struct arena_range *range;

	if (!idx || !arena->ranges->starts[idx - 1])
		return NULL;
	range = *start_of(arena, idx - 1, at);
	return range && range->base == at && range->state == RANGE_LIVE ? range : NULL;
}

struct arena_range *ranges_part(struct arena *arena, const void *addr, size_t len)
{
	uintptr_t at = (uintptr_t)addr;
	uint32_t idx = arena_slot_chunk(arena_slot_at(arena, at));
	struct arena_range **start, *range;

	if (!idx || !arena->ranges->starts[idx - 1])
		return NULL;
	start = start_of(arena, idx - 1, at);
	/* One begins where the chunk does. */
	while (!*start)
		start--;
	range = *start;
	if (range->state != RANGE_LIVE)
		return NULL;
	if (range->base < at)
		range = range_split(arena, range, at - range->base);
	if (range && range->len > len && !range_split(arena, range, len))
		return NULL;
	return range;
}

void ranges_give(struct arena *arena, struct arena_range *range, enum range_state state)
{
	arena->ranges->live -= range->len;
	arena->chunks[range->chunk].live -= range->len;
	range->state = state;
	range_free(arena, range);
}

void ranges_retire(struct arena *arena, uint32_t chunk)
{
	struct arena_ranges *r = arena->ranges;
	struct arena_range *range = r->starts[chunk] ? r->starts[chunk][0] : NULL;

	for (; range; range = range->after) {
		if (range->state == RANGE_LIVE)
			continue;
		bin_remove(arena, range);
		if (range->state == RANGE_QUARANTINE)
			arena_revoke_locked(arena, chunk, range->base, range->len);
		range->state = RANGE_PUNCHED;
	}
}

struct arena_range *ranges_oldest(const struct arena *arena)
{
	struct list *aged = &arena->ranges->aged;

	return list_empty(aged) ? NULL : container_of(aged->next, struct arena_range, aged);
}

struct arena_range *ranges_divide(struct arena *arena, struct arena_range *range, uintptr_t at)
{
	struct arena_range *rest;

	bin_remove(arena, range);
	rest = range_split(arena, range, at - range->base);
	bin_insert(arena, range);
	/* the oldest again, as it was */
	list_remove(&range->aged);
	list_insert_after(&arena->ranges->aged, &range->aged);
	if (rest)
		bin_insert(arena, rest);
	return rest;
}

void ranges_spare(struct arena *arena, struct arena_range *range)
{
	bin_remove(arena, range);
	range_free(arena, range);
}

void ranges_punched(struct arena *arena, struct arena_range *range)
{
	bin_remove(arena, range);
	range->state = RANGE_PUNCHED;
	range_free(arena, range);
}
