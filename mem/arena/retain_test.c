/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How long freed memory of the arena keeps its pages, and how much of it: with the keeper's thread, and in a
 * control group with little memory.
 *
 * usage: retain_test [full|alone]: what is run in that control group; in a process that gets no thread
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>
#include "arena.h"
#include "group.h"
#include "limit.h"
#include "retain.h"

#define MIB	    ((size_t)1 << 20)
#define DEADLINE_NS 20000000000u

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED true
#else
#define SANITIZED false
#endif

static struct arena *arena;
static char *self;

static char *allocate(size_t len)
{
	void *addr = NULL;

	if (arena_alloc(arena, len, 1, ARENA_READ, &addr, NULL))
		return NULL;
	return memset(addr, 1, len);
}

static bool resident(const void *addr)
{
	unsigned char vec = 0;

	assert_int_equal(mincore((void *)(uintptr_t)addr, 1, &vec), 0);
	return vec & 1;
}

static size_t quarantined(void)
{
	struct arena_usage usage;

	arena_usage(arena, &usage);
	return usage.quarantined;
}

static int start(void **state)
{
	setenv("FI_MEM_DECAY", "1", 1);
	arena = arena_get();
	return arena ? 0 : -1;
}

/* The first test: no keeper reads the real limits yet. */
static void no_more_is_kept_than_is_allowed(void **state)
{
	const struct limit shared = { .most = 64 * MIB, .room = SIZE_MAX };
	const struct limit full = { .most = SIZE_MAX, .room = 32 * MIB };
	char *large, *other;

	platform_lock(&arena->lock);
	retain_limit_locked(arena, &shared);
	assert_int_equal(arena->allowed, 8 * MIB);
	retain_limit_locked(arena, &full);
	assert_int_equal(arena->allowed, 16 * MIB);
	platform_unlock(&arena->lock);
	large = allocate(12 * MIB);
	other = allocate(4 * MIB);
	assert_int_equal(arena->allowed, 8 * MIB);
	assert_int_equal(arena_free(arena, large), 0);
	assert_in_range(quarantined(), 0, 8 * MIB);
	assert_false(resident(large + 11 * MIB));
	assert_int_equal(arena_free(arena, other), 0);
}

/* After the first test, which leaves nothing in quarantine. */
static void once_there_is_room_again_it_is_kept_again(void **state)
{
	const struct limit full = { .most = SIZE_MAX, .room = 0 };
	uint64_t end = platform_now_ns() + DEADLINE_NS;
	char *addr = allocate(MIB);

	while (arena->keeper_runs && platform_now_ns() < end)
		usleep(1000);
	assert_false(arena->keeper_runs);
	platform_lock(&arena->lock);
	retain_limit_locked(arena, &full);
	platform_unlock(&arena->lock);
	assert_int_equal(arena_free(arena, addr), 0);
	while (!arena->allowed && platform_now_ns() < end)
		usleep(1000);
	assert_true(arena->allowed);
}

/* There is a keeper for what is kept; it may be done by now. */
static void assert_kept_by_keeper(void)
{
	assert_true(arena->keeper_runs || !quarantined());
}

static void what_is_not_used_again_goes_without_a_call(void **state)
{
	uint64_t end = platform_now_ns() + DEADLINE_NS;
	char *addr = allocate(32 * MIB);

	assert_non_null(addr);
	assert_int_equal(arena_free(arena, addr), 0);
	assert_kept_by_keeper();
	while ((quarantined() || resident(addr)) && platform_now_ns() < end)
		usleep(1000);
	assert_int_equal(quarantined(), 0);
	assert_false(resident(addr));
	/* nothing is kept: there is no thread any more, until something is freed */
	while (arena->keeper_runs && platform_now_ns() < end)
		usleep(1000);
	assert_false(arena->keeper_runs);
	addr = allocate(MIB);
	assert_int_equal(arena_free(arena, addr), 0);
	assert_kept_by_keeper();
}

/* 180 MiB are used and 60 have been free when 50 more are wanted, of 256. */
static int be_full(void)
{
	char *freed, *more;

	if (start(NULL) || !allocate(180 * MIB))
		return 1;
	freed = allocate(60 * MIB);
	if (!freed || arena_free(arena, freed))
		return 2;
	more = mmap(NULL, 50 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (more == MAP_FAILED)
		return 3;
	memset(more, 1, 50 * MIB);
	return 0;
}

static void what_is_kept_leaves_room_in_a_control_group(void **state)
{
	char *argv[] = { self, (char *)"full", NULL };
	int status;

	if (SANITIZED) {
		printf("a sanitizer's own memory is more than the program's\n");
		skip();
	}
	status = group_run("268435456", argv);
	if (status < 0)
		skip();
	assert_int_equal(status, 0);
}

/* Addresses are limited to less than there are: no thread can have a stack. */
static int be_alone(void)
{
	struct rlimit before, none = { 0 };
	char *addr;
	size_t kept;

	if (start(NULL) || getrlimit(RLIMIT_AS, &before))
		return 1;
	addr = allocate(8 * MIB);
	none.rlim_max = before.rlim_max;
	if (!addr || setrlimit(RLIMIT_AS, &none) || arena_free(arena, addr))
		return 2;
	kept = quarantined();
	setrlimit(RLIMIT_AS, &before);
	return kept ? 3 : 0;
}

static void without_a_thread_nothing_is_kept(void **state)
{
	int status;
	pid_t pid;

	if (SANITIZED) {
		printf("a sanitizer needs addresses itself\n");
		skip();
	}
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		execl(self, self, "alone", (char *)NULL);
		_exit(98);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_more_is_kept_than_is_allowed),
		cmocka_unit_test(once_there_is_room_again_it_is_kept_again),
		cmocka_unit_test(what_is_not_used_again_goes_without_a_call),
		cmocka_unit_test(what_is_kept_leaves_room_in_a_control_group),
		cmocka_unit_test(without_a_thread_nothing_is_kept),
	};

	self = argv[0];
	if (argc > 1)
		return !strcmp(argv[1], "full") ? be_full() : be_alone();
	return cmocka_run_group_tests(tests, start, NULL);
}
