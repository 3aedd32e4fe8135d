/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The look-up of the allocator behind the preload library (next.c), where the look-up itself allocates.
 * dlsym() is this test's for next.c.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>
#include "next.h"

/* Bytes that next.c has for a look-up, and those in front of each block */
#define EARLY 16384u
#define FRONT 16u

static char *small, *whole;

void *test_dlsym(void *handle, const char *name);

/* Reads nothing of the block, as an allocator whose blocks begin pages. */
static void *other_realloc(void *ptr, size_t len)
{
	return NULL;
}

/* As a loader's that allocates: all there is, what would be beyond it, and less. */
void *test_dlsym(void *handle, const char *name)
{
	if (!small) {
		for (size_t len = EARLY - FRONT + 1; len <= EARLY + FRONT; len++)
			assert_null(next()->malloc(len));
		small = next()->malloc(100);
		assert_non_null(small);
		memset(small, 17, 100);
	} else if (!whole) {
		whole = next()->malloc(EARLY - FRONT - 128);
		assert_non_null(whole);
		assert_ptr_equal(whole, small + 128);
		memset(whole, 18, EARLY - FRONT - 128);
		assert_null(next()->malloc(1));
	}
	if (!strcmp(name, "malloc"))
		return (void *)(uintptr_t)malloc;
	if (!strcmp(name, "realloc"))
		return (void *)(uintptr_t)other_realloc;
	return NULL;
}

static void a_look_up_that_allocates_has_what_there_is(void **state)
{
	next();
	assert_true(small && whole);
	for (unsigned int i = 0; i < 100; i++)
		assert_int_equal(small[i], 17);
	assert_int_equal(whole[0], 18);
	next()->free(small);
}

static void its_memory_grows_into_the_allocators(void **state)
{
	char *grown = next()->realloc(small, 1000);

	assert_non_null(grown);
	for (unsigned int i = 0; i < 100; i++)
		assert_int_equal(grown[i], 17);
	free(grown);
}

/* The bytes in front of the allocator's blocks are not this library's to read. */
static void other_memory_is_left_to_the_allocator(void **state)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *at = mmap(NULL, 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_true(at != MAP_FAILED);
	assert_null(next()->realloc(at + page, 1));
	munmap(at, 2 * page);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_look_up_that_allocates_has_what_there_is),
		cmocka_unit_test(its_memory_grows_into_the_allocators),
		cmocka_unit_test(other_memory_is_left_to_the_allocator),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
