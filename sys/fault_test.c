/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Unit tests of the fault hook; the environment is read in a child of its own. */
#define _GNU_SOURCE
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <rdma/fi_errno.h>
#include "fault.h"
#include <cmocka.h>

static int clear(void **state)
{
	sys_fault_clear();
	return 0;
}

static void nothing_fails_unless_it_is_asked_for(void **state)
{
	for (int i = 0; i < SYS_CALL_CNT; i++)
		assert_int_equal(sys_fault((enum sys_call)i), 0);
	assert_int_equal(sys_fault_armed, 0); /* the fast side from now on */
}

static void fault_hits_its_call_alone(void **state)
{
	sys_fault_set(SYS_CALL_MMAP, ENOMEM, 0, 0);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(sys_fault(SYS_CALL_MMAP), ENOMEM);
		assert_int_equal(sys_fault(SYS_CALL_FCHMOD), 0);
	}
	sys_fault_set(SYS_CALL_MMAP, 0, 0, 0);
	assert_int_equal(sys_fault(SYS_CALL_MMAP), 0);
	assert_int_equal(sys_fault_armed, 0);
}

static void skip_and_count_are_kept(void **state)
{
	sys_fault_set(SYS_CALL_POLL, EIO, 2, 3);
	for (int i = 0; i < 10; i++)
		assert_int_equal(sys_fault(SYS_CALL_POLL), i >= 2 && i < 5 ? EIO : 0);
	assert_int_equal(sys_fault_armed, 0);
}

static void text_sets_faults(void **state)
{
	assert_int_equal(sys_fault_parse("pidfd_open:EMFILE:1:1,mmap:12,ns:ENOENT::1"), 3);
	assert_int_equal(sys_fault(SYS_CALL_PIDFD_OPEN), 0);
	assert_int_equal(sys_fault(SYS_CALL_PIDFD_OPEN), EMFILE);
	assert_int_equal(sys_fault(SYS_CALL_PIDFD_OPEN), 0);
	assert_int_equal(sys_fault(SYS_CALL_MMAP), ENOMEM);
	assert_int_equal(sys_fault(SYS_CALL_MMAP), ENOMEM);
	assert_int_equal(sys_fault(SYS_CALL_NS), ENOENT);
	assert_int_equal(sys_fault(SYS_CALL_NS), 0);
	assert_int_equal(sys_fault_parse(""), 0);
}

static void every_call_has_its_name(void **state)
{
	static const char *const names[] = {
		"epoll",
		"eventfd",
		"membarrier",
		"pipe",
		"memfd_create",
		"ftruncate",
		"fallocate",
		"fchmod",
		"fcntl_seal",
		"fcntl_dup",
		"fstat",
		"pread",
		"mmap",
		"mprotect",
		"populate",
		"open_fd",
		"open_image",
		"read_image",
		"pidfd_open",
		"pidfd_getfd",
		"poll",
		"process_vm_readv",
		"process_vm_writev",
		"socket",
		"bind",
		"connect",
		"accept",
		"sendmsg",
		"recvmsg",
		"fcntl_lock",
		"timerfd",
		"userfaultfd",
		"uffd_register",
		"uffd_check",
		"open_maps",
		"ask_maps",
		"touch",
		"getrlimit",
		"psi",
		"ns",
	};

	assert_int_equal(sizeof(names) / sizeof(names[0]), SYS_CALL_CNT);
	for (int i = 0; i < SYS_CALL_CNT; i++) {
		char text[64];

		snprintf(text, sizeof(text), "%s:EPERM:0:1", names[i]);
		assert_int_equal(sys_fault_parse(text), 1);
		assert_int_equal(sys_fault((enum sys_call)i), EPERM);
		assert_int_equal(sys_fault_armed, 0);
	}
}

static void unreadable_entry_is_dropped_and_told(void **state)
{
	static const char *const bad[] = {
		"mmap",
		"mmap:",
		"mmap:ENOSUCH",
		"mmap:0",
		"mmap:-1",
		"mmap:12x",
		"mmap:EIO:x",
		"mmap:EIO:-1",
		"mmap:EIO:1:y",
		"mmap:EIO:1:1:1",
		"nosuch:ENOMEM",
		":EIO",
		"mmap:EIO:99999999999",
		"mmap:ENOMEM:0000000000000000000000000000000000000000000000000000000000001",
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(sys_fault_parse(bad[i]), -FI_EINVAL);
	assert_int_equal(sys_fault(SYS_CALL_MMAP), 0);
	assert_int_equal(sys_fault_parse("nosuch:EIO,mmap:EIO"), -FI_EINVAL);
	assert_int_equal(sys_fault(SYS_CALL_MMAP), EIO);
}

static void environment_is_read_before_the_first_call(void **state)
{
	pid_t child;
	int status;

	assert_int_equal(setenv("WEFT_FAULT", "fchmod:EROFS:1", 1), 0);
	child = fork();
	assert_true(child >= 0);
	if (!child) {
		execl("/proc/self/exe", "fault_test", "child", (char *)NULL);
		_exit(127);
	}
	unsetenv("WEFT_FAULT");
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static int in_child(void)
{
	int first = sys_fault(SYS_CALL_FCHMOD), second = sys_fault(SYS_CALL_FCHMOD);

	return first == 0 && second == EROFS ? 0 : 1;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(nothing_fails_unless_it_is_asked_for, clear),
		cmocka_unit_test_teardown(fault_hits_its_call_alone, clear),
		cmocka_unit_test_teardown(skip_and_count_are_kept, clear),
		cmocka_unit_test_teardown(text_sets_faults, clear),
		cmocka_unit_test_teardown(every_call_has_its_name, clear),
		cmocka_unit_test_teardown(unreadable_entry_is_dropped_and_told, clear),
		cmocka_unit_test_teardown(environment_is_read_before_the_first_call, clear),
	};

	return argc > 1 ? in_child() : cmocka_run_group_tests(tests, NULL, NULL);
}
