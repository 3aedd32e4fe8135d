/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Unit tests of sockets between processes of one host. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <rdma/fi_errno.h>
#include "fault.h"
#include "local_socket.h"

static char folder[64];
static uint64_t number;

static int setup(void **state)
{
	number = (uint64_t)getpid() << 32 | 0x5eed;
	strcpy(folder, "/tmp/weft-local-XXXXXX");
	return !mkdtemp(folder);
}

static int teardown(void **state)
{
	sys_fault_clear();
	return rmdir(folder); /* nothing may be left in it */
}

static void path_of(char *path, size_t len, uint64_t n, const char *end)
{
	snprintf(path, len, "%s/weft-%016" PRIx64 "%s", folder, n, end);
}

static bool is_there(uint64_t n, const char *end)
{
	char path[128];
	struct stat st;

	path_of(path, sizeof(path), n, end);
	return !lstat(path, &st);
}

/* A message with descriptors each way; @in: folder or NULL */
static void talk(const char *in)
{
	int listener = sys_local_listen(number, in), one, other, ends[2];
	struct sys_local_received received;
	char byte = 0, text[8] = "";
	pid_t pid = 0;

	assert_true(listener >= 0 && fcntl(listener, F_GETFD) & FD_CLOEXEC);
	assert_int_equal(sys_local_accept(listener), -FI_EAGAIN);
	one = sys_local_connect(number, in);
	assert_true(one >= 0);
	other = sys_local_accept(listener);
	assert_true(other >= 0);
	assert_int_equal(sys_local_same_user(one, &pid), 1);
	assert_int_equal(pid, getpid());
	assert_int_equal(sys_local_recv(other, text, sizeof(text), &received), -FI_EAGAIN);
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(sys_local_send(one, "hello", 6, ends, 2), 0);
	close(ends[0]);
	assert_int_equal(sys_local_recv(other, text, sizeof(text), &received), 6);
	assert_string_equal(text, "hello");
	assert_int_equal(received.cnt, 2);
	assert_int_equal(received.err, 0);
	assert_true(fcntl(received.fds[0], F_GETFD) & FD_CLOEXEC);
	assert_int_equal(write(ends[1], "x", 1), 1);
	assert_int_equal(read(received.fds[0], &byte, 1), 1);
	assert_int_equal(byte, 'x');
	close(received.fds[0]);
	close(received.fds[1]);
	close(ends[1]);
	assert_int_equal(sys_local_send(other, "a longer one", 12, NULL, 0), 0);
	assert_int_equal(sys_local_recv(one, text, sizeof(text), &received), 12);
	assert_int_equal(received.cnt, 0);
	assert_int_equal(sys_local_closed(other), 0);
	sys_local_shutdown(one);
	assert_int_equal(sys_local_closed(other), 1);
	assert_int_equal(sys_local_recv(other, text, sizeof(text), &received), 0);
	sys_local_close(one);
	assert_int_equal(sys_local_send(other, "x", 1, NULL, 0), -EPIPE);
	sys_local_close(other);
	sys_local_close(listener);
	assert_int_equal(sys_local_connect(number, in), -FI_ECONNREFUSED);
}

static void messages_and_descriptors_pass(void **state)
{
	talk(NULL);
}

