/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A program under libweft-mem.so (LD_PRELOAD) advises, protects, unmaps, maps over and moves memory that it has
 * allocated: each call does what it does to private memory.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>
#include "program.h"

#define MIB (1u << 20)

static size_t page;

#ifndef MADV_DONTNEED_LOCKED
#define MADV_DONTNEED_LOCKED 24
#endif

static void advice_gives_zeros(void **state)
{
	static const int advices[] = { MADV_DONTNEED, MADV_DONTNEED_LOCKED, MADV_FREE,
				       MADV_REMOVE };

	for (size_t i = 0; i < sizeof(advices) / sizeof(advices[0]); i++) {
		char *ptr = aligned_alloc(page, MIB);

		memset(ptr, 1, MIB);
		assert_int_equal(madvise(ptr + page, 2 * page, advices[i]), 0);
		assert_int_equal(ptr[page - 1], 1);
		assert_true(program_is_zero(ptr + page, 2 * page));
		assert_int_equal(ptr[3 * page], 1);
		assert_true(program_shown(ptr, MIB));
		assert_int_equal(madvise(ptr + 1, page, advices[i]), -1);
		assert_int_equal(errno, EINVAL);
		assert_int_equal(madvise(ptr, MIB, MADV_DOFORK), 0);
		free(ptr);
	}
}

#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102
#define MADV_GUARD_REMOVE  103
#endif

static void guard_pages_guard_and_leave_zeros(void **state)
{
	char *ptr = aligned_alloc(page, MIB);

	memset(ptr, 1, MIB);
	if (madvise(ptr + page, 2 * page, MADV_GUARD_INSTALL)) {
		assert_int_equal(errno, EINVAL);
		print_message("this kernel has no guard pages of files\n");
		assert_true(program_writable(ptr + page));
		free(ptr);
		return;
	}
	assert_false(program_writable(ptr + page) || program_writable(ptr + 3 * page - 1));
	assert_int_equal(ptr[page - 1], 1);
	assert_int_equal(ptr[3 * page], 1);
	assert_int_equal(madvise(ptr + page, 2 * page, MADV_GUARD_REMOVE), 0);
	assert_true(program_is_zero(ptr + page, 2 * page));
	assert_true(program_writable(ptr + page));
	free(ptr);
}

static void protections_hold(void **state)
{
	char *ptr = aligned_alloc(page, MIB);

	assert_int_equal(mprotect(ptr, page, PROT_READ), 0);
	assert_false(program_writable(ptr));
	assert_true(program_writable(ptr + page));
	assert_int_equal(mprotect(ptr, page, PROT_READ | PROT_WRITE), 0);
	assert_true(program_writable(ptr));
	assert_true(program_shown(ptr, MIB));
	free(ptr);
}

