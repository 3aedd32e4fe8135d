/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The page of counters as a tool finds it: among this process's descriptors, without anything that the
 * library tells of it but its name. The arena's part follows what is allocated; parts are reused, the
 * ones too many are told; the child of a fork has a page of its own or none.
 */
#include <dirent.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include "arena.h"
#include "fault.h"
#include "shown.h"

#define MIB ((size_t)1 << 20)

/* Returns how many pages this process has, and the last of them, mapped for reading. */
static int pages_find(const struct weft_mem_stats **found)
{
	DIR *dir = opendir("/proc/self/fd");
	const struct dirent *entry;
	char target[64];
	int cnt = 0;

	assert_non_null(dir);
	while ((entry = readdir(dir))) {
		ssize_t n = readlinkat(dirfd(dir), entry->d_name, target, sizeof(target) - 1);

		if (n < 0)
			continue;
		target[n] = '\0';
		if (strcmp(target, "/memfd:" WEFT_MEM_STATS_FILE " (deleted)"))
			continue;
		cnt++;
		*found = mmap(NULL, sizeof(**found), PROT_READ, MAP_SHARED, atoi(entry->d_name),
			      0);
		assert_ptr_not_equal(*found, MAP_FAILED);
	}
	closedir(dir);
	return cnt;
}

static const struct weft_mem_stats *page_of(void)
{
	const struct weft_mem_stats *stats = NULL;

	assert_int_equal(pages_find(&stats), 1);
	assert_int_equal(stats->magic, WEFT_MEM_STATS_MAGIC);
	assert_int_equal(stats->version, WEFT_MEM_STATS_VERSION);
	assert_int_equal(stats->pid, getpid());
	return stats;
}

static const uint64_t *part_of(const struct weft_mem_stats *stats, enum weft_mem_part_kind kind)
{
	for (uint32_t i = 0; i < WEFT_MEM_STATS_PARTS; i++)
		if (stats->parts[i].kind == kind)
			return stats->parts[i].counts;
	return NULL;
}

static void without_a_descriptor_nothing_is_shown(void **state)
{
	sys_fault_set(SYS_CALL_MEMFD_CREATE, EMFILE, 0, 1);
	assert_null(mem_part_open(WEFT_MEM_PART_PINS));
	mem_part_show(NULL, (uint64_t[]){ 1 }, 1);
	mem_part_close(NULL);
	sys_fault_clear();
}

static void keep_nobody(struct arena *unused)
{
}

static void the_arena_shows_what_it_has(void **state)
{
	struct arena *arena = arena_get();
	const struct weft_mem_stats *stats = page_of();
	const uint64_t *counts = part_of(stats, WEFT_MEM_PART_ARENA);
	void *addr;

	assert_non_null(counts);
	/* nobody but this test gives pages back */
	arena->keeper_start = keep_nobody;
	assert_int_equal(arena_alloc(arena, MIB, 1, ARENA_READ, &addr, NULL), 0);
	assert_int_equal(counts[WEFT_MEM_ARENA_CHUNKS], 1);
	assert_int_equal(counts[WEFT_MEM_ARENA_CHUNK_BYTES], ARENA_SLOT);
	assert_int_equal(counts[WEFT_MEM_ARENA_LIVE_BYTES], MIB);
	assert_int_equal(counts[WEFT_MEM_ARENA_ALLOCATIONS], 1);
	assert_int_equal(arena_free(arena, addr), 0);
	assert_int_equal(counts[WEFT_MEM_ARENA_LIVE_BYTES], 0);
	assert_int_equal(counts[WEFT_MEM_ARENA_QUARANTINED_BYTES], MIB);
	assert_int_equal(counts[WEFT_MEM_ARENA_FREES], 1);
	arena_trim(arena, 0);
	assert_int_equal(counts[WEFT_MEM_ARENA_QUARANTINED_BYTES], 0);
	assert_int_equal(counts[WEFT_MEM_ARENA_PUNCHED], MIB);
	assert_int_equal(counts[WEFT_MEM_ARENA_RETIRED_BYTES], 0);
	arena_retire(arena, addr);
	assert_int_equal(counts[WEFT_MEM_ARENA_RETIRED_BYTES], ARENA_SLOT);
	assert_int_equal(counts[WEFT_MEM_ARENA_RETIRED], 1);
	munmap((void *)(uintptr_t)stats, sizeof(*stats));
}

static void a_part_that_was_closed_is_taken_again(void **state)
{
	struct weft_mem_part *parts[WEFT_MEM_STATS_PARTS + 2], *again;
	const struct weft_mem_stats *stats = page_of();
	uint32_t cnt = 0;

	while ((parts[cnt] = mem_part_open(WEFT_MEM_PART_PINS)))
		mem_part_show(parts[cnt++], (uint64_t[]){ 1, 2 }, 2);
	/* the arena has one */
	assert_int_equal(cnt, WEFT_MEM_STATS_PARTS - 1);
	assert_int_equal(stats->hidden, 1);
	assert_int_equal(part_of(stats, WEFT_MEM_PART_PINS)[1], 2);
	mem_part_close(parts[7]);
	again = mem_part_open(WEFT_MEM_PART_CACHE);
	assert_ptr_equal(again, parts[7]);
	assert_int_equal(part_of(stats, WEFT_MEM_PART_CACHE)[1], 0);
	mem_part_close(again);
	parts[7] = mem_part_open(WEFT_MEM_PART_PINS);
	for (uint32_t i = 0; i < cnt; i++)
		mem_part_close(parts[i]);
	assert_null(part_of(stats, WEFT_MEM_PART_PINS));
	munmap((void *)(uintptr_t)stats, sizeof(*stats));
}

/* Runs in the child, whose parent has a part with the number 5. */
static bool child_is_apart(struct weft_mem_part *inherited)
{
	const struct weft_mem_stats *stats;
	bool ok = pages_find(&stats) == 0;

	mem_part_show(inherited, (uint64_t[]){ 6 }, 1);
	if (!mem_part_open(WEFT_MEM_PART_PINS) || pages_find(&stats) != 1)
		return false;
	return ok && stats->pid == (uint32_t)getpid() && !part_of(stats, WEFT_MEM_PART_ARENA) &&
	       part_of(stats, WEFT_MEM_PART_PINS);
}

static void the_child_of_a_fork_shows_its_own(void **state)
{
	const struct weft_mem_stats *stats = page_of();
	struct weft_mem_part *part = mem_part_open(WEFT_MEM_PART_CACHE);
	int status = -1;
	pid_t pid;

	mem_part_show(part, (uint64_t[]){ 5 }, 1);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid)
		_exit(child_is_apart(part) ? 0 : 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(part_of(stats, WEFT_MEM_PART_CACHE)[0], 5);
	mem_part_close(part);
	munmap((void *)(uintptr_t)stats, sizeof(*stats));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_a_descriptor_nothing_is_shown),
		cmocka_unit_test(the_arena_shows_what_it_has),
		cmocka_unit_test(a_part_that_was_closed_is_taken_again),
		cmocka_unit_test(the_child_of_a_fork_shows_its_own),
	};

	mem_shown_start();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
