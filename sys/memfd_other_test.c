/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Files that are no memfds, at the descriptors where a peer says it has one: they are not opened, and whoever
 * answers for their file system makes nobody wait.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include <rdma/fi_errno.h>
#include "memfd.h"

#define DEADLINE_S 20

static void an_ordinary_file_is_not_opened(void **state)
{
	char path[] = "/tmp/weft-memfd-XXXXXX";
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	unlink(path);
	assert_int_equal(sys_memfd_open(getpid(), fd, true), -FI_EINVAL);
	assert_int_equal(sys_memfd_open(getpid(), fd, false), -FI_EINVAL);
	close(fd);
}

static void huge_pages_are_opened(void **state)
{
	int fd = sys_memfd_create_huge("test", SYS_MEMFD_HUGE, 0600), again;

	if (fd < 0) {
		print_message("no pool of huge pages\n");
		skip();
	}
	again = sys_memfd_open(getpid(), fd, false);
	assert_true(again >= 0);
	close(again);
	close(fd);
}

/* In a process of its own. Mounts a file system on a file that nobody answers for. Returns the file, or -1. */
static int open_unanswered(void)
{
	char path[] = "/tmp/weft-fuse-XXXXXX", options[96];
	int fd = mkstemp(path), fuse = open("/dev/fuse", O_RDWR);

	snprintf(options, sizeof(options), "fd=%d,rootmode=100644,user_id=0,group_id=0", fuse);
	if (fd < 0 || fuse < 0 || unshare(CLONE_NEWNS) ||
	    mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("weft-test", path, "fuse", 0, options)) {
		unlink(path);
		return -1;
	}
	fd = open(path, O_PATH);
	/* of another namespace: it is no mount point there */
	umount2(path, MNT_DETACH);
	unlink(path);
	return fd;
}

static void a_file_system_that_does_not_answer_is_not_asked(void **state)
{
	int data[2], until[2], fd = -1, opened;
	pid_t pid;

	assert_int_equal(pipe(data) | pipe(until), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		fd = open_unanswered();
		if (write(data[1], &fd, sizeof(fd)) != sizeof(fd))
			_exit(1);
		/* until the other side has closed its end, or was ended by its alarm */
		close(until[1]);
		_exit((int)read(until[0], &fd, 1));
	}
	assert_int_equal(read(data[0], &fd, sizeof(fd)), sizeof(fd));
	alarm(DEADLINE_S);
	opened = fd < 0 ? fd : sys_memfd_open(pid, fd, false);
	alarm(0);
	close(until[1]);
	waitpid(pid, NULL, 0);
	close(until[0]);
	close(data[0]);
	close(data[1]);
	if (fd < 0) {
		print_message("no right to mount a file system\n");
		skip();
	}
	assert_int_equal(opened, -FI_EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_ordinary_file_is_not_opened),
		cmocka_unit_test(huge_pages_are_opened),
		cmocka_unit_test(a_file_system_that_does_not_answer_is_not_asked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
