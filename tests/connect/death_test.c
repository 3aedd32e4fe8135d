/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Connections whose other end is killed, and what anyone may send to the port of a listener:
 * bytes that are no request, half of one, nothing at all. The one at the port notices, and
 * serves the others.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "party.h"
#include <cmocka.h>

#define STRANGERS 300
#define CROWD	  800
#define SEED	  20261127u

static struct party listener, caller, callee;

static int setup(void **state)
{
	party_listen(&listener);
	return 0;
}

static int teardown(void **state)
{
	party_close_all();
	return 0;
}

static void kill_and_reap(pid_t pid)
{
	int status;

	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
}

/* A process of its own; what it does is @act, with an end of a socket pair. */
static pid_t process(void (*act)(int fd), int *fd)
{
	int ends[2];
	pid_t pid;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	fflush(NULL);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		close(ends[0]);
		act(ends[1]);
		_exit(0);
	}
	close(ends[1]);
	*fd = ends[0];
	return pid;
}

/* Connects to the name that it reads, says so, and waits for its end. */
static void call(int fd)
{
	unsigned char name[64];
	struct heard heard;
	static struct party p;

	if (read(fd, name, sizeof(name)) != sizeof(name))
		_exit(1);
	party_open(&p, NULL);
	if (fi_connect(p.ep, name, NULL, 0))
		_exit(2);
	party_expect(&p, FI_CONNECTED, &heard);
	if (write(fd, "c", 1) != 1)
		_exit(3);
	pause();
}

/* Listens, tells where, accepts one, and waits for its end. */
static void answer(int fd)
{
	static struct party l, p;
	struct heard heard;

	party_listen(&l);
	if (write(fd, l.name, sizeof(l.name)) != sizeof(l.name))
		_exit(1);
	party_expect(&l, FI_CONNREQ, &heard);
	party_open_in(&p, &l, heard.cm.info);
	if (fi_accept(p.ep, NULL, 0))
		_exit(2);
	party_expect(&p, FI_CONNECTED, &heard);
	pause();
}

static void a_caller_that_is_killed_is_a_shutdown(void **state)
{
	char in[16], byte;
	struct heard heard;
	void *context;
	pid_t pid;
	int fd;

	party_close(&listener); /* the child has a library of its own */
	pid = process(call, &fd);
	party_listen(&listener);
	assert_int_equal(write(fd, listener.name, sizeof(listener.name)), sizeof(listener.name));
	party_expect(&listener, FI_CONNREQ, &heard);
	party_open_in(&callee, &listener, heard.cm.info);
	assert_int_equal(fi_accept(callee.ep, NULL, 0), 0);
	party_expect(&callee, FI_CONNECTED, &heard);
	assert_int_equal(read(fd, &byte, 1), 1);
	assert_int_equal(fi_recv(callee.ep, in, sizeof(in), NULL, 0, in), 0);
	kill_and_reap(pid);
	party_expect(&callee, FI_SHUTDOWN, &heard);
	assert_int_equal(party_ends(&callee, &context), FI_ECANCELED);
	assert_ptr_equal(context, in);
	close(fd);
}

static void a_callee_that_is_killed_is_a_shutdown(void **state)
{
	static char big[4 << 20];
	unsigned char name[sizeof(listener.name)];
	struct heard heard;
	void *context;
	pid_t pid;
	int fd;

	party_close(&listener);
	pid = process(answer, &fd);
	assert_int_equal(read(fd, name, sizeof(name)), sizeof(name));
	party_open(&caller, NULL);
	assert_int_equal(fi_connect(caller.ep, name, NULL, 0), 0);
	party_expect(&caller, FI_CONNECTED, &heard);
	assert_int_equal(fi_send(caller.ep, big, sizeof(big), NULL, 0, big), 0);
	kill_and_reap(pid);
	party_expect(&caller, FI_SHUTDOWN, &heard);
	assert_int_equal(party_ends(&caller, &context), FI_ECANCELED);
	close(fd);
}

static void a_listener_that_is_killed_is_an_error(void **state)
{
	unsigned char name[sizeof(listener.name)];
	struct heard heard;
	pid_t pid;
	int fd;

	party_close(&listener);
	pid = process(answer, &fd);
	assert_int_equal(read(fd, name, sizeof(name)), sizeof(name));
	assert_int_equal(kill(pid, SIGSTOP), 0);
	party_open(&caller, NULL);
	assert_int_equal(fi_connect(caller.ep, name, NULL, 0), 0);
	assert_true(party_quiet(&caller));
	kill_and_reap(pid);
	party_expect(&caller, PARTY_ERROR, &heard);
	assert_true(heard.err == FI_ECONNRESET || heard.err == FI_ECONNREFUSED);
	close(fd);
}

