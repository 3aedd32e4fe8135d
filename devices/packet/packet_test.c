/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Unit tests of messages with descriptors beside them. */
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "descriptors.h"
#include "packet.h"

/* struct ends - a connection; @path: in @folder, for sockets */
struct ends {
	int a, b;
	unsigned open;
	char folder[64];
	char path[96];
};

static int setup(void **state)
{
	static struct ends ends;
	int fds[2];

	ends.open = descriptors_open();
	strcpy(ends.folder, "/tmp/weft-packet.XXXXXX");
	if (!mkdtemp(ends.folder) || socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fds))
		return -1;
	snprintf(ends.path, sizeof(ends.path), "%s/socket", ends.folder);
	ends.a = fds[0];
	ends.b = fds[1];
	*state = &ends;
	return 0;
}

static int teardown(void **state)
{
	struct ends *ends = *state;

	close(ends->a);
	close(ends->b);
	unlink(ends->path);
	rmdir(ends->folder);
	return descriptors_open() == ends->open ? 0 : -1;
}

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* Send @len bytes with @fd_cnt copies of a descriptor beside them. */
static int send_some(int fd, size_t len, uint32_t fd_cnt)
{
	static const char bytes[1024] = "message";
	int fds[PACKET_FDS_MAX + 1];
	struct iovec iov = { (void *)bytes, len };
	uint32_t i;

	for (i = 0; i < fd_cnt && i < PACKET_FDS_MAX + 1; i++)
		fds[i] = fd;
	return packet_send(fd, &iov, 1, fds, fd_cnt);
}

/* Take a message into @len bytes; what came beside it is closed. */
static ssize_t take(int fd, size_t len, uint32_t *fd_cnt, int ms)
{
	int fds[PACKET_FDS_MAX];
	char bytes[1024];
	struct iovec iov = { bytes, len };
	ssize_t n = packet_recv(fd, &iov, 1, fds, fd_cnt, ms);

	packet_close_fds(fds, *fd_cnt);
	return n;
}

static void message_comes_whole_with_its_descriptors(void **state)
{
	struct ends *ends = *state;
	char head[4] = "", tail[8] = "";
	struct iovec from[2] = { { "head", 4 }, { "and tail", 8 } };
	struct iovec to[2] = { { head, 4 }, { tail, 8 } };
	int fds[PACKET_FDS_MAX], pipe_fds[2];
	uint32_t cnt;

	assert_int_equal(pipe(pipe_fds), 0);
	assert_int_equal(packet_send(ends->a, from, 2, pipe_fds, 2), 0);
	close(pipe_fds[0]);
	assert_int_equal(packet_recv(ends->b, to, 2, fds, &cnt, -1), 12);
	assert_memory_equal(head, "head", 4);
	assert_memory_equal(tail, "and tail", 8);
	assert_int_equal(cnt, 2);
	assert_true(fcntl(fds[0], F_GETFD) & FD_CLOEXEC);
	assert_int_equal(write(pipe_fds[1], "x", 1), 1);
	assert_int_equal(read(fds[0], head, 1), 1);
	packet_close_fds(fds, cnt);
	close(pipe_fds[1]);
}

static void most_descriptors_come_and_more_are_refused(void **state)
{
	struct ends *ends = *state;
	uint32_t cnt;

	assert_int_equal(send_some(ends->a, 8, PACKET_FDS_MAX), 0);
	assert_int_equal(take(ends->b, 8, &cnt, 0), 8);
	assert_int_equal(cnt, PACKET_FDS_MAX);
	assert_int_equal(send_some(ends->a, 8, PACKET_FDS_MAX + 1), -EINVAL);
	assert_int_equal(take(ends->b, 8, &cnt, 0), -ETIMEDOUT);
}

/* As somebody else may send it. */
static void more_descriptors_than_there_is_room_for_are_lost_with_their_message(void **state)
{
	struct ends *ends = *state;
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE((PACKET_FDS_MAX + 6) * sizeof(int))];
	} control = { .bytes = "" };
	struct iovec iov = { "x", 1 };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = control.bytes,
			      .msg_controllen = sizeof(control.bytes) };
	struct cmsghdr *head = CMSG_FIRSTHDR(&msg);
	uint32_t cnt = 7, i;

	*head = (struct cmsghdr){ .cmsg_len = CMSG_LEN((PACKET_FDS_MAX + 6) * sizeof(int)),
				  .cmsg_level = SOL_SOCKET,
				  .cmsg_type = SCM_RIGHTS };
	for (i = 0; i < PACKET_FDS_MAX + 6; i++)
		memcpy(CMSG_DATA(head) + i * sizeof(int), &ends->a, sizeof(int));
	assert_int_equal(sendmsg(ends->a, &msg, 0), 1);
	assert_int_equal(take(ends->b, 8, &cnt, 0), -EMFILE);
	assert_int_equal(cnt, 0);
	assert_int_equal(send_some(ends->a, 5, 0), 0);
	assert_int_equal(take(ends->b, 8, &cnt, 0), 5);
}

