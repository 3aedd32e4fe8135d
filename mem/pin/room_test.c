/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Room for registrations where several domains have a device each: they share what the process may lock, which is
 * the room of one device here, and each has a table of its own. The arena is the test's, without memory.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include <rdma/fabric.h>
#include <rdma/fi_errno.h>
#include "cache.h"
#include "fake_arena.h"
#include "fake_device.h"
#include "pin.h"
#include "seeded.h"

#define GRAIN	 ((size_t)2 << 20)
#define LOCAL	 (FI_SEND | FI_RECV | FI_READ | FI_WRITE)
#define DOMAINS	 3
#define THREADS	 4
#define GRAINS	 8
#define TURNS	 4000
#define FORKS	 10
#define DEADLINE 60

/* What all may lock, and a device with a table for two of them */
static struct fake_device locked, small;
static struct mem_pins *domains[DOMAINS];
static uint64_t seed;

static struct mem_pins *open_pins(struct fake_device *device)
{
	struct mem_pin_config config = {
		.ops = &fake_device_ops, .device = device, .grain = GRAIN, .access = LOCAL
	};
	struct mem_pins *pins;

	assert_int_equal(mem_pins_create(&config, &pins), 0);
	return pins;
}

static int open_all(void **state)
{
	static const uint32_t slots[] = { 2 };
	static uintptr_t base;

	if (!base)
		base = fake_addresses(2 * ARENA_SLOT, ARENA_SLOT);
	fake_arena_start(base, slots, 1);
	fake_device_init(&locked);
	fake_device_init(&small);
	for (int i = 0; i < DOMAINS; i++)
		domains[i] = open_pins(&locked);
	return 0;
}

static int close_all(void **state)
{
	for (int i = 0; i < DOMAINS; i++)
		mem_pins_destroy(domains[i]);
	fake_device_fini(&locked);
	fake_device_fini(&small);
	return 0;
}

static void *at(size_t offset)
{
	return (void *)(fake_arena.arena.base + offset);
}

/* Registers a grain by itself, without a user afterwards. */
static void touch(struct mem_pins *pins, size_t grain)
{
	struct mem_pin_ref ref;

	assert_int_equal(mem_pins_get(pins, at(grain * GRAIN), 8, LOCAL, &ref), 0);
	assert_null(ref.own);
	mem_pins_put(pins, &ref);
}

static uint64_t grains(struct mem_pins *pins)
{
	struct mem_pins_stats stats;

	mem_pins_stats(pins, &stats);
	return stats.grains;
}

static void what_one_domain_keeps_gives_room_to_another(void **state)
{
	struct mem_pin_ref ref, refs[4];

	locked.room = 4 * GRAIN;
	for (size_t i = 0; i < 4; i++)
		touch(domains[0], i);
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(mem_pins_get(domains[1], at(i * GRAIN), 8, LOCAL, &refs[i]), 0);
	assert_int_equal(grains(domains[0]), 0);
	/* what is used stays */
	assert_int_equal(mem_pins_get(domains[0], at(0), GRAIN, LOCAL, &ref), -FI_ENOMEM);
	mem_pins_put(domains[1], &refs[2]);
	assert_int_equal(mem_pins_get(domains[0], at(0), GRAIN, LOCAL, &ref), 0);
	assert_int_equal(grains(domains[1]), 3);
	mem_pins_put(domains[0], &ref);
	for (size_t i = 0; i < 4; i++)
		if (i != 2)
			mem_pins_put(domains[1], &refs[i]);
	/* what is registered by itself has it too */
	assert_int_equal(mem_pins_get(domains[2], (void *)4096, 4 * GRAIN, LOCAL, &ref), 0);
	assert_int_equal(fake_device_cnt(&locked), 1);
	mem_pins_put(domains[2], &ref);
}

static void the_least_recently_used_of_all_domains_goes_first(void **state)
{
	locked.room = 4 * GRAIN;
	touch(domains[0], 0);
	touch(domains[1], 1);
	touch(domains[0], 2);
	touch(domains[1], 3);
	touch(domains[2], 4);
	assert_true(grains(domains[0]) == 1 && grains(domains[1]) == 2);
	touch(domains[1], 1); /* used again: it is the turn of 2 */
	touch(domains[2], 5);
	assert_true(grains(domains[0]) == 0 && grains(domains[1]) == 2);
	touch(domains[0], 0); /* of 3 */
	assert_true(grains(domains[1]) == 1 && grains(domains[2]) == 2);
}

static void a_table_that_is_full_is_no_reason_to_take_from_others(void **state)
{
	struct mem_pins *pins = open_pins(&small);
	struct mem_pin_ref ref;

	small.table = 2;
	touch(domains[0], 0);
	for (size_t i = 0; i < 6; i++)
		touch(pins, i);
	assert_true(grains(pins) == 2 && grains(domains[0]) == 1);
	/* not all of it fits, in grains and by itself, and the error is the one for want of room */
	small.table = 1;
	mem_pins_destroy(pins);
	pins = open_pins(&small);
	assert_int_equal(mem_pins_get(pins, at(0), 8, LOCAL, &ref), 0);
	assert_int_equal(mem_pins_get(pins, at(GRAIN), 8, LOCAL, &(struct mem_pin_ref){ 0 }),
			 -FI_ENOMEM);
	mem_pins_put(pins, &ref);
	mem_pins_destroy(pins);
}

