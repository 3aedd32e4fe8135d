/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Threads register ranges with a device that has too little room, one of them as the holder, while
 * another takes pages away as the arena does: whatever a thread holds, the device reaches the pages that are there. Each page has
 * a generation, which the device remembers when it looks at the page tables.
 *
 * STORM_SEED and STORM_ROUNDS: a fixed seed, and one that is new in each run, by default.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <rdma/fabric.h>
#include <rdma/fi_errno.h>
#include "fake_arena.h"
#include "fake_device.h"
#include "pin.h"
#include "seeded.h"

#define LOCAL	  (FI_SEND | FI_RECV | FI_READ | FI_WRITE)
#define GRAIN	  ((size_t)64 << 10)
#define RANGE	  ((size_t)16 << 10) /* what is allocated and freed at once */
#define RANGE_CNT 128u
#define SPAN_MAX  6u /* ranges that are registered together at most */
#define GETTERS	  3u
#define TAKING	  (-1)

static struct arena *const own = &fake_arena.arena;
static struct fake_device device;
static struct mem_pins *pins;
/* Users of a range, as the program has it allocated, or TAKING. */
static _Atomic int users[RANGE_CNT];
static _Atomic uint32_t generations[RANGE_CNT * RANGE / FAKE_PAGE];
static _Atomic bool over;
static _Atomic uint64_t got, refused, taken, kept, stale;
static uint32_t rounds;

static uint32_t next(uint64_t *seed)
{
	return (uint32_t)(seeded_random(seed) >> 33);
}

/* Adds a user to each range of a span. Returns false, with nothing changed, if one is being taken. */
static bool span_use(uint32_t first, uint32_t cnt)
{
	for (uint32_t i = first; i < first + cnt; i++) {
		int now = users[i];

		while (now != TAKING && !atomic_compare_exchange_weak(&users[i], &now, now + 1))
			;
		if (now == TAKING) {
			while (i-- > first)
				users[i]--;
			return false;
		}
	}
	return true;
}

static bool span_reached(const struct mem_pin_ref *ref, char *from, size_t left)
{
	size_t reached;

	for (; left; left -= reached, from += reached) {
		uint64_t handle = mem_pins_handle(pins, ref, from, &reached);

		reached = reached < left ? reached : left;
		if (!fake_device_reaches(&device, handle, from, reached))
			return false;
	}
	return true;
}

/* Gets a range and looks whether the device reaches it; as the holder, or as one of the others. */
static int get_range(uint64_t *seed, char *addr, size_t len, bool hold)
{
	uint64_t access = next(seed) % 8 ? LOCAL : LOCAL | FI_REMOTE_WRITE;
	struct mem_pin_ref ref;
	int err = (hold ? mem_pins_hold : mem_pins_get)(pins, addr, len, access, &ref);

	if (err)
		return err;
	for (uint32_t i = next(seed) % 4; i; i--)
		platform_yield();
	stale += !span_reached(&ref, addr, len);
	(hold ? mem_pins_unhold : mem_pins_put)(pins, &ref);
	return 0;
}

static void get_once(uint64_t *seed, bool hold)
{
	uint32_t cnt = 1 + next(seed) % SPAN_MAX, first = next(seed) % (RANGE_CNT - cnt);
	char *addr = (char *)own->base + first * RANGE;
	int err;

	if (!span_use(first, cnt))
		return;
	err = get_range(seed, addr, cnt * RANGE, hold);
	if (!err) {
		got++;
	} else if (err == -FI_ENOMEM) {
		refused++;
	} else {
		abort();
	}
	for (uint32_t i = first; i < first + cnt; i++)
		users[i]--;
}

static void *getter(void *arg)
{
	uint64_t seed = *(uint64_t *)arg;

	for (uint32_t i = 0; i < rounds; i++)
		get_once(&seed, false);
	return NULL;
}

static void *holder(void *arg)
{
	uint64_t seed = *(uint64_t *)arg;

	for (uint32_t i = 0; i < rounds; i++)
		get_once(&seed, true);
	return NULL;
}

