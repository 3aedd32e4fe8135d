/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Who falls silent while a connection begins: a host that dies after its kernel has taken the
 * connection, which is an error in time, and a process that does not answer, which is not.
 */
#include <errno.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include "party.h"
#include <cmocka.h>

#define DEAD_MS "1000"
#define DEAD_S	1

static struct party caller;

static int teardown(void **state)
{
	party_close_all();
	return 0;
}

/* A socket that listens at loopback, as the port of an endpoint that nobody drives. */
static int port_open(struct sockaddr_in *at)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	socklen_t len = sizeof(*at);

	*at = (struct sockaddr_in){ .sin_family = AF_INET,
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)at, sizeof(*at)), 0);
	assert_int_equal(listen(fd, 4), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)at, &len), 0);
	return fd;
}

/*
 * Takes the connection, whose socket from now on drops every packet before the kernel
 * acknowledges it: as its host does that has died.
 */
static int take_and_die(int port)
{
	struct sock_filter drop = { .code = BPF_RET | BPF_K };
	struct sock_fprog all = { .len = 1, .filter = &drop };
	int fd = accept(port, NULL, NULL);

	assert_true(fd >= 0);
	if (setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &all, sizeof(all))) {
		print_message("no socket filter: %s\n", strerror(errno));
		close(fd);
		return -1;
	}
	return fd;
}

static void a_host_that_dies_before_it_has_answered_is_an_error(void **state)
{
	struct sockaddr_in at;
	struct heard heard;
	int port = port_open(&at), fd;

	party_open(&caller, NULL);
	assert_int_equal(fi_connect(caller.ep, &at, "hello", 5), 0);
	/* The kernels have connected, and the caller has sent nothing: it has not been driven. */
	fd = take_and_die(port);
	if (fd < 0) {
		close(port);
		skip();
	}
	party_expect(&caller, PARTY_ERROR, &heard);
	assert_int_equal(heard.err, FI_ETIMEDOUT);
	close(fd);
	close(port);
}

static void a_process_that_does_not_answer_is_waited_for(void **state)
{
	struct sockaddr_in at;
	struct timespec now;
	struct heard heard;
	int port = port_open(&at);
	time_t end;

	party_open(&caller, NULL);
	assert_int_equal(fi_connect(caller.ep, &at, "hello", 5), 0);
	clock_gettime(CLOCK_MONOTONIC, &now);
	end = now.tv_sec + 3 * DEAD_S + 1;
	while (now.tv_sec < end) {
		assert_true(party_quiet(&caller));
		clock_gettime(CLOCK_MONOTONIC, &now);
	}
	close(port); /* the kernel resets what was not accepted */
	party_expect(&caller, PARTY_ERROR, &heard);
	assert_int_equal(heard.err, FI_ECONNRESET);
}

#define TEST(name) cmocka_unit_test_teardown(name, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_host_that_dies_before_it_has_answered_is_an_error),
		TEST(a_process_that_does_not_answer_is_waited_for),
	};

	setenv("FI_TCP_DEAD_MS", DEAD_MS, 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
