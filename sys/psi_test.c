/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Triggers for pressure that the kernel takes, and waiting for what they tell. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>
#include <rdma/fi_errno.h>
#include "fault.h"
#include "psi.h"

#define SYSTEM	    "/proc/pressure/memory"
#define DEADLINE_MS 10000

static void the_kernel_takes_a_trigger(void **state)
{
	int fd = sys_psi_open(SYSTEM);

	if (fd < 0) {
		printf("no trigger: error %d\n", -fd);
		skip();
	}
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	sys_psi_wait(&fd, 1, 0);
	assert_true(fd >= 0);
	close(fd);
}

static void what_is_no_such_file_is_refused(void **state)
{
	assert_int_equal(sys_psi_open("/nonexistent"), -FI_ENOENT);
	assert_true(sys_psi_open("/proc/self/mem/none") < 0);
	sys_fault_set(SYS_CALL_PSI, EPERM, 0, 0);
	assert_int_equal(sys_psi_open(SYSTEM), -FI_EPERM);
	sys_fault_clear();
}

/* Makes a connected pair of TCP sockets: urgent bytes are what a trigger is to poll(2). */
static void make_pair(int *pair)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(at);
	int listener = socket(AF_INET, SOCK_STREAM, 0);

	assert_int_equal(bind(listener, (struct sockaddr *)&at, len), 0);
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&at, &len), 0);
	pair[0] = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(connect(pair[0], (struct sockaddr *)&at, len), 0);
	pair[1] = accept(listener, NULL, NULL);
	assert_true(pair[1] >= 0);
	close(listener);
}

static void a_trigger_ends_the_wait(void **state)
{
	int pair[2], fds[2] = { -1, -1 };

	make_pair(pair);
	fds[1] = pair[0];
	assert_false(sys_psi_wait(fds, 2, 0));
	assert_int_equal(send(pair[1], "!", 1, MSG_OOB), 1);
	assert_true(sys_psi_wait(fds, 2, DEADLINE_MS));
	assert_int_equal(fds[1], pair[0]);
	close(pair[0]);
	close(pair[1]);
}

static void a_descriptor_that_the_program_closed_is_forgotten(void **state)
{
	int ends[2], fds[2] = { -1, -1 };

	assert_int_equal(pipe(ends), 0);
	fds[0] = ends[0];
	close(ends[0]);
	assert_false(sys_psi_wait(fds, 2, DEADLINE_MS));
	assert_int_equal(fds[0], -1);
	assert_false(sys_psi_wait(fds, 2, 1));
	close(ends[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_kernel_takes_a_trigger),
		cmocka_unit_test(what_is_no_such_file_is_refused),
		cmocka_unit_test(a_trigger_ends_the_wait),
		cmocka_unit_test(a_descriptor_that_the_program_closed_is_forgotten),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
