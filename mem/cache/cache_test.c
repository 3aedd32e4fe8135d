/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Unit tests of the cache over a device and a watch of the test. One thread, beside that of the cache. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <rdma/fi_errno.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include "cache.h"
#include "fake_watch.h"

#define SEND 1u
#define RECV 2u

static struct fake_device device;
static struct fake_watch watch;
static struct mem_cache *cache;

static void open_with(const struct mem_cache_limits *limits)
{
	fake_device_init(&device);
	fake_watch_init(&watch, &device);
	assert_int_equal(mem_cache_create_watched(&fake_device_ops, &device, limits,
						  &watch.watch, &cache),
			 0);
	assert_int_equal(mem_cache_refused(cache), 0);
}

static int opens(void **state)
{
	open_with(NULL);
	return 0;
}

static int closes(void **state)
{
	mem_cache_destroy(cache);
	fake_device_fini(&device);
	fake_watch_fini(&watch);
	return 0;
}

static struct mem_cache_ref get_for(uint32_t first, uint32_t cnt, uint64_t access)
{
	struct mem_cache_ref ref;

	assert_int_equal(mem_cache_get(cache, watch.area + first * watch.page, cnt * watch.page,
				       access, &ref),
			 0);
	return ref;
}

static struct mem_cache_ref get(uint32_t first, uint32_t cnt)
{
	return get_for(first, cnt, SEND);
}

/* A reference that is given back at once. */
static void touch(uint32_t first, uint32_t cnt)
{
	struct mem_cache_ref ref = get(first, cnt);

	mem_cache_put(cache, &ref);
}

static struct mem_cache_stats stats(void)
{
	struct mem_cache_stats s;

	mem_cache_stats(cache, &s);
	return s;
}

/* What a change has ended is unregistered by the cache's thread. */
static void wait_for(uint32_t registrations)
{
	uint64_t end = platform_now_ns() + 10000000000u;

	while (fake_device_cnt(&device) != registrations) {
		assert_true(platform_now_ns() < end);
		platform_yield();
	}
}

static void what_was_registered_is_found(void **state)
{
	struct mem_cache_ref first = get(3, 4), second;

	second = get(4, 2);
	assert_int_equal(first.handle, second.handle);
	mem_cache_put(cache, &first);
	mem_cache_put(cache, &second);
	touch(3, 1);
	assert_int_equal(device.made, 1);
	assert_int_equal(stats().hits, 2);
	assert_int_equal(stats().misses, 1);
	assert_int_equal(stats().bytes, 4 * watch.page);
}

static void whole_pages_are_registered(void **state)
{
	struct mem_cache_ref ref;

	assert_int_equal(mem_cache_get(cache, watch.area + watch.page - 1, 2, SEND, &ref), 0);
	mem_cache_put(cache, &ref);
	assert_int_equal(stats().bytes, 2 * watch.page);
	touch(0, 2);
	assert_int_equal(device.made, 1);
}

static void another_access_is_another_registration(void **state)
{
	struct mem_cache_ref send = get_for(0, 1, SEND), recv = get_for(0, 1, RECV);

	assert_int_not_equal(send.handle, recv.handle);
	mem_cache_put(cache, &send);
	mem_cache_put(cache, &recv);
	wait_for(1);
	recv = get_for(0, 1, SEND | RECV);
	mem_cache_put(cache, &recv);
	assert_int_equal(device.made, 2);
}

static void overlapping_ranges_become_one(void **state)
{
	touch(0, 4);
	touch(6, 4);
	touch(3, 4);
	wait_for(1);
	touch(0, 10);
	assert_int_equal(device.made, 3);
	assert_int_equal(stats().entries, 1);
}

