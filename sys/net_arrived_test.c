/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What the other end of a TCP connection within this host has received. */
#include <errno.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include "net_arrived.h"
#include <cmocka.h>

#define DEADLINE_S 20

/* Returns whether the kernel tells; a processor that is emulated has no such sockets. */
static bool kernel_tells(void)
{
	int fd = socket(AF_NETLINK, SOCK_RAW, NETLINK_SOCK_DIAG);

	if (fd < 0)
		print_message("no sock_diag here\n");
	else
		close(fd);
	return fd >= 0;
}

static void connect_pair(int family, int *near, int *far)
{
	union {
		struct sockaddr sa;
		struct sockaddr_in in;
		struct sockaddr_in6 in6;
	} at = { .sa.sa_family = (sa_family_t)family };
	socklen_t len = family == AF_INET ? sizeof(at.in) : sizeof(at.in6);
	int listener = socket(family, SOCK_STREAM, 0);

	if (family == AF_INET)
		at.in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	else
		at.in6.sin6_addr = in6addr_loopback;
	if (listener < 0 || bind(listener, &at.sa, len)) {
		print_message("no loopback of family %d\n", family);
		skip();
	}
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(getsockname(listener, &at.sa, &len), 0);
	*near = socket(family, SOCK_STREAM, 0);
	assert_int_equal(connect(*near, &at.sa, len), 0);
	*far = accept(listener, NULL, NULL);
	assert_true(*far >= 0);
	close(listener);
}

/* It is on its way for as long as the kernel does not come to it. */
static bool arrives(int fd)
{
	time_t end = time(NULL) + DEADLINE_S;

	while (!sys_socket_arrived(fd))
		if (time(NULL) > end)
			return false;
	return true;
}

static void what_is_unread_has_arrived(int family)
{
	char bytes[1000] = "";
	int near, far;

	if (!kernel_tells())
		skip();
	connect_pair(family, &near, &far);
	for (int i = 0; i < 8; i++) {
		assert_int_equal(send(near, bytes, sizeof(bytes), 0), sizeof(bytes));
		assert_true(arrives(near));
	}
	assert_int_equal(send(far, bytes, 1, 0), 1);
	assert_true(arrives(far));
	close(near);
	close(far);
}

static void what_is_unread_has_arrived_over_ipv4(void **state)
{
	what_is_unread_has_arrived(AF_INET);
}

static void what_is_unread_has_arrived_over_ipv6(void **state)
{
	what_is_unread_has_arrived(AF_INET6);
}

/* The other end drops what comes, as if it were on its way. */
static void what_is_on_its_way_has_not(void **state)
{
	struct sock_filter nothing[] = { BPF_STMT(BPF_RET | BPF_K, 0) };
	const struct sock_fprog program = { .len = 1, .filter = nothing };
	int near, far;

	connect_pair(AF_INET, &near, &far);
	if (setsockopt(far, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program))) {
		print_message("no socket filters for this user: %s\n", strerror(errno));
		close(near);
		close(far);
		skip();
	}
	assert_int_equal(send(near, "x", 1, 0), 1);
	assert_false(sys_socket_arrived(near));
	close(near);
	close(far);
}

static void an_end_that_has_gone_has_nothing(void **state)
{
	int near, far;

	connect_pair(AF_INET, &near, &far);
	assert_int_equal(send(near, "x", 1, 0), 1);
	if (kernel_tells())
		assert_true(arrives(near));
	close(far); /* with a byte that is unread: it is reset */
	assert_false(sys_socket_arrived(near));
	close(near);
	assert_false(sys_socket_arrived(-1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_unread_has_arrived_over_ipv4),
		cmocka_unit_test(what_is_unread_has_arrived_over_ipv6),
		cmocka_unit_test(what_is_on_its_way_has_not),
		cmocka_unit_test(an_end_that_has_gone_has_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