static void they_pass_through_a_folder(void **state)
{
	char path[128];
	struct stat st;
	int listener;

	umask(0);
	listener = sys_local_listen(number, folder);
	assert_true(listener >= 0);
	path_of(path, sizeof(path), number, "");
	assert_int_equal(lstat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_false(is_there(number, ".new"));
	sys_local_close(listener);
	talk(folder);
	sys_local_remove(number, folder);
	assert_false(is_there(number, ""));
}

static void end_of_a_process_is_seen(void **state)
{
	int listener = sys_local_listen(number, NULL), sock, go[2];
	pid_t child, pid = 0;

	assert_int_equal(pipe(go), 0);
	child = fork();
	assert_true(child >= 0);
	if (!child) {
		if (sys_local_connect(number, NULL) < 0 || write(go[1], "x", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	assert_int_equal(read(go[0], &pid, 1), 1);
	sock = sys_local_accept(listener);
	assert_true(sock >= 0);
	assert_int_equal(sys_local_same_user(sock, &pid), 1);
	assert_int_equal(pid, child);
	assert_int_equal(sys_local_closed(sock), 0);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	assert_int_equal(sys_local_closed(sock), 1);
	sys_local_close(sock);
	sys_local_close(listener);
	close(go[0]);
	close(go[1]);
}

static void left_overs_are_removed_and_others_are_not(void **state)
{
	int live = sys_local_listen(number, folder), dead = sys_local_listen(1, folder), other;
	char path[128];

	assert_true(live >= 0 && dead >= 0);
	sys_local_close(dead);
	path_of(path, sizeof(path), 2, "");
	other = open(path, O_CREAT | O_RDWR, 0600);
	assert_true(other >= 0);
	sys_local_remove_stale(folder);
	assert_true(is_there(number, ""));
	assert_false(is_there(1, ""));
	assert_true(is_there(2, ""));
	unlink(path);
	close(other);
	sys_local_close(live);
	sys_local_remove(number, folder);
}

static void folder_that_is_none_is_refused(void **state)
{
	char path[256];

	memset(path, 'x', sizeof(path));
	path[sizeof(path) - 1] = '\0';
	assert_int_equal(sys_local_listen(number, path), -FI_EINVAL);
	assert_int_equal(sys_local_connect(number, path), -FI_ECONNREFUSED);
	assert_int_equal(sys_local_listen(number, "/nowhere/at/all"), -FI_ENOENT);
	assert_int_equal(sys_local_listen(number, "/dev/null"), -FI_EINVAL);
	sys_local_remove_stale("/nowhere/at/all");
}

static void more_descriptors_than_expected_are_told(void **state)
{
	int listener = sys_local_listen(number, NULL);
	int one = sys_local_connect(number, NULL), other = sys_local_accept(listener);
	struct sys_local_received received;
	struct rlimit limit, low;
	int fds[3] = { one, one, one }, lowest = dup(one);
	char byte;

	assert_int_equal(sys_local_send(one, "x", 1, fds, 3), -FI_EINVAL);
	/* no room for them here */
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	low = (struct rlimit){ .rlim_cur = (rlim_t)lowest, .rlim_max = limit.rlim_max };
	close(lowest);
	assert_int_equal(sys_local_send(one, "x", 1, fds, 2), 0);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
	assert_int_equal(sys_local_recv(other, &byte, 1, &received), 1);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	assert_int_equal(received.cnt, 0);
	assert_int_equal(received.err, -FI_EMFILE);
	sys_local_close(one);
	sys_local_close(other);
	sys_local_close(listener);
}

static void failing_calls_are_told(void **state)
{
	const enum sys_call calls[] = { SYS_CALL_SOCKET, SYS_CALL_BIND };
	struct sys_local_received received;
	char byte;

	for (int i = 0; i < 2; i++) {
		sys_fault_set(calls[i], EMFILE, 0, 1);
		assert_int_equal(sys_local_listen(number, NULL), -EMFILE);
	}
	sys_fault_set(SYS_CALL_CONNECT, EAGAIN, 0, 1);
	assert_int_equal(sys_local_connect(number, NULL), -EAGAIN);
	sys_fault_set(SYS_CALL_ACCEPT, EMFILE, 0, 1);
	assert_int_equal(sys_local_accept(-1), -EMFILE);
	sys_fault_set(SYS_CALL_SENDMSG, EINTR, 0, 3);
	assert_int_equal(sys_local_send(-1, "x", 1, NULL, 0), -EBADF);
	sys_fault_set(SYS_CALL_RECVMSG, ENOMEM, 0, 1);
	assert_int_equal(sys_local_recv(-1, &byte, 1, &received), -ENOMEM);
	assert_int_equal(sys_local_closed(-1), -EBADF);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(messages_and_descriptors_pass),
		TEST(they_pass_through_a_folder),
		TEST(end_of_a_process_is_seen),
		TEST(left_overs_are_removed_and_others_are_not),
		TEST(folder_that_is_none_is_refused),
		TEST(more_descriptors_than_expected_are_told),
		TEST(failing_calls_are_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
