/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Registrations with a device that counts, of an arena of the test's own, which has no memory. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <cmocka.h>
#include <rdma/fabric.h>
#include <rdma/fi_errno.h>
#include "cache.h"
#include "fake_arena.h"
#include "fake_device.h"
#include "fault.h"
#include "pin.h"

#define GRAIN	    ((size_t)2 << 20)
#define LOCAL	    (FI_SEND | FI_RECV | FI_READ | FI_WRITE)
#define SLOT_CNT    3u
#define DEADLINE_NS 20000000000u

/* One chunk of two slots, and one of one. */
static struct arena *const own = &fake_arena.arena;
static struct fake_device device;
static struct mem_pins *pins;
static int times_spent;

static void arena_start(void)
{
	static const uint32_t slots[] = { 2, 1 };
	static uintptr_t base;

	if (!base)
		base = fake_addresses(SLOT_CNT * ARENA_SLOT, ARENA_SLOT);
	fake_arena_start(base, slots, 2);
}

static void *at(size_t offset)
{
	return (void *)(own->base + offset);
}

static void is_spent(void *arg)
{
	assert_ptr_equal(arg, &device);
	times_spent++;
}

static int open_pins(void **state)
{
	struct mem_pin_config config = { .ops = &fake_device_ops,
					 .device = &device,
					 .grain = GRAIN,
					 .access = LOCAL,
					 .spent = is_spent };

	arena_start();
	times_spent = 0;
	fake_device_init(&device);
	return mem_pins_create(&config, &pins);
}

static int close_pins(void **state)
{
	mem_pins_destroy(pins);
	assert_true(list_empty(&own->watchers));
	fake_device_fini(&device);
	return 0;
}

/* Gets and has it in the device; returns the ref. */
static struct mem_pin_ref get(void *addr, size_t len)
{
	struct mem_pin_ref ref;
	size_t left = len, reached;

	assert_int_equal(mem_pins_get(pins, addr, len, LOCAL, &ref), 0);
	for (char *from = addr; left; from += reached) {
		uint64_t handle = mem_pins_handle(pins, &ref, from, &reached);

		reached = reached < left ? reached : left;
		assert_true(fake_device_reaches(&device, handle, from, reached));
		left -= reached;
	}
	return ref;
}

static int revoke(size_t offset, size_t len)
{
	struct arena_place place = { .chunk = offset / (2 * ARENA_SLOT),
				     .offset = offset % (2 * ARENA_SLOT) };
	struct arena_watcher *watcher;
	int err;

	platform_lock(&own->lock);
	watcher = container_of(own->watchers.next, struct arena_watcher, link);
	err = watcher->revoke(watcher, &place, len);
	platform_unlock(&own->lock);
	return err;
}

static void a_grain_is_registered_once(void **state)
{
	struct mem_pin_ref refs[3];
	struct mem_pins_stats stats;

	refs[0] = get(at(4096), 64);
	refs[1] = get(at(GRAIN - 8), 8);
	mem_pins_put(pins, &refs[0]);
	mem_pins_put(pins, &refs[1]);
	refs[2] = get(at(0), GRAIN);
	assert_int_equal(device.made, 1);
	assert_int_equal(device.pinned_len, GRAIN);
	assert_int_equal(refs[2].cnt, 1);
	mem_pins_put(pins, &refs[2]);
	mem_pins_stats(pins, &stats);
	assert_true(stats.grains == 1 && stats.pinned == 1 && stats.own == 0);
}

static void a_range_has_all_the_grains_that_it_touches(void **state)
{
	/* over the end of a slot, in one chunk */
	struct mem_pin_ref ref = get(at(ARENA_SLOT - GRAIN - 1), GRAIN + 2);

	assert_int_equal(device.made, 3);
	assert_int_equal(ref.cnt, 3);
	mem_pins_put(pins, &ref);
	/* over the end of a chunk: two files, so it is registered by itself */
	ref = get(at(2 * ARENA_SLOT - 8), 16);
	assert_non_null(ref.own);
	assert_int_equal(device.made, 4);
	mem_pins_put(pins, &ref);
	assert_int_equal(device.pinned, 3);
}

