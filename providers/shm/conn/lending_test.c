/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Tests of the choice between lending payload and the ring: a program whose sends take a known time, by
 * the clock of the test, gets the way that is faster for it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>
#include <cmocka.h>
#include "lending.h"

#define SENDS 100000u

/* The linker replaces clock_gettime() by this function. */
int __wrap_clock_gettime(clockid_t id, struct timespec *at);
static uint64_t now_ns = 1;

int __wrap_clock_gettime(clockid_t id, struct timespec *at)
{
	*at = (struct timespec){ .tv_sec = (time_t)(now_ns / 1000000000),
				 .tv_nsec = (long)(now_ns % 1000000000) };
	return 0;
}

/* Sends of a program that each take that long. Returns how many were lent. */
static uint32_t sends(struct pshm_lending *lending, size_t len, uint32_t cnt, uint32_t lent_ns,
		      uint32_t ring_ns)
{
	uint32_t lent = 0;

	for (uint32_t i = 0; i < cnt; i++) {
		bool lends = pshm_lending_next(lending, len);

		lent += lends;
		now_ns += lends ? lent_ns : ring_ns;
		lending->arrived += len;
	}
	return lent;
}

static void the_faster_way_is_taken_but_for_a_few_sends(void **state)
{
	struct pshm_lending lending = { 0 };

	assert_in_range(sends(&lending, 32768, SENDS, 1000, 2000), SENDS - SENDS / 50, SENDS);
	assert_in_range(sends(&lending, 65536, SENDS, 2000, 1000), 1, SENDS / 50);
}

static void the_first_send_is_lent(void **state)
{
	for (size_t len = 8193; len <= 4u << 20; len *= 2) {
		struct pshm_lending lending = { 0 };

		assert_true(pshm_lending_next(&lending, len));
	}
}

static void payload_is_lent_where_both_take_as_long(void **state)
{
	struct pshm_lending lending = { 0 };

	assert_in_range(sends(&lending, 32768, SENDS, 1000, 980), SENDS - SENDS / 50, SENDS);
}

static void a_program_that_changes_gets_the_other_way_soon(void **state)
{
	struct pshm_lending lending = { 0 };

	sends(&lending, 32768, SENDS, 1000, 2000);
	sends(&lending, 32768, 10000, 2000, 1000);
	assert_in_range(sends(&lending, 32768, SENDS, 2000, 1000), 1, SENDS / 50);
	sends(&lending, 32768, 10000, 1000, 2000);
	assert_in_range(sends(&lending, 32768, SENDS, 1000, 2000), SENDS - SENDS / 50, SENDS);
}

static void a_pause_of_the_program_changes_nothing(void **state)
{
	struct pshm_lending lending = { 0 };
	uint32_t lent = 0;

	sends(&lending, 32768, 10000, 1000, 2000);
	for (int i = 0; i < 100; i++) {
		now_ns += 1000000000;
		lent += sends(&lending, 32768, SENDS / 100, 1000, 2000);
	}
	assert_in_range(lent, SENDS - SENDS / 20, SENDS);
}

/* What was measured while memory was touched first does not count for long. */
static void the_first_bursts_mislead_for_few_messages(void **state)
{
	for (size_t len = 262144; len <= 4u << 20; len *= 4) {
		struct pshm_lending lending = { 0 };

		sends(&lending, len, 16, 100000, 100000);
		sends(&lending, len, 16, 1000, 2000);
		assert_in_range(sends(&lending, len, 1000, 1000, 2000), 800, 1000);
	}
}

/* The ring is measured once, in four bursts, and not again soon. */
static void few_sends_of_a_short_program_are_trials(void **state)
{
	for (size_t len = 16384; len <= 65536; len *= 2) {
		struct pshm_lending lending = { 0 };

		assert_int_equal(sends(&lending, len, 2000, 1000, 2000),
				 2000 - 16 * PSHM_LENDING_COSTS);
	}
}

/* Long messages that take four times as long lent cost a program of 700 at most a fiftieth once it is warm. */
static void trials_of_what_is_much_slower_lose_little(void **state)
{
	for (size_t len = 262144; len <= 4u << 20; len *= 4) {
		struct pshm_lending lending = { 0 };
		uint64_t begin;

		sends(&lending, len, 40, 530000, 133000);
		begin = now_ns;
		sends(&lending, len, 660, 530000, 133000);
		assert_in_range(now_ns - begin, 1, 660 * 133000ull * 51 / 50);
	}
}

