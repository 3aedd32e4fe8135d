/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Two pinned processes, and the cache line between them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>
#include <math.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "pair.h"

static void cpus_are_two_numbers(void **state)
{
	int cpus[2] = { 7, 7 };

	assert_int_equal(pair_cpus_parse("0,3", cpus), 0);
	assert_int_equal(cpus[0], 0);
	assert_int_equal(cpus[1], 3);
	assert_int_equal(pair_cpus_parse("1", cpus), -EINVAL);
	assert_int_equal(pair_cpus_parse("1,2,3", cpus), -EINVAL);
	assert_int_equal(pair_cpus_parse("-1,2", cpus), -EINVAL);
	assert_int_equal(pair_cpus_parse("0,99999", cpus), -EINVAL);
	assert_int_equal(cpus[1], 3);
}

#define GAVE_UP 11

/* Exit statuses that tell what went wrong on either side. */
static int check_side(struct side *side, void *arg)
{
	double ns;
	int i;

	if (!side->local || oob_barrier(&side->oob, 0))
		return 10;
	for (i = 0; i < 3 && side->line; i++) {
		ns = cacheline_measure(side->line, side->rank);
		if (isnan(ns))
			return GAVE_UP;
		if (side->rank == 0 && (ns < 1 || ns > 1e8))
			return 12;
	}
	return side->rank ? *(int *)arg : 0;
}

#define TRIES 10

/* A side gives up on one that does not come to run, which says nothing about either. */
static int check_both(int status)
{
	int ret, tries = TRIES;

	do
		ret = pair_run(NULL, false, check_side, &status);
	while (ret == GAVE_UP && --tries);
	return ret;
}

static void both_sides_run_and_measure_the_line(void **state)
{
	assert_int_equal(check_both(0), 0);
}

static void the_second_sides_status_counts(void **state)
{
	assert_int_equal(check_both(42), 42);
}

static int die_second(struct side *side, void *arg)
{
	char in;
	size_t len = 1;

	if (side->rank)
		raise(SIGKILL);
	/* A side whose other one died gets an error. */
	return oob_exchange(&side->oob, "", 0, &in, &len) == -EPIPE ? 0 : 13;
}

static void a_killed_side_is_an_error(void **state)
{
	assert_int_equal(pair_run(NULL, false, die_second, NULL), 128 + SIGKILL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cpus_are_two_numbers),
		cmocka_unit_test(both_sides_run_and_measure_the_line),
		cmocka_unit_test(the_second_sides_status_counts),
		cmocka_unit_test(a_killed_side_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
