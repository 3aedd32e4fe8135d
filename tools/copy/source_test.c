/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A file that is sent: what is told of it, what is refused, and one that becomes shorter. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "source.h"

static char path[] = "/tmp/weft-source-XXXXXX";
static char why[COPY_TEXT_MAX];

static int setup(void **state)
{
	int fd = mkstemp(path);

	return fd < 0 || write(fd, "0123456789", 10) != 10 || fchmod(fd, 04751) || close(fd);
}

static int teardown(void **state)
{
	return unlink(path);
}

static void a_name_is_the_last_part_of_a_path(void **state)
{
	assert_string_equal(source_name("a"), "a");
	assert_string_equal(source_name("/b/a"), "a");
	assert_string_equal(source_name("a/"), "");
}

static void what_is_no_file_is_refused(void **state)
{
	static const char *const paths[] = { "/tmp",  "/dev/null", "/nowhere/x",
					     "/tmp/", "/tmp/..",   "" };
	struct copy_message file;

	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		why[0] = '\0';
		assert_true(source_open(paths[i], &file, why) < 0);
		assert_true(strlen(why) > 0);
	}
}

static void a_file_is_told_without_special_bits(void **state)
{
	struct copy_message file;
	int fd = source_open(path, &file, why);

	assert_true(fd >= 0);
	assert_int_equal(file.kind, COPY_FILE);
	assert_int_equal(file.size, 10);
	assert_int_equal(file.mode, 0751);
	assert_string_equal(file.text, source_name(path));
	close(fd);
}

static void a_file_that_becomes_shorter_is_an_error(void **state)
{
	struct copy_message file;
	int fd = source_open(path, &file, why);
	char bytes[10];

	assert_int_equal(source_read(fd, bytes, 7, 3, why), 0);
	assert_memory_equal(bytes, "3456789", 7);
	assert_int_equal(truncate(path, 9), 0);
	assert_int_equal(source_read(fd, bytes, 7, 3, why), -ENODATA);
	assert_string_equal(why, "became shorter while it was sent");
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_name_is_the_last_part_of_a_path),
		cmocka_unit_test(what_is_no_file_is_refused),
		cmocka_unit_test(a_file_is_told_without_special_bits),
		cmocka_unit_test(a_file_that_becomes_shorter_is_an_error),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