static void what_is_in_use_stays_registered(void **state)
{
	struct mem_cache_ref ref = get(0, 4);

	fake_watch_queue(&watch, MEM_UNMAPPED, 1, 2);
	fake_watch_tell(&watch);
	assert_int_equal(fake_device_cnt(&device), 1);
	touch(0, 4);
	assert_int_equal(fake_device_cnt(&device), 2);
	mem_cache_put(cache, &ref);
	wait_for(1);
	assert_int_equal(stats().unmapped, 1);
}

static void the_least_recently_used_is_evicted(void **state)
{
	static const struct mem_cache_limits two = { .entries = 2 };

	open_with(&two);
	touch(0, 1);
	touch(2, 1);
	touch(0, 1);
	touch(4, 1);
	wait_for(2);
	touch(0, 1);
	assert_int_equal(device.made, 3);
	touch(2, 1);
	assert_int_equal(device.made, 4);
	assert_int_equal(stats().evictions, 2);
	assert_false(watch.watched[4]);
	closes(NULL);
}

static void beyond_the_limit_of_bytes_is_registered_once(void **state)
{
	struct mem_cache_limits four = { .bytes = 4 * (uint64_t)sysconf(_SC_PAGESIZE) };
	struct mem_cache_ref ref;

	open_with(&four);
	touch(0, 5);
	assert_int_equal(fake_device_cnt(&device), 0);
	ref = get(0, 3);
	touch(8, 2);
	assert_int_equal(stats().once[MEM_ONCE_FULL], 2);
	mem_cache_put(cache, &ref);
	touch(8, 2);
	wait_for(1);
	assert_int_equal(stats().bytes, 2 * watch.page);
	closes(NULL);
}

static void what_has_no_room_is_not_watched(void **state)
{
	const struct mem_cache_limits limits = { .bytes = 4 * (uint64_t)sysconf(_SC_PAGESIZE) };
	struct mem_cache_ref ref;

	open_with(&limits);
	ref = get(0, 3);
	touch(2, 3); /* with what it overlaps it would be too much */
	assert_int_equal(stats().once[MEM_ONCE_FULL], 1);
	for (uint32_t i = 0; i < 5; i++)
		assert_false(watch.watched[i]);
	mem_cache_put(cache, &ref);
	closes(NULL);
}

static void what_can_not_be_watched_replaces_nothing(void **state)
{
	touch(0, 2);
	watch.refuses = true;
	touch(1, 2);
	assert_int_equal(stats().once[MEM_ONCE_OTHER], 1);
	assert_int_equal(stats().entries, 1);
	touch(0, 2);
	assert_int_equal(stats().hits, 1);
	assert_true(watch.watched[0] && watch.watched[1] && !watch.watched[2]);
	watch.refuses = false;
	touch(1, 2);
	assert_int_equal(stats().misses, 2);
}

static void a_device_without_room_gets_some(void **state)
{
	struct mem_cache_ref held, more;

	device.table = 2;
	held = get(0, 1);
	touch(2, 1);
	more = get(4, 1);
	assert_int_equal(stats().evictions, 1);
	assert_int_equal(mem_cache_get(cache, watch.area + 6 * watch.page, 1, SEND, &more),
			 -FI_ENOSPC);
	mem_cache_put(cache, &held);
	mem_cache_put(cache, &more);
	touch(6, 1);
}

static void nothing_is_found_while_a_change_is_untold(void **state)
{
	touch(0, 4);
	fake_watch_queue(&watch, MEM_UNMAPPED, 8, 9);
	touch(0, 4);
	assert_int_equal(stats().caught, 1);
	assert_int_equal(stats().once[MEM_ONCE_CHANGING], 1);
	fake_watch_tell(&watch);
	touch(0, 4);
	assert_int_equal(stats().hits, 1);
}

static void what_changed_untold_is_found_out(void **state)
{
	touch(0, 4);
	watch.watched[2] = false;
	touch(0, 2);
	assert_int_equal(stats().caught, 1);
	assert_int_equal(stats().misses, 2);
	assert_int_equal(stats().entries, 1);
}

