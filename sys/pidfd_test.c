/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Unit tests of processes by descriptor. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>
#include <rdma/fi_errno.h>
#include "fault.h"
#include "pidfd.h"
#include <cmocka.h>

static int clear(void **state)
{
	sys_fault_clear();
	return 0;
}

static pid_t sleeper(void)
{
	pid_t child = fork();

	if (!child) {
		for (;;)
			pause();
	}
	assert_true(child > 0);
	return child;
}

static void living_process_is_alive(void **state)
{
	int fd = sys_pidfd_open(getpid());

	assert_true(fd >= 0);
	assert_int_equal(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	assert_int_equal(sys_pidfd_dead(fd), 0);
	close(fd);
}

static void killed_process_is_dead_before_and_after_it_is_collected(void **state)
{
	pid_t child = sleeper();
	int fd = sys_pidfd_open(child);
	siginfo_t info;

	assert_true(fd >= 0);
	assert_int_equal(sys_pidfd_dead(fd), 0);
	assert_int_equal(kill(child, SIGKILL), 0);
	assert_int_equal(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT), 0);
	assert_int_equal(sys_pidfd_dead(fd), 1); /* a zombie */
	assert_int_equal(waitpid(child, NULL, 0), child);
	assert_int_equal(sys_pidfd_dead(fd), 1);
	assert_int_equal(sys_pidfd_open(child), -ESRCH);
	close(fd);
}

static void what_is_no_process_is_refused(void **state)
{
	assert_true(sys_pidfd_open(-1) < 0);
	assert_true(sys_pidfd_open(0) < 0);
	assert_int_equal(sys_pidfd_dead(-1), -FI_EBADF);
	assert_int_equal(sys_pidfd_dead(9999), -FI_EBADF);
}

static void a_descriptor_of_another_process_can_be_taken(void **state)
{
	int ends[2], fd;
	char byte = 0;
	pid_t child;

	assert_int_equal(pipe(ends), 0);
	child = sleeper();
	assert_int_equal(write(ends[1], "x", 1), 1);
	close(ends[1]);
	fd = sys_pidfd_take(child, ends[1]);
	if (fd == -FI_EPERM || fd == -FI_ENOSYS) {
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
		skip(); /* not allowed here */
	}
	assert_true(fd >= 0);
	assert_int_equal(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	assert_int_equal(write(fd, "y", 1), 1);
	assert_int_equal(read(ends[0], &byte, 1), 1);
	assert_int_equal(read(ends[0], &byte, 1), 1);
	assert_int_equal(byte, 'y');
	assert_int_equal(sys_pidfd_take(child, 9999), -FI_EBADF);
	assert_int_equal(kill(child, SIGKILL), 0);
	assert_int_equal(waitpid(child, NULL, 0), child);
	assert_int_equal(sys_pidfd_take(child, ends[0]), -ESRCH);
	close(fd);
	close(ends[0]);
}

static void failing_calls_are_passed_on(void **state)
{
	int fd;

	sys_fault_set(SYS_CALL_PIDFD_GETFD, EPERM, 0, 1);
	assert_int_equal(sys_pidfd_take(getpid(), 0), -FI_EPERM);

	sys_fault_set(SYS_CALL_PIDFD_OPEN, ENOSYS, 0, 1);
	assert_int_equal(sys_pidfd_open(getpid()), -FI_ENOSYS);
	fd = sys_pidfd_open(getpid());
	sys_fault_set(SYS_CALL_POLL, ENOMEM, 0, 1);
	assert_int_equal(sys_pidfd_dead(fd), -FI_ENOMEM);
	sys_fault_set(SYS_CALL_POLL, EINTR, 0, 3); /* asked again */
	assert_int_equal(sys_pidfd_dead(fd), 0);
	assert_int_equal(sys_fault_armed, 0);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(living_process_is_alive),
		cmocka_unit_test(killed_process_is_dead_before_and_after_it_is_collected),
		cmocka_unit_test(what_is_no_process_is_refused),
		cmocka_unit_test(a_descriptor_of_another_process_can_be_taken),
		cmocka_unit_test_teardown(failing_calls_are_passed_on, clear),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
