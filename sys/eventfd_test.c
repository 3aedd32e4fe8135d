/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Unit tests of event descriptors. One thread. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <cmocka.h>
#include "eventfd.h"
#include "fault.h"

static bool readable(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, 0) == 1 && p.revents == POLLIN;
}

static void a_bell_is_readable_from_ring_to_clear(void **state)
{
	int fd = sys_eventfd_open();

	assert_true(fd >= 0);
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	assert_false(readable(fd));
	sys_eventfd_clear(fd); /* of nothing: does not sleep */
	sys_eventfd_ring(fd);
	sys_eventfd_ring(fd);
	assert_true(readable(fd));
	sys_eventfd_clear(fd);
	assert_false(readable(fd));
	sys_eventfd_close(fd);
	assert_int_equal(fcntl(fd, F_GETFD), -1);
}

static void opening_may_fail(void **state)
{
	sys_fault_set(SYS_CALL_EVENTFD, EMFILE, 0, 1);
	assert_int_equal(sys_eventfd_open(), -EMFILE);
	sys_fault_clear();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_bell_is_readable_from_ring_to_clear),
		cmocka_unit_test(opening_may_fail),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