static void descriptors_that_a_process_may_not_have_are_lost_with_their_message(void **state)
{
	struct ends *ends = *state;
	struct rlimit limit, low;
	uint32_t cnt;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	low = limit;
	low.rlim_cur = (rlim_t)ends->b + 3;
	assert_int_equal(send_some(ends->a, 8, 5), 0);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
	assert_int_equal(take(ends->b, 8, &cnt, 0), -EMFILE);
	assert_int_equal(cnt, 0);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

static void longer_message_is_lost_with_its_descriptors(void **state)
{
	struct ends *ends = *state;
	uint32_t cnt;

	assert_int_equal(send_some(ends->a, 100, 3), 0);
	assert_int_equal(send_some(ends->a, 8, 0), 0);
	assert_int_equal(take(ends->b, 8, &cnt, 0), -EMSGSIZE);
	assert_int_equal(cnt, 0);
	assert_int_equal(take(ends->b, 8, &cnt, 0), 8);
}

static void descriptors_beside_no_bytes_are_lost(void **state)
{
	struct ends *ends = *state;
	struct iovec iov = { (char[8]){ 0 }, 8 };
	unsigned before = descriptors_open();
	int fds[PACKET_FDS_MAX];
	uint32_t cnt = 1;

	assert_int_equal(send_some(ends->a, 0, 5), 0);
	assert_int_equal(packet_recv(ends->b, &iov, 1, fds, &cnt, -1), 0);
	assert_int_equal(cnt, 0);
	assert_int_equal(descriptors_open(), before);
}

static void end_of_the_other_side_is_told(void **state)
{
	struct ends *ends = *state;
	uint32_t cnt;

	assert_int_equal(send_some(ends->a, 8, 1), 0);
	shutdown(ends->a, SHUT_RDWR);
	/* What was sent before comes before the end. */
	assert_int_equal(take(ends->b, 8, &cnt, 0), 8);
	assert_int_equal(take(ends->b, 8, &cnt, 0), 0);
	assert_int_equal(send_some(ends->b, 8, 0), -EPIPE);
}

static void interrupted(int signal)
{
}

/* A timer's signal comes every 5 ms, on the one thread of the process. */
static void set_timer(suseconds_t us)
{
	struct itimerval timer = { { 0, us }, { 0, us } };

	sigaction(SIGALRM, &(struct sigaction){ .sa_handler = interrupted }, NULL);
	setitimer(ITIMER_REAL, &timer, NULL);
}

static void wait_ends_in_time_though_signals_come(void **state)
{
	struct ends *ends = *state;
	uint64_t begin = now_ms();
	uint32_t cnt;
	ssize_t n;

	set_timer(5000);
	n = take(ends->b, 8, &cnt, 50);
	set_timer(0);
	assert_int_equal(n, -ETIMEDOUT);
	assert_true(now_ms() - begin >= 50);
}

static void message_to_who_takes_nothing_is_not_waited_for_without_end(void **state)
{
	struct ends *ends = *state;
	uint64_t begin;
	uint32_t cnt;
	int err = 0, room = 1;

	assert_int_equal(packet_limit(ends->a), 0);
	setsockopt(ends->a, SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
	do {
		begin = now_ms();
		set_timer(5000);
		err = send_some(ends->a, 1024, 0);
		set_timer(0);
	} while (!err);
	assert_int_equal(err, -ETIMEDOUT);
	assert_true(now_ms() - begin >= PACKET_MS);
	/* Nothing of it was sent. */
	while ((err = (int)take(ends->b, 1024, &cnt, 0)) == 1024)
		;
	assert_int_equal(err, -ETIMEDOUT);
}

static void listener_has_the_mode_that_was_asked_for(void **state)
{
	struct ends *ends = *state;
	mode_t mask = umask(0077);
	struct stat st;
	int fd = packet_listen(ends->path, 0666);

	umask(mask);
	assert_true(fd >= 0);
	assert_int_equal(stat(ends->path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0666);
	close(fd);
	fd = packet_listen(ends->path, 0600);
	assert_true(fd >= 0);
	assert_int_equal(stat(ends->path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	close(fd);
}

static void socket_of_nobody_is_replaced_and_one_of_a_listener_is_not(void **state)
{
	struct ends *ends = *state;
	int fd = packet_listen(ends->path, 0600), peer;

	assert_true(fd >= 0);
	assert_int_equal(packet_listen(ends->path, 0600), -EADDRINUSE);
	close(fd);
	assert_int_equal(packet_connect(ends->path), -ECONNREFUSED);
	fd = packet_listen(ends->path, 0600);
	assert_true(fd >= 0);
	peer = packet_connect(ends->path);
	assert_true(peer >= 0);
	close(peer);
	close(fd);
}

static void what_is_no_socket_stays(void **state)
{
	struct ends *ends = *state;
	int fd = open(ends->path, O_CREAT | O_WRONLY, 0600);
	struct stat st;

	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(packet_listen(ends->path, 0600), -EADDRINUSE);
	assert_int_equal(stat(ends->path, &st), 0);
	assert_true(S_ISREG(st.st_mode));
	assert_int_equal(packet_connect(ends->path), -ECONNREFUSED);
}

static void paths_that_no_socket_has_are_refused(void **state)
{
	char path[256];

	memset(path, 'x', sizeof(path) - 1);
	path[sizeof(path) - 1] = 0;
	assert_int_equal(packet_connect(path), -ENAMETOOLONG);
	assert_int_equal(packet_listen(path, 0600), -ENAMETOOLONG);
	assert_int_equal(packet_connect(""), -EINVAL);
	assert_int_equal(packet_connect("/nonexistent/socket"), -ENOENT);
}

#define RIVALS	     8
#define RIVAL_ROUNDS 200

struct rival {
	pthread_barrier_t *begin;
	const char *path;
	int fd;
};

static void *listen_too(void *arg)
{
	struct rival *rival = arg;

	pthread_barrier_wait(rival->begin);
	rival->fd = packet_listen(rival->path, 0600);
	return NULL;
}

/* Several find the socket of nobody at once: one is the listener, and none takes away what another has. */
static void one_of_many_replaces_the_socket_of_nobody(void **state)
{
	struct ends *ends = *state;
	struct rival rivals[RIVALS];
	pthread_t threads[RIVALS];
	pthread_barrier_t begin;
	int i, n, peer, round;

	pthread_barrier_init(&begin, NULL, RIVALS);
	for (round = 0; round < RIVAL_ROUNDS; round++) {
		for (i = 0; i < RIVALS; i++) {
			rivals[i] = (struct rival){ &begin, ends->path, -1 };
			assert_int_equal(
				pthread_create(&threads[i], NULL, listen_too, &rivals[i]), 0);
		}
		for (i = 0; i < RIVALS; i++)
			assert_int_equal(pthread_join(threads[i], NULL), 0);
		peer = packet_connect(ends->path);
		assert_true(peer >= 0);
		close(peer);
		for (i = 0, n = 0; i < RIVALS; i++) {
			if (rivals[i].fd >= 0)
				n += !close(rivals[i].fd);
			else
				assert_int_equal(rivals[i].fd, -EADDRINUSE);
		}
		assert_int_equal(n, 1);
	}
	pthread_barrier_destroy(&begin);
	unlink(ends->path);
}

/* One place in its queue, which the first one takes. */
static void listener_that_accepts_nothing_is_not_waited_for_without_end(void **state)
{
	struct ends *ends = *state;
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	int listener = socket(AF_UNIX, SOCK_SEQPACKET, 0), first, second = -1;
	uint64_t begin;

	strcpy(un.sun_path, ends->path);
	assert_int_equal(bind(listener, (struct sockaddr *)&un, sizeof(un)), 0);
	assert_int_equal(listen(listener, 0), 0);
	first = packet_connect(ends->path);
	assert_true(first >= 0);
	begin = now_ms();
	set_timer(5000);
	second = packet_connect(ends->path);
	set_timer(0);
	assert_int_equal(second, -ETIMEDOUT);
	assert_true(now_ms() - begin >= PACKET_MS);
	close(first);
	close(listener);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(message_comes_whole_with_its_descriptors),
		TEST(most_descriptors_come_and_more_are_refused),
		TEST(more_descriptors_than_there_is_room_for_are_lost_with_their_message),
		TEST(descriptors_that_a_process_may_not_have_are_lost_with_their_message),
		TEST(longer_message_is_lost_with_its_descriptors),
		TEST(descriptors_beside_no_bytes_are_lost),
		TEST(end_of_the_other_side_is_told),
		TEST(wait_ends_in_time_though_signals_come),
		TEST(message_to_who_takes_nothing_is_not_waited_for_without_end),
		TEST(listener_has_the_mode_that_was_asked_for),
		TEST(socket_of_nobody_is_replaced_and_one_of_a_listener_is_not),
		TEST(what_is_no_socket_stays),
		TEST(paths_that_no_socket_has_are_refused),
		TEST(one_of_many_replaces_the_socket_of_nobody),
		TEST(listener_that_accepts_nothing_is_not_waited_for_without_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