/* Takes the pages of ranges that nobody has allocated, under the arena's lock. */
static void take_once(uint64_t *seed)
{
	uint32_t cnt = 1 + next(seed) % 8, first = next(seed) % (RANGE_CNT - cnt), have = 0;
	struct arena_place place = { .offset = first * RANGE };
	struct arena_watcher *watcher;
	int err = 0;

	while (have < cnt &&
	       atomic_compare_exchange_strong(&users[first + have], &(int){ 0 }, TAKING))
		have++;
	if (have) {
		platform_lock(&own->lock);
		list_for_each_entry(watcher, &own->watchers, link)
			err |= watcher->revoke(watcher, &place, have * RANGE);
		if (next(seed) % 2)
			platform_yield();
		for (size_t page = 0; !err && page < have * RANGE / FAKE_PAGE; page++)
			generations[place.offset / FAKE_PAGE + page]++;
		platform_unlock(&own->lock);
		*(err ? &kept : &taken) += 1;
	}
	while (have)
		users[first + --have] = 0;
}

static bool has_revoked(void)
{
	struct mem_pins_stats stats;

	mem_pins_stats(pins, &stats);
	return taken && stats.revoked;
}

static void *taker(void *arg)
{
	uint64_t seed = *(uint64_t *)arg;

	/* pages of grains that were registered, too, however late this thread has begun */
	while (!over || !has_revoked()) {
		if (over)
			get_once(&seed, false);
		take_once(&seed);
	}
	return NULL;
}

static void storm(uint64_t seed, size_t room)
{
	struct mem_pin_config config = {
		.ops = &fake_device_ops, .device = &device, .grain = GRAIN, .access = LOCAL
	};
	void *(*const roles[GETTERS + 1])(void *) = { holder, getter, getter, taker };
	uint64_t seeds[GETTERS + 1];
	pthread_t threads[GETTERS + 1];
	struct mem_pins_stats stats;

	over = false;
	got = refused = taken = kept = stale = 0;
	fake_device_init(&device);
	device.room = room;
	device.delay_ns = seed % 2 * 3000;
	device.generations = generations;
	device.base = own->base;
	device.page_cnt = RANGE_CNT * RANGE / FAKE_PAGE;
	assert_int_equal(mem_pins_create(&config, &pins), 0);
	for (uint32_t i = 0; i <= GETTERS; i++) {
		seeds[i] = seed + i;
		assert_int_equal(pthread_create(&threads[i], NULL, roles[i], &seeds[i]), 0);
	}
	for (uint32_t i = 0; i <= GETTERS; i++) {
		pthread_join(threads[i], NULL);
		over = i + 1 >= GETTERS;
	}
	mem_pins_stats(pins, &stats);
	print_message(
		"seed %llu, room for %zu grains: got %llu, refused %llu, taken %llu, kept %llu, "
		"registered %llu, evicted %llu, revoked %llu, stale %llu\n",
		(unsigned long long)seed, room / GRAIN, (unsigned long long)got,
		(unsigned long long)refused, (unsigned long long)taken, (unsigned long long)kept,
		(unsigned long long)stats.pinned, (unsigned long long)stats.evicted,
		(unsigned long long)stats.revoked, (unsigned long long)stale);
	assert_true(stale == 0);
	assert_true(stats.own == 0 && stats.grains == device.pinned);
	assert_true(stats.pinned <= device.made);
	assert_true(got && taken && stats.revoked && (stats.evicted || room > 4 * GRAIN));
	mem_pins_destroy(pins);
	fake_device_fini(&device);
}

static void nothing_that_is_held_is_stale(void **state)
{
	const char *seed = getenv("STORM_SEED"), *cnt = getenv("STORM_ROUNDS");
	uint64_t fresh = seed ? strtoull(seed, NULL, 0) : platform_now_ns() * 2;

	rounds = cnt ? (uint32_t)strtoul(cnt, NULL, 0) : 20000;
	fake_arena_start(fake_addresses(ARENA_SLOT, ARENA_SLOT), &(uint32_t){ 1 }, 1);
	for (size_t room = 4; room <= 24; room += 20) {
		storm(1, room * GRAIN);
		storm(fresh, room * GRAIN);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_that_is_held_is_stale),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
