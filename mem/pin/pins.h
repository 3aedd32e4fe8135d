/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What a struct mem_pins is, for pin.c, which registers, ending.c, which ends registrations, and room.c,
 * which says whose. Any thread, with the locks that are named here.
 */
#ifndef WEFT_MEM_PINS_H
#define WEFT_MEM_PINS_H

#include "arena.h"
#include "cache.h"
#include "grain.h"
#include "pin.h"
#include "shown.h"

/* A range by itself, in use. */
struct mem_pin_own {
	struct list link;
	uintptr_t addr;
	size_t len;
	struct mem_cache_ref cached;
};

struct mem_pins {
	struct mem_pin_config config;
	/* of all of the process, and threads that give up something of it for others: their lock in room.c */
	struct list all;
	uint32_t visitors;
	/*
	 * In the child of a fork: the device is the parent's, with all that is registered. No lock is taken
	 * and no list looked at, since a thread that is gone may have been there.
	 */
	bool child;
	uint32_t grain_shift;
	/* Grains of a slot of the arena: a power of two, its exponent, and one less */
	uint32_t part_shift;
	uint32_t part_mask;
	/* What is not registered by grains comes from it, once there was such. R:pins.cache */
	struct mem_cache *_Atomic cache;
	/* The arena, once there is one; none in a child. R:pins.arena */
	struct arena *_Atomic arena;
	/* Grains of each slot of the arena, once one was asked for. R:pins.parts */
	struct grain *_Atomic parts[ARENA_SLOTS];
	struct arena_watcher watcher;
	/*
	 * Held while a grain is registered, and for as long as that takes. Rank 1, before the
	 * arena's lock. Protects the change of arena, cache, parts and words to WORD_PINNING.
	 */
	struct platform_lock pin_lock;
	/* Rank 3, after the arena's lock. Protects what follows, and words but for their users. */
	struct platform_lock lock;
	/* grains that are ready, the one that is given up first at the head */
	struct list recent;
	/* grains that are listed no more, and that the device has still */
	uint32_t giving;
	/* struct mem_pin_own */
	struct list own;
	bool spent;
	/* what ends a registration has other cores execute a barrier: holders make none (grain.h) */
	_Atomic bool barriers;
	struct mem_pins_stats stats;
	/* where tools see stats, or NULL */
	struct weft_mem_part *part;
};

/* grain_len - bytes of a grain */
static inline size_t grain_len(const struct mem_pins *pins)
{
	return (size_t)1 << pins->grain_shift;
}

/* grain_at - returns a grain of the arena, or NULL: none of its slot was asked for yet */
static inline struct grain *grain_at(const struct mem_pins *pins, uint64_t index)
{
	/* A:pins.parts  the part before its pointer; pairs R:pins.parts */
	struct grain *part = atomic_load_explicit(&pins->parts[index >> pins->part_shift],
						  memory_order_acquire);

	return part ? &part[index & pins->part_mask] : NULL;
}

/* mem_pins_show_locked - show tools the statistics after a change; pins->lock is held */
void mem_pins_show_locked(const struct mem_pins *pins);

/*
 * mem_pins_list - one of the process's from now on, whose grains others may have given up
 * mem_pins_unlist - not any more; waits for those who do
 */
void mem_pins_list(struct mem_pins *pins);
void mem_pins_unlist(struct mem_pins *pins);

/*
 * mem_pins_make_room - give up what was used least recently: of all devices, or of a device whose table is full
 * @err: of mem_pin_ops.pin
 * No lock but pin_lock is held. Returns true: another attempt may succeed; false: there is nothing, or @err is
 * of another kind.
 */
bool mem_pins_make_room(struct mem_pins *pins, int err);

/* mem_pins_oldest - when the grain was used that goes first. Returns false if all are in use */
bool mem_pins_oldest(struct mem_pins *pins, uint64_t *used_ns);

/* mem_pins_evict - give up that grain. Returns false if all are in use */
bool mem_pins_evict(struct mem_pins *pins);

/* mem_pins_revoke - arena_watcher.revoke: of all of the range, or of none; takes pins->lock */
int mem_pins_revoke(struct arena_watcher *watcher, const struct arena_place *place, size_t len);

#endif
