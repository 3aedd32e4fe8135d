/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Unit tests of where this process is. */
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <rdma/fi_errno.h>
#include "fault.h"
#include "ns.h"
#include <cmocka.h>

static void child_of_ours_is_where_we_are(void **state)
{
	uint64_t host, host_again;
	uint32_t ns, ns_again;
	pid_t child;
	int status;

	assert_int_equal(sys_ns_pid(&ns), 0);
	assert_int_equal(sys_ns_host(&host), 0);
	assert_int_not_equal(ns, 0);
	assert_int_not_equal(host, 0);
	child = fork();
	assert_true(child >= 0);
	if (!child) {
		_exit(sys_ns_pid(&ns_again) || sys_ns_host(&host_again) || ns != ns_again ||
		      host != host_again);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

enum { DIFFERENT, EQUAL, FAILED, FORBIDDEN };

static int compare_from_a_new_namespace(uint32_t outside)
{
	uint32_t inside;
	pid_t child;
	int status;

	if (unshare(CLONE_NEWPID))
		return FORBIDDEN;
	child = fork();
	if (!child) {
		if (sys_ns_pid(&inside))
			_exit(FAILED);
		_exit(inside == outside ? EQUAL : DIFFERENT);
	}
	if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status))
		return FAILED;
	return WEXITSTATUS(status);
}

/* /proc is still that of the outer namespace there, and has the child by its outer number. */
static void other_namespace_is_not_taken_for_ours(void **state)
{
	uint32_t outside;
	pid_t child;
	int status;

	assert_int_equal(sys_ns_pid(&outside), 0);
	child = fork();
	assert_true(child >= 0);
	if (!child)
		_exit(compare_from_a_new_namespace(outside));
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == FORBIDDEN) {
		print_message("skipped: not permitted to make a pid namespace\n");
		skip();
	}
	assert_int_equal(WEXITSTATUS(status), DIFFERENT);
}

static void failing_calls_are_passed_on(void **state)
{
	uint64_t host = 1;
	uint32_t ns = 1;

	sys_fault_set(SYS_CALL_NS, ENOENT, 0, 2);
	assert_int_equal(sys_ns_pid(&ns), -FI_ENOENT);
	assert_int_equal(sys_ns_host(&host), -FI_ENOENT);
	assert_int_equal(ns, 1);
	assert_int_equal(host, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(child_of_ours_is_where_we_are),
		cmocka_unit_test(other_namespace_is_not_taken_for_ours),
		cmocka_unit_test(failing_calls_are_passed_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
