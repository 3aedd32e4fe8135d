/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The memory limits of control groups of both versions, and what they leave, read from folders of the test. */
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>
#include "limit.h"

static char root[] = "/tmp/weft-limit.XXXXXX";

static int make_root(void **state)
{
	return mkdtemp(root) ? 0 : -1;
}

static int remove_root(void **state)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -r '%s'", root);
	return system(command) ? -1 : 0;
}

static void write_file(const char *name, const char *text)
{
	char path[PATH_MAX];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", root, name);
	file = fopen(path, "w");
	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

static void make_folder(const char *name)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", root, name);
	assert_int_equal(mkdir(path, 0700), 0);
}

static struct limit limits(const char *groups)
{
	char path[PATH_MAX];
	struct limit limit;

	write_file("groups", groups);
	snprintf(path, sizeof(path), "%s/groups", root);
	limit_groups(path, root, &limit);
	return limit;
}

static void the_least_limit_above_a_group_holds(void **state)
{
	make_folder("a");
	make_folder("a/b");
	write_file("a/memory.max", "3000\n");
	write_file("a/b/memory.max", "max\n");
	assert_int_equal(limits("0::/a/b\n").most, 3000);
	assert_int_equal(limits("0::/a/none\n").most, 3000);
	write_file("a/b/memory.max", "2000\n");
	assert_int_equal(limits("0::/a/b\n").most, 2000);
	assert_int_equal(limits("0::/a\n").most, 3000);
	assert_int_equal(limits("0::/\n").most, SIZE_MAX);
	write_file("a/b/memory.high", "1500\n");
	assert_int_equal(limits("0::/a/b\n").most, 1500);
	write_file("a/b/memory.high", "max\n");
	assert_int_equal(limits("0::/a/b\n").most, 2000);
}

static void what_groups_use_leaves_less_room(void **state)
{
	assert_int_equal(limits("0::/a/b\n").room, SIZE_MAX);
	write_file("a/b/memory.current", "1200\n");
	assert_int_equal(limits("0::/a/b\n").room, 800);
	write_file("a/memory.current", "2900\n");
	assert_int_equal(limits("0::/a/b\n").room, 100);
	assert_int_equal(limits("0::/a\n").room, 100);
	write_file("a/memory.current", "3001\n");
	assert_int_equal(limits("0::/a/b\n").room, 0);
}

static void pages_of_files_are_room(void **state)
{
	write_file("a/memory.current", "2900\n");
	write_file("a/memory.stat",
		   "anon 1\nfile 600\nshmem 100\ninactive_file 300\nactive_file 200\n");
	assert_int_equal(limits("0::/a\n").room, 600);
	write_file("a/memory.stat", "inactive_file 9000\n");
	assert_int_equal(limits("0::/a\n").room, 3000);
}

static void the_first_version_is_read_too(void **state)
{
	make_folder("memory");
	make_folder("memory/c");
	write_file("memory/memory.limit_in_bytes", "9223372036854771712\n");
	write_file("memory/c/memory.limit_in_bytes", "5000\n");
	assert_int_equal(limits("5:cpu:/x\n4:memory:/c\n0::/\n").most, 5000);
	assert_int_equal(limits("4:memory:/\n").most, 9223372036854771712u);
	write_file("memory/c/memory.usage_in_bytes", "4000\n");
	write_file("memory/c/memory.stat",
		   "inactive_file 1\ntotal_inactive_file 20\ntotal_active_file 10\n");
	assert_int_equal(limits("4:memory:/c\n").room, 1030);
}

static void what_can_not_be_read_limits_nothing(void **state)
{
	struct limit limit;

	assert_int_equal(limits("").most, SIZE_MAX);
	assert_int_equal(limits("no colon\n1:one\n").most, SIZE_MAX);
	limit_groups("/nonexistent", root, &limit);
	assert_int_equal(limit.most, SIZE_MAX);
	assert_int_equal(limit.room, SIZE_MAX);
}

static void a_file_of_the_group_is_named(void **state)
{
	char groups[PATH_MAX], path[PATH_MAX], wanted[PATH_MAX];

	limits("4:memory:/c\n0::/a/b\n");
	snprintf(groups, sizeof(groups), "%s/groups", root);
	snprintf(wanted, sizeof(wanted), "%s/a/b/memory.pressure", root);
	assert_int_equal(limit_group_file(groups, root, "memory.pressure", path, sizeof(path)),
			 0);
	assert_string_equal(path, wanted);
	assert_int_equal(limit_group_file(groups, root, "memory.pressure", path, 10), -1);
	limits("4:memory:/c\n");
	assert_int_equal(limit_group_file(groups, root, "memory.pressure", path, sizeof(path)),
			 -1);
}

static void there_is_a_limit(void **state)
{
	size_t all = (size_t)sysconf(_SC_PHYS_PAGES) * (size_t)sysconf(_SC_PAGESIZE);
	struct limit limit;

	limit_process(&limit);
	assert_in_range(limit.most, 1, all);
	assert_in_range(limit.room, 1, all);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_least_limit_above_a_group_holds),
		cmocka_unit_test(what_groups_use_leaves_less_room),
		cmocka_unit_test(pages_of_files_are_room),
		cmocka_unit_test(the_first_version_is_read_too),
		cmocka_unit_test(what_can_not_be_read_limits_nothing),
		cmocka_unit_test(a_file_of_the_group_is_named),
		cmocka_unit_test(there_is_a_limit),
	};

	return cmocka_run_group_tests(tests, make_root, remove_root);
}
