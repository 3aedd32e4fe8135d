/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Unit tests of asking the kernel whether memory can be accessed, by having its pages and by what is mapped. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>
#include <rdma/fi_errno.h>
#include "fault.h"
#include "touch.h"

#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102
#endif

#define PAGES 8u

static size_t page;
static char *memory;

static int setup(void **state)
{
	page = (size_t)sysconf(_SC_PAGESIZE);
	memory = mmap(NULL, PAGES * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		      -1, 0);
	return memory == MAP_FAILED;
}

static int teardown(void **state)
{
	sys_fault_clear();
	return munmap(memory, PAGES * page);
}

static bool is_there(size_t at)
{
	unsigned char there = 0;

	assert_int_equal(mincore(memory + at * page, page, &there), 0);
	return there & 1;
}

static void pages_are_there_afterwards_and_no_others(void **state)
{
	assert_false(is_there(2));
	assert_int_equal(sys_touch(memory + 2 * page, 3 * page, true), 0);
	for (size_t i = 0; i < PAGES; i++)
		assert_int_equal(is_there(i), i >= 2 && i < 5);
	for (size_t i = 0; i < PAGES * page; i++)
		assert_int_equal(memory[i], 0);
}

static void what_is_in_the_pages_stays(void **state)
{
	memset(memory, 0x5a, PAGES * page);
	assert_int_equal(sys_touch(memory, PAGES * page, true), 0);
	assert_int_equal(sys_touch(memory, PAGES * page, false), 0);
	for (size_t i = 0; i < PAGES * page; i++)
		assert_int_equal(memory[i], 0x5a);
}

static void mappings_that_do_not_allow_it_are_errors(void **state)
{
	assert_int_equal(mprotect(memory, page, PROT_READ), 0);
	assert_int_equal(mprotect(memory + page, page, PROT_NONE), 0);
	assert_int_equal(sys_touch(memory, page, false), 0);
	assert_true(sys_touch(memory, page, true) < 0);
	assert_true(sys_touch(memory + page, page, false) < 0);
	assert_true(sys_touch(memory, PAGES * page, false) < 0);
	assert_true(sys_mapped(memory, PAGES * page));
	assert_int_equal(munmap(memory + page, page), 0);
	assert_true(sys_touch(memory + page, page, false) < 0);
	assert_false(sys_mapped(memory, PAGES * page));
	assert_false(sys_mapped(memory + page, page));
	assert_true(sys_mapped(memory + 2 * page, page));
}

static void the_end_of_a_file_is_a_fault(void **state)
{
	FILE *file = tmpfile();

	assert_non_null(file);
	assert_int_equal(ftruncate(fileno(file), (off_t)page), 0);
	assert_ptr_equal(mmap(memory, 2 * page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
			      fileno(file), 0),
			 memory);
	fclose(file);
	assert_int_equal(sys_touch(memory, page, true), 0);
	assert_int_equal(sys_touch(memory, 2 * page, true), -FI_EFAULT);
	assert_int_equal(sys_touch(memory + page, page, false), -FI_EFAULT);
}

static void guard_pages_are_a_fault(void **state)
{
	if (madvise(memory + page, page, MADV_GUARD_INSTALL)) {
		print_message("no MADV_GUARD_INSTALL in this kernel\n");
		skip();
	}
	assert_int_equal(sys_touch(memory, page, true), 0);
	assert_int_equal(sys_touch(memory + page, page, false), -FI_EFAULT);
	assert_int_equal(sys_touch(memory, PAGES * page, true), -FI_EFAULT);
}

static void a_kernel_without_it_says_so(void **state)
{
	sys_fault_set(SYS_CALL_TOUCH, EINVAL, 0, 1);
	assert_int_equal(sys_touch(memory, page, true), -FI_EINVAL);
	assert_false(is_there(0));
	assert_int_equal(sys_touch(memory, page, true), 0);
}

static void many_pages_are_looked_at(void **state)
{
	char *large = mmap(NULL, 2000 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(large, MAP_FAILED);
	assert_true(sys_mapped(large, 2000 * page));
	assert_int_equal(munmap(large + 1999 * page, page), 0);
	assert_false(sys_mapped(large, 2000 * page));
	assert_true(sys_mapped(large, 1999 * page));
	munmap(large, 1999 * page);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(pages_are_there_afterwards_and_no_others),
		TEST(what_is_in_the_pages_stays),
		TEST(mappings_that_do_not_allow_it_are_errors),
		TEST(the_end_of_a_file_is_a_fault),
		TEST(guard_pages_are_a_fault),
		TEST(a_kernel_without_it_says_so),
		TEST(many_pages_are_looked_at),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