static void other_memory_and_other_access_are_registered_by_themselves(void **state)
{
	struct mem_pin_ref ref, more;
	struct mem_pins_stats stats;
	static char other[64] = { 1 }; /* of a file: mem/cache does not keep it */

	ref = get(other, sizeof(other));
	assert_int_equal(device.pinned_len, sizeof(other));
	mem_pins_put(pins, &ref);
	assert_int_equal(device.pinned, 0);
	assert_int_equal(mem_pins_get(pins, at(100), 50, LOCAL | FI_REMOTE_WRITE, &more), 0);
	assert_int_equal(device.pinned_len, 50);
	assert_true(device.pins[mem_pins_handle(pins, &more, at(100), &(size_t){ 0 })].access &
		    FI_REMOTE_WRITE);
	mem_pins_stats(pins, &stats);
	assert_true(stats.own == 1 && stats.grains == 0);
	mem_pins_put(pins, &more);
	assert_int_equal(mem_pins_get(pins, other, 0, LOCAL, &ref), -FI_EINVAL);
	assert_int_equal(mem_pins_get(pins, other, SIZE_MAX, LOCAL, &ref), -FI_EINVAL);
	own->slots[2] &= ~ARENA_SLOT_OPEN;
	ref = get(at(2 * ARENA_SLOT), 8);
	assert_non_null(ref.own);
	mem_pins_put(pins, &ref);
}

/* What the program allocates itself comes from the cache, which has to be able to watch it. */
static void other_memory_is_kept_where_it_is_watched(void **state)
{
	const size_t len = 64 << 10;
	struct mem_cache_stats stats = { 0 };
	uint64_t made = 0, end = platform_now_ns() + DEADLINE_NS;
	struct mem_pin_ref ref, grains;
	void *mem;

	assert_null(mem_pins_cache(pins));
	ref = get(&device, 1);
	mem_pins_put(pins, &ref);
	assert_non_null(mem_pins_cache(pins));
	if (mem_cache_refused(mem_pins_cache(pins))) {
		print_message("skip: userfaultfd is refused\n");
		skip();
	}
	mem = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(mem, MAP_FAILED);
	/* While something changes, such as what the cache began with, nothing is kept. */
	while (!stats.hits && platform_now_ns() < end) {
		made = device.made;
		ref = get(mem, len);
		mem_pins_put(pins, &ref);
		mem_cache_stats(mem_pins_cache(pins), &stats);
	}
	assert_true(stats.hits > 0);
	assert_int_equal(device.made, made);
	/* It gives room to a grain, and the grain to it. */
	device.room = GRAIN;
	grains = get(at(0), 8);
	assert_null(grains.own);
	mem_pins_put(pins, &grains);
	ref = get(mem, len);
	assert_int_equal(times_spent, 0);
	mem_pins_put(pins, &ref);
	assert_int_equal(munmap(mem, len), 0);
}

static void the_least_recently_used_goes_first(void **state)
{
	struct mem_pin_ref ref;
	uint64_t made;

	device.room = 4 * GRAIN;
	for (size_t i = 0; i < 4; i++) {
		ref = get(at(i * GRAIN), 8);
		mem_pins_put(pins, &ref);
	}
	ref = get(at(4 * GRAIN), 8); /* the first of them is given up */
	mem_pins_put(pins, &ref);
	ref = get(at(GRAIN), 8);
	mem_pins_put(pins, &ref);
	made = device.made;
	ref = get(at(5 * GRAIN), 8); /* the third, since the second was used again */
	mem_pins_put(pins, &ref);
	ref = get(at(GRAIN), 8);
	mem_pins_put(pins, &ref);
	assert_int_equal(device.made, made + 1);
	assert_int_equal(device.pinned, 4);
	assert_int_equal(times_spent, 0);
}

static void what_is_in_use_stays_and_the_rest_fails(void **state)
{
	struct mem_pin_ref held[2], ref;

	device.room = 2 * GRAIN + 4096;
	held[0] = get(at(0), 8);
	held[1] = get(at(GRAIN), 8);
	/* no room for a grain, but for the range */
	ref = get(at(2 * GRAIN), 4096);
	assert_non_null(ref.own);
	assert_int_equal(times_spent, 1);
	/* none for a range either: nothing is taken of the first grain */
	assert_int_equal(
		mem_pins_get(pins, at(GRAIN), 2 * GRAIN, LOCAL, &(struct mem_pin_ref){ 0 }),
		-FI_ENOMEM);
	assert_int_equal(times_spent, 1);
	mem_pins_put(pins, &ref);
	mem_pins_put(pins, &held[0]);
	mem_pins_put(pins, &held[1]);
	/* all are given up for what has to be registered by itself */
	assert_int_equal(mem_pins_get(pins, (void *)4096, 2 * GRAIN + 1, LOCAL, &ref), 0);
	assert_int_equal(device.pinned, 1);
	mem_pins_put(pins, &ref);
}

