/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A program under libweft-mem.so (LD_PRELOAD), which it knows nothing of: where its memory comes from, and
 * that each call does what it does without the library. Mappings: mapping_test.c; threads, forks and other
 * programs: process_test.c.
 *
 * usage: preload_test [other]: a second allocator is preloaded behind it (other_allocator.c)
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>
#include "program.h"

#define KIB   1024u
#define MIB   (KIB * KIB)
#define LARGE (64 * KIB)

/* Not looked at by the compiler, which knows what malloc() returns. */
static void *volatile kept;

/* A second allocator is preloaded. */
static bool other;
static size_t page;

static void large_memory_comes_from_the_arena(void **state)
{
	char *ptr = malloc(LARGE);

	assert_true(program_shown(ptr, LARGE));
	assert_in_range(malloc_usable_size(ptr), LARGE, 2 * LARGE);
	memset(ptr, 1, malloc_usable_size(ptr));
	free(ptr);
	ptr = calloc(LARGE, 3);
	assert_true(program_shown(ptr, 3 * LARGE));
	assert_true(program_is_zero(ptr, 3 * LARGE));
	memset(ptr, 1, 3 * LARGE);
	free(ptr);
	ptr = calloc(3, LARGE);
	assert_true(program_is_zero(ptr, 3 * LARGE));
	free(ptr);
	ptr = valloc(LARGE);
	assert_true(program_shown(ptr, LARGE));
	assert_int_equal((uintptr_t)ptr % page, 0);
	free(ptr);
	ptr = pvalloc(LARGE - 1);
	assert_true(program_shown(ptr, LARGE));
	free(ptr);
}

static void the_arena_is_that_of_this_version(void **state)
{
	arena_export *export = (arena_export *)dlsym(RTLD_DEFAULT, ARENA_EXPORT);

	assert_non_null(export(ARENA_VERSION, sizeof(struct arena)));
	assert_null(export(ARENA_VERSION + 1, sizeof(struct arena)));
	assert_null(export(ARENA_VERSION, 1));
}

/* By the C library, or by the allocator that is preloaded behind this one. */
static bool elsewhere(void *ptr)
{
	bool (*has)(const void *) = (bool (*)(const void *))dlsym(RTLD_DEFAULT, "other_has");

	if (program_shown(ptr, 1))
		return false;
	return !other || has(ptr);
}

static void small_memory_comes_from_where_it_did(void **state)
{
	void *ptr = malloc(100), *memory = NULL;

	assert_true(elsewhere(ptr));
	ptr = realloc(ptr, 200);
	assert_true(elsewhere(ptr));
	assert_true(malloc_usable_size(ptr) >= 200);
	free(ptr);
	ptr = malloc(LARGE - 1);
	assert_true(elsewhere(ptr));
	free(ptr);
	ptr = calloc(10, 10);
	assert_true(elsewhere(ptr));
	free(ptr);
	assert_int_equal(posix_memalign(&memory, 64, 100), 0);
	assert_true(elsewhere(memory));
	free(memory);
	ptr = aligned_alloc(4096, 4096);
	assert_true(elsewhere(ptr));
	free(ptr);
	free(NULL);
}

static void alignments_are_kept(void **state)
{
	void *ptr = NULL;

	for (size_t align = sizeof(void *); align <= 4 * MIB; align *= 2) {
		assert_int_equal(posix_memalign(&ptr, align, MIB + 1), 0);
		assert_int_equal((uintptr_t)ptr % align, 0);
		assert_true(program_shown(ptr, MIB + 1));
		free(ptr);
		ptr = memalign(align, LARGE);
		assert_int_equal((uintptr_t)ptr % align, 0);
		free(ptr);
		ptr = aligned_alloc(align, 4 * MIB);
		assert_int_equal((uintptr_t)ptr % align, 0);
		free(ptr);
	}
	kept = NULL;
	assert_int_equal(posix_memalign((void **)&kept, 24, MIB), EINVAL);
	assert_int_equal(posix_memalign((void **)&kept, 2, MIB), EINVAL);
	assert_null(kept);
}

static void what_can_not_be_is_refused(void **state)
{
	volatile size_t many = SIZE_MAX / 2 + 2;
	int error = 0;

	errno = 0;
	kept = malloc(many);
	assert_null(kept);
	assert_int_equal(errno, ENOMEM);
	errno = 0;
	kept = calloc(many, 2);
	assert_null(kept);
	assert_int_equal(errno, ENOMEM);
	kept = malloc(MIB);
	errno = 0;
	assert_null(reallocarray(kept, many, 2));
	assert_int_equal(errno, ENOMEM);
	assert_null(realloc(kept, many));
	errno = 77;
	free(kept);
	error = errno;
	assert_int_equal(error, 77);
}

static void resized_memory_keeps_its_bytes(void **state)
{
	static const size_t lens[] = { 100,	LARGE,	 MIB, 50,	2 * LARGE, 40 * MIB,
				       3 * MIB, 4 * MIB, 1,   10 * MIB, LARGE };
	unsigned char *ptr = NULL;
	size_t old = 0;

	for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		ptr = realloc(ptr, lens[i]);
		assert_non_null(ptr);
		assert_int_equal(!program_shown(ptr, 1), lens[i] < LARGE);
		for (size_t b = 0; b < (old < lens[i] ? old : lens[i]); b += 61)
			assert_int_equal(ptr[b], (unsigned char)(b * 7 + i - 1));
		for (size_t b = 0; b < lens[i]; b++)
			ptr[b] = (unsigned char)(b * 7 + i);
		old = lens[i];
	}
	assert_null(realloc(ptr, 0));
	kept = malloc(100);
	kept = reallocarray(kept, 3, LARGE);
	assert_true(program_shown(kept, 3 * LARGE));
	free(kept);
}

static void freed_memory_is_reused_with_its_pages(void **state)
{
	unsigned char vec = 0;
	char *ptr = malloc(4 * MIB), *again;

	memset(ptr, 1, 4 * MIB);
	free(ptr);
	again = malloc(4 * MIB);
	assert_true((size_t)(again - ptr) + page < 2 * page);
	assert_int_equal(mincore((void *)((uintptr_t)again & ~(page - 1)), 1, &vec), 0);
	assert_true(vec & 1);
	free(again);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(large_memory_comes_from_the_arena),
		cmocka_unit_test(the_arena_is_that_of_this_version),
		cmocka_unit_test(small_memory_comes_from_where_it_did),
		cmocka_unit_test(alignments_are_kept),
		cmocka_unit_test(what_can_not_be_is_refused),
		cmocka_unit_test(resized_memory_keeps_its_bytes),
		cmocka_unit_test(freed_memory_is_reused_with_its_pages),
	};

	/* That one never takes memory back. */
	const struct CMUnitTest with_other[] = {
		cmocka_unit_test(large_memory_comes_from_the_arena),
		cmocka_unit_test(small_memory_comes_from_where_it_did),
		cmocka_unit_test(what_can_not_be_is_refused),
		cmocka_unit_test(resized_memory_keeps_its_bytes),
	};

	page = (size_t)sysconf(_SC_PAGESIZE);
	other = argc > 1;
	return other ? cmocka_run_group_tests(with_other, program_start, NULL)
		     : cmocka_run_group_tests(tests, program_start, NULL);
}
