/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The arena on a host that gives huge pages to shared memory that asks for them. The host's setting is changed
 * while the tests run, which only root may do.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include "arena.h"
#include "host.h"

#define SETTING "/sys/kernel/mm/transparent_hugepage/shmem_enabled"
/* The same of folios that are smaller, in newer kernels. */
#define SETTING_64K "/sys/kernel/mm/transparent_hugepage/hugepages-64kB/shmem_enabled"
#define MIB	    ((size_t)1 << 20)
#define LEN	    (32 * MIB)

static struct arena *arena;
/* of the second one before is empty where it can't be changed */
static struct host_setting settings[] = { { .path = SETTING }, { .path = SETTING_64K } };
static const char *reason;

/* The word in brackets is what holds. */
static bool remember(struct host_setting *setting)
{
	FILE *file = fopen(setting->path, "r");
	char line[128] = "";
	const char *at;

	if (!file)
		return false;
	at = fgets(line, sizeof(line), file) ? strchr(line, '[') : NULL;
	fclose(file);
	return at && sscanf(at, "[%31[a-z_]]", setting->before) == 1;
}

static int start(void **state)
{
	if (!remember(&settings[1]) || !host_set(SETTING_64K, settings[1].before))
		settings[1].before[0] = '\0';
	if (!remember(&settings[0]) || !host_set(SETTING, settings[0].before)) {
		settings[0].before[0] = '\0';
		reason = strerror(errno);
	}
	if (host_keep(settings, 2))
		return -1;
	if (!reason && !host_set(SETTING, "advise"))
		reason = strerror(errno);
	arena = arena_get();
	return arena ? 0 : -1;
}

static int restore(void **state)
{
	return host_restore();
}

static bool allowed(void)
{
	if (!reason)
		return true;
	printf("huge pages of shared memory can't be turned on: %s\n", reason);
	return false;
}

static bool resident(const void *addr)
{
	unsigned char vec = 0;

	assert_int_equal(mincore((void *)(uintptr_t)addr, 1, &vec), 0);
	return vec & 1;
}

/* Returns the KiB that are mapped by huge pages where @addr is. */
static unsigned long huge_kib(const void *addr)
{
	FILE *file = fopen("/proc/self/smaps", "r");
	unsigned long from, to, kib, found = 0;
	bool here = false;
	char line[512];

	assert_non_null(file);
	while (fgets(line, sizeof(line), file)) {
		if (sscanf(line, "%lx-%lx ", &from, &to) == 2)
			here = (uintptr_t)addr >= from && (uintptr_t)addr < to;
		else if (here && sscanf(line, "ShmemPmdMapped: %lu", &kib) == 1)
			found = kib;
	}
	fclose(file);
	return found;
}

static char *allocate(void)
{
	void *addr = NULL;

	assert_int_equal(arena_alloc(arena, LEN, 2 * MIB, ARENA_READ, &addr, NULL), 0);
	return memset(addr, 7, LEN);
}

static void the_arena_has_huge_pages_where_the_host_gives_them(void **state)
{
	char *addr;

	if (!allowed())
		skip();
	addr = allocate();
	assert_in_range(huge_kib(addr), 2048, 1 << 20);
	assert_int_equal(arena_free(arena, addr), 0);
}

static void a_part_of_a_huge_page_goes_alone(void **state)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *addr;

	if (!allowed())
		skip();
	addr = allocate();
	assert_int_equal(arena_purge(arena, addr + MIB, page), 0);
	for (size_t i = 0; i < LEN; i += 64)
		assert_int_equal(addr[i], i - MIB < page ? 0 : 7);
	assert_int_equal(arena_free(arena, addr), 0);
	arena_trim(arena, 0);
	for (size_t i = 0; i < LEN; i += MIB)
		assert_false(resident(addr + i));
}

static void both_sides_of_a_fork_have_what_was_in_huge_pages(void **state)
{
	char *addr;
	int status;
	pid_t pid;

	if (!allowed())
		skip();
	addr = allocate();
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		for (size_t i = 0; i < LEN; i += 512)
			if (addr[i]++ != 7)
				_exit(1);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	for (size_t i = 0; i < LEN; i += 64)
		assert_int_equal(addr[i], 7);
	assert_int_equal(arena_free(arena, addr), 0);
}

/* Returns the faults that the kernel answers when LEN bytes without pages are touched. */
static long faults(void)
{
	struct rusage begin, end;
	char *addr;

	arena_trim(arena, 0);
	assert_int_equal(getrusage(RUSAGE_SELF, &begin), 0);
	addr = allocate();
	assert_int_equal(getrusage(RUSAGE_SELF, &end), 0);
	assert_int_equal(arena_free(arena, addr), 0);
	return end.ru_minflt - begin.ru_minflt;
}

static void larger_folios_need_fewer_faults(void **state)
{
	long small, large;

	if (!allowed())
		skip();
	if (!settings[1].before[0]) {
		printf("this kernel gives shared memory no folios of 64 KiB\n");
		skip();
	}
	assert_true(host_set(SETTING, "never"));
	assert_true(host_set(SETTING_64K, "never"));
	small = faults();
	assert_true(host_set(SETTING_64K, "advise"));
	large = faults();
	assert_true(host_set(SETTING, "advise"));
	print_message("%ld faults, of folios %ld\n", small, large);
	assert_in_range(large, 1, small / 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_arena_has_huge_pages_where_the_host_gives_them),
		cmocka_unit_test(a_part_of_a_huge_page_goes_alone),
		cmocka_unit_test(both_sides_of_a_fork_have_what_was_in_huge_pages),
		cmocka_unit_test(larger_folios_need_fewer_faults),
	};

	return cmocka_run_group_tests(tests, start, restore);
}
