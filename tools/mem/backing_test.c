/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Which lines of an smaps file are those of an arena's chunks. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include "backing.h"

static struct backing parse(const char *text)
{
	FILE *from = fmemopen((void *)(uintptr_t)text, strlen(text), "r");
	struct backing backing = { .resident = 1 };

	assert_non_null(from);
	assert_int_equal(backing_parse(from, &backing), 0);
	fclose(from);
	return backing;
}

static void chunks_are_summed_and_nothing_else(void **state)
{
	struct backing b = parse(
		"55d0-55f0 rw-p 00000000 00:00 0 [heap]\n"
		"Rss:                8 kB\n"
		"7f00-7f10 rw-s 00000000 00:01 77   /memfd:weft-arena (deleted)\n"
		"Size:            32768 kB\n"
		"Rss:              4096 kB\n"
		"Swap:               12 kB\n"
		"ShmemPmdMapped:   2048 kB\n"
		"VmFlags: rd wr sh\n"
		"7f10-7f11 rw-s 00000000 00:01 78 /memfd:weft-arena-directory (deleted)\n"
		"Rss:                64 kB\n"
		"7f20-7f30 rw-s 00000000 00:0f 79   /memfd:weft-arena (deleted)\n"
		"Rss:                 0 kB\n"
		"Shared_Hugetlb:   6144 kB\n"
		"Private_Hugetlb:  2048 kB\n"
		"7f30-7f40 rw-s 00000000 00:0f 80\n"
		"Rss:                64 kB\n");

	assert_int_equal(b.resident, (4096 + 6144 + 2048) << 10);
	assert_int_equal(b.huge, (2048 + 6144 + 2048) << 10);
	assert_int_equal(b.swapped, 12 << 10);
}

static void another_text_has_nothing(void **state)
{
	struct backing b = parse("Rss: 5 kB\n7f20-7f30 rw-s\nRss: kB\n\n:\n");

	assert_int_equal(b.resident, 0);
}

static void a_process_that_is_not_there_is_told(void **state)
{
	struct backing b;

	assert_int_equal(backing_read(0x7fffffff, &b), -ESRCH);
	assert_int_equal(backing_read(getpid(), &b), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(chunks_are_summed_and_nothing_else),
		cmocka_unit_test(another_text_has_nothing),
		cmocka_unit_test(a_process_that_is_not_there_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
