/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Memory of a process and of its child, as reported by /proc. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "memory.h"

#define MIB (1ull << 20)

/*
 * What the allocator and the C library may do meanwhile; ThreadSanitizer shadows each byte by four, AddressSanitizer eight
 * by one.
 */
#ifdef __SANITIZE_THREAD__
#define SLACK (48 * MIB)
#elif defined(__SANITIZE_ADDRESS__)
#define SLACK (2 * MIB)
#else
#define SLACK (MIB / 4)
#endif

static struct memory look(const pid_t *pids, size_t cnt)
{
	struct memory memory;

	assert_int_equal(memory_read(pids, cnt, &memory), 0);
	return memory;
}

static void *map_touched(size_t len, int flags, int fd)
{
	void *mem = mmap(NULL, len, PROT_READ | PROT_WRITE, flags, fd, 0);

	assert_true(mem != MAP_FAILED);
	memset(mem, 1, len);
	return mem;
}

static void assert_near(uint64_t got, uint64_t expected)
{
	assert_in_range(got, expected, expected + SLACK);
}

static void private_memory_counts_when_it_is_touched(void **state)
{
	struct memory before, after, grown;
	pid_t me = getpid();
	void *mem, *bare;

	before = look(&me, 1);
	bare = mmap(NULL, 64 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(bare != MAP_FAILED);
	mem = map_touched(8 * MIB, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	after = look(&me, 1);
	grown = memory_growth(&before, &after, 1);
	assert_near(grown.private_bytes, 8 * MIB);
	assert_near(grown.shared_bytes, 0);
	assert_near(memory_growth(&before, &after, 8).private_bytes, MIB);
	assert_int_equal(memory_growth(&after, &before, 1).private_bytes, 0);
	munmap(mem, 8 * MIB);
	munmap(bare, 64 * MIB);
}

static void a_shared_file_counts_once(void **state)
{
	struct memory before, after, grown;
	pid_t pids[2] = { getpid(), 0 };
	void *once, *twice;
	int fd;

	before = look(pids, 1);
	fd = memfd_create("memory_test", MFD_CLOEXEC);
	assert_true(fd >= 0 && !ftruncate(fd, 4 * MIB));
	once = map_touched(4 * MIB, MAP_SHARED, fd);
	twice = map_touched(4 * MIB, MAP_SHARED, fd);
	close(fd);
	pids[1] = fork();
	if (!pids[1]) {
		pause();
		_exit(0);
	}
	after = look(pids, 2);
	grown = memory_growth(&before, &after, 1);
	assert_near(grown.shared_bytes, 4 * MIB);
	kill(pids[1], SIGKILL);
	waitpid(pids[1], NULL, 0);
	munmap(once, 4 * MIB);
	munmap(twice, 4 * MIB);
}

static void a_process_that_is_not_there_is_an_error(void **state)
{
	struct memory memory = { 1, 2 };
	pid_t nobody = 1 << 30;

	assert_int_equal(memory_read(&nobody, 1, &memory), -ENOENT);
	assert_int_equal(memory.private_bytes, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(private_memory_counts_when_it_is_touched),
		cmocka_unit_test(a_shared_file_counts_once),
		cmocka_unit_test(a_process_that_is_not_there_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