static void the_errors_of_a_device_are_passed_on(void **state)
{
	struct mem_pin_ref ref;

	device.refuse = -FI_EFAULT;
	assert_int_equal(mem_pins_get(pins, at(0), 8, LOCAL, &ref), -FI_EFAULT);
	assert_int_equal(mem_pins_get(pins, (void *)8, 8, LOCAL, &ref), -FI_EFAULT);
	assert_int_equal(times_spent, 0);
	device.refuse = 0;
	ref = get(at(0), 8);
	assert_null(ref.own);
	mem_pins_put(pins, &ref);
}

static void what_the_arena_takes_is_given_up_unless_it_is_used(void **state)
{
	struct mem_pin_ref ref = get(at(GRAIN), 8), alone;
	struct mem_pins_stats stats;

	assert_int_equal(revoke(GRAIN + 8192, 4096), -FI_EBUSY);
	assert_int_equal(revoke(0, 4 * GRAIN), -FI_EBUSY);
	assert_int_equal(revoke(0, GRAIN), 0);
	assert_int_equal(revoke(2 * ARENA_SLOT, ARENA_SLOT), 0);
	mem_pins_put(pins, &ref);
	assert_int_equal(revoke(GRAIN + 8192, 4096), 0);
	assert_int_equal(device.pinned, 0);
	ref = get(at(GRAIN), 8);
	assert_null(ref.own);
	assert_int_equal(device.made, 2);
	mem_pins_put(pins, &ref);
	assert_int_equal(mem_pins_get(pins, at(8 * GRAIN), 50, FI_REMOTE_READ, &alone), 0);
	assert_int_equal(revoke(8 * GRAIN - 4096, 4096), 0);
	assert_int_equal(revoke(8 * GRAIN, 4096), -FI_EBUSY);
	mem_pins_put(pins, &alone);
	assert_int_equal(revoke(8 * GRAIN, 4096), 0);
	mem_pins_stats(pins, &stats);
	assert_true(stats.grains == 1 && stats.revoked == 1 && stats.evicted == 0);
}

static void what_is_held_is_in_use(void **state)
{
	struct mem_pin_ref held, ref;
	struct mem_pins_stats stats;

	device.room = GRAIN;
	assert_int_equal(mem_pins_hold(pins, at(GRAIN), 8, LOCAL, &held), 0);
	assert_null(held.own);
	assert_true(fake_device_reaches(
		&device, mem_pins_handle(pins, &held, at(GRAIN), &(size_t){ 0 }), at(GRAIN), 8));
	assert_int_equal(revoke(0, 4 * GRAIN), -FI_EBUSY);
	assert_int_equal(mem_pins_get(pins, at(0), 8192, LOCAL, &ref), -FI_ENOMEM);
	/* it is ready still: a further one finds it without registering it again */
	assert_int_equal(mem_pins_hold(pins, at(GRAIN), 8, LOCAL, &ref), 0);
	mem_pins_unhold(pins, &held);
	assert_int_equal(revoke(GRAIN, 4096), -FI_EBUSY);
	mem_pins_unhold(pins, &ref);
	assert_int_equal(device.made, 1);
	ref = get(at(0), 8);
	mem_pins_put(pins, &ref);
	mem_pins_stats(pins, &stats);
	assert_true(stats.evicted == 1 && stats.revoked == 0);
	assert_int_equal(revoke(0, GRAIN), 0);
	assert_int_equal(mem_pins_hold(pins, at(0), 8, LOCAL, &held), 0);
	mem_pins_unhold(pins, &held);
	assert_int_equal(device.made, 3);
}

static void *wait_for_lock(void *arg)
{
	platform_lock(&own->lock);
	platform_unlock(&own->lock);
	return NULL;
}

/* Where membarrier(2) was allowed at first, what ends a registration does without, and holders are seen still. */
static void barriers_may_be_forbidden_later(void **state)
{
	struct mem_pin_ref ref = get(at(0), 8), held;
	pthread_t thread;

	mem_pins_put(pins, &ref);
	platform_lock(&own->lock);
	assert_int_equal(pthread_create(&thread, NULL, wait_for_lock, NULL), 0);
	platform_unlock(&own->lock); /* from now on the process has had another thread */
	pthread_join(thread, NULL);
	assert_int_equal(mem_pins_hold(pins, at(GRAIN), 8, LOCAL, &held), 0);
	sys_fault_set(SYS_CALL_MEMBARRIER, EPERM, 0, 0);
	assert_int_equal(revoke(0, 2 * GRAIN), -FI_EBUSY);
	assert_int_equal(revoke(0, GRAIN), 0);
	mem_pins_unhold(pins, &held);
	/* what is held from now on, too */
	assert_int_equal(mem_pins_hold(pins, at(GRAIN), 8, LOCAL, &held), 0);
	device.room = GRAIN;
	assert_int_equal(mem_pins_get(pins, at(0), 8192, LOCAL, &ref), -FI_ENOMEM);
	mem_pins_unhold(pins, &held);
	ref = get(at(0), 8192);
	mem_pins_put(pins, &ref);
	sys_fault_clear();
	assert_int_equal(revoke(0, 2 * GRAIN), 0);
	assert_int_equal(device.pinned, 0);
}

