/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Unit tests of pipes that other processes ring. One thread, and a child that rings. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include <rdma/fi_errno.h>
#include "fault.h"
#include "fifo.h"

static bool readable(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, 0) == 1 && p.revents == POLLIN;
}

static void another_process_rings(void **state)
{
	struct sys_fifo_id id;
	int fd = sys_fifo_create(&id), status;
	pid_t owner = getpid(), child;

	assert_true(fd >= 0);
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	assert_false(readable(fd));
	sys_fifo_clear(fd); /* of nothing: does not sleep */
	child = fork();
	if (!child) {
		int ours = sys_fifo_open(owner, fd, &id);

		if (ours >= 0)
			sys_fifo_ring(ours);
		_exit(ours < 0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_true(readable(fd));
	sys_fifo_clear(fd);
	assert_false(readable(fd)); /* the process that rang has closed it, which is not an end */
	sys_fifo_close(fd);
}

static void full_one_stays_readable_and_is_cleared(void **state)
{
	struct sys_fifo_id id;
	int fd = sys_fifo_create(&id);

	for (int i = 0; i < 100000; i++)
		sys_fifo_ring(fd);
	assert_true(readable(fd));
	sys_fifo_clear(fd);
	assert_false(readable(fd));
	sys_fifo_close(fd);
}

static void ringing_for_nobody_is_no_signal(void **state)
{
	struct sys_fifo_id id;
	int fd = sys_fifo_create(&id), ours = sys_fifo_open(getpid(), fd, &id);

	assert_true(ours >= 0);
	sys_fifo_close(fd);
	sys_fifo_ring(ours);
	sys_fifo_close(ours);
}

static void number_that_has_become_something_else_is_not_opened(void **state)
{
	struct sys_fifo_id id, other;
	int fd = sys_fifo_create(&id), another = sys_fifo_create(&other);
	int zero = open("/dev/zero", O_RDWR);

	assert_int_equal(sys_fifo_open(getpid(), another, &id), -FI_ENOENT);
	assert_int_equal(sys_fifo_open(getpid(), zero, &id), -FI_ENOENT);
	assert_int_equal(sys_fifo_open(getpid(), 1 << 20, &id), -ENOENT);
	close(zero);
	sys_fifo_close(fd);
	sys_fifo_close(another);
}

static void opening_may_fail(void **state)
{
	static const enum sys_call calls[] = { SYS_CALL_PIPE, SYS_CALL_OPEN_FD, SYS_CALL_FSTAT };
	struct sys_fifo_id id;
	int next = dup(0);

	close(next);
	for (int i = 0; i < 3; i++) {
		sys_fault_set(calls[i], EMFILE, 0, 1);
		assert_int_equal(sys_fifo_create(&id), -EMFILE);
	}
	sys_fault_clear();
	assert_int_equal(dup(0), next); /* nothing is left open */
	close(next);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(another_process_rings),
		cmocka_unit_test(full_one_stays_readable_and_is_cleared),
		cmocka_unit_test(ringing_for_nobody_is_no_signal),
		cmocka_unit_test(number_that_has_become_something_else_is_not_opened),
		cmocka_unit_test(opening_may_fail),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
