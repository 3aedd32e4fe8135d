/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Grains and ranges that are registered with a device: see pin.h. Any thread. What ends a registration
 * is in ending.c, and which one where there is no room for another in room.c.
 *
 * The arena takes pages away under its own lock, after all watchers have agreed. A grain that was
 * registered again between the two would keep the old pages. So it is barred from the agreement
 * on, and whoever wants it next takes and releases the arena's lock first.
 */
#include <unistd.h>
#include <rdma/fi_errno.h>
#include "cache.h"
#include "memlock.h"
#include "pins.h"

#define GRAIN_MAX ((size_t)2 << 20)
#define GRAIN_MIN ((size_t)64 << 10)
/* For a range that is registered already: each caller has its own copy, for holders or for users */
#define HOT inline __attribute__((always_inline))
/* Grains for which there is room at least within the limit of locked memory. */
#define GRAINS_LEAST 8u

/* Gives up what a ref has of a range of grains. */
static HOT void grains_put(const struct mem_pins *pins, uint64_t first, uint64_t cnt, bool hold)
{
	for (uint64_t i = first; i < first + cnt; i++) {
		if (hold)
			grain_unhold(grain_at(pins, i));
		else
			grain_unuse(grain_at(pins, i));
	}
}

/* There was no room, even after all grains without users were given up. */
static void pins_spent(struct mem_pins *pins)
{
	bool before;

	platform_lock(&pins->lock);
	before = pins->spent;
	pins->spent = true;
	platform_unlock(&pins->lock);
	if (!before && pins->config.spent)
		pins->config.spent(pins->config.device);
}

struct mem_cache *mem_pins_cache(const struct mem_pins *pins)
{
	/* A:pins.cache  pairs R:pins.cache */
	return atomic_load_explicit(&pins->cache, memory_order_acquire);
}

/*
 * Starts the cache, if that was not done: it has a thread, which costs a program without others what
 * locks cost between threads. Returns 0 or -FI_E*.
 */
static int pins_cache_start(struct mem_pins *pins)
{
	struct mem_cache_limits limits = { 0 };
	struct mem_cache *cache;
	int err = 0;

	if (mem_pins_cache(pins))
		return 0;
	/* The grains have the other half. */
	if (sys_memlock_limit() != UINT64_MAX)
		limits.bytes = sys_memlock_limit() / 2;
	platform_lock(&pins->pin_lock);
	if (!mem_pins_cache(pins)) {
		err = mem_cache_create(pins->config.ops, pins->config.device, &limits, &cache);
		if (!err)
			/* R:pins.cache  pairs A:pins.cache */
			atomic_store_explicit(&pins->cache, cache, memory_order_release);
	}
	platform_unlock(&pins->pin_lock);
	return err;
}

/*
 * A grain that is not ready becomes this thread's to register. Returns false if it has become ready:
 * its end was given up. The pin lock is held.
 */
static bool grain_begin(struct mem_pins *pins, struct arena *arena, struct grain *grain)
{
	uint64_t word;

	for (;;) {
		platform_lock(&pins->lock);
		word = atomic_load_explicit(&grain->word, memory_order_relaxed);
		if (!(word & (WORD_BARRED | WORD_READY)))
			atomic_store_explicit(&grain->word, WORD_PINNING, memory_order_relaxed);
		platform_unlock(&pins->lock);
		if (!(word & WORD_BARRED))
			return !(word & WORD_READY);
		platform_lock(&arena->lock);
		platform_lock(&pins->lock);
		atomic_store_explicit(&grain->word, 0, memory_order_relaxed);
		platform_unlock(&pins->lock);
		platform_unlock(&arena->lock);
	}
}

/* Registers a grain, with one user. Returns 0 or -FI_E*. The pin lock is held. */
static int grain_pin(struct mem_pins *pins, struct arena *arena, uint64_t index,
		     struct grain *grain)
{
	void *addr = (void *)(arena->base + (index << pins->grain_shift));
	uint64_t handle = 0;
	int err;

