/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Unit tests of the watch by userfaultfd: what it tells and when, beside a thread of its own. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <rdma/fi_errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>
#include <cmocka.h>
#include "fault.h"
#include "uffd_watch.h"

#define PAGES	    4
#define TOLD_MAX    2048
#define DEADLINE_NS 10000000000u

static struct platform_lock lock;
static struct mem_watcher watcher;
static struct mem_watch *watch;
static uint8_t *area;
static size_t page, len;

/* Under the lock. */
static struct mem_change told[TOLD_MAX];
static uint32_t told_cnt;

static void changed(struct mem_watcher *w, const struct mem_change *change)
{
	if (told_cnt < TOLD_MAX)
		told[told_cnt++] = *change;
}

static int opens(void **state)
{
	int ret = mem_uffd_watch_open(&watch);

	if (ret) {
		print_message("no watch: %s\n", strerror(-ret));
		watch = NULL;
		return 0;
	}
	told_cnt = 0;
	platform_lock_init(&lock);
	watcher = (struct mem_watcher){ .lock = &lock, .changed = changed };
	assert_int_equal(watch->ops->start(watch, &watcher), 0);
	area = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(area, MAP_FAILED);
	memset(area, 1, len);
	platform_lock(&lock);
	assert_int_equal(watch->ops->add(watch, (uintptr_t)area, (uintptr_t)area + len), 0);
	platform_unlock(&lock);
	return 0;
}

static int closes(void **state)
{
	if (watch) {
		watch->ops->close(watch);
		munmap(area, len);
		platform_lock_fini(&lock);
	}
	return 0;
}

static int valid(void)
{
	int ret;

	platform_lock(&lock);
	ret = watch->ops->valid(watch, (uintptr_t)area, (uintptr_t)area + len);
	platform_unlock(&lock);
	return ret;
}

static struct mem_change told_at(uint32_t idx)
{
	uint64_t end = platform_now_ns() + DEADLINE_NS;
	struct mem_change change = { 0 };
	bool there = false;

	while (!there) {
		assert_true(platform_now_ns() < end);
		platform_lock(&lock);
		there = told_cnt > idx;
		if (there)
			change = told[idx];
		platform_unlock(&lock);
		platform_yield();
	}
	return change;
}

static void expect(uint32_t idx, enum mem_change_kind kind, const uint8_t *addr, size_t bytes)
{
	struct mem_change c = told_at(idx);

	assert_int_equal(c.kind, kind);
	assert_int_equal(c.start, (uintptr_t)addr);
	assert_int_equal(c.end, (uintptr_t)addr + bytes);
}

static void each_kind_of_change_is_told(void **state)
{
	uint8_t *to;

	if (!watch)
		skip();
	assert_int_equal(valid(), 0);
	assert_int_equal(madvise(area, page, MADV_DONTNEED), 0);
	expect(0, MEM_REMOVED, area, page);
	assert_int_equal(munmap(area + page, page), 0);
	expect(1, MEM_UNMAPPED, area + page, page);
	to = mremap(area + 2 * page, page, 2 * page, MREMAP_MAYMOVE);
	assert_ptr_not_equal(to, MAP_FAILED);
	if (to != area + 2 * page) {
		expect(2, MEM_MOVED, area + 2 * page, page);
		expect(3, MEM_MOVED, to, page);
	}
	munmap(to, 2 * page);
	assert_int_not_equal(valid(), 0);
}

