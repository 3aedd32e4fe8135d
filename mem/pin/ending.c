/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What ends the registration of a grain: there is no room for another one, or the arena takes pages
 * of it away. Any thread; the arena calls mem_pins_revoke() with its lock held.
 */
#include <rdma/fi_errno.h>
#include "pins.h"

/*
 * Returns the grain that was used least recently of those without users and holders, or NULL. What was used since
 * it was looked at last counts as used now. The lock is held.
 */
static struct grain *oldest_locked(struct mem_pins *pins)
{
	uint64_t cnt = pins->stats.grains, now = 0;

	for (uint64_t i = 0; i < 2 * cnt; i++) {
		struct grain *grain = container_of(pins->recent.next, struct grain, link);
		uint64_t word = atomic_fetch_and_explicit(&grain->word, ~WORD_RECENT,
							  memory_order_relaxed);

		if (!(word & (WORD_RECENT | WORD_USERS)) && !grain_is_held(grain))
			return grain;
		now = now ? now : platform_now_ns();
		grain->used_ns = now;
		list_remove(&grain->link);
		list_add_tail(&pins->recent, &grain->link);
	}
	return NULL;
}

bool mem_pins_oldest(struct mem_pins *pins, uint64_t *used_ns)
{
	struct grain *grain;

	platform_lock(&pins->lock);
	grain = oldest_locked(pins);
	if (grain)
		*used_ns = grain->used_ns;
	platform_unlock(&pins->lock);
	return grain != NULL;
}

/* Ends the registration of the first that can be: one that is used meanwhile counts as used then. */
static struct grain *end_oldest_locked(struct mem_pins *pins)
{
	struct grain *grain;

	while ((grain = oldest_locked(pins)) && !grain_end(grain, &pins->barriers))
		;
	return grain;
}

bool mem_pins_evict(struct mem_pins *pins)
{
	struct grain *grain;
	uint64_t handle = 0;

	platform_lock(&pins->lock);
	grain = end_oldest_locked(pins);
	if (grain) {
		list_remove(&grain->link);
		handle = grain->handle;
		pins->giving++;
		pins->stats.grains--;
		pins->stats.evicted++;
		mem_pins_show_locked(pins);
	}
	platform_unlock(&pins->lock);
	if (!grain)
		return false;
	pins->config.ops->unpin(pins->config.device, handle);
	platform_lock(&pins->lock);
	pins->giving--;
	platform_unlock(&pins->lock);
	return true;
}

/* Does a range by itself use this? The lock is held. */
static bool own_in_use_locked(const struct mem_pins *pins, uintptr_t addr, size_t len)
{
	const struct mem_pin_own *own;

	list_for_each_entry(own, &pins->own, link)
		if (own->addr < addr + len && addr < own->addr + own->len)
			return true;
	return false;
}

/*
 * Returns true if grains of a range have neither users nor holders: those that are registered are
 * ending then. The lock is held.
 */
static bool grains_ending_locked(struct mem_pins *pins, uint64_t first, uint64_t last)
{
	bool ending = false, free = true;
	struct grain *grain;

	for (uint64_t i = first; free && i <= last; i++) {
		grain = grain_at(pins, i);
		if (!grain)
			continue;
		free = !grain_is_held(grain) && grain_ending(grain);
		ending |= free && grain_is_ending(grain);
	}
	if (!free || !ending)
		return free;
	grain_barrier(&pins->barriers);
	for (uint64_t i = first; free && i <= last; i++) {
		grain = grain_at(pins, i);
		free = !grain || !grain_is_held(grain);
	}
	return free;
}

/* Bars a grain, and ends its registration. The lock is held. */
static void grain_revoke_locked(struct mem_pins *pins, struct grain *grain)
{
	bool ending = grain_is_ending(grain);

	atomic_store_explicit(&grain->word, WORD_BARRED, memory_order_relaxed);
	if (!ending)
		return;
	list_remove(&grain->link);
	pins->config.ops->unpin(pins->config.device, grain->handle);
	pins->stats.grains--;
	pins->stats.revoked++;
}

int mem_pins_revoke(struct arena_watcher *watcher, const struct arena_place *place, size_t len)
{
	struct mem_pins *pins = container_of(watcher, struct mem_pins, watcher);
	struct arena *arena = atomic_load_explicit(&pins->arena, memory_order_relaxed);
	uintptr_t addr = arena->chunks[place->chunk].base + place->offset;
	uint64_t first = (addr - arena->base) >> pins->grain_shift;
	uint64_t last = (addr + len - 1 - arena->base) >> pins->grain_shift;
	struct grain *grain;
	bool free;

	platform_lock(&pins->lock);
	free = !own_in_use_locked(pins, addr, len) && grains_ending_locked(pins, first, last);
	for (uint64_t i = first; i <= last; i++) {
		grain = grain_at(pins, i);
		if (grain && free)
			grain_revoke_locked(pins, grain);
		else if (grain)
			grain_stay(grain);
	}
	mem_pins_show_locked(pins);
	platform_unlock(&pins->lock);
	return free ? 0 : -FI_EBUSY;
}
