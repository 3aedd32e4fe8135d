/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A program under libweft-mem.so (LD_PRELOAD) that stops allocating, with FI_MEM_DECAY=1; and one in a
 * control group with little memory.
 *
 * usage: keep_test [full]: what is run in that control group
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>
#include "group.h"

#define MIB	   ((size_t)1 << 20)
#define DEADLINE_S 20

static char *self;
/* Not looked at by the compiler, which knows what malloc() returns. */
static char *volatile kept;

static bool resident(const void *addr)
{
	unsigned char vec = 0;

	assert_int_equal(mincore((void *)(uintptr_t)addr, 1, &vec), 0);
	return vec & 1;
}

static void a_program_that_stops_allocating_gives_back(void **state)
{
	time_t end = time(NULL) + DEADLINE_S;
	char *used = malloc(MIB), *at;

	kept = malloc(32 * MIB);
	assert_non_null(kept);
	memset(kept, 1, 32 * MIB);
	memset(used, 2, MIB);
	at = (char *)(((uintptr_t)kept + MIB) & ~(MIB - 1));
	free(kept);
	assert_true(resident(at));
	while ((resident(at) || resident(at + 30 * MIB)) && time(NULL) < end)
		usleep(1000);
	assert_false(resident(at));
	assert_false(resident(at + 30 * MIB));
	for (size_t i = 0; i < MIB; i++)
		assert_int_equal(used[i], 2);
	free(used);
}

/* 160 MiB are used and 64 have been free when 80 more are wanted, of 256. */
static int be_full(void)
{
	char *more;

	kept = malloc(160 * MIB);
	if (!kept)
		return 1;
	memset(kept, 1, 160 * MIB);
	kept = malloc(64 * MIB);
	if (!kept)
		return 2;
	memset(kept, 1, 64 * MIB);
	free(kept);
	more = mmap(NULL, 80 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (more == MAP_FAILED)
		return 3;
	memset(more, 1, 80 * MIB);
	return 0;
}

static void what_is_kept_leaves_room_in_a_control_group(void **state)
{
	char *argv[] = { self, (char *)"full", NULL };
	int status;

	/* else the heap takes only half of what there is */
	setenv("FI_MEM_LIMIT", "1G", 1);
	status = group_run("268435456", argv);
	unsetenv("FI_MEM_LIMIT");
	if (status < 0)
		skip();
	assert_int_equal(status, 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_program_that_stops_allocating_gives_back),
		cmocka_unit_test(what_is_kept_leaves_room_in_a_control_group),
	};

	self = argv[0];
	if (argc > 1)
		return be_full();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
