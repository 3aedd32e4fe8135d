/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The memory limit of control groups of both versions, read from folders of the test. */
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

static size_t limit(const char *groups)
{
	char path[PATH_MAX];

	write_file("groups", groups);
	snprintf(path, sizeof(path), "%s/groups", root);
	return limit_cgroup(path, root);
}

static void the_least_limit_above_a_group_holds(void **state)
{
	make_folder("a");
	make_folder("a/b");
	write_file("a/memory.max", "3000\n");
	write_file("a/b/memory.max", "max\n");
	assert_int_equal(limit("0::/a/b\n"), 3000);
	assert_int_equal(limit("0::/a/none\n"), 3000);
	write_file("a/b/memory.max", "2000\n");
	assert_int_equal(limit("0::/a/b\n"), 2000);
	assert_int_equal(limit("0::/a\n"), 3000);
	assert_int_equal(limit("0::/\n"), SIZE_MAX);
}

static void the_first_version_is_read_too(void **state)
{
	make_folder("memory");
	make_folder("memory/c");
	write_file("memory/memory.limit_in_bytes", "9223372036854771712\n");
	write_file("memory/c/memory.limit_in_bytes", "5000\n");
	assert_int_equal(limit("5:cpu:/x\n4:memory:/c\n0::/\n"), 5000);
	assert_int_equal(limit("4:memory:/\n"), 9223372036854771712u);
}

static void what_can_not_be_read_limits_nothing(void **state)
{
	assert_int_equal(limit(""), SIZE_MAX);
	assert_int_equal(limit("no colon\n1:one\n"), SIZE_MAX);
	assert_int_equal(limit_cgroup("/nonexistent", root), SIZE_MAX);
}

static void there_is_a_limit(void **state)
{
	size_t all = (size_t)sysconf(_SC_PHYS_PAGES) * (size_t)sysconf(_SC_PAGESIZE);

	assert_in_range(limit_bytes(), 1, all);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_least_limit_above_a_group_holds),
		cmocka_unit_test(the_first_version_is_read_too),
		cmocka_unit_test(what_can_not_be_read_limits_nothing),
		cmocka_unit_test(there_is_a_limit),
	};

	return cmocka_run_group_tests(tests, make_root, remove_root);
}
