/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Reading a peer's chunks. */
#include <errno.h>
#include <rdma/fi_errno.h>
#include "reader.h"

struct arena_held {
	struct arena_held *next;
	struct arena_peer_chunk *chunk;
};

/* Entries that there is room for at first. */
#define ROOM_MIN 16u
/*
 * What one call does: entries that are looked at, and chunks that are mapped, some 10 us each. Who looks for an
 * address tries few: one chunk has it, and another one if it has just come into the place of the first.
 */
#define ENTRIES_AT_ONCE 1024u
#define MAPS_AT_ONCE	16u
#define FINDS_AT_ONCE	4u

static uint32_t entry_cnt(const struct arena_reader *reader)
{
	uint32_t cnt = atomic_load_explicit(&reader->directory->head.cnt, memory_order_relaxed);

	return cnt <= ARENA_CHUNKS ? cnt : ARENA_CHUNKS;
}

/* Makes room for the mapping of a chunk. Returns false if there is no memory. */
static bool room_make(struct arena_reader *reader, uint32_t chunk)
{
	uint32_t room = reader->room ? reader->room : ROOM_MIN;
	struct arena_mapping *maps;

	if (likely(chunk < reader->room))
		return true;
	while (room <= chunk)
		room *= 2;
	maps = platform_alloc(room * sizeof(*maps));
	if (!maps)
		return false;
	if (reader->room)
		memcpy(maps, reader->maps, reader->room * sizeof(*maps));
	platform_free(reader->maps);
	reader->maps = maps;
	reader->room = room;
	return true;
}

int arena_reader_open(struct arena_reader *reader, const struct arena_peer_id *id)
{
	struct arena_reader made = { .room = 0 };
	int err;

	if (!room_make(&made, 0))
		return -FI_ENOMEM;
	err = arena_peer_get(id, &made.peer);
	if (err) {
		platform_free(made.maps);
		return err;
	}
	made.directory = made.peer->directory;
	*reader = made;
	return 0;
}

static void held_end(struct arena_held *held)
{
	arena_peer_unmap(held->chunk);
	platform_free(held);
}

/* Lets go of what was kept for those who may have used it. */
static void stale_end(struct arena_reader *reader)
{
	struct arena_held *held;

	while ((held = reader->stale)) {
		reader->stale = held->next;
		held_end(held);
	}
}

void arena_reader_close(struct arena_reader *reader)
{
	if (!reader->peer)
		return;
	for (uint32_t i = 0; i < reader->cnt; i++)
		if (reader->maps[i].held)
			held_end(reader->maps[i].held);
	stale_end(reader);
	platform_free(reader->maps);
	arena_peer_put(reader->peer);
	*reader = (struct arena_reader){ .cnt = 0 };
}

static uint64_t entry_serial(const struct arena_reader *reader, uint32_t chunk)
{
	return arena_peer_serial(reader->directory, chunk);
}

/* The chunk of a mapping is no more: it is kept until nobody uses it. */
static void mapping_end(struct arena_reader *reader, struct arena_mapping *map)
{
	if (map->held) {
		map->held->next = reader->stale;
		reader->stale = map->held;
	}
	*map = (struct arena_mapping){ .addr = NULL };
}

/* Maps what the entry says. Returns 0; -FI_EAGAIN: it is another chunk's by now; or -FI_E*. */
static int mapping_open(struct arena_reader *reader, uint32_t chunk, uint64_t serial,
			struct arena_mapping *map)
{
	struct arena_held *held = platform_alloc(sizeof(*held));
	const struct arena_peer_chunk *mapped;
	int err;

	if (!held)
		return -FI_ENOMEM;
	err = arena_peer_map(reader->peer, chunk, serial, &held->chunk);
	if (err) {
		platform_free(held);
		return err;
	}
	mapped = held->chunk;
	*map = (struct arena_mapping){
		.addr = mapped->addr,
		.base = mapped->base,
		.len = mapped->len,
		.serial = serial,
		.number = ++reader->number,
		.held = held,
		.writable = mapped->writable,
	};
	return 0;
}

/* Returns whether another chunk may be mapped in this call. */
static bool may_try(struct arena_reader *reader)
{
	if (!reader->trials || reader->failures == ARENA_READER_FAILURES)
		return false;
	reader->trials--;
	return true;
}

static bool may_be_there_later(int err)
{
	return err == -FI_EMFILE || err == -ENFILE || err == -FI_ENOMEM || err == -FI_EAGAIN;
}

/* A chunk could not be mapped. @unmapped: what had been unmapped before. It fails once, however often it is tried. */
static void mapping_fail(struct arena_reader *reader, uint64_t serial, int err,
			 uint32_t unmapped, struct arena_mapping *map)
{
	bool failed = map->refused;

	map->serial = serial;
	map->refused = !may_be_there_later(err);
	map->beyond = err == -FI_E2BIG;
	map->unmapped = unmapped;
	reader->failures += map->refused && !failed;
	reader->beyond |= err == -FI_E2BIG || reader->failures == ARENA_READER_FAILURES;
}

/* Returns whether nothing has changed for a chunk that can't be mapped. */
static bool stays_refused(const struct arena_mapping *map)
{
	return map->refused && (!map->beyond || map->unmapped == arena_peers_unmapped());
}

