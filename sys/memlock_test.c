/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The limit of locked memory is the process's own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <errno.h>
#include <sys/resource.h>
#include <cmocka.h>
#include "fault.h"
#include "memlock.h"

static void the_limit_is_that_of_the_process(void **state)
{
	struct rlimit before, limit;

	assert_int_equal(getrlimit(RLIMIT_MEMLOCK, &before), 0);
	assert_true(sys_memlock_limit() ==
		    (before.rlim_cur == RLIM_INFINITY ? UINT64_MAX : before.rlim_cur));
	limit = before;
	limit.rlim_cur = before.rlim_max < 65536 ? before.rlim_max : 65536;
	assert_int_equal(setrlimit(RLIMIT_MEMLOCK, &limit), 0);
	assert_true(sys_memlock_limit() == limit.rlim_cur);
	assert_int_equal(setrlimit(RLIMIT_MEMLOCK, &before), 0);
}

static void an_unknown_limit_is_none(void **state)
{
	sys_fault_set(SYS_CALL_GETRLIMIT, EPERM, 0, 0);
	assert_true(sys_memlock_limit() == UINT64_MAX);
	sys_fault_set(SYS_CALL_GETRLIMIT, 0, 0, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_limit_is_that_of_the_process),
		cmocka_unit_test(an_unknown_limit_is_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