/* To watch its pages again would make it look as it was. */
static void a_neighbour_does_not_revive_what_changed_untold(void **state)
{
	touch(0, 4);
	watch.watched[0] = false;
	touch(3, 4);
	assert_int_equal(stats().bytes, 4 * watch.page);
	touch(0, 1);
	assert_int_equal(device.made, 3);
}

static void removed_pages_are_registered_once_until_unmapped(void **state)
{
	touch(0, 4);
	fake_watch_queue(&watch, MEM_REMOVED, 2, 3);
	fake_watch_tell(&watch);
	wait_for(0);
	touch(0, 4);
	touch(2, 1);
	assert_int_equal(stats().once[MEM_ONCE_REMOVED], 2);
	assert_true(watch.watched[2]);
	touch(0, 2);
	assert_int_equal(stats().misses, 2);
	fake_watch_queue(&watch, MEM_UNMAPPED, 2, 3);
	fake_watch_tell(&watch);
	touch(0, 4);
	assert_int_equal(stats().misses, 3);
}

static bool told_meanwhile;

/* While the pages are registered they are mapped over. */
static void change_meanwhile(void *arg)
{
	device.meanwhile = NULL;
	for (uint32_t i = 0; i < AREA_PAGES; i++)
		watch.generation[i]++;
	watch.watched[1] = false;
	fake_watch_queue(&watch, MEM_UNMAPPED, 1, 2);
	if (told_meanwhile)
		fake_watch_tell(&watch);
}

static void what_changes_while_it_is_registered_is_not_kept(void **state)
{
	for (int told = 0; told < 2; told++) {
		struct mem_cache_ref ref;

		told_meanwhile = told;
		device.meanwhile = change_meanwhile;
		ref = get(0, 4);
		assert_null(ref.entry);
		assert_true(
			fake_device_reaches(&device, ref.handle, watch.area, 4 * watch.page));
		mem_cache_put(cache, &ref);
		assert_int_equal(stats().once[MEM_ONCE_CHANGING], told + 1);
		assert_int_equal(stats().entries, 0);
		assert_int_equal(fake_device_cnt(&device), 0);
		if (!told)
			fake_watch_tell(&watch);
	}
	touch(0, 4);
	assert_int_equal(stats().misses, 1);
}

/* What is told late may be of pages that nobody has registered by then. */
static void removed_pages_are_watched_until_unmapped(void **state)
{
	touch(0, 4);
	fake_watch_queue(&watch, MEM_UNMAPPED, 0, 4);
	fake_watch_queue(&watch, MEM_REMOVED, 0, 4);
	fake_watch_tell(&watch);
	assert_false(watch.watched[0]);
	fake_watch_tell(&watch);
	assert_true(watch.watched[0] && watch.watched[3]);
}

static void after_missed_changes_nothing_is_kept(void **state)
{
	touch(0, 4);
	touch(8, 4);
	fake_watch_queue(&watch, MEM_MISSED, 0, AREA_PAGES);
	fake_watch_tell(&watch);
	wait_for(0);
	assert_int_equal(stats().missed, 2);
	touch(0, 4);
	assert_int_equal(stats().once[MEM_ONCE_REMOVED], 1);
}

