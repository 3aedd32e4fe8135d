/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Unit tests of finding a mapping, by the kernel's answer and by its text. One thread. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>
#include "fault.h"
#include "mappings.h"

static size_t page;

static bool anonymous(const void *addr)
{
	struct sys_mapping m;

	assert_int_equal(sys_mapping_find(addr, &m), 0);
	assert_true(m.start <= (uintptr_t)addr && (uintptr_t)addr < m.end);
	return m.private_anonymous;
}

static void *map(size_t len, int flags, int fd)
{
	void *p = mmap(NULL, len, PROT_READ | PROT_WRITE, flags, fd, 0);

	assert_ptr_not_equal(p, MAP_FAILED);
	return p;
}

static void private_memory_without_a_file_is_known(void **state)
{
	void *p = map(page, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	int on_the_stack = 0;
	void *in_the_heap = malloc(1);

	assert_true(anonymous(p));
	assert_true(anonymous(&on_the_stack));
	assert_true(anonymous(in_the_heap));
	free(in_the_heap);
	munmap(p, page);
}

static void shared_memory_and_files_are_not(void **state)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	void *shared = map(page, MAP_SHARED | MAP_ANONYMOUS, -1);
	void *file = map(page, MAP_PRIVATE, fd);

	assert_false(anonymous(shared));
	assert_false(anonymous(file));
	assert_false(anonymous((void *)(uintptr_t)private_memory_without_a_file_is_known));
	munmap(shared, page);
	munmap(file, page);
	close(fd);
}

static void a_mapping_has_its_bounds(void **state)
{
	uint8_t *p = map(5 * page, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	struct sys_mapping m;

	assert_int_equal(mprotect(p, page, PROT_NONE), 0);
	assert_int_equal(munmap(p + page, page), 0);
	assert_int_equal(mprotect(p + 4 * page, page, PROT_NONE), 0);
	assert_int_equal(sys_mapping_find(p + 3 * page, &m), 0);
	assert_int_equal(m.start, (uintptr_t)p + 2 * page);
	assert_int_equal(m.end, (uintptr_t)p + 4 * page);
	assert_int_equal(sys_mapping_find(p + page, &m), -ENOENT);
	assert_int_equal(sys_mapping_find(NULL, &m), -ENOENT);
	assert_int_equal(sys_mapping_find((void *)UINTPTR_MAX, &m), -ENOENT);
	munmap(p, 5 * page);
}

/* A text of many lines has the last ones in a later piece. */
static void a_mapping_behind_a_thousand_is_found(void **state)
{
	size_t len = 2001 * page;
	uint8_t *p = map(len, MAP_PRIVATE | MAP_ANONYMOUS, -1);

	for (size_t i = 1; i < 2000; i += 2)
		assert_int_equal(mprotect(p + i * page, page, PROT_READ), 0);
	for (size_t i = 1; i < 2000; i += 97)
		assert_true(anonymous(p + i * page));
	munmap(p, len);
}

static void by_text(void (*test)(void **state))
{
	sys_fault_set(SYS_CALL_ASK_MAPS, ENOTTY, 0, 0);
	test(NULL);
	sys_fault_clear();
}

static void the_text_says_the_same(void **state)
{
	by_text(private_memory_without_a_file_is_known);
	by_text(shared_memory_and_files_are_not);
	by_text(a_mapping_has_its_bounds);
	by_text(a_mapping_behind_a_thousand_is_found);
}

static void without_proc_nothing_is_known(void **state)
{
	struct sys_mapping m;

	sys_fault_set(SYS_CALL_OPEN_MAPS, ENOENT, 0, 1);
	assert_int_equal(sys_mapping_find(&m, &m), -ENOENT);
	sys_fault_clear();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(private_memory_without_a_file_is_known),
		cmocka_unit_test(shared_memory_and_files_are_not),
		cmocka_unit_test(a_mapping_has_its_bounds),
		cmocka_unit_test(a_mapping_behind_a_thousand_is_found),
		cmocka_unit_test(the_text_says_the_same),
		cmocka_unit_test(without_proc_nothing_is_known),
	};

	page = (size_t)sysconf(_SC_PAGESIZE);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
