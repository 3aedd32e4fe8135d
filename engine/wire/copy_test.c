/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Unit tests of copies: lengths and alignments compared with memcpy(), and the bytes around them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include "copy.h"
#include <cmocka.h>

#define LEN_MAX	 8300u
#define EDGE	 64u
#define ROOM	 (LEN_MAX + 2 * EDGE)
#define OFFSETS	 33u
#define LEN_STEP 37u

static uint8_t from[ROOM], to[ROOM], expected[ROOM];

static void check(void (*copy)(void *to, const void *from, size_t len), size_t at_to,
		  size_t at_from, size_t len)
{
	memset(to, 0xee, sizeof(to));
	memset(expected, 0xee, sizeof(expected));
	memcpy(expected + at_to, from + at_from, len);
	copy(to + at_to, from + at_from, len);
	assert_memory_equal(to, expected, ROOM);
}

static void copy_short(void *dest, const void *source, size_t len)
{
	copy_bytes(dest, source, len);
}

static int setup(void **state)
{
	for (size_t i = 0; i < ROOM; i++)
		from[i] = (uint8_t)(i * 31 + i / 251);
	return 0;
}

static void wide_copies_write_all_their_bytes_and_no_others(void **state)
{
	for (size_t len = 0; len < LEN_MAX; len += len < 300 ? 1 : LEN_STEP)
		for (size_t i = 0; i < OFFSETS; i += 8) {
			check(copy_wide, EDGE + i, EDGE - i, len);
			check(copy_bulk, EDGE + i, EDGE - i, len);
		}
}

static void copies_of_every_alignment_are_whole(void **state)
{
	static const size_t lens[] = { 1, 7, 16, 17, 129, 2047, 2048, 2049, 4096, 8192 };

	for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++)
		for (size_t k = 0; k < OFFSETS; k++)
			for (size_t l = 0; l < OFFSETS; l += 5)
				check(copy_short, k, l, lens[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(wide_copies_write_all_their_bytes_and_no_others),
		cmocka_unit_test(copies_of_every_alignment_are_whole),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
