/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The decay of free bytes, step by step, without time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <cmocka.h>
#include "decay.h"

#define FREED 1000000u

/* What is to go goes at once. */
static size_t step(struct decay *d, size_t unused, size_t now)
{
	size_t keep = decay_step(d, unused, now);

	assert_in_range(keep, 0, now);
	decay_gone(d, now - keep);
	return keep;
}

static void what_is_not_used_goes_smoothly(void **state)
{
	struct decay d = { .due = 0 };
	size_t left = step(&d, 0, FREED), most = 0;

	assert_int_equal(left, FREED);
	for (unsigned int i = 1; i <= DECAY_STEPS; i++) {
		size_t now = step(&d, left, left);

		most = left - now > most ? left - now : most;
		left = now;
		if (i == DECAY_STEPS / 10)
			assert_in_range(left, FREED * 98 / 100, FREED);
		if (i == DECAY_STEPS / 2)
			assert_in_range(left, FREED * 48 / 100, FREED * 52 / 100);
		if (i == DECAY_STEPS * 9 / 10)
			assert_in_range(left, 1, FREED * 2 / 100);
	}
	assert_int_equal(left, 0);
	assert_in_range(most, FREED / DECAY_STEPS, FREED * 2 / DECAY_STEPS);
}

static void what_is_used_in_each_step_stays(void **state)
{
	struct decay d = { .due = 0 };

	for (unsigned int i = 0; i < 4 * DECAY_STEPS; i++)
		assert_int_equal(step(&d, 0, FREED), FREED);
	/* half of it is no more */
	for (unsigned int i = 0, now = FREED; i < 2 * DECAY_STEPS; i++) {
		now = (unsigned int)step(&d, now - FREED / 2, now);
		assert_in_range(now, FREED / 2, FREED);
		if (i > DECAY_STEPS)
			assert_int_equal(now, FREED / 2);
	}
}

static void what_did_not_go_is_due_until_it_is_used(void **state)
{
	struct decay d = { .due = 0 };
	size_t keep = FREED;

	for (unsigned int i = 0; i <= DECAY_STEPS; i++)
		keep = decay_step(&d, i ? FREED : 0, FREED);
	assert_int_equal(keep, 0);
	assert_int_equal(decay_step(&d, FREED, FREED), 0);
	assert_int_equal(decay_step(&d, FREED / 4, FREED), FREED * 3 / 4);
	decay_gone(&d, FREED / 4);
	assert_in_range(decay_step(&d, FREED * 3 / 4, FREED * 3 / 4), FREED * 74 / 100,
			FREED * 3 / 4);
}

static void all_of_any_history_goes_at_last(void **state)
{
	unsigned int seed = (unsigned int)time(NULL);
	struct decay d = { .due = 0 };
	size_t now = 0, unused;

	printf("seed %u\n", seed);
	for (int i = 0; i < 10000; i++) {
		unused = now ? (size_t)rand_r(&seed) % (now + 1) : 0;
		now = unused + (size_t)rand_r(&seed) % FREED;
		now = step(&d, unused, now);
	}
	for (unsigned int i = 0; i <= DECAY_STEPS; i++)
		now = step(&d, now, now);
	assert_int_equal(now, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_not_used_goes_smoothly),
		cmocka_unit_test(what_is_used_in_each_step_stays),
		cmocka_unit_test(what_did_not_go_is_due_until_it_is_used),
		cmocka_unit_test(all_of_any_history_goes_at_last),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