	do {
		if (grain_use(grain))
			return 0;
	} while (!grain_begin(pins, arena, grain));
	do {
		err = pins->config.ops->pin(pins->config.device, addr, grain_len(pins),
					    pins->config.access, &handle);
	} while (mem_pins_make_room(pins, err));
	platform_lock(&pins->lock);
	if (!err) {
		grain->handle = handle;
		grain->used_ns = platform_now_ns();
		list_add_tail(&pins->recent, &grain->link);
		pins->stats.grains++;
		pins->stats.pinned++;
		mem_pins_show_locked(pins);
	}
	/* R:grain.ready  the handle before the word; pairs A:grain.ready */
	atomic_store_explicit(&grain->word, err ? 0 : WORD_READY | 1, memory_order_release);
	platform_unlock(&pins->lock);
	return err == -FI_ENOSPC ? -FI_ENOMEM : err;
}

/*
 * The arena may have asked the watchers already, and be giving this process other pages: it is done when its
 * lock is free. Whom it asks from now on finds what the caller has noted.
 */
static void arena_settle(struct arena *arena)
{
	platform_lock(&arena->lock);
	platform_unlock(&arena->lock);
}

/* Returns a grain, which is made if its slot has none yet, or NULL without memory. */
static struct grain *grain_made(struct mem_pins *pins, struct arena *arena, uint64_t index)
{
	struct grain *part = platform_alloc(sizeof(*part) << pins->part_shift);

	if (!part)
		return NULL;
	/* R:pins.parts  the zeroed words before the pointer; pairs A:pins.parts */
	atomic_store_explicit(&pins->parts[index >> pins->part_shift], part,
			      memory_order_release);
	/* There was none to bar. */
	arena_settle(arena);
	return &part[index & pins->part_mask];
}

static int grain_get(struct mem_pins *pins, struct arena *arena, uint64_t index)
{
	struct grain *grain = grain_at(pins, index);
	int err = -FI_ENOMEM;

	if (likely(grain && grain_use(grain)))
		return 0;
	platform_lock(&pins->pin_lock);
	grain = grain_at(pins, index);
	if (!grain)
		grain = grain_made(pins, arena, index);
	if (grain)
		err = grain_pin(pins, arena, index, grain);
	platform_unlock(&pins->pin_lock);
	return err;
}

/* grain_get_held() of a grain that was not ready */
static int grain_get_then_hold(struct mem_pins *pins, struct arena *arena, uint64_t index)
{
	int err = grain_get(pins, arena, index);
	struct grain *grain;

	if (err)
		return err;
	/* It stays ready as long as it has a user: it is held before that one goes. */
	grain = grain_at(pins, index);
	grain_hold_more(grain);
	grain_unuse(grain);
	return 0;
}

/* grain_get(), for a holder */
static HOT int grain_get_held(struct mem_pins *pins, struct arena *arena, uint64_t index)
{
	struct grain *grain = grain_at(pins, index);

	return likely(grain && grain_hold(grain, &pins->barriers))
		       ? 0
		       : grain_get_then_hold(pins, arena, index);
}

/* Registers a range of the arena by grains. Returns 0 or -FI_E*: nothing is held. */
static HOT int grains_get(struct mem_pins *pins, struct arena *arena, uintptr_t addr,
			  size_t len, bool hold, struct mem_pin_ref *ref)
{
	uint64_t first = (addr - arena->base) >> pins->grain_shift;
	uint64_t last = (addr + len - 1 - arena->base) >> pins->grain_shift;
	int err;

	for (uint64_t i = first; i <= last; i++) {
		err = hold ? grain_get_held(pins, arena, i) : grain_get(pins, arena, i);
		if (unlikely(err)) {
			grains_put(pins, first, i - first, hold);
			return err;
		}
	}
	*ref = (struct mem_pin_ref){ .first = first, .cnt = last - first + 1 };
	return 0;
}

static void own_remove(struct mem_pins *pins, struct mem_pin_own *own)
{
	platform_lock(&pins->lock);
	list_remove(&own->link);
	pins->stats.own--;
	mem_pins_show_locked(pins);
	platform_unlock(&pins->lock);
	platform_free(own);
}

/* Returns whether a range has addresses of the arena. */
static bool meets_arena(const struct arena *arena, uintptr_t addr, size_t len)
{
	return arena && addr < arena->base + arena->len && addr + (len - 1) >= arena->base;
}

