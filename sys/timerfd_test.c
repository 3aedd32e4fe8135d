/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Unit tests of timers with a descriptor. One thread. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>
#include <cmocka.h>
#include "fault.h"
#include "timerfd.h"

static bool readable(int fd, int ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, ms) == 1 && p.revents == POLLIN;
}

static void a_timer_is_readable_from_its_time_to_the_next_setting(void **state)
{
	int fd = sys_timerfd_open();

	assert_true(fd >= 0);
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	assert_false(readable(fd, 0));
	sys_timerfd_set(fd, 1000000);
	assert_true(readable(fd, 10000));
	assert_true(readable(fd, 0));
	sys_timerfd_set(fd, 100000000000);
	assert_false(readable(fd, 0));
	sys_timerfd_set(fd, 1000000);
	sys_timerfd_set(fd, 0);
	assert_false(readable(fd, 20));
	close(fd);
}

static void opening_may_fail(void **state)
{
	sys_fault_set(SYS_CALL_TIMERFD, EMFILE, 0, 1);
	assert_int_equal(sys_timerfd_open(), -EMFILE);
	sys_fault_clear();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_timer_is_readable_from_its_time_to_the_next_setting),
		cmocka_unit_test(opening_may_fail),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