/* Returns the mapping of a chunk that is there now, or NULL. @chunk: below entry_cnt() */
static const struct arena_mapping *mapping_of(struct arena_reader *reader, uint32_t chunk)
{
	struct arena_mapping *map;
	uint32_t unmapped;
	uint64_t serial;
	int err;

	if (!room_make(reader, chunk))
		return NULL;
	map = &reader->maps[chunk];
	serial = entry_serial(reader, chunk);
	if (likely(map->serial == serial && (map->addr || stays_refused(map))))
		return map->addr ? map : NULL;
	if (map->serial != serial)
		mapping_end(reader, map);
	if (!serial || !may_try(reader))
		return NULL;
	unmapped = arena_peers_unmapped();
	err = mapping_open(reader, chunk, serial, map);
	if (err) {
		mapping_fail(reader, serial, err, unmapped, map);
		return NULL;
	}
	if (chunk >= reader->cnt)
		reader->cnt = chunk + 1;
	return map;
}

static bool is_retired(const struct arena_reader *reader, uint32_t chunk)
{
	/* S:arena.used  after what says that we use it; pairs S:arena.retired */
	return atomic_load_explicit(&reader->directory->entries[chunk].retired,
				    memory_order_seq_cst);
}

bool arena_reader_valid(const struct arena_reader *reader, uint32_t chunk, uint64_t number)
{
	const struct arena_mapping *map = &reader->maps[chunk];

	return !is_retired(reader, chunk) && map->number == number &&
	       entry_serial(reader, chunk) == map->serial;
}

/* Returns where a range of a mapping is, or NULL. */
static void *mapping_at(const struct arena_reader *reader, const struct arena_mapping *map,
			uint64_t offset, uint64_t len, bool store)
{
	if (offset > map->len || len > map->len - offset || (store && !map->writable) ||
	    !arena_reader_valid(reader, (uint32_t)(map - reader->maps), map->number))
		return NULL;
	return map->addr + offset;
}

/* Returns true if the peer says that it has the address in that chunk. */
static bool entry_has(const struct arena_reader *reader, uint32_t chunk, uint64_t addr)
{
	const struct arena_mapping *map = chunk < reader->cnt ? &reader->maps[chunk] : NULL;
	const struct arena_entry *entry = &reader->directory->entries[chunk];
	uint64_t serial = entry_serial(reader, chunk);

	if (map && map->addr && map->serial == serial)
		return addr - map->base < map->len;
	return serial && addr - *(const volatile uint64_t *)&entry->base <
				 *(const volatile uint64_t *)&entry->len;
}

/* Returns the mapping of a chunk if it has the address, else NULL. */
static const struct arena_mapping *mapping_has(struct arena_reader *reader, uint32_t chunk,
					       uint64_t addr)
{
	const struct arena_mapping *map;

	if (!entry_has(reader, chunk, addr))
		return NULL;
	map = mapping_of(reader, chunk);
	return map && addr - map->base < map->len ? map : NULL;
}

void *arena_reader_find(struct arena_reader *reader, uint64_t addr, uint64_t len, bool store)
{
	uint32_t cnt = entry_cnt(reader);
	const struct arena_mapping *map = NULL;

	reader->trials = FINDS_AT_ONCE;
	if (reader->last < cnt)
		map = mapping_has(reader, reader->last, addr);
	for (uint32_t i = 0; !map && i < cnt; i++) {
		map = mapping_has(reader, i, addr);
		if (map)
			reader->last = i;
	}
	return map ? mapping_at(reader, map, addr - map->base, len, store) : NULL;
}

const void *arena_reader_lent(const struct arena_reader *reader, uint32_t chunk,
			      uint32_t serial, uint64_t offset, uint64_t len)
{
	const struct arena_mapping *map;

	if (chunk >= reader->cnt)
		return NULL;
	map = &reader->maps[chunk];
	return map->addr && (uint32_t)map->serial == serial && offset <= map->len &&
			       len <= map->len - offset
		       ? map->addr + offset
		       : NULL;
}

/* Maps a chunk, if it has a serial up to that of the pass. */
static void pass_look(struct arena_reader *reader, struct arena_pass *pass)
{
	uint64_t serial = entry_serial(reader, pass->idx);

	if (!serial || serial > pass->until || mapping_of(reader, pass->idx))
		return;
	/* a chunk that has been retired keeps no other one waiting: nothing of it will be lent */
	if (entry_serial(reader, pass->idx) == serial && !is_retired(reader, pass->idx))
		pass->until = serial - 1;
}

uint64_t arena_reader_map_until(struct arena_reader *reader, uint64_t serial)
{
	struct arena_pass *pass = &reader->pass;
	uint32_t cnt = entry_cnt(reader);

	if (!pass->idx)
		pass->until = serial;
	reader->trials = MAPS_AT_ONCE;
	for (uint32_t i = 0; i < ENTRIES_AT_ONCE && pass->idx < cnt && reader->trials; i++) {
		pass_look(reader, pass);
		pass->idx++;
	}
	if (pass->idx < cnt)
		return 0;
	pass->idx = 0;
	return pass->until;
}

bool arena_reader_touch(const struct arena_reader *reader, uint32_t chunk, const char *at,
			uint64_t len)
{
	const struct arena_held *held = reader->maps[chunk].held;

	/* it may be another chunk's by now: then nothing is copied */
	return held && (uintptr_t)at - (uintptr_t)held->chunk->addr < held->chunk->len &&
	       arena_peer_touch(held->chunk, at, len);
}

void arena_reader_tidy(struct arena_reader *reader)
{
	/* A:arena.dropped  before the serials; pairs R:arena.dropped */
	uint32_t dropped = atomic_load_explicit(&reader->directory->head.dropped,
						memory_order_acquire);

	if (unlikely(dropped != reader->dropped)) {
		reader->dropped = dropped;
		for (uint32_t i = 0; i < reader->cnt; i++)
			if (reader->maps[i].serial != entry_serial(reader, i))
				mapping_end(reader, &reader->maps[i]);
	}
	stale_end(reader);
}