static void a_child_that_closes_what_it_inherits_harms_nothing(void **state)
{
	char in[8] = "", out[8] = "payload", byte = 0;
	struct heard heard;
	static struct party open;
	void *context;
	pid_t pid;
	int status;

	party_pair(&listener, &caller, &callee);
	/* A request that is not answered yet, which is not the child's to answer. */
	party_open(&open, NULL);
	assert_int_equal(fi_connect(open.ep, listener.name, NULL, 0), 0);
	party_expect(&listener, FI_CONNREQ, &heard);
	fflush(NULL);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		bool refused = fi_send(caller.ep, &byte, 1, NULL, 0, NULL) == -FI_EOPBADSTATE &&
			       fi_shutdown(caller.ep, 0) == -FI_EOPBADSTATE &&
			       fi_reject(listener.pep, heard.cm.info->handle, NULL, 0) ==
				       -FI_EINVAL;

		party_close(&open);
		party_close(&caller);
		party_close(&callee);
		party_close(&listener);
		_exit(!refused);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(fi_inject(caller.ep, out, sizeof(out), 0), 0);
	assert_int_equal(fi_recv(callee.ep, in, sizeof(in), NULL, 0, in), 0);
	assert_int_equal(party_ends(&callee, &context), 0);
	assert_string_equal(in, out);
	party_close(&callee);
	party_expect(&caller, FI_SHUTDOWN, &(struct heard){ .err = 0 });
	party_open_in(&callee, &listener, heard.cm.info);
	assert_int_equal(fi_accept(callee.ep, NULL, 0), 0);
	party_expect(&open, FI_CONNECTED, &heard);
	party_close(&open);
}

static int stranger(const void *bytes, size_t len)
{
	struct sockaddr_in in;
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	memcpy(&in, listener.name, sizeof(in));
	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&in, sizeof(in)), 0);
	if (len)
		assert_int_equal(send(fd, bytes, len, MSG_NOSIGNAL), len);
	return fd;
}

static void exchange(struct party *from, struct party *to)
{
	char in[8] = "", out[8] = "payload";
	void *context;

	assert_int_equal(fi_inject(from->ep, out, sizeof(out), 0), 0);
	assert_int_equal(fi_recv(to->ep, in, sizeof(in), NULL, 0, in), 0);
	assert_int_equal(party_ends(to, &context), 0);
	assert_string_equal(in, out);
}

/* The listener still serves who speaks its protocol. */
static void assert_serves(void)
{
	party_pair(&listener, &caller, &callee);
	exchange(&caller, &callee);
}

static void garbage_at_the_port_is_no_request(void **state)
{
	unsigned char bytes[600];
	uint32_t x = SEED;

	for (int i = 0; i < STRANGERS; i++) {
		for (size_t j = 0; j < sizeof(bytes); j++) {
			x = x * 1664525 + 1013904223;
			bytes[j] = (unsigned char)(x >> 24);
		}
		close(stranger(bytes, 1 + x % (sizeof(bytes) - 1)));
	}
	assert_true(party_quiet(&listener));
	assert_serves();
}

static void strangers_that_say_nothing_keep_no_one_out(void **state)
{
	int fds[100];
	int i;

	for (i = 0; i < 100; i++)
		fds[i] = stranger("tcw", i % 4);
	assert_true(party_quiet(&listener));
	assert_serves();
	for (i = 0; i < 100; i++)
		close(fds[i]);
}

