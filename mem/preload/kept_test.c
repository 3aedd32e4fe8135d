/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Kept ranges: which bytes are, as a map of MiB says that is changed alike; and how they go with time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>
#include "kept.h"

#define MIB	 ((size_t)1 << 20)
#define ROOM_MIB 256u
#define DECAY_MS 10000u
#define NS	 1000000u

static char *memory;
/* Pages that are kept, by MiB. */
static bool kept[ROOM_MIB];
/* What the next purge returns. */
static int refused;

static size_t kept_mib(void)
{
	size_t cnt = 0;

	for (size_t i = 0; i < ROOM_MIB; i++)
		cnt += kept[i];
	return cnt;
}

static int purge(void *addr, size_t len)
{
	size_t at = (size_t)((char *)addr - memory) / MIB;

	if (refused)
		return refused;
	assert_int_equal(len % MIB, 0);
	for (size_t i = at; i < at + len / MIB; i++) {
		assert_true(kept[i]);
		kept[i] = false;
	}
	memset(addr, 0, len);
	return 0;
}

static bool add(size_t at, size_t len)
{
	bool taken = kept_add(memory + at * MIB, len * MIB);

	memset(memory + at * MIB, 1, len * MIB);
	for (size_t i = at; taken && i < at + len; i++)
		kept[i] = true;
	return taken;
}

static void take(size_t at, size_t len, bool zero)
{
	kept_take(memory + at * MIB, len * MIB, zero);
	for (size_t i = at; i < at + len; i++) {
		if (zero && kept[i])
			assert_int_equal(memory[i * MIB], 0);
		kept[i] = false;
	}
}

static int begin(void **state)
{
	memory = aligned_alloc(KEPT_LEAST, ROOM_MIB * MIB);
	if (!memory)
		return 1;
	kept_start(purge, DECAY_MS);
	return 0;
}

static int nothing_is_kept(void **state)
{
	refused = 0;
	kept_trim(0);
	kept_decay(1, 0, 0);
	return kept_len() || kept_mib();
}

static void a_large_range_goes_piece_by_piece(void **state)
{
	size_t last = 64;

	assert_true(add(0, 64));
	for (uint64_t ms = 1; ms <= DECAY_MS + 500; ms += 250) {
		kept_decay(ms * NS, 0, kept_len());
		assert_int_equal(kept_len(), kept_mib() * MIB);
		assert_in_range(last - kept_mib(), 0, 8);
		last = kept_mib();
		if (ms < DECAY_MS / 5)
			assert_in_range(last, 60, 64);
		if (ms == DECAY_MS / 2 + 1)
			assert_in_range(last, 28, 36);
		/* the beginning is what is used first */
		assert_true(!last || (kept[0] && !kept[last]));
	}
	assert_int_equal(last, 0);
}

static void what_is_used_again_and_again_stays(void **state)
{
	for (uint64_t s = 1; s < 30; s++) {
		assert_true(add(0, 64));
		kept_decay(s * 1000 * NS, 0, 0);
		assert_int_equal(kept_mib(), 64);
		take(0, 64, false);
		assert_int_equal(kept_len(), 0);
	}
}

/* What jemalloc keeps counts, and goes by its own decay. */
static void others_that_are_free_count(void **state)
{
	assert_true(add(0, 32));
	for (uint64_t ms = 1; ms < DECAY_MS / 2; ms += 250)
		kept_decay(ms * NS, 32 * MIB, 32 * MIB + kept_len());
	assert_in_range(kept_mib(), 0, 8);
}

static void what_is_used_is_zero_where_that_is_wanted(void **state)
{
	assert_true(add(8, 16));
	memory[4 * MIB] = 1;
	take(4, 8, true);
	assert_int_equal(memory[4 * MIB], 1);
	assert_int_equal(memory[8 * MIB], 0);
	assert_int_equal(memory[12 * MIB - 1], 0);
	assert_int_equal(memory[12 * MIB], 1);
	take(16, 2, true);
	assert_int_equal(kept_len(), kept_mib() * MIB);
	take(0, ROOM_MIB, true);
	assert_int_equal(memory[23 * MIB], 0);
	assert_int_equal(kept_len(), 0);
}

static void short_ranges_are_not_kept(void **state)
{
	assert_false(kept_add(memory, KEPT_LEAST - 4096));
	assert_true(kept_add(memory, KEPT_LEAST));
	kept[0] = kept[1] = true;
}

/* A part that there is no room to remember is zero when it is used next. */
static void there_is_room_for_so_many(void **state)
{
	size_t cnt = 0;

	/* the first one is to be divided */
	assert_true(add(0, 6));
	while (8 + 2 * cnt + 2 <= ROOM_MIB && add(8 + 2 * cnt, 2))
		cnt++;
	/* 128 ranges are more than fit into this memory: more of them are added elsewhere, which have no pages */
	for (size_t i = 0; kept_add(memory + ROOM_MIB * MIB + i * KEPT_LEAST, KEPT_LEAST); i++)
		assert_in_range(i, 0, 200);
	refused = 1;
	kept_take(memory + 2 * MIB, 2 * MIB, false);
	assert_int_equal(memory[0], 1);
	assert_int_equal(memory[2 * MIB], 1);
	assert_int_equal(memory[4 * MIB], 0);
	kept[2] = kept[3] = kept[4] = kept[5] = false;
	kept_take(memory + ROOM_MIB * MIB, 1000 * KEPT_LEAST, false);
}

static void what_cannot_go_stays_known(void **state)
{
	assert_true(add(0, 8));
	refused = 1;
	kept_trim(0);
	assert_int_equal(kept_len(), 8 * MIB);
	take(0, 8, true);
	assert_int_equal(kept_len(), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(a_large_range_goes_piece_by_piece, nothing_is_kept),
		cmocka_unit_test_teardown(what_is_used_again_and_again_stays, nothing_is_kept),
		cmocka_unit_test_teardown(others_that_are_free_count, nothing_is_kept),
		cmocka_unit_test_teardown(what_is_used_is_zero_where_that_is_wanted,
					  nothing_is_kept),
		cmocka_unit_test_teardown(short_ranges_are_not_kept, nothing_is_kept),
		cmocka_unit_test_teardown(there_is_room_for_so_many, nothing_is_kept),
		cmocka_unit_test_teardown(what_cannot_go_stays_known, nothing_is_kept),
	};

	return cmocka_run_group_tests(tests, begin, NULL);
}
