/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Room for another registration. What a process may lock is one amount for all of its devices: what some
 * domain has registered and does not use must not keep the others from registering. So the one that was used
 * least recently goes, whichever has it. Any thread; and what forks do to registrations.
 */
#include <rdma/fi_errno.h>
#include "pins.h"

/* Times that what was found idle is in use by the time it is to be given up. */
#define TRIALS 64u

/*
 * Protects the list of all, and who visits them; held during a fork. Nothing is allocated, and nothing of a
 * device called, while it is held, so that fork, which takes malloc's locks after it, waits for nobody
 * who holds those. Before the locks of which struct mem_pins says lock.
 */
static struct platform_lock all_lock = { PTHREAD_MUTEX_INITIALIZER };
static struct list all_pins = { &all_pins, &all_pins };

static void fork_prepare(void)
{
	platform_lock(&all_lock);
}

static void fork_parent(void)
{
	platform_unlock(&all_lock);
}

static void fork_child(void)
{
	struct mem_pins *pins;

	list_for_each_entry(pins, &all_pins, all) {
		pins->child = true;
		/* their threads are gone */
		pins->visitors = 0;
		/* No address is found to be registered any more. */
		atomic_store_explicit(&pins->arena, NULL, memory_order_relaxed);
	}
	platform_unlock(&all_lock);
}

static struct platform_fork fork_watcher = {
	.prepare = fork_prepare,
	.parent = fork_parent,
	.child = fork_child,
};

void mem_pins_list(struct mem_pins *pins)
{
	platform_fork_watch(&fork_watcher);
	platform_lock(&all_lock);
	list_add_tail(&all_pins, &pins->all);
	platform_unlock(&all_lock);
}

void mem_pins_unlist(struct mem_pins *pins)
{
	platform_lock(&all_lock);
	list_remove(&pins->all);
	while (pins->visitors) {
		platform_unlock(&all_lock);
		platform_yield();
		platform_lock(&all_lock);
	}
	platform_unlock(&all_lock);
}

static void visit_end(struct mem_pins *pins)
{
	platform_lock(&all_lock);
	pins->visitors--;
	platform_unlock(&all_lock);
}

/* Returns who has the idle grain that was used least recently, or NULL; visit_end() lets it be destroyed. */
static struct mem_pins *visit_oldest(void)
{
	struct mem_pins *pins, *oldest = NULL;
	uint64_t used_ns, least = UINT64_MAX;

	platform_lock(&all_lock);
	list_for_each_entry(pins, &all_pins, all) {
		if (pins->child || !mem_pins_oldest(pins, &used_ns) || used_ns >= least)
			continue;
		least = used_ns;
		oldest = pins;
	}
	if (oldest)
		oldest->visitors++;
	platform_unlock(&all_lock);
	return oldest;
}

static bool evict_oldest(void)
{
	bool evicted = false;

	for (uint32_t i = 0; i < TRIALS && !evicted; i++) {
		struct mem_pins *pins = visit_oldest();

		if (!pins)
			return false;
		evicted = mem_pins_evict(pins);
		visit_end(pins);
	}
	return evicted;
}

/* Returns the one that so many are listed before, or NULL; visit_end() lets it be destroyed. */
static struct mem_pins *visit_at(uint32_t idx)
{
	struct mem_pins *pins, *found = NULL;

	platform_lock(&all_lock);
	list_for_each_entry(pins, &all_pins, all) {
		if (pins->child || idx--)
			continue;
		found = pins;
		found->visitors++;
		break;
	}
	platform_unlock(&all_lock);
	return found;
}

static bool cache_gives(const struct mem_pins *pins)
{
	struct mem_cache *cache = mem_pins_cache(pins);

	return cache && mem_cache_give(cache);
}

static bool some_cache_gives(void)
{
	struct mem_pins *pins;
	bool gives = false;

	for (uint32_t i = 0; !gives && (pins = visit_at(i)); i++) {
		gives = cache_gives(pins);
		visit_end(pins);
	}
	return gives;
}

static bool is_giving(struct mem_pins *pins)
{
	bool giving;

	platform_lock(&pins->lock);
	giving = pins->giving;
	platform_unlock(&pins->lock);
	return giving;
}

static bool some_is_giving(void)
{
	struct mem_pins *pins;
	bool giving = false;

	platform_lock(&all_lock);
	list_for_each_entry(pins, &all_pins, all)
		giving |= !pins->child && is_giving(pins);
	platform_unlock(&all_lock);
	return giving;
}

bool mem_pins_make_room(struct mem_pins *pins, int err)
{
	bool room = false;

	if (err == -FI_ENOSPC)
		room = mem_pins_evict(pins) || cache_gives(pins) || is_giving(pins);
	else if (err == -FI_ENOMEM)
		room = evict_oldest() || cache_gives(pins) || some_cache_gives() ||
		       some_is_giving();
	return room;
}