/* Connects again who was dropped. */
static void strangers_return(int *fds, int cnt)
{
	char byte;

	for (int i = 0; i < cnt; i++) {
		if (recv(fds[i], &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && errno == EAGAIN)
			continue;
		close(fds[i]);
		fds[i] = stranger(NULL, 0);
	}
}

/* Twice as many as have a place, so that they would keep it for two of the times it is theirs. */
static void silent_strangers_that_return_keep_no_one_out(void **state)
{
	struct rlimit limit;
	static struct party late;
	struct heard heard;
	struct timespec begin, end;
	int fds[CROWD];

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	if (limit.rlim_max < 2 * CROWD) {
		print_message("at most %lu descriptors\n", (unsigned long)limit.rlim_max);
		skip();
	}
	limit.rlim_cur = 2 * CROWD;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	party_pair(&listener, &caller, &callee);
	for (int i = 0; i < CROWD; i++)
		fds[i] = stranger(NULL, 0);
	assert_true(party_quiet(&listener));
	clock_gettime(CLOCK_MONOTONIC, &begin);
	party_open(&late, NULL);
	assert_int_equal(fi_connect(late.ep, listener.name, NULL, 0), 0);
	while (party_quiet(&listener)) {
		strangers_return(fds, CROWD);
		exchange(&caller, &callee);
		clock_gettime(CLOCK_MONOTONIC, &end);
		assert_in_range(end.tv_sec - begin.tv_sec, 0, 11);
	}
	party_expect(&listener, FI_CONNREQ, &heard);
	assert_int_equal(fi_reject(listener.pep, heard.cm.info->handle, NULL, 0), 0);
	fi_freeinfo(heard.cm.info);
	party_close(&late);
	for (int i = 0; i < CROWD; i++)
		close(fds[i]);
}

/* Takes the first bytes of a real request, to send a part of it: the rest may never come. */
static size_t real_request(unsigned char *bytes, size_t room)
{
	struct sockaddr_in in = { .sin_family = AF_INET };
	socklen_t len = sizeof(in);
	int fd = socket(AF_INET, SOCK_STREAM, 0), conn;
	static struct party p;
	size_t got = 0;
	ssize_t n;

	inet_pton(AF_INET, "127.0.0.1", &in.sin_addr);
	assert_int_equal(bind(fd, (struct sockaddr *)&in, sizeof(in)), 0);
	assert_int_equal(listen(fd, 1), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&in, &len), 0);
	party_open(&p, NULL);
	assert_int_equal(fi_connect(p.ep, &in, "hello", 5), 0);
	conn = accept(fd, NULL, NULL);
	assert_true(conn >= 0);
	while (party_quiet(&p)) {
		n = recv(conn, bytes + got, room - got, MSG_DONTWAIT);
		if (n > 0)
			got += (size_t)n;
		else if (got)
			break;
	}
	party_close(&p);
	close(conn);
	close(fd);
	return got;
}

static void a_request_is_cut_anywhere_and_bent_anywhere(void **state)
{
	unsigned char whole[1024], bent[1024];
	size_t len = real_request(whole, sizeof(whole)), i;
	struct fi_eq_cm_entry cm;
	uint32_t event;
	ssize_t ret;

	assert_true(len > 100 && len < sizeof(whole));
	for (i = 0; i < len; i++) {
		close(stranger(whole, i));
		memcpy(bent, whole, len);
		bent[i] ^= (unsigned char)(1 + i % 255);
		close(stranger(bent, len));
		if (i % 16)
			continue;
		/* Some of them are requests of their own: their senders have gone. */
		while (!party_quiet(&listener)) {
			ret = fi_eq_read(listener.eq, &event, &cm, sizeof(cm), 0);
			assert_int_equal(ret, sizeof(cm));
			assert_int_equal(event, FI_CONNREQ);
			assert_int_equal(fi_reject(listener.pep, cm.info->handle, NULL, 0), 0);
			fi_freeinfo(cm.info);
		}
	}
	while (!party_quiet(&listener)) {
		assert_true(fi_eq_read(listener.eq, &event, &cm, sizeof(cm), 0) > 0);
		party_open_in(&callee, &listener, cm.info);
		assert_int_equal(fi_accept(callee.ep, NULL, 0), 0);
		/* Its sender has gone, which is seen before or after the answer. */
		assert_false(party_quiet(&callee));
		party_close(&callee);
	}
	assert_serves();
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_caller_that_is_killed_is_a_shutdown),
		TEST(a_callee_that_is_killed_is_a_shutdown),
		TEST(a_listener_that_is_killed_is_an_error),
		TEST(a_child_that_closes_what_it_inherits_harms_nothing),
		TEST(garbage_at_the_port_is_no_request),
		TEST(strangers_that_say_nothing_keep_no_one_out),
		TEST(silent_strangers_that_return_keep_no_one_out),
		TEST(a_request_is_cut_anywhere_and_bent_anywhere),
	};

	print_message("seed %u\n", SEED);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
