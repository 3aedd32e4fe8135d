/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Unit tests of asking whether memory is accessible, also of kernels that answer less. One thread. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>
#include "fault.h"
#include "platform.h"
#include <cmocka.h>

/* Four pages: two of memory, one that may be read, and none. */
static char *map_four(size_t page)
{
	char *at = mmap(NULL, 4 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			0);

	assert_ptr_not_equal(at, MAP_FAILED);
	assert_int_equal(mprotect(at + 2 * page, page, PROT_READ), 0);
	assert_int_equal(munmap(at + 3 * page, page), 0);
	return at;
}

static void memory_is_accessible_or_not(void **state)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct platform_range found = { 1, 2 };
	char *at = map_four(page);

	assert_false(platform_accessible(at + 2 * page - 1, 2, true, &found));
	assert_false(platform_accessible(at + 3 * page - 1, 2, false, &found));
	assert_false(platform_accessible(at + 3 * page, 1, false, &found));
	assert_false(platform_accessible((void *)UINTPTR_MAX, 1, false, &found));
	assert_false(platform_accessible(at, SIZE_MAX, false, &found));
	assert_true(found.from == 1 && found.end == 2);
	assert_true(platform_accessible(at + page - 1, 2, true, &found));
	assert_true(found.from == (uintptr_t)at && found.end == (uintptr_t)at + 2 * page);
	assert_true(platform_accessible(at + 2 * page, page, false, &found));
	assert_true(found.from == (uintptr_t)at + 2 * page && found.end == found.from + page);
	munmap(at, 3 * page);
}

/* Before Linux 5.14 it is asked what is mapped, and without /proc pages are touched, however many. */
static void one_way_to_ask_is_enough(void **state)
{
	sys_fault_set(SYS_CALL_TOUCH, EINVAL, 0, 0);
	memory_is_accessible_or_not(state);
	sys_fault_clear();
	sys_fault_set(SYS_CALL_OPEN_MAPS, EMFILE, 0, 0);
	memory_is_accessible_or_not(state);
	sys_fault_clear();
}

static void without_either_what_is_mapped_is_accessible(void **state)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct platform_range found;
	char *at = map_four(page);

	sys_fault_set(SYS_CALL_TOUCH, EINVAL, 0, 0);
	sys_fault_set(SYS_CALL_OPEN_MAPS, EMFILE, 0, 0);
	assert_true(platform_accessible(at, 8, true, &found));
	assert_false(platform_accessible(at + 3 * page, 8, true, &found));
	assert_false(platform_accessible(at + 3 * page - 4, 8, false, &found));
	sys_fault_clear();
	munmap(at, 3 * page);
}

static void mappings_are_known_without_a_page(void **state)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *at = map_four(page);
	unsigned char there = 1;

	assert_true(platform_mapped(at, 2 * page, true));
	assert_true(platform_mapped(at, 3 * page, false));
	assert_false(platform_mapped(at, 3 * page, true));
	assert_false(platform_mapped(at, 4 * page, false));
	assert_int_equal(mincore(at, page, &there), 0);
	assert_int_equal(there & 1, 0);
	munmap(at, 3 * page);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(memory_is_accessible_or_not),
		cmocka_unit_test(one_way_to_ask_is_enough),
		cmocka_unit_test(without_either_what_is_mapped_is_accessible),
		cmocka_unit_test(mappings_are_known_without_a_page),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
