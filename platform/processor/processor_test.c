/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Unit tests of what this processor has of its own. */
#include "copies.h"
#include "platform.h"
#include "wide.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define ROOM 2048
#define EDGE 300

typedef void copy_fn(void *to, const void *from, size_t len);

/* Every byte of the copy, and none beside it. */
static void check(copy_fn *copy, size_t to, size_t from, size_t len)
{
	static _Alignas(256) unsigned char there[ROOM], here[ROOM];

	for (size_t i = 0; i < ROOM; i++) {
		here[i] = (unsigned char)(i * 7 + i / 256);
		there[i] = 0xa5;
	}
	copy(there + to, here + from, len);
	for (size_t i = 0; i < ROOM; i++)
		assert_int_equal(there[i], i >= to && i < to + len ? here[i - to + from] : 0xa5);
}

static void copies_are_whole_wherever_they_begin(void **state)
{
	static copy_fn *const copies[] = { processor_copy_widest, processor_copy_streaming,
					   processor_copy_whole };
	static const size_t lens[] = { 0,   1,	 15,  16,  63,	64,  65,  127,	128,
				       129, 191, 256, 511, 512, 513, 777, 1024, 1500 };

	for (size_t c = 0; c < sizeof(copies) / sizeof(copies[0]); c++)
		for (size_t l = 0; l < sizeof(lens) / sizeof(lens[0]); l++)
			for (size_t to = EDGE; to < EDGE + 64; to += 7)
				check(copies[c], to, EDGE + to % 5, lens[l]);
}

static void sixteen_bytes_are_replaced_where_they_are_as_expected(void **state)
{
	static _Alignas(16) uint8_t target[16];
	wide_word first = (wide_word)0x0123456789abcdef << 64 | 0xfedcba9876543210, old = 0;
	wide_word second = first + 1;

	if (!wide_is_lock_free())
		print_message("sixteen bytes are not replaced at once by this processor\n");
	assert_true(wide_replace(target, &old, first));
	assert_true(wide_load(target) == first);
	old = first;
	assert_true(wide_replace(target, &old, second));
	assert_true(old == first);
	assert_true(wide_load(target) == second);
	if (!wide_is_lock_free())
		return; /* one that is of the target alone has no need to compare */
	assert_false(wide_replace(target, &old, 0));
	assert_true(old == second);
	assert_true(wide_load(target) == second);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(copies_are_whole_wherever_they_begin),
		cmocka_unit_test(sixteen_bytes_are_replaced_where_they_are_as_expected),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