static void unmapped_memory_is_gone(void **state)
{
	char *ptr = aligned_alloc(page, MIB), *other_mapping;

	memset(ptr, 1, MIB);
	assert_int_equal(munmap(ptr + 1, page), -1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(munmap(ptr + page, page), 0);
	assert_false(program_writable(ptr + page));
	assert_int_equal(ptr[2 * page], 1);
	assert_false(program_shown(ptr, MIB));
	/* The kernel gives the addresses to nobody else. */
	other_mapping = mmap(ptr + page, page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(other_mapping, ptr + page);
	munmap(other_mapping, page);
}

static void memory_mapped_over_it_is_the_programs(void **state)
{
	char *ptr = aligned_alloc(page, MIB);

	memset(ptr, 1, MIB);
	assert_ptr_equal(mmap(ptr, page, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
			 ptr);
	assert_true(program_is_zero(ptr, page));
	assert_int_equal(ptr[page], 1);
	assert_false(program_shown(ptr, 1));
	ptr[0] = 5;
	assert_int_equal(madvise(ptr, 2 * page, MADV_DONTNEED), 0);
	assert_true(program_is_zero(ptr, 2 * page));
	assert_int_equal(ptr[2 * page], 1);
}

/* Maps a file of three pages of 'f' over the second page and those behind it. Returns its descriptor. */
static int map_file(char *ptr)
{
	size_t len = 3 * page;
	int fd = memfd_create("file", MFD_CLOEXEC);
	char *bytes = malloc(len);

	assert_true(fd >= 0 && bytes);
	memset(bytes, 'f', len);
	assert_int_equal(write(fd, bytes, len), len);
	free(bytes);
	assert_ptr_equal(
		mmap(ptr + page, len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0),
		ptr + page);
	return fd;
}

static void file_is_as_it_was(int fd)
{
	char byte;

	for (off_t at = 0; at < 3 * (off_t)page; at++) {
		assert_int_equal(pread(fd, &byte, 1, at), 1);
		assert_int_equal(byte, 'f');
	}
	close(fd);
}

/* Stores to what is allocated next, some of which was freed before. */
static void store_to_others(size_t len)
{
	char *others[8];

	for (size_t i = 0; i < 8; i++) {
		others[i] = aligned_alloc(page, len);
		assert_non_null(others[i]);
		memset(others[i], 'x', len);
	}
	for (size_t i = 0; i < 8; i++)
		free(others[i]);
}

static void a_file_mapped_over_what_is_freed_is_not_stored_to(void **state)
{
	char *volatile ptr = aligned_alloc(page, MIB);
	int fd = map_file(ptr);

	free(ptr);
	store_to_others(MIB);
	file_is_as_it_was(fd);
}

static void resized_memory_has_what_was_mapped_over_it(void **state)
{
	char *volatile ptr = aligned_alloc(page, MIB);
	int fd;

	memset(ptr, 'p', MIB);
	fd = map_file(ptr);
	ptr = realloc(ptr, 2 * MIB);
	assert_int_equal(ptr[page - 1], 'p');
	assert_int_equal(ptr[page], 'f');
	assert_int_equal(ptr[4 * page - 1], 'f');
	assert_int_equal(ptr[4 * page], 'p');
	assert_int_equal(ptr[MIB - 1], 'p');
	memset(ptr, 'x', 2 * MIB);
	store_to_others(MIB);
	file_is_as_it_was(fd);
	free(ptr);
}

static void remapped_memory_moves(void **state)
{
	char *ptr = aligned_alloc(page, MIB), *to, *place;

	memset(ptr, 1, MIB);
	assert_ptr_equal(mremap(ptr, 4 * page, 8 * page, 0), MAP_FAILED);
	assert_int_equal(errno, ENOMEM);
	assert_ptr_equal(mremap(ptr, 4 * page, 4 * page, 0), ptr);
	to = mremap(ptr, 4 * page, 8 * page, MREMAP_MAYMOVE);
	assert_ptr_not_equal(to, MAP_FAILED);
	assert_int_equal(to[4 * page - 1], 1);
	/* not what follows it in the file */
	assert_true(program_is_zero(to + 4 * page, 4 * page));
	assert_false(program_writable(ptr));
	assert_int_equal(ptr[4 * page], 1);
	assert_false(program_shown(ptr + 4 * page, page));
	munmap(to, 8 * page);
	place = mmap(NULL, 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	to = mremap(ptr + 4 * page, 2 * page, 2 * page, MREMAP_MAYMOVE | MREMAP_FIXED, place);
	assert_ptr_equal(to, place);
	assert_int_equal(to[0], 1);
	munmap(to, 2 * page);
	assert_ptr_equal(mremap(ptr + 8 * page, 2 * page, page, 0), ptr + 8 * page);
	assert_false(program_writable(ptr + 9 * page));
	assert_true(program_writable(ptr + 8 * page));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(advice_gives_zeros),
		cmocka_unit_test(guard_pages_guard_and_leave_zeros),
		cmocka_unit_test(protections_hold),
		cmocka_unit_test(unmapped_memory_is_gone),
		cmocka_unit_test(memory_mapped_over_it_is_the_programs),
		cmocka_unit_test(a_file_mapped_over_what_is_freed_is_not_stored_to),
		cmocka_unit_test(resized_memory_has_what_was_mapped_over_it),
		cmocka_unit_test(remapped_memory_moves),
	};

	page = (size_t)sysconf(_SC_PAGESIZE);
	return cmocka_run_group_tests(tests, program_start, NULL);
}
