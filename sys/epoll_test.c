/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Unit tests of sets of descriptors and of sleeping on them. One thread. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>
#include "epoll.h"
#include "eventfd.h"
#include "fault.h"

static bool readable(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, 0) == 1 && p.revents == POLLIN;
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void it_is_readable_while_something_in_it_is(void **state)
{
	int outer = sys_epoll_open(), inner = sys_epoll_open(), bell = sys_eventfd_open();

	assert_true(fcntl(outer, F_GETFD) & FD_CLOEXEC);
	assert_int_equal(sys_epoll_add(inner, bell, EPOLLIN), 0);
	assert_int_equal(sys_epoll_add(inner, bell, EPOLLIN), 0);
	assert_int_equal(sys_epoll_add(outer, inner, EPOLLIN), 0);
	assert_false(readable(outer));
	sys_eventfd_ring(bell);
	assert_true(readable(outer));
	sys_eventfd_clear(bell);
	assert_false(readable(outer));
	sys_eventfd_ring(bell);
	sys_epoll_remove(inner, bell);
	sys_epoll_remove(inner, bell);
	assert_false(readable(outer));
	close(outer);
	close(inner);
	sys_eventfd_close(bell);
}

/* What can always be written makes any set readable that asks for that. */
static void it_is_readable_while_it_asks_for_what_is_there(void **state)
{
	int one = sys_epoll_open(), two = sys_epoll_open(), bell = sys_eventfd_open();

	assert_int_equal(sys_epoll_add(one, bell, 0), 0);
	assert_int_equal(sys_epoll_add(two, bell, 0), 0);
	assert_false(readable(one));
	sys_epoll_change(one, bell, EPOLLOUT);
	assert_true(readable(one));
	assert_false(readable(two));
	sys_epoll_change(one, bell, 0);
	assert_false(readable(one));
	close(one);
	close(two);
	sys_eventfd_close(bell);
}

static void sleep_ends_when_something_is_there_or_the_time_is_over(void **state)
{
	int fds[2] = { sys_eventfd_open(), sys_eventfd_open() };
	double start = now();

	sys_sleep(fds, 2, 20000000);
	assert_true(now() - start >= 0.02);
	start = now();
	sys_sleep(NULL, 0, 5000000);
	assert_true(now() - start >= 0.005);
	sys_eventfd_ring(fds[1]);
	start = now();
	sys_sleep(fds, 2, UINT64_MAX);
	sys_sleep(fds, 2, 20000000000);
	assert_true(now() - start < 10);
	sys_eventfd_close(fds[0]);
	sys_eventfd_close(fds[1]);
}

static void opening_and_adding_may_fail(void **state)
{
	int fd = sys_epoll_open();

	sys_fault_set(SYS_CALL_EPOLL, EMFILE, 0, 2);
	assert_int_equal(sys_epoll_open(), -EMFILE);
	assert_int_equal(sys_epoll_add(fd, 0, EPOLLIN), -EMFILE);
	sys_fault_clear();
	assert_int_equal(sys_epoll_add(fd, 4711, EPOLLIN), -EBADF);
	close(fd);
}

static void those_that_are_ready_take_turns(void **state)
{
	int set = sys_epoll_open(), a = sys_eventfd_open(), b = sys_eventfd_open();
	void *first, *second;

	assert_int_equal(sys_epoll_add_known(set, a, &a), 0);
	assert_int_equal(sys_epoll_add_known(set, a, &a), -EEXIST);
	assert_int_equal(sys_epoll_add_known(set, b, &b), 0);
	assert_int_equal(sys_epoll_next(set, &first), 0);
	sys_eventfd_ring(a);
	sys_eventfd_ring(b);
	assert_int_equal(sys_epoll_next(set, &first), 1);
	assert_int_equal(sys_epoll_next(set, &second), 1);
	assert_true((first == &a && second == &b) || (first == &b && second == &a));
	assert_int_equal(sys_epoll_next(set, &second), 1);
	assert_ptr_equal(second, first);
	sys_epoll_remove(set, a);
	sys_eventfd_clear(b);
	assert_int_equal(sys_epoll_next(set, &first), 0);
	sys_fault_set(SYS_CALL_EPOLL, ENOSPC, 0, 1);
	assert_int_equal(sys_epoll_add_known(set, a, &a), -ENOSPC);
	sys_fault_clear();
	sys_eventfd_close(a);
	sys_eventfd_close(b);
	close(set);
	assert_int_equal(sys_epoll_next(set, &first), -EBADF);
}

static void several_are_found_at_once_with_what_they_were_held_with(void **state)
{
	int set = sys_epoll_open(), a = sys_eventfd_open(), b = sys_eventfd_open(), plain;
	void *what[SYS_EPOLL_TAKE_MAX];

	plain = sys_eventfd_open();
	assert_int_equal(sys_epoll_add(set, plain, EPOLLIN), 0);
	assert_int_equal(sys_epoll_hold(set, a, EPOLLIN, &a), 0);
	assert_int_equal(sys_epoll_hold(set, b, 0, &b), 0);
	sys_eventfd_ring(a);
	sys_eventfd_ring(b);
	assert_int_equal(sys_epoll_take(set, what, SYS_EPOLL_TAKE_MAX), 1);
	assert_ptr_equal(what[0], &a);
	assert_int_equal(sys_epoll_hold(set, b, EPOLLIN, &b), 0);
	assert_int_equal(sys_epoll_take(set, what, 1), 1);
	assert_int_equal(sys_epoll_take(set, what + 1, 1), 1);
	assert_true((what[0] == &a && what[1] == &b) || (what[0] == &b && what[1] == &a));
	assert_int_equal(sys_epoll_hold(set, a, 0, &a), 0);
	sys_eventfd_clear(b);
	sys_eventfd_ring(plain);
	assert_int_equal(sys_epoll_take(set, what, SYS_EPOLL_TAKE_MAX), 1);
	assert_null(what[0]);
	sys_fault_set(SYS_CALL_EPOLL, ENOSPC, 0, 1);
	assert_int_equal(sys_epoll_hold(set, b, 0, &b), -ENOSPC);
	sys_fault_clear();
	sys_eventfd_close(a);
	sys_eventfd_close(b);
	sys_eventfd_close(plain);
	close(set);
	assert_int_equal(sys_epoll_hold(set, set, 0, NULL), -EBADF);
	assert_int_equal(sys_epoll_take(set, what, 1), -EBADF);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_is_readable_while_something_in_it_is),
		cmocka_unit_test(it_is_readable_while_it_asks_for_what_is_there),
		cmocka_unit_test(sleep_ends_when_something_is_there_or_the_time_is_over),
		cmocka_unit_test(opening_and_adding_may_fail),
		cmocka_unit_test(those_that_are_ready_take_turns),
		cmocka_unit_test(several_are_found_at_once_with_what_they_were_held_with),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