static _Atomic bool taking;
static _Atomic int got_while_taking;

static void *get_barred(void *arg)
{
	struct mem_pin_ref ref;

	if (mem_pins_get(pins, at(GRAIN + 65536), 8, LOCAL, &ref))
		abort();
	got_while_taking = taking;
	mem_pins_put(pins, &ref);
	return NULL;
}

/* A neighbour in the same grain is asked for while pages are being taken away. */
static void a_grain_is_registered_again_after_its_pages_went(void **state)
{
	struct arena_place place = { .offset = GRAIN };
	struct mem_pin_ref ref = get(at(GRAIN), 8);
	struct arena_watcher *watcher = container_of(own->watchers.next, struct arena_watcher,
						     link);
	pthread_t thread;

	mem_pins_put(pins, &ref);
	taking = true;
	platform_lock(&own->lock);
	assert_int_equal(watcher->revoke(watcher, &place, 4096), 0);
	assert_int_equal(pthread_create(&thread, NULL, get_barred, NULL), 0);
	for (int i = 0; i < 1000; i++)
		platform_yield();
	assert_int_equal(device.made, 1);
	taking = false;
	platform_unlock(&own->lock);
	pthread_join(thread, NULL);
	assert_int_equal(got_while_taking, 0);
	assert_int_equal(device.made, 2);
}

static void an_arena_may_start_later(void **state)
{
	struct mem_pin_ref ref;

	fake_arena.started = false;
	ref = get(at(0), 8);
	assert_non_null(ref.own);
	mem_pins_put(pins, &ref);
	fake_arena.started = true;
	ref = get(at(0), 8);
	assert_null(ref.own);
	assert_false(list_empty(&own->watchers));
	mem_pins_put(pins, &ref);
}

static void grains_are_smaller_where_little_may_be_locked(void **state)
{
	static const struct {
		rlim_t limit;
		size_t grain;
	} cases[] = { { 8 << 20, 1 << 20 }, { 64 << 10, 64 << 10 }, { 1 << 20, 128 << 10 } };
	struct mem_pin_config config = { .ops = &fake_device_ops, .device = &device };
	struct rlimit before, limit;

	assert_int_equal(getrlimit(RLIMIT_MEMLOCK, &before), 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct mem_pin_ref ref;

		if (cases[i].limit > before.rlim_max)
			continue;
		mem_pins_destroy(pins);
		limit = (struct rlimit){ cases[i].limit, before.rlim_max };
		assert_int_equal(setrlimit(RLIMIT_MEMLOCK, &limit), 0);
		config.access = LOCAL;
		assert_int_equal(mem_pins_create(&config, &pins), 0);
		ref = get(at(0), 8);
		assert_int_equal(device.pinned_len, cases[i].grain);
		mem_pins_put(pins, &ref);
	}
	assert_int_equal(setrlimit(RLIMIT_MEMLOCK, &before), 0);
}

static void a_grain_is_a_power_of_two(void **state)
{
	static const size_t wrong[] = { 3 << 20, 512, 2 * ARENA_SLOT };
	struct mem_pin_config config = { .ops = &fake_device_ops, .device = &device };
	struct mem_pins *none;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		config.grain = wrong[i];
		assert_int_equal(mem_pins_create(&config, &none), -FI_EINVAL);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_pins, close_pins)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_grain_is_registered_once),
		TEST(a_range_has_all_the_grains_that_it_touches),
		TEST(other_memory_and_other_access_are_registered_by_themselves),
		TEST(other_memory_is_kept_where_it_is_watched),
		TEST(the_least_recently_used_goes_first),
		TEST(what_is_in_use_stays_and_the_rest_fails),
		TEST(the_errors_of_a_device_are_passed_on),
		TEST(what_the_arena_takes_is_given_up_unless_it_is_used),
		TEST(what_is_held_is_in_use),
		TEST(barriers_may_be_forbidden_later),
		TEST(a_grain_is_registered_again_after_its_pages_went),
		TEST(an_arena_may_start_later),
		TEST(grains_are_smaller_where_little_may_be_locked),
		TEST(a_grain_is_a_power_of_two),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
