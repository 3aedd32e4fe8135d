/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The checksum of a window: what changes it, and what does not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "sum.h"

#define LEN 1000u

static unsigned char bytes[LEN];

static uint64_t sum_of(const void *at, size_t len, size_t piece)
{
	const unsigned char *next = at;
	struct copy_sum sum;

	copy_sum_begin(&sum);
	for (; len > piece; len -= piece, next += piece)
		copy_sum_add(&sum, next, piece);
	copy_sum_add(&sum, next, len);
	return copy_sum_end(&sum);
}

static int fill(void **state)
{
	for (size_t i = 0; i < LEN; i++)
		bytes[i] = (unsigned char)(i * 37 + (i >> 8));
	return 0;
}

static void pieces_have_the_sum_of_the_whole(void **state)
{
	for (size_t piece = COPY_SUM_STEP; piece < LEN; piece += COPY_SUM_STEP)
		assert_int_equal(sum_of(bytes, LEN, piece), sum_of(bytes, LEN, LEN));
}

static void any_bit_changes_the_sum(void **state)
{
	uint64_t before = sum_of(bytes, LEN, LEN);

	for (size_t bit = 0; bit < 8u * LEN; bit++) {
		bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
		assert_int_not_equal(sum_of(bytes, LEN, LEN), before);
		bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
	}
}

/* The highest bits are those that a product moves to nowhere. */
static void the_highest_bit_of_two_words_changes_the_sum(void **state)
{
	uint64_t before = sum_of(bytes, LEN, LEN);

	for (size_t a = 7; a < LEN; a += 8)
		for (size_t b = a + 8; b < LEN; b += 8) {
			bytes[a] ^= 0x80;
			bytes[b] ^= 0x80;
			assert_int_not_equal(sum_of(bytes, LEN, LEN), before);
			bytes[a] ^= 0x80;
			bytes[b] ^= 0x80;
		}
}

static void zeros_at_the_end_change_the_sum(void **state)
{
	static const unsigned char zeros[LEN];

	for (size_t len = 0; len + 1 < LEN; len++)
		assert_int_not_equal(sum_of(zeros, len, LEN), sum_of(zeros, len + 1, LEN));
}

static void words_that_change_places_change_the_sum(void **state)
{
	uint64_t before = sum_of(bytes, LEN, LEN);
	unsigned char word[8];

	for (size_t at = 0; at + 16 <= LEN; at += 8) {
		memcpy(word, bytes + at, 8);
		memcpy(bytes + at, bytes + at + 8, 8);
		memcpy(bytes + at + 8, word, 8);
		assert_int_not_equal(sum_of(bytes, LEN, LEN), before);
		memcpy(bytes + at + 8, bytes + at, 8);
		memcpy(bytes + at, word, 8);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pieces_have_the_sum_of_the_whole),
		cmocka_unit_test(any_bit_changes_the_sum),
		cmocka_unit_test(the_highest_bit_of_two_words_changes_the_sum),
		cmocka_unit_test(zeros_at_the_end_change_the_sum),
		cmocka_unit_test(words_that_change_places_change_the_sum),
	};

	return cmocka_run_group_tests(tests, fill, NULL);
}