static void other_memory_is_registered_once(void **state)
{
	uint8_t *shared = mmap(NULL, watch.page, PROT_READ | PROT_WRITE,
			       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct mem_cache_ref ref;

	assert_int_equal(mem_cache_get(cache, shared, 1, SEND, &ref), 0);
	mem_cache_put(cache, &ref);
	assert_int_equal(mprotect(watch.area, watch.page, PROT_READ), 0);
	touch(0, 2); /* two mappings */
	assert_int_equal(stats().once[MEM_ONCE_OTHER], 2);
	assert_int_equal(stats().misses, 0);
	assert_int_equal(fake_device_cnt(&device), 0);
	munmap(shared, watch.page);
}

static void errors_of_the_device_are_the_answer(void **state)
{
	struct mem_cache_ref ref;

	device.refuse = -FI_EFAULT;
	assert_int_equal(mem_cache_get(cache, watch.area, 1, SEND, &ref), -FI_EFAULT);
	device.refuse = 0;
	touch(0, 1);
	assert_int_equal(stats().misses, 1);
}

static void impossible_ranges_are_refused(void **state)
{
	struct mem_cache_ref ref;

	assert_int_equal(mem_cache_get(cache, watch.area, 0, SEND, &ref), -FI_EINVAL);
	assert_int_equal(mem_cache_get(cache, watch.area, SIZE_MAX, SEND, &ref), -FI_EINVAL);
	assert_int_equal(mem_cache_get(cache, (void *)(UINTPTR_MAX - 1), 2, SEND, &ref),
			 -FI_EINVAL);
	assert_int_equal(device.made, 0);
}

static void without_a_watch_all_is_registered_once(void **state)
{
	fake_device_init(&device);
	fake_watch_init(&watch, &device);
	assert_int_equal(
		mem_cache_create_watched(&fake_device_ops, &device, NULL, NULL, &cache), 0);
	assert_int_equal(mem_cache_refused(cache), -FI_ENOSYS);
	touch(0, 4);
	touch(0, 4);
	assert_int_equal(device.made, 2);
	assert_int_equal(stats().once[MEM_ONCE_REFUSED], 2);
	closes(NULL);
}

static int in_the_child(const struct mem_cache_ref *held)
{
	struct mem_cache_ref ref = *held;

	if (mem_cache_get(cache, watch.area, 1, SEND, &ref) != -FI_EOPBADSTATE)
		return 1;
	mem_cache_put(cache, &ref);
	if (!device.pins[held->handle].len)
		return 2;
	mem_cache_destroy(cache);
	return device.pins[held->handle].len ? 0 : 3;
}

static void after_a_fork_the_parent_registers_anew_and_the_child_has_nothing(void **state)
{
	struct mem_cache_ref held = get(0, 1);
	int status;
	pid_t pid;

	touch(4, 1);
	pid = fork();
	if (!pid)
		_exit(in_the_child(&held));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(stats().forked, 2);
	wait_for(1);
	touch(0, 1);
	touch(4, 1);
	assert_int_equal(device.made, 4);
	mem_cache_put(cache, &held);
	wait_for(2);
}

#define opened_test(test) cmocka_unit_test_setup_teardown(test, opens, closes)

int main(void)
{
	const struct CMUnitTest tests[] = {
		opened_test(what_was_registered_is_found),
		opened_test(whole_pages_are_registered),
		opened_test(another_access_is_another_registration),
		opened_test(overlapping_ranges_become_one),
		opened_test(what_is_in_use_stays_registered),
		cmocka_unit_test(the_least_recently_used_is_evicted),
		cmocka_unit_test(beyond_the_limit_of_bytes_is_registered_once),
		cmocka_unit_test(what_has_no_room_is_not_watched),
		opened_test(what_can_not_be_watched_replaces_nothing),
		opened_test(a_device_without_room_gets_some),
		opened_test(nothing_is_found_while_a_change_is_untold),
		opened_test(what_changed_untold_is_found_out),
		opened_test(a_neighbour_does_not_revive_what_changed_untold),
		opened_test(removed_pages_are_registered_once_until_unmapped),
		opened_test(what_changes_while_it_is_registered_is_not_kept),
		opened_test(removed_pages_are_watched_until_unmapped),
		opened_test(after_missed_changes_nothing_is_kept),
		opened_test(other_memory_is_registered_once),
		opened_test(errors_of_the_device_are_the_answer),
		opened_test(impossible_ranges_are_refused),
		cmocka_unit_test(without_a_watch_all_is_registered_once),
		opened_test(after_a_fork_the_parent_registers_anew_and_the_child_has_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
