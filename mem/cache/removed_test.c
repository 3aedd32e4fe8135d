/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Unit tests of the addresses whose pages were removed, against an array of all addresses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "removed.h"
#include "seeded.h"

static uint64_t seed;

static uint32_t below(uint32_t n)
{
	return (uint32_t)seeded_below(&seed, n);
}

static bool any(const bool *model, uint32_t start, uint32_t end)
{
	bool found = false;

	for (uint32_t a = start; a < end; a++)
		found |= model[a];
	return found;
}

/* @exact: the addresses are so few that no range has to grow */
static void compare(uint32_t addrs, uint32_t len_max, int rounds, bool exact)
{
	static struct removed removed;
	bool model[16384] = { false };

	removed_init(&removed);
	for (int i = 0; i < rounds; i++) {
		uint32_t start = below(addrs - len_max), end = start + 1 + below(len_max);
		bool add = below(2);

		if (add)
			removed_add(&removed, start, end);
		else
			removed_drop(&removed, start, end);
		for (uint32_t a = start; a < end; a++)
			model[a] = add;
		start = below(addrs - len_max);
		end = start + 1 + below(len_max);
		if (exact)
			assert_int_equal(removed_has(&removed, start, end),
					 any(model, start, end));
		else if (any(model, start, end))
			assert_true(removed_has(&removed, start, end));
	}
}

static void addresses_are_there_as_in_the_model(void **state)
{
	seed = platform_now_ns();
	print_message("seed %llu\n", (unsigned long long)seed);
	compare(900, 20, 200000, true);
}

static void none_is_missing_when_there_are_many(void **state)
{
	seed = platform_now_ns();
	print_message("seed %llu\n", (unsigned long long)seed);
	compare(16384, 2, 200000, false);
}

static void touching_ranges_take_one_node(void **state)
{
	static struct removed removed;

	removed_init(&removed);
	for (uintptr_t a = 0; a < 100000; a++)
		removed_add(&removed, a, a + 1);
	for (uintptr_t a = 300000; a > 200000; a--)
		removed_add(&removed, a, a + 1);
	assert_false(removed_has(&removed, 100000, 200001));
	removed_drop(&removed, 0, UINTPTR_MAX);
	assert_false(removed_has(&removed, 0, UINTPTR_MAX));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(addresses_are_there_as_in_the_model),
		cmocka_unit_test(none_is_missing_when_there_are_many),
		cmocka_unit_test(touching_ranges_take_one_node),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
