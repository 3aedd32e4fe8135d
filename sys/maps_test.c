/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What is mapped in a range, part by part. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>
#include <rdma/fi_errno.h>
#include "fault.h"
#include "maps.h"
#include "memfd.h"

#define PARTS 8

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
static char *map_parts(size_t page, uint64_t *inode)
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
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct seen seen = { .cnt = 0 };
	uint64_t inode;
	char *base = map_parts(page, &inode);

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
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
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
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *base = mmap(NULL, 2000 * page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int cnt = 0;

	assert_ptr_not_equal(base, MAP_FAILED);
	for (int i = 0; i < 2000; i += 2)
		assert_int_equal(mprotect(base + (size_t)i * page, page, PROT_NONE), 0);
	assert_int_equal(sys_maps_each(base, 2000 * page, count, &cnt), 0);
	assert_int_equal(cnt, 2000);
	munmap(base, 2000 * page);
}

static void a_refusal_is_an_error(void **state)
{
	int cnt = 0;

	sys_fault_set(SYS_CALL_OPEN_MAPS, FI_EMFILE, 0, 0);
	assert_int_equal(sys_maps_each(NULL, SIZE_MAX, count, &cnt), -FI_EMFILE);
	sys_fault_clear();
	assert_int_equal(cnt, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_part_is_seen_as_it_is_mapped),
		cmocka_unit_test(a_mapping_that_reaches_beyond_the_range_is_cut),
		cmocka_unit_test(the_walk_ends_where_it_is_told_to),
		cmocka_unit_test(many_mappings_are_seen),
		cmocka_unit_test(a_refusal_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
