/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Unit tests of addresses of DMA, against a map of all pages */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>
#include <errno.h>

#include "addresses.h"

#define PAGE  4096ull
#define FIRST (ADDRESSES_FIRST / PAGE)
#define PAGES 512u /* behind FIRST, of the model */

/* Two ranges with a hole between, as around the addresses of interrupts */
static const struct vfio_range ranges[] = {
	{ 0, (FIRST + 200) * PAGE - 1 },
	{ (FIRST + 210) * PAGE, (FIRST + PAGES) * PAGE - 1 },
};

/* struct taken - what the model knows to be taken */
struct taken {
	uint64_t addr;
	uint64_t pages;
};

static void mark(uint8_t *used, uint64_t addr, uint64_t pages, uint8_t what)
{
	for (uint64_t i = 0; i < pages; i++) {
		uint64_t page = addr / PAGE + i - FIRST;

		assert_true(page < PAGES);
		assert_true(page < 200 || page >= 210);
		assert_int_not_equal(used[page], what);
		used[page] = what;
	}
}

static bool has_room(const uint8_t *used, uint64_t pages)
{
	uint64_t row = 0;

	for (uint32_t i = 0; i < PAGES; i++) {
		row = used[i] || (i >= 200 && i < 210) ? 0 : row + 1;
		if (row == pages)
			return true;
	}
	return false;
}

static void ranges_are_disjoint_and_found_while_there_are_some(void **state)
{
	unsigned seed = (unsigned)time(NULL);
	struct taken taken[PAGES];
	uint8_t used[PAGES] = { 0 };
	struct addresses a;
	uint32_t cnt = 0;

	print_message("seed %u\n", seed);
	srandom(seed);
	addresses_init(&a, ranges, 2);
	for (int i = 0; i < 20000; i++) {
		uint64_t pages = 1 + (uint64_t)random() % 40, addr;
		int ret;

		if (random() % 2 && cnt) {
			uint32_t n = (uint32_t)random() % cnt;

			addresses_give(&a, taken[n].addr);
			mark(used, taken[n].addr, taken[n].pages, 0);
			taken[n] = taken[--cnt];
			continue;
		}
		ret = addresses_take(&a, pages * PAGE, &addr);
		assert_int_equal(ret, has_room(used, pages) ? 0 : -ENOSPC);
		if (ret)
			continue;
		mark(used, addr, pages, 1);
		taken[cnt++] = (struct taken){ addr, pages };
	}
	addresses_fini(&a);
}

static void claimed_is_what_was_free_and_usable(void **state)
{
	uint64_t at = (FIRST + 10) * PAGE, addr;
	struct addresses a;

	addresses_init(&a, ranges, 2);
	assert_int_equal(addresses_claim(&a, at, 4 * PAGE), 0);
	assert_int_equal(addresses_claim(&a, at, PAGE), -EEXIST);
	assert_int_equal(addresses_claim(&a, at + 3 * PAGE, 4 * PAGE), -EEXIST);
	assert_int_equal(addresses_claim(&a, at - PAGE, 2 * PAGE), -EEXIST);
	assert_int_equal(addresses_claim(&a, at - PAGE, 9 * PAGE), -EEXIST);
	assert_int_equal(addresses_claim(&a, at - PAGE, PAGE), 0);
	assert_int_equal(addresses_claim(&a, at + 4 * PAGE, PAGE), 0);
	assert_int_equal(addresses_claim(&a, (FIRST + 199) * PAGE, 2 * PAGE), -EINVAL);
	assert_int_equal(addresses_claim(&a, (FIRST + 205) * PAGE, PAGE), -EINVAL);
	assert_int_equal(addresses_claim(&a, 0, PAGE), -EINVAL);
	assert_int_equal(addresses_claim(&a, UINT64_MAX - PAGE + 1, 2 * PAGE), -EINVAL);
	for (int i = 0; i < 9; i++) {
		assert_int_equal(addresses_take(&a, PAGE, &addr), 0);
		assert_true(addr < at - PAGE);
	}
	assert_int_equal(addresses_take(&a, PAGE, &addr), 0);
	assert_int_equal(addr, at + 5 * PAGE);
	addresses_fini(&a);
}

static void address_comes_again_late(void **state)
{
	uint64_t first, addr;
	struct addresses a;

	addresses_init(&a, ranges, 2);
	assert_int_equal(addresses_take(&a, PAGE, &first), 0);
	addresses_give(&a, first);
	for (uint32_t i = 1; i < PAGES - 10; i++) {
		assert_int_equal(addresses_take(&a, PAGE, &addr), 0);
		assert_int_not_equal(addr, first);
		addresses_give(&a, addr);
	}
	addresses_fini(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ranges_are_disjoint_and_found_while_there_are_some),
		cmocka_unit_test(claimed_is_what_was_free_and_usable),
		cmocka_unit_test(address_comes_again_late),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