/* By the time that the system call of a change returns, nothing is valid until it is told. */
static void a_change_that_is_done_is_told_or_seen(void **state)
{
	if (!watch)
		skip();
	for (int i = 0; i < 2000; i++) {
		uint32_t before, after;

		platform_lock(&lock);
		told_cnt = 0;
		platform_unlock(&lock);
		assert_ptr_equal(mmap(area, len, PROT_READ | PROT_WRITE,
				      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
				 area);
		platform_lock(&lock);
		before = told_cnt;
		after = watch->ops->valid(watch, (uintptr_t)area, (uintptr_t)area + len) == 0;
		assert_false(after && !before);
		memset(area, 1, len);
		assert_int_equal(watch->ops->add(watch, (uintptr_t)area, (uintptr_t)area + len),
				 0);
		after = watch->ops->valid(watch, (uintptr_t)area, (uintptr_t)area + len) == 0;
		assert_false(after && !told_cnt);
		platform_unlock(&lock);
		told_at(0);
	}
}

/* It may hold the lock itself, as in a signal handler that has interrupted its holder. */
static void who_unmaps_waits_for_no_lock(void **state)
{
	if (!watch)
		skip();
	platform_lock(&lock);
	for (int i = 0; i < PAGES - 1; i++)
		assert_int_equal(munmap(area + (size_t)i * page, page), 0);
	assert_int_equal(told_cnt, 0);
	assert_int_equal(
		watch->ops->valid(watch, (uintptr_t)area + len - page, (uintptr_t)area + len),
		-FI_EAGAIN);
	platform_unlock(&lock);
	for (uint32_t i = 0; i < PAGES - 1; i++)
		expect(i, MEM_UNMAPPED, area + i * page, page);
}

/* More than it keeps: then that is told. */
static void changes_without_end_are_missed_not_lost(void **state)
{
	if (!watch)
		skip();
	platform_lock(&lock);
	for (int i = 0; i < TOLD_MAX; i++)
		assert_int_equal(madvise(area, page, MADV_DONTNEED), 0);
	platform_unlock(&lock);
	assert_int_equal(told_at(0).kind, MEM_REMOVED);
	while (told_at(told_cnt - 1).kind != MEM_MISSED)
		platform_yield();
}

static void what_is_not_watched_any_more_is_not_told(void **state)
{
	if (!watch)
		skip();
	platform_lock(&lock);
	watch->ops->remove(watch, (uintptr_t)area, (uintptr_t)area + 2 * page);
	platform_unlock(&lock);
	assert_int_not_equal(valid(), 0);
	assert_int_equal(munmap(area, page), 0);
	assert_int_equal(munmap(area + 2 * page, page), 0);
	expect(0, MEM_UNMAPPED, area + 2 * page, page);
}

static void a_kernel_whose_events_are_wrong_is_refused(void **state)
{
	struct mem_watch *other;

	if (!watch)
		skip();
	sys_fault_set(SYS_CALL_USERFAULTFD, EPERM, 0, 1);
	assert_int_equal(mem_uffd_watch_open(&other), -FI_EPERM);
	for (uint32_t checks = 0; checks < 4; checks++) {
		sys_fault_set(SYS_CALL_UFFD_CHECK, EINVAL, checks, 0);
		assert_int_equal(mem_uffd_watch_open(&other), -FI_EIO);
	}
	/* Once is not enough. */
	sys_fault_set(SYS_CALL_UFFD_CHECK, EAGAIN, 0, 1);
	assert_int_equal(mem_uffd_watch_open(&other), 0);
	other->ops->close(other);
	sys_fault_set(SYS_CALL_UFFD_REGISTER, EINVAL, 0, 1);
	assert_int_equal(mem_uffd_watch_open(&other), -FI_EINVAL);
	sys_fault_clear();
}

static void on_alarm(int signal)
{
}

static void signals_of_the_program_do_no_harm_to_its_self_test(void **state)
{
	struct sigaction act = { .sa_handler = on_alarm, .sa_flags = SA_RESTART }, before;
	struct itimerval often = { { 0, 100 }, { 0, 100 } }, never = { { 0, 0 }, { 0, 0 } };
	struct mem_watch *other;
	int ret = 0;

	if (!watch)
		skip();
	sigaction(SIGALRM, &act, &before);
	setitimer(ITIMER_REAL, &often, NULL);
	for (int i = 0; i < 100 && !ret; i++) {
		ret = mem_uffd_watch_open(&other);
		if (!ret)
			other->ops->close(other);
	}
	setitimer(ITIMER_REAL, &never, NULL);
	sigaction(SIGALRM, &before, NULL);
	assert_int_equal(ret, 0);
}

#define opened_test(test) cmocka_unit_test_setup_teardown(test, opens, closes)

int main(void)
{
	const struct CMUnitTest tests[] = {
		opened_test(each_kind_of_change_is_told),
		opened_test(a_change_that_is_done_is_told_or_seen),
		opened_test(who_unmaps_waits_for_no_lock),
		opened_test(changes_without_end_are_missed_not_lost),
		opened_test(what_is_not_watched_any_more_is_not_told),
		opened_test(a_kernel_whose_events_are_wrong_is_refused),
		opened_test(signals_of_the_program_do_no_harm_to_its_self_test),
	};

	page = (size_t)sysconf(_SC_PAGESIZE);
	len = PAGES * page;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