/* Takes a range by itself. It is known to the arena's watcher before the device has it. */
static int own_get(struct mem_pins *pins, uintptr_t addr, size_t len, uint64_t access,
		   struct mem_pin_ref *ref)
{
	/* A:pins.arena  pairs R:pins.arena */
	struct arena *arena = atomic_load_explicit(&pins->arena, memory_order_acquire);
	int err = pins_cache_start(pins);
	struct mem_pin_own *own = err ? NULL : platform_alloc(sizeof(*own));

	if (!own)
		return err ? err : -FI_ENOMEM;
	own->addr = addr;
	own->len = len;
	platform_lock(&pins->lock);
	list_add_tail(&pins->own, &own->link);
	pins->stats.own++;
	mem_pins_show_locked(pins);
	platform_unlock(&pins->lock);
	if (meets_arena(arena, addr, len))
		arena_settle(arena);
	do {
		err = mem_cache_get(mem_pins_cache(pins), (void *)addr, len, access,
				    &own->cached);
	} while (mem_pins_make_room(pins, err));
	if (err) {
		own_remove(pins, own);
		return err == -FI_ENOSPC ? -FI_ENOMEM : err;
	}
	*ref = (struct mem_pin_ref){ .own = own };
	return 0;
}

/* own_get() for what grains do not have. @err: -FI_ENOMEM: there was no room for them */
static int pins_get_own(struct mem_pins *pins, const void *addr, size_t len, uint64_t access,
			int err, struct mem_pin_ref *ref)
{
	if (pins->child)
		return -FI_EOPBADSTATE;
	if (err == -FI_ENOMEM)
		pins_spent(pins);
	err = own_get(pins, (uintptr_t)addr, len, access, ref);
	if (err == -FI_ENOMEM)
		pins_spent(pins);
	return err;
}

/* pins_arena(), where none is known */
static struct arena *pins_arena_look(struct mem_pins *pins)
{
	struct arena *arena;

	if (pins->child || !arena_started())
		return NULL;
	platform_lock(&pins->pin_lock);
	arena = atomic_load_explicit(&pins->arena, memory_order_relaxed);
	if (!arena) {
		arena = arena_started();
		/* R:pins.arena  pairs A:pins.arena. The watcher reads it too. */
		atomic_store_explicit(&pins->arena, arena, memory_order_release);
		arena_watch(arena, &pins->watcher);
	}
	platform_unlock(&pins->pin_lock);
	return arena;
}

/* Returns the arena, which may have started since the last time, or NULL. */
static HOT struct arena *pins_arena(struct mem_pins *pins)
{
	/* A:pins.arena  pairs R:pins.arena */
	struct arena *arena = atomic_load_explicit(&pins->arena, memory_order_acquire);

	return likely(arena) ? arena : pins_arena_look(pins);
}

static HOT int pins_get(struct mem_pins *pins, const void *addr, size_t len, uint64_t access,
			bool hold, struct mem_pin_ref *ref)
{
	struct arena *arena = pins_arena(pins);
	struct arena_place place;
	int err = 0;

	if (unlikely(!len || len - 1 > UINTPTR_MAX - (uintptr_t)addr))
		return -FI_EINVAL;
	if (likely(!(access & ~pins->config.access) && arena_find(arena, addr, len, &place))) {
		err = grains_get(pins, arena, (uintptr_t)addr, len, hold, ref);
		if (likely(!err))
			return 0;
	}
	return pins_get_own(pins, addr, len, access, err, ref);
}

int mem_pins_get(struct mem_pins *pins, const void *addr, size_t len, uint64_t access,
		 struct mem_pin_ref *ref)
{
	return pins_get(pins, addr, len, access, false, ref);
}

int mem_pins_hold(struct mem_pins *pins, const void *addr, size_t len, uint64_t access,
		  struct mem_pin_ref *ref)
{
	return pins_get(pins, addr, len, access, true, ref);
}

static void pins_put_own(struct mem_pins *pins, const struct mem_pin_ref *ref)
{
	if (pins->child) {
		platform_free(ref->own);
		return;
	}
	mem_cache_put(mem_pins_cache(pins), &ref->own->cached);
	own_remove(pins, ref->own);
}

void mem_pins_put(struct mem_pins *pins, const struct mem_pin_ref *ref)
{
	if (likely(!ref->own))
		grains_put(pins, ref->first, ref->cnt, false);
	else
		pins_put_own(pins, ref);
}

void mem_pins_unhold(struct mem_pins *pins, const struct mem_pin_ref *ref)
{
	if (likely(!ref->own))
		grains_put(pins, ref->first, ref->cnt, true);
	else
		pins_put_own(pins, ref);
}