/* Lent messages of 4 MiB take as long as others of 16 MiB, and are slower all the same. */
static void lengths_of_a_class_are_compared_by_the_byte(void **state)
{
	struct pshm_lending lending = { 0 };

	sends(&lending, 4u << 20, 300, 2000000, 500000);
	assert_in_range(sends(&lending, 16u << 20, 300, 8000000, 2000000), 0, 16);
}

/*
 * Sixteen messages are announced at a time: what is lent is copied at once, what goes through the ring after the last
 * one was chosen for.
 */
static uint32_t announced(struct pshm_lending *lending, size_t len, uint32_t lent_ns,
			  uint32_t ring_ns)
{
	uint32_t lent = 0, ring;

	for (uint32_t i = 0; i < 100; i++) {
		ring = 0;
		for (uint32_t n = 0; n < 16; n++) {
			if (!pshm_lending_next(lending, len)) {
				ring++;
				continue;
			}
			lent++;
			now_ns += lent_ns;
			lending->arrived += len;
		}
		now_ns += ring * ring_ns;
		lending->arrived += ring * len;
	}
	return lent;
}

static void messages_that_are_announced_together_take_the_faster_way(void **state)
{
	for (size_t len = 262144; len <= 4u << 20; len *= 4) {
		struct pshm_lending lending[2] = { 0 };

		assert_in_range(announced(&lending[0], len, 1000, 2000), 1300, 1600);
		assert_in_range(announced(&lending[1], len, 2000, 1000), 0, 300);
	}
}

static void lengths_are_chosen_for_apart(void **state)
{
	struct pshm_lending lending = { 0 };
	uint32_t lent[2] = { 0, 0 };

	for (uint32_t i = 0; i < SENDS; i++) {
		lent[0] += sends(&lending, 16384, 1, 1000, 3000);
		lent[1] += sends(&lending, 65536, 1, 7000, 2000);
	}
	assert_in_range(lent[0], SENDS - SENDS / 20, SENDS);
	assert_in_range(lent[1], 1, SENDS / 20);
}

/* Reads of a program that each take that long. Returns how many were made by loads. */
static uint32_t reads(struct pshm_lending *lending, size_t len, uint32_t cnt, uint32_t load_ns,
		      uint32_t ring_ns)
{
	uint32_t loads = 0;

	for (uint32_t i = 0; i < cnt; i++) {
		bool load = pshm_lending_read(lending, len);

		loads += load;
		now_ns += load ? load_ns : ring_ns;
		lending->arrived += len;
	}
	return loads;
}

static void reads_of_each_length_take_the_faster_way(void **state)
{
	struct pshm_lending lending = { 0 };

	for (size_t len = 131072; len <= 2u << 20; len *= 4) {
		assert_in_range(reads(&lending, len, SENDS, 1000, 2000), SENDS - SENDS / 50,
				SENDS);
		assert_in_range(sends(&lending, len, SENDS, 2000, 1000), 1, SENDS / 50);
		reads(&lending, len, 10000, 2000, 1000);
		assert_in_range(reads(&lending, len, SENDS, 2000, 1000), 1, SENDS / 50);
	}
}

/* Of 64 reads one burst goes through the ring, and if that is faster then all but few. */
static void a_program_of_few_reads_has_the_better_way_at_once(void **state)
{
	struct pshm_lending lending[2] = { 0 };

	assert_int_equal(reads(&lending[0], 1u << 20, 64, 1000, 2000), 60);
	assert_in_range(reads(&lending[1], 1u << 20, 64, 2000, 1000), 4, 8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_faster_way_is_taken_but_for_a_few_sends),
		cmocka_unit_test(the_first_send_is_lent),
		cmocka_unit_test(payload_is_lent_where_both_take_as_long),
		cmocka_unit_test(a_program_that_changes_gets_the_other_way_soon),
		cmocka_unit_test(a_pause_of_the_program_changes_nothing),
		cmocka_unit_test(the_first_bursts_mislead_for_few_messages),
		cmocka_unit_test(few_sends_of_a_short_program_are_trials),
		cmocka_unit_test(trials_of_what_is_much_slower_lose_little),
		cmocka_unit_test(lengths_of_a_class_are_compared_by_the_byte),
		cmocka_unit_test(messages_that_are_announced_together_take_the_faster_way),
		cmocka_unit_test(lengths_are_chosen_for_apart),
		cmocka_unit_test(reads_of_each_length_take_the_faster_way),
		cmocka_unit_test(a_program_of_few_reads_has_the_better_way_at_once),
	};

	return cmocka_run_group_tests_name("lending", tests, NULL, NULL);
}
