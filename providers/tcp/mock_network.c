/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* See mock_network.h. Tests only; on the test's thread. */
#define _GNU_SOURCE
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>
#include "mock_network.h"

int mock_network_request(const char *name, unsigned long what, struct ifreq *req)
{
	int fd = socket(AF_INET, SOCK_DGRAM, 0), ret;

	assert_true(fd >= 0);
	strcpy(req->ifr_name, name);
	ret = ioctl(fd, what, req);
	close(fd);
	return ret;
}

void mock_network_set(bool up)
{
	struct ifreq req = { .ifr_flags = up ? IFF_UP : 0 };

	assert_int_equal(mock_network_request("lo", SIOCSIFFLAGS, &req), 0);
}

bool mock_network(void)
{
	static bool is_there;

	if (!is_there && unshare(CLONE_NEWUSER | CLONE_NEWNET)) {
		print_message("no network namespace here\n");
		return false;
	}
	is_there = true;
	mock_network_set(true);
	return true;
}