uint64_t mem_pins_handle(const struct mem_pins *pins, const struct mem_pin_ref *ref,
			 const void *addr, size_t *len)
{
	uintptr_t at = (uintptr_t)addr;
	const struct arena *arena;

	if (ref->own) {
		*len = ref->own->addr + ref->own->len - at;
		return ref->own->cached.handle;
	}
	arena = atomic_load_explicit(&pins->arena, memory_order_relaxed);
	at -= arena->base;
	*len = grain_len(pins) - (at & (grain_len(pins) - 1));
	return grain_at(pins, at >> pins->grain_shift)->handle;
}

/* Returns the grain for a limit of locked memory. */
static size_t grain_default(void)
{
	uint64_t limit = sys_memlock_limit();
	size_t grain = GRAIN_MAX;

	while (grain > GRAIN_MIN && limit / grain < GRAINS_LEAST)
		grain /= 2;
	return grain;
}

int mem_pins_create(const struct mem_pin_config *config, struct mem_pins **out)
{
	size_t grain = config->grain ? config->grain : grain_default();
	struct mem_pins *pins;

	if (!config->ops || (grain & (grain - 1)) || grain > ARENA_SLOT ||
	    grain < (size_t)sysconf(_SC_PAGESIZE))
		return -FI_EINVAL;
	pins = platform_alloc(sizeof(*pins));
	if (!pins)
		return -FI_ENOMEM;
	pins->config = *config;
	pins->grain_shift = (uint32_t)__builtin_ctzll(grain);
	pins->part_shift = ARENA_SLOT_SHIFT - pins->grain_shift;
	pins->part_mask = (1u << pins->part_shift) - 1;
	pins->watcher.revoke = mem_pins_revoke;
	atomic_init(&pins->barriers, !platform_membarrier_open());
	platform_lock_init(&pins->pin_lock);
	platform_lock_init(&pins->lock);
	list_init(&pins->recent);
	list_init(&pins->own);
	mem_shown_start();
	pins->part = mem_part_open(WEFT_MEM_PART_PINS);
	mem_pins_show_locked(pins);
	mem_pins_list(pins);
	*out = pins;
	return 0;
}

static void unpin_all(struct mem_pins *pins)
{
	struct arena *arena = atomic_load_explicit(&pins->arena, memory_order_relaxed);
	const struct grain *grain;

	if (arena)
		arena_unwatch(arena, &pins->watcher);
	assert(list_empty(&pins->own));
	list_for_each_entry(grain, &pins->recent, link)
		pins->config.ops->unpin(pins->config.device, grain->handle);
	platform_lock_fini(&pins->lock);
	platform_lock_fini(&pins->pin_lock);
}

void mem_pins_destroy(struct mem_pins *pins)
{
	mem_pins_unlist(pins);
	if (!pins->child)
		unpin_all(pins);
	for (uint32_t i = 0; i < ARENA_SLOTS; i++)
		platform_free(atomic_load_explicit(&pins->parts[i], memory_order_relaxed));
	mem_cache_destroy(mem_pins_cache(pins));
	mem_part_close(pins->part);
	platform_free(pins);
}

void mem_pins_stats(struct mem_pins *pins, struct mem_pins_stats *stats)
{
	*stats = (struct mem_pins_stats){ .grains = 0 };
	if (pins->child)
		return;
	platform_lock(&pins->lock);
	*stats = pins->stats;
	platform_unlock(&pins->lock);
}

void mem_pins_show_locked(const struct mem_pins *pins)
{
	const struct mem_pins_stats *stats = &pins->stats;
	const uint64_t counts[WEFT_MEM_PINS_COUNTS] = {
		[WEFT_MEM_PINS_GRAIN_BYTES] = grain_len(pins),
		[WEFT_MEM_PINS_GRAINS] = stats->grains,
		[WEFT_MEM_PINS_OTHERS] = stats->own,
		[WEFT_MEM_PINS_PINNED] = stats->pinned,
		[WEFT_MEM_PINS_EVICTED] = stats->evicted,
		[WEFT_MEM_PINS_REVOKED] = stats->revoked,
	};

	mem_part_show(pins->part, counts, WEFT_MEM_PINS_COUNTS);
}