/* Has a domain keep private memory in its cache, where something tells of changes. Returns whether it does. */
static bool keep_private(struct mem_pins *pins, void *mem, size_t len)
{
	struct mem_cache_stats stats = { 0 };
	struct mem_pin_ref ref;

	for (int i = 0; i < 100 && !stats.entries; i++) {
		assert_int_equal(mem_pins_get(pins, mem, len, LOCAL, &ref), 0);
		mem_pins_put(pins, &ref);
		mem_cache_stats(mem_pins_cache(pins), &stats);
	}
	return stats.entries;
}

static void what_another_cache_keeps_gives_room(void **state)
{
	void *mem = mmap(NULL, GRAIN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			 0);
	struct mem_cache_stats stats;

	assert_ptr_not_equal(mem, MAP_FAILED);
	locked.room = GRAIN;
	if (keep_private(domains[0], mem, GRAIN)) {
		touch(domains[1], 0);
		mem_cache_stats(mem_pins_cache(domains[0]), &stats);
		assert_int_equal(stats.entries, 0);
	} else {
		print_message("skip: userfaultfd is refused\n");
	}
	assert_int_equal(munmap(mem, GRAIN), 0);
}

/* Takes and gives grains of all domains, each reached by the device as long as it is in use. */
static void *churn(void *arg)
{
	uint64_t random = seed + (uintptr_t)arg;

	for (int i = 0; i < TURNS; i++) {
		struct mem_pins *pins = domains[seeded_below(&random, DOMAINS - 1)];
		void *addr = at(seeded_below(&random, GRAINS) * GRAIN);
		struct mem_pin_ref ref;
		size_t len;

		if (mem_pins_get(pins, addr, 8, LOCAL, &ref) ||
		    !fake_device_reaches(&locked, mem_pins_handle(pins, &ref, addr, &len), addr,
					 8))
			abort();
		mem_pins_put(pins, &ref);
	}
	return NULL;
}

/* Opens and closes the last domain, from which others take meanwhile. */
static void *come_and_go(void *arg)
{
	struct mem_pin_ref ref;

	for (int i = 0; i < TURNS / 10; i++) {
		mem_pins_destroy(domains[DOMAINS - 1]);
		domains[DOMAINS - 1] = open_pins(&locked);
		if (mem_pins_get(domains[DOMAINS - 1], at(0), 8, LOCAL, &ref))
			abort();
		mem_pins_put(domains[DOMAINS - 1], &ref);
	}
	return NULL;
}

/* In a child: those of the parent have nothing to do with what it registers with a device of its own. */
static int child_of_many(void)
{
	struct mem_pin_ref ref;
	struct mem_pins *pins;

	alarm(DEADLINE);
	/* a thread of the parent may have been there; the real arena's is held during forks */
	platform_lock_init(&fake_arena.arena.lock);
	list_init(&fake_arena.arena.watchers);
	small.table = 1;
	pins = open_pins(&small);
	for (size_t i = 0; i < 3; i++) {
		if (mem_pins_get(pins, at(i * GRAIN), 8, LOCAL, &ref))
			return 1;
		mem_pins_put(pins, &ref);
	}
	mem_pins_destroy(pins);
	for (int i = 0; i < DOMAINS - 1; i++)
		mem_pins_destroy(domains[i]);
	return 0;
}

static void domains_take_from_each_other_on_all_threads(void **state)
{
	pthread_t threads[THREADS];
	int status;
	pid_t pid;

	/* each may have one in use, and one that it has been given up for another one's sake */
	locked.room = 2 * THREADS * GRAIN;
	for (uintptr_t i = 0; i < THREADS; i++)
		assert_int_equal(
			pthread_create(&threads[i], NULL, i ? churn : come_and_go, (void *)i),
			0);
	for (int i = 0; i < FORKS; i++) {
		pid = fork();
		if (!pid)
			_exit(child_of_many());
		assert_true(pid > 0);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
	}
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	assert_true(locked.pinned_len <= locked.room);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_all, close_all)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_one_domain_keeps_gives_room_to_another),
		TEST(the_least_recently_used_of_all_domains_goes_first),
		TEST(a_table_that_is_full_is_no_reason_to_take_from_others),
		TEST(what_another_cache_keeps_gives_room),
		TEST(domains_take_from_each_other_on_all_threads),
	};
	const char *given = getenv("SEED");

	seed = given ? strtoull(given, NULL, 0) : platform_now_ns();
	printf("seed %llu\n", (unsigned long long)seed);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
