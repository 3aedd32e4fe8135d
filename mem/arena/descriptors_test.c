/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A program that closes all descriptors, as daemons do, and opens files of its own under their numbers: its
 * memory stays what it is, and nothing is done to those files.
 */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include "arena.h"
#include "memfd.h"

#define LEN	 ((size_t)1 << 20)
#define FD_FIRST 3
#define FDS_MAX	 256

static struct arena *arena;
/* the program's own files, from FD_FIRST on */
static int files_end;

static void keep_nobody(struct arena *unused)
{
}

/*
 * The keeper reads files of /proc for a short time each, at any number: one that is open while a test gives all
 * numbers to files would be closed as that file. It does not run here.
 */
static int start(void **state)
{
	arena = arena_get();
	if (!arena)
		return -1;
	arena->keeper_start = keep_nobody;
	return 0;
}

static unsigned char *allocate(unsigned char byte)
{
	void *addr = NULL;

	assert_int_equal(arena_alloc(arena, LEN, 1, ARENA_READ, &addr, NULL), 0);
	return memset(addr, byte, LEN);
}

static bool consists_of(const unsigned char *addr, unsigned char byte)
{
	for (size_t i = 0; i < LEN; i++)
		if (addr[i] != byte)
			return false;
	return true;
}

static int highest(void)
{
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *entry;
	int most = FD_FIRST;

	assert_non_null(dir);
	while ((entry = readdir(dir)))
		most = atoi(entry->d_name) > most ? atoi(entry->d_name) : most;
	closedir(dir);
	return most;
}

/* Each number that was a descriptor is one of a file with data where the arena's chunks have theirs. */
static void files_take_the_numbers(void)
{
	int fd, most = highest();

	assert_true(most < FDS_MAX);
	for (fd = FD_FIRST; fd <= most; fd++)
		close(fd);
	for (fd = FD_FIRST; fd <= most; fd++) {
		int file = sys_memfd_create("file", 4 * LEN, 0600);
		void *addr;

		assert_int_equal(dup2(file, fd), fd);
		if (file != fd)
			close(file);
		assert_int_equal(sys_memfd_map(fd, 4 * LEN, SYS_MEMFD_WRITE, &addr), 0);
		memset(addr, 'f', 4 * LEN);
		sys_memfd_unmap(addr, 4 * LEN);
		assert_int_equal(lseek(fd, 1, SEEK_SET), 1);
	}
	files_end = fd;
}

static bool files_are_whole(void)
{
	bool whole = true;

	for (int fd = FD_FIRST; whole && fd < files_end; fd++) {
		uint64_t at = 0, len = 0;

		whole = lseek(fd, 0, SEEK_CUR) == 1 && !sys_memfd_data(fd, &at, &len) && !at &&
			len == 4 * LEN;
		lseek(fd, 1, SEEK_SET);
	}
	return whole;
}

static void pages_go_and_no_file_loses_any(void **state)
{
	unsigned char *freed = allocate(1), *kept = allocate(2), *again;
	bool zero = false;
	void *addr;

	files_take_the_numbers();
	assert_int_equal(arena_free(arena, freed), 0);
	arena_trim(arena, 0);
	assert_int_equal(arena_alloc(arena, LEN, 1, ARENA_READ, &addr, &zero), 0);
	again = addr;
	assert_ptr_equal(again, freed);
	assert_true(zero);
	assert_true(consists_of(again, 0));
	memset(again, 3, LEN);
	assert_int_equal(arena_purge(arena, again, LEN), 0);
	assert_true(consists_of(again, 0));
	assert_true(consists_of(kept, 2));
	assert_true(files_are_whole());
	assert_int_equal(arena_free(arena, again), 0);
	assert_int_equal(arena_free(arena, kept), 0);
}

static void a_child_has_the_memory_and_the_files(void **state)
{
	unsigned char *addr = allocate(1);
	int status;
	pid_t pid;

	files_take_the_numbers();
	pid = fork();
	assert_true(pid >= 0);
	if (!pid)
		_exit(files_are_whole() && consists_of(addr, 1) ? 0 : 1);
	memset(addr, 2, LEN);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_true(files_are_whole());
	assert_true(consists_of(addr, 2));
	assert_int_equal(arena_free(arena, addr), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pages_go_and_no_file_loses_any),
		cmocka_unit_test(a_child_has_the_memory_and_the_files),
	};

	return cmocka_run_group_tests(tests, start, NULL);
}
