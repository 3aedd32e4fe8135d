/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Which lines of an smaps file are those of a process's own arenas. */
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

/* Of a process with arenas at 0x7000 and at 0x9000. */
static struct backing parse(const char *text)
{
	FILE *from = fmemopen((void *)(uintptr_t)text, strlen(text), "r");
	struct sample sample = { .arenas = { { 0x7000, 0x1000 }, { 0x9000, 0x800 } },
				 .arena_cnt = 2,
				 .backing.resident = 1 };

	assert_non_null(from);
	assert_int_equal(backing_parse(from, &sample), 0);
	fclose(from);
	return sample.backing;
}

static void chunks_are_summed_and_not_those_of_peers(void **state)
{
	struct backing b = parse(
		"55d0-55f0 rw-p 00000000 00:00 0 [heap]\n"
		"Rss:                8 kB\n"
		"7000-7800 rw-s 00000000 00:01 77   /memfd:weft-arena (deleted)\n"
		"Size:            32768 kB\n"
		"Rss:              4096 kB\n"
		"Swap:               12 kB\n"
		"ShmemPmdMapped:   2048 kB\n"
		"VmFlags: rd wr sh\n"
		"7fff-8000 rw-p 00000000 00:00 0\n"
		"Rss:                 4 kB\n"
		"8000-9000 rw-s 00000000 00:01 78   /memfd:weft-arena (deleted)\n"
		"Rss:                64 kB\n"
		"9000-9800 rw-s 00000000 00:0f 79   /memfd:weft-arena (deleted)\n"
		"Rss:                 0 kB\n"
		"Shared_Hugetlb:   6144 kB\n"
		"Private_Hugetlb:  2048 kB\n"
		"9800-a000 ---p 00000000 00:00 0\n"
		"Rss:                64 kB\n");

	assert_int_equal(b.resident, (4096 + 4 + 6144 + 2048) << 10);
	assert_int_equal(b.huge, (2048 + 6144 + 2048) << 10);
	assert_int_equal(b.swapped, 12 << 10);
}

static void another_text_has_nothing(void **state)
{
	struct backing b = parse("Rss: 5 kB\n7f20-7f30 rw-s\n7000-\nRss: kB\n\n:\n");

	assert_int_equal(b.resident, 0);
}

static void a_process_that_is_not_there_is_told(void **state)
{
	struct sample sample = { .arena_cnt = 0 };

	assert_int_equal(backing_read(0x7fffffff, &sample), -ESRCH);
	assert_int_equal(backing_read(getpid(), &sample), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(chunks_are_summed_and_not_those_of_peers),
		cmocka_unit_test(another_text_has_nothing),
		cmocka_unit_test(a_process_that_is_not_there_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
