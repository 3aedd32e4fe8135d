/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Registrations through a fork, with a device that counts: another thread may be anywhere in them when the
 * process is copied, and the child leaves the device of its parent alone.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include <rdma/fabric.h>
#include <rdma/fi_errno.h>
#include "fake_arena.h"
#include "fake_device.h"
#include "pin.h"

#define GRAIN	 ((size_t)2 << 20)
#define LOCAL	 (FI_SEND | FI_RECV | FI_READ | FI_WRITE)
#define DELAY_NS 300000000u

static struct arena *const own = &fake_arena.arena;
static struct fake_device device;
static struct mem_pins *pins;

static int open_pins(void **state)
{
	static const uint32_t slots[] = { 1 };
	static uintptr_t base;
	struct mem_pin_config config = {
		.ops = &fake_device_ops, .device = &device, .grain = GRAIN, .access = LOCAL
	};

	if (!base)
		base = fake_addresses(ARENA_SLOT, ARENA_SLOT);
	fake_arena_start(base, slots, 1);
	fake_device_init(&device);
	return mem_pins_create(&config, &pins);
}

static int close_pins(void **state)
{
	mem_pins_destroy(pins);
	fake_device_fini(&device);
	return 0;
}

static void *at(size_t offset)
{
	return (void *)(own->base + offset);
}

static int get(void *addr, struct mem_pin_ref *ref)
{
	return mem_pins_get(pins, addr, 8, LOCAL, ref);
}

/* In the child, with what it has of before. Returns an exit status. */
static int leaves_the_device_alone(struct mem_pin_ref *grain, struct mem_pin_ref *alone)
{
	static char other[64];
	struct mem_pins_stats stats;
	uint32_t pinned = device.pinned;
	uint64_t made = device.made;
	struct mem_pin_ref ref;

	alarm(600);
	/* a grain that the parent has registered, one that it has not, and other memory */
	if (get(at(0), &ref) != -FI_EOPBADSTATE ||
	    get(at(4 * GRAIN), &ref) != -FI_EOPBADSTATE || get(other, &ref) != -FI_EOPBADSTATE ||
	    mem_pins_hold(pins, at(0), 8, LOCAL, &ref) != -FI_EOPBADSTATE)
		return 1;
	if (grain)
		mem_pins_put(pins, grain);
	if (alone)
		mem_pins_put(pins, alone);
	mem_pins_stats(pins, &stats);
	if (stats.grains || stats.own)
		return 2;
	mem_pins_destroy(pins);
	return device.pinned == pinned && device.made == made ? 0 : 3;
}

static void ended_well(pid_t pid)
{
	int status = -1;

	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void a_child_leaves_the_device_of_its_parent_alone(void **state)
{
	static char other[64];
	struct mem_pin_ref grain, alone;
	size_t reached;
	pid_t pid;

	assert_int_equal(get(at(0), &grain), 0);
	assert_int_equal(get(other, &alone), 0);
	pid = fork();
	if (!pid)
		_exit(leaves_the_device_alone(&grain, &alone));
	ended_well(pid);
	assert_true(fake_device_reaches(&device, mem_pins_handle(pins, &grain, at(0), &reached),
					at(0), 8));
	mem_pins_put(pins, &grain);
	mem_pins_put(pins, &alone);
	assert_int_equal(get(at(4 * GRAIN), &grain), 0);
	mem_pins_put(pins, &grain);
}

/* No process is to be forked any more. */
static _Atomic bool forked;

static void *get_slowly(void *addr)
{
	struct mem_pin_ref ref;

	if (!get(addr, &ref))
		mem_pins_put(pins, &ref);
	/* ThreadSanitizer's child would call a thread that has ended a leak */
	while (!forked)
		platform_yield();
	return NULL;
}

static uint64_t registrations_begun(void)
{
	uint64_t made;

	pthread_mutex_lock(&device.lock);
	made = device.made;
	pthread_mutex_unlock(&device.lock);
	return made;
}

/* @addr: another thread is registering it when the process forks. */
static void forks_meanwhile(void *addr)
{
	uint64_t before = registrations_begun();
	pthread_t thread;
	pid_t pid;

	forked = false;
	device.delay_ns = DELAY_NS;
	assert_int_equal(pthread_create(&thread, NULL, get_slowly, addr), 0);
	/* it may be over again by then: that is counted still */
	while (registrations_begun() == before)
		platform_yield();
	pid = fork();
	if (!pid)
		_exit(leaves_the_device_alone(NULL, NULL));
	forked = true;
	ended_well(pid);
	assert_int_equal(pthread_join(thread, NULL), 0);
}

static void a_child_of_a_thread_that_registers_waits_for_nobody(void **state)
{
	static char other[64];

	forks_meanwhile(at(0));
	close_pins(state);
	assert_int_equal(open_pins(state), 0);
	forks_meanwhile(other);
}

/* Taking pages away, and the first registration in a part of the arena, at the same time. */
static _Atomic uint32_t generations[ARENA_SLOT / FAKE_PAGE];

static void what_is_registered_first_is_not_what_is_taken_away(void **state)
{
	struct arena_place place = { .offset = 0 };
	struct arena_watcher *watcher;
	struct mem_pin_ref ref;
	uint64_t end;
	pthread_t thread;
	size_t reached;

	/* the arena is known, and none of its grains */
	assert_int_equal(mem_pins_get(pins, at(0), 8, LOCAL | FI_REMOTE_WRITE, &ref), 0);
	mem_pins_put(pins, &ref);
	device.generations = generations;
	device.base = own->base;
	device.page_cnt = ARENA_SLOT / FAKE_PAGE;
	platform_lock(&own->lock);
	watcher = container_of(own->watchers.next, struct arena_watcher, link);
	assert_int_equal(watcher->revoke(watcher, &place, FAKE_PAGE), 0);
	forked = true;
	assert_int_equal(pthread_create(&thread, NULL, get_slowly, at(FAKE_PAGE)), 0);
	/* it may come this far: not to the pages that go now */
	for (end = platform_now_ns() + DELAY_NS; platform_now_ns() < end;) {
		pthread_mutex_lock(&device.lock);
		if (device.pinned)
			end = 0;
		pthread_mutex_unlock(&device.lock);
		platform_yield();
	}
	atomic_fetch_add(&generations[0], 1);
	platform_unlock(&own->lock);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(get(at(0), &ref), 0);
	assert_true(fake_device_reaches(&device, mem_pins_handle(pins, &ref, at(0), &reached),
					at(0), 8));
	mem_pins_put(pins, &ref);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_child_leaves_the_device_of_its_parent_alone,
						open_pins, close_pins),
		cmocka_unit_test_setup_teardown(
			a_child_of_a_thread_that_registers_waits_for_nobody, open_pins,
			close_pins),
		cmocka_unit_test_setup_teardown(
			what_is_registered_first_is_not_what_is_taken_away, open_pins,
			close_pins),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
