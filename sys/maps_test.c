/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What is mapped in a range, part by part, and at an address: by the kernel's answer and by its text. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>
#include <rdma/fi_errno.h>
#include "fault.h"
#include "maps.h"
#include "memfd.h"

#define PARTS 8

static size_t page;

struct seen {
	struct sys_map parts[PARTS];
	int cnt;
	int end_at;
};

static int see(const struct sys_map *mapping, void *arg)
{
	struct seen *seen = arg;

	assert_true(seen->cnt < PARTS);
	seen->parts[seen->cnt++] = *mapping;
	return seen->cnt == seen->end_at ? 7 : 0;
}

/* Six pages: reserved, two of a memfd, the second not writable, none, private, reserved. */
static char *map_parts(uint64_t *inode)
{
	int fd = sys_memfd_create("maps", 4 * page, 0600);
	char *base = mmap(NULL, 6 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_true(fd >= 0);
	assert_ptr_not_equal(base, MAP_FAILED);
	assert_int_equal(sys_memfd_inode(fd, inode), 0);
	assert_ptr_not_equal(mmap(base + page, 2 * page, PROT_READ | PROT_WRITE,
				  MAP_SHARED | MAP_FIXED, fd, (off_t)page),
			     MAP_FAILED);
	close(fd);
	assert_int_equal(mprotect(base + 2 * page, page, PROT_READ), 0);
	assert_int_equal(munmap(base + 3 * page, page), 0);
	assert_int_equal(mprotect(base + 4 * page, page, PROT_READ | PROT_WRITE), 0);
	return base;
}

static void each_part_is_seen_as_it_is_mapped(void **state)
{
	struct seen seen = { .cnt = 0 };
	uint64_t inode;
	char *base = map_parts(&inode);

	assert_int_equal(sys_maps_each(base + page, 4 * page, see, &seen), 0);
	assert_int_equal(seen.cnt, 3);
	assert_ptr_equal(seen.parts[0].addr, base + page);
	assert_int_equal(seen.parts[0].len, page);
	assert_int_equal(seen.parts[0].prot, PROT_READ | PROT_WRITE);
	assert_true(seen.parts[0].shared);
	assert_int_equal(seen.parts[0].offset, page);
	assert_int_equal(seen.parts[0].inode, inode);
	assert_ptr_equal(seen.parts[1].addr, base + 2 * page);
	assert_int_equal(seen.parts[1].prot, PROT_READ);
	assert_int_equal(seen.parts[1].offset, 2 * page);
	assert_ptr_equal(seen.parts[2].addr, base + 4 * page);
	assert_false(seen.parts[2].shared);
	assert_int_equal(seen.parts[2].inode, 0);
	munmap(base, 6 * page);
}

static void a_mapping_that_reaches_beyond_the_range_is_cut(void **state)
{
	struct seen seen = { .cnt = 0 };
	int fd = sys_memfd_create("maps", 8 * page, 0600);
	void *base;

	assert_true(fd >= 0);
	assert_int_equal(sys_memfd_map(fd, 8 * page, SYS_MEMFD_WRITE, &base), 0);
	close(fd);
	assert_int_equal(sys_maps_each((char *)base + 3 * page, 2 * page, see, &seen), 0);
	assert_int_equal(seen.cnt, 1);
	assert_ptr_equal(seen.parts[0].addr, (char *)base + 3 * page);
	assert_int_equal(seen.parts[0].len, 2 * page);
	assert_int_equal(seen.parts[0].offset, 3 * page);
	sys_memfd_unmap(base, 8 * page);
}

static void the_walk_ends_where_it_is_told_to(void **state)
{
	struct seen seen = { .end_at = 2 };

	/* All that this process has, which is more than one read gives. */
	assert_int_equal(sys_maps_each(NULL, SIZE_MAX, see, &seen), 7);
	assert_int_equal(seen.cnt, 2);
}

static int count(const struct sys_map *mapping, void *arg)
{
	(*(int *)arg)++;
	return 0;
}

static void many_mappings_are_seen(void **state)
{
	char *base = mmap(NULL, 2000 * page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int cnt = 0;

	assert_ptr_not_equal(base, MAP_FAILED);
	for (int i = 0; i < 2000; i += 2)
		assert_int_equal(mprotect(base + (size_t)i * page, page, PROT_NONE), 0);
	assert_int_equal(sys_maps_each(base, 2000 * page, count, &cnt), 0);
	assert_int_equal(cnt, 2000);
	munmap(base, 2000 * page);
}

/* Removes a folder, and those in it by the same name. */
static void remove_folders(const char *name, int depth)
{
	for (; depth; depth--) {
		assert_int_equal(chdir(".."), 0);
		assert_int_equal(rmdir(name), 0);
	}
}

/* The kernel writes a newline as four characters: a path may be longer than what is read at once. */
static void a_mapping_with_a_long_path_hides_no_other(void **state)
{
	char name[251], base[] = "/tmp/weft-maps-XXXXXX";
	int before = open(".", O_RDONLY | O_CLOEXEC), fd, depth, cnt = 0;
	struct seen seen = { .cnt = 0 };
	char *map;

	memset(name, '\n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	assert_non_null(mkdtemp(base));
	assert_int_equal(chdir(base), 0);
	for (depth = 0; depth < 14; depth++)
		assert_int_equal(mkdir(name, 0700) | chdir(name), 0);
	fd = open("file", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)page), 0);
	map = mmap(NULL, page, PROT_READ, MAP_SHARED, fd, 0);
	assert_ptr_not_equal(map, MAP_FAILED);
	assert_int_equal(sys_maps_each(NULL, SIZE_MAX, count, &cnt), 0);
	assert_true(cnt > 10);
	assert_int_equal(sys_maps_each(map, page, see, &seen), 0);
	assert_int_equal(seen.cnt, 1);
	assert_ptr_equal(seen.parts[0].addr, map);
	assert_int_equal(seen.parts[0].len, page);
	munmap(map, page);
	close(fd);
	assert_int_equal(unlink("file"), 0);
	remove_folders(name, depth);
	assert_int_equal(fchdir(before) | rmdir(base), 0);
	close(before);
}

static void a_refusal_is_an_error(void **state)
{
	int cnt = 0;

	sys_fault_set(SYS_CALL_OPEN_MAPS, FI_EMFILE, 0, 0);
	assert_int_equal(sys_maps_each(NULL, SIZE_MAX, count, &cnt), -FI_EMFILE);
	sys_fault_clear();
	assert_int_equal(cnt, 0);
}

static bool anonymous(const void *addr)
{
	struct sys_map m;

	assert_int_equal(sys_maps_find(addr, &m), 0);
	assert_true((uintptr_t)addr - (uintptr_t)m.addr < m.len);
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
	struct sys_map m;

	assert_int_equal(mprotect(p, page, PROT_NONE), 0);
	assert_int_equal(munmap(p + page, page), 0);
	assert_int_equal(mprotect(p + 4 * page, page, PROT_NONE), 0);
	assert_int_equal(sys_maps_find(p + 3 * page, &m), 0);
	assert_ptr_equal(m.addr, p + 2 * page);
	assert_int_equal(m.len, 2 * page);
	assert_int_equal(m.prot, PROT_READ | PROT_WRITE);
	assert_int_equal(sys_maps_find(p + page, &m), -FI_ENOENT);
	assert_int_equal(sys_maps_find(NULL, &m), -FI_ENOENT);
	assert_int_equal(sys_maps_find((void *)UINTPTR_MAX, &m), -FI_ENOENT);
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

static void a_range_allows_what_all_of_its_mappings_do(void **state)
{
	uint8_t *p = map(8 * page, MAP_PRIVATE | MAP_ANONYMOUS, -1);

	assert_int_equal(mprotect(p + 2 * page, page, PROT_READ), 0);
	assert_int_equal(mprotect(p + 4 * page, page, PROT_NONE), 0);
	assert_int_equal(munmap(p + 6 * page, page), 0);
	assert_int_equal(sys_maps_allow(p, 2 * page, PROT_READ | PROT_WRITE), 0);
	assert_int_equal(sys_maps_allow(p + 1, 2 * page - 1, PROT_WRITE), 0);
	assert_int_equal(sys_maps_allow(p, 2 * page + 1, PROT_WRITE), -FI_EFAULT);
	assert_int_equal(sys_maps_allow(p, 4 * page, PROT_READ), 0);
	assert_int_equal(sys_maps_allow(p, 5 * page, PROT_READ), -FI_EFAULT);
	assert_int_equal(sys_maps_allow(p + 5 * page, page, PROT_WRITE), 0);
	assert_int_equal(sys_maps_allow(p + 5 * page, 3 * page, PROT_READ), -FI_EFAULT);
	assert_int_equal(sys_maps_allow(p + 6 * page, 1, PROT_READ), -FI_EFAULT);
	assert_int_equal(sys_maps_allow(p + 7 * page, UINTPTR_MAX, PROT_READ), -FI_EFAULT);
	assert_int_equal(sys_maps_allow(NULL, UINTPTR_MAX, PROT_READ), -FI_EFAULT);
	munmap(p, 8 * page);
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
	by_text(a_range_allows_what_all_of_its_mappings_do);
}

static void without_proc_nothing_is_known(void **state)
{
	struct sys_map m;

	sys_fault_set(SYS_CALL_OPEN_MAPS, ENOENT, 0, 2);
	assert_int_equal(sys_maps_find(&m, &m), -FI_ENOENT);
	assert_int_equal(sys_maps_allow(&m, sizeof(m), PROT_READ), -FI_ENOENT);
	sys_fault_clear();
}

static void the_kernel_says_how_many_there_may_be(void **state)
{
	FILE *file = fopen("/proc/sys/vm/max_map_count", "r");
	unsigned long long most = 65530;

	if (file) {
		assert_int_equal(fscanf(file, "%llu", &most), 1);
		fclose(file);
	}
	assert_int_equal(sys_maps_max(), most);
	sys_fault_set(SYS_CALL_OPEN_MAPS, EACCES, 0, 0);
	assert_int_equal(sys_maps_max(), 65530);
	sys_fault_clear();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_part_is_seen_as_it_is_mapped),
		cmocka_unit_test(a_mapping_that_reaches_beyond_the_range_is_cut),
		cmocka_unit_test(the_walk_ends_where_it_is_told_to),
		cmocka_unit_test(many_mappings_are_seen),
		cmocka_unit_test(a_mapping_with_a_long_path_hides_no_other),
		cmocka_unit_test(a_refusal_is_an_error),
		cmocka_unit_test(private_memory_without_a_file_is_known),
		cmocka_unit_test(shared_memory_and_files_are_not),
		cmocka_unit_test(a_mapping_has_its_bounds),
		cmocka_unit_test(a_mapping_behind_a_thousand_is_found),
		cmocka_unit_test(a_range_allows_what_all_of_its_mappings_do),
		cmocka_unit_test(the_text_says_the_same),
		cmocka_unit_test(without_proc_nothing_is_known),
		cmocka_unit_test(the_kernel_says_how_many_there_may_be),
	};

	page = (size_t)sysconf(_SC_PAGESIZE);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
