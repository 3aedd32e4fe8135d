/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What a program does not notice of descriptors that it does not know of: in processes that begin without
 * standard input, output and error, and on threads that are to be cancelled.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include "descriptor.h"
#include "epoll.h"
#include "eventfd.h"
#include "fifo.h"
#include "image.h"
#include "local_socket.h"
#include "maps.h"
#include "memfd.h"
#include "mock_descriptors.h"
#include "net_socket.h"
#include "pidfd.h"
#include "psi.h"
#include "timerfd.h"
#include "uffd.h"
#include "write_guard.h"

#define LEN ((size_t)4096)

static int open_fifo(void)
{
	struct sys_fifo_id id;

	return sys_fifo_create(&id);
}

static int open_memory(void)
{
	return sys_memfd_create("test", LEN, 0600);
}

static int open_memory_again(void)
{
	int fd = open_memory();

	return sys_memfd_open(getpid(), fd, true);
}

static int open_process(void)
{
	return sys_pidfd_open(getpid());
}

static int take(void)
{
	return sys_pidfd_take(getpid(), open_memory());
}

static int open_procdir(void)
{
	return sys_procdir_open(getpid());
}

static int open_image(void)
{
	return sys_image_open(getpid());
}

static int open_pressure(void)
{
	return sys_psi_open("/proc/pressure/memory");
}

/* A descriptor that comes over a socket. */
static int receive(void)
{
	struct sys_local_received received = { .cnt = 0 };
	int ends[2], fd = open_memory();
	char byte = 0;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) ||
	    sys_local_send(ends[0], &byte, 1, &fd, 1) ||
	    sys_local_recv(ends[1], &byte, 1, &received) != 1 || received.cnt != 1)
		return -EIO;
	close(ends[0]);
	close(ends[1]);
	return received.fds[0];
}

static int (*const kinds[])(void) = {
	sys_epoll_open, sys_eventfd_open,  sys_timerfd_open, sys_uffd_open, open_fifo,
	open_memory,	open_memory_again, open_process,     take,	    open_procdir,
	open_image,	open_pressure,	   receive,
};

/* In a process without descriptors. Returns the first kind, from 1 on, that has one of the numbers, or 0. */
static int open_all(int below)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		int fd;

		close(STDIN_FILENO);
		close(STDOUT_FILENO);
		close(STDERR_FILENO);
		fd = kinds[i]();
		/* what this system refuses has no number */
		if (fd >= 0 && fd < below)
			return (int)i + 1;
		if (fd >= 0 && !(fcntl(fd, F_GETFD) & FD_CLOEXEC))
			return 99;
	}
	return 0;
}

