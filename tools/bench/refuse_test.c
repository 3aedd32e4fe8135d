/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Calls that are refused to a process and to what it starts. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "refuse.h"

/* errno of a copy from our own memory, 0 when it worked. */
static int copy_errno(bool writes)
{
	char here = 1, there = 0;
	struct iovec local = { &here, 1 }, remote = { &there, 1 };
	ssize_t done = writes ? process_vm_writev(getpid(), &local, 1, &remote, 1, 0)
			      : process_vm_readv(getpid(), &local, 1, &remote, 1, 0);

	return done == 1 ? 0 : errno;
}

static int in_child(int (*run)(void))
{
	pid_t child = fork();
	int status;

	if (!child)
		_exit(run());
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static int both_are_refused(void)
{
	return copy_errno(false) != EPERM || copy_errno(true) != EPERM;
}

static int refuse_and_try(void)
{
	if (refuse_calls(REFUSE_PROCESS_VM))
		return 2;
	return both_are_refused() || in_child(both_are_refused);
}

static void both_copies_are_refused_to_a_process_and_its_children(void **state)
{
	int before = copy_errno(false);

	assert_int_equal(in_child(refuse_and_try), 0);
	/* Nothing of that is left here. */
	assert_int_equal(copy_errno(false), before);
}

static void a_name_without_calls_is_not_known(void **state)
{
	assert_true(refuse_is_known("process_vm"));
	assert_false(refuse_is_known("process_vm_readv"));
	assert_false(refuse_is_known(""));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_copies_are_refused_to_a_process_and_its_children),
		cmocka_unit_test(a_name_without_calls_is_not_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