static int status_of(pid_t pid)
{
	int status;

	assert_true(pid >= 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static void nothing_gets_the_number_of_a_standard_stream(void **state)
{
	pid_t pid = fork();

	if (!pid)
		_exit(open_all(SYS_DESCRIPTOR_FIRST));
	assert_int_equal(status_of(pid), 0);
}

static void nor_where_few_are_allowed(void **state)
{
	struct rlimit limit = { 16, 16 };
	pid_t pid = fork();

	if (!pid) {
		for (int fd = STDERR_FILENO + 1; fd < 256; fd++)
			close(fd);
		_exit(setrlimit(RLIMIT_NOFILE, &limit) ? 98 : open_all(STDERR_FILENO + 1));
	}
	assert_int_equal(status_of(pid), 0);
}

static void where_only_those_are_left_there_is_none(void **state)
{
	struct rlimit limit = { 3, 3 };
	pid_t pid = fork();

	if (!pid) {
		close(STDOUT_FILENO);
		if (setrlimit(RLIMIT_NOFILE, &limit))
			_exit(98);
		_exit(open_memory() != -EMFILE || fcntl(STDOUT_FILENO, F_GETFD) != -1);
	}
	assert_int_equal(status_of(pid), 0);
}

static void room_is_for_three(void **state)
{
	struct rlimit limit = { 16, 16 };
	pid_t pid = fork();

	if (!pid) {
		if (setrlimit(RLIMIT_NOFILE, &limit))
			_exit(98);
		while (dup(STDOUT_FILENO) >= 0)
			;
		close(15);
		close(14);
		if (sys_descriptor_room(STDOUT_FILENO) || errno != EMFILE)
			_exit(1);
		close(13);
		_exit(!sys_descriptor_room(STDOUT_FILENO) || fcntl(13, F_GETFD) != -1 ||
		      fcntl(15, F_GETFD) != -1);
	}
	assert_int_equal(status_of(pid), 0);
}

static void one_is_left_open(void **state)
{
	int before = mock_descriptors(), fd = open_memory();

	assert_int_equal(mock_descriptors(), before + 1);
	sys_descriptor_close(fd);
	assert_int_equal(mock_descriptors(), before);
}

static _Atomic int ready, past;

static int see(const struct sys_map *mapping, void *arg)
{
	return 0;
}

static void use_sockets(void)
{
	uint64_t number = (uint64_t)getpid() << 32 | 0xca9ce1;
	struct sys_local_received received = { .cnt = 0 };
	int listener = sys_local_listen(number, NULL), one = sys_local_connect(number, NULL);
	int other = sys_local_accept(listener), fd = open_memory();
	char byte = 0;
	pid_t pid;

	sys_local_remove_stale("/tmp");
	sys_local_same_user(one, &pid);
	sys_local_send(one, &byte, 1, &fd, 1);
	sys_local_recv(other, &byte, 1, &received);
	while (received.cnt)
		sys_local_close(received.fds[--received.cnt]);
	sys_local_close(fd);
	sys_local_close(other);
	sys_local_close(one);
	sys_local_close(listener);
}

static void use_net_sockets(void)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int listener = sys_socket_open(AF_INET, SOCK_STREAM), one, other,
	    set = sys_events_open();
	struct epoll_event event = { .events = EPOLLIN };
	socklen_t len = sizeof(at);
	struct ifaddrs *all;
	char byte = 0;
	struct iovec iov = { &byte, 1 };

	sys_socket_bind(listener, (struct sockaddr *)&at, len);
	sys_socket_listen(listener);
	sys_socket_own(listener, (struct sockaddr *)&at, &len);
	one = sys_socket_open(AF_INET, SOCK_STREAM);
	sys_socket_connect(one, (struct sockaddr *)&at, len);
	other = sys_socket_accept(listener);
	sys_events_hold(set, EPOLL_CTL_ADD, other, &event);
	sys_socket_send(one, &byte, 1, 0);
	sys_socket_sendv(one, &iov, 1);
	sys_events_take(set, &event, 1);
	sys_socket_recv(other, &byte, 1, 0);
	sys_socket_recvv(other, &iov, 1);
	sys_socket_arrived(one);
	if (!sys_interfaces(&all))
		freeifaddrs(all);
	sys_events_close(set);
	sys_socket_close(other);
	sys_socket_close(one);
	sys_socket_close(listener);
}

static void use_fifo(void)
{
	struct sys_fifo_id id;
	int fd = sys_fifo_create(&id), again = sys_fifo_open(getpid(), fd, &id);

	sys_fifo_ring(again);
	sys_fifo_clear(fd);
	sys_fifo_close(again);
	sys_fifo_close(fd);
}

/* What providers do with a lock that a fork takes. */
static void use_others(void)
{
	int fd = sys_image_open(getpid());
	struct pollfd p = { .fd = sys_eventfd_open(), .events = POLLIN };
	void *guard;

	sys_image_gone(fd);
	sys_descriptor_close(fd);
	fd = sys_pidfd_open(getpid());
	sys_pidfd_dead(fd);
	sys_descriptor_close(fd);
	sys_eventfd_ring(p.fd);
	sys_descriptor_poll(&p, 1, -1);
	sys_eventfd_clear(p.fd);
	sys_descriptor_poll(&p, 1, 1);
	sys_eventfd_close(p.fd);
	if (!sys_write_guard_open(&guard))
		sys_write_guard_close(guard);
	use_sockets();
	use_net_sockets();
	use_fifo();
}

/* Is to be cancelled when it begins. */
static void *use(void *arg)
{
	char text[8];
	int fd;

	while (!ready)
		;
	fd = open_memory_again();
	sys_memfd_read(fd, text, sizeof(text));
	sys_descriptor_close(fd);
	fd = sys_descriptor_open("/proc/self/stat", O_RDONLY);
	sys_descriptor_read(fd, text, sizeof(text));
	sys_descriptor_close(fd);
	sys_maps_each(NULL, SIZE_MAX, see, NULL);
	use_others();
	past = 1;
	pthread_testcancel();
	return NULL;
}

static void a_thread_is_not_cancelled_in_them(void **state)
{
	pthread_t thread;
	void *result;

	assert_int_equal(pthread_create(&thread, NULL, use, NULL), 0);
	assert_int_equal(pthread_cancel(thread), 0);
	ready = 1;
	assert_int_equal(pthread_join(thread, &result), 0);
	assert_ptr_equal(result, PTHREAD_CANCELED);
	assert_true(past);
}

static void a_poll_ends_when_it_may(void **state)
{
	struct pollfd p = { .fd = sys_eventfd_open(), .events = POLLIN };

	assert_int_equal(sys_descriptor_poll(&p, 1, 0), 0);
	assert_int_equal(sys_descriptor_poll(&p, 1, 1), 0);
	sys_eventfd_ring(p.fd);
	assert_int_equal(sys_descriptor_poll(&p, 1, 1001), 1);
	assert_int_equal(sys_descriptor_poll(&p, 1, -1), 1);
	assert_int_equal(p.revents, POLLIN);
	sys_eventfd_close(p.fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_gets_the_number_of_a_standard_stream),
		cmocka_unit_test(nor_where_few_are_allowed),
		cmocka_unit_test(where_only_those_are_left_there_is_none),
		cmocka_unit_test(room_is_for_three),
		cmocka_unit_test(one_is_left_open),
		cmocka_unit_test(a_poll_ends_when_it_may),
		cmocka_unit_test(a_thread_is_not_cancelled_in_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
