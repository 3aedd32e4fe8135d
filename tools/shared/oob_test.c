/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The out-of-band channel: blobs, barriers, and sides that go away. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <endian.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "oob.h"

struct ends {
	struct oob a;
	struct oob b;
	char got[OOB_BLOB_MAX];
	size_t got_len;
	int rc;
};

static int setup(void **state)
{
	static struct ends ends;
	int fds[2];

	memset(&ends, 0, sizeof(ends));
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, fds))
		return -1;
	oob_adopt(&ends.a, fds[0]);
	oob_adopt(&ends.b, fds[1]);
	*state = &ends;
	return 0;
}

static int teardown(void **state)
{
	struct ends *ends = *state;

	oob_close(&ends->a);
	oob_close(&ends->b);
	return 0;
}

static void *swap_b(void *arg)
{
	struct ends *ends = arg;

	ends->got_len = sizeof(ends->got);
	ends->rc = oob_exchange(&ends->b, "from b", 6, ends->got, &ends->got_len);
	return NULL;
}

static void both_sides_get_the_others_blob(void **state)
{
	struct ends *ends = *state;
	char blob[OOB_BLOB_MAX], in[64];
	size_t len = sizeof(in);
	pthread_t thread;

	memset(blob, 'a', sizeof(blob));
	pthread_create(&thread, NULL, swap_b, ends);
	assert_int_equal(oob_exchange(&ends->a, blob, sizeof(blob), in, &len), 0);
	pthread_join(thread, NULL);
	assert_int_equal(len, 6);
	assert_memory_equal(in, "from b", 6);
	assert_int_equal(ends->rc, 0);
	assert_int_equal(ends->got_len, sizeof(blob));
	assert_memory_equal(ends->got, blob, sizeof(blob));
}

static void a_blob_that_does_not_fit_is_not_read(void **state)
{
	struct ends *ends = *state;
	uint32_t forged = htole32(0xffffffff);
	char in[16];
	size_t len = sizeof(in);

	assert_int_equal(send(ends->b.fd, &forged, sizeof(forged), 0), sizeof(forged));
	assert_int_equal(oob_exchange(&ends->a, "x", 1, in, &len), -EMSGSIZE);
}

static void a_side_that_is_silent_is_an_error_where_there_is_a_limit(void **state)
{
	const struct timeval limit = { .tv_usec = 1000 };
	struct ends *ends = *state;
	char in[16];
	size_t len = sizeof(in);

	assert_int_equal(setsockopt(ends->a.fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)),
			 0);
	assert_int_equal(oob_exchange(&ends->a, "x", 1, in, &len), -ETIMEDOUT);
}

static void a_side_that_left_is_an_error_and_no_signal(void **state)
{
	struct ends *ends = *state;
	char in[16];
	size_t len = sizeof(in);

	assert_false(oob_gone(&ends->a));
	oob_close(&ends->b);
	assert_true(oob_gone(&ends->a));
	assert_int_equal(oob_exchange(&ends->a, "x", 1, in, &len), -EPIPE);
}

static void *barrier_b(void *arg)
{
	struct ends *ends = arg;

	ends->rc = oob_barrier(&ends->b, -ENOMEM);
	return NULL;
}

static void a_barrier_tells_that_the_other_gave_up(void **state)
{
	struct ends *ends = *state;
	pthread_t thread;

	pthread_create(&thread, NULL, barrier_b, ends);
	assert_int_equal(oob_barrier(&ends->a, 0), -ENOMEM);
	pthread_join(thread, NULL);
	assert_int_equal(ends->rc, 0);
}

/* A server that begins to listen when its client has been refused. */
static struct {
	struct oob oob;
	pthread_t thread;
	unsigned port;
	unsigned refused;
	int rc;
} server;

int __real_nanosleep(const struct timespec *wanted, struct timespec *left);
int __wrap_nanosleep(const struct timespec *wanted, struct timespec *left);

static void *listen_there(void *arg)
{
	server.rc = oob_listen(&server.oob, NULL, server.port);
	return NULL;
}

/* The client rests between two attempts. */
int __wrap_nanosleep(const struct timespec *wanted, struct timespec *left)
{
	if (!server.refused++)
		pthread_create(&server.thread, NULL, listen_there, NULL);
	return __real_nanosleep(wanted, left);
}

/*
 * Holds a port without listening: the kernel gives it to no other program, refuses connections to
 * it, and lets a server that sets SO_REUSEADDR have it too.
 */
static int hold_port(unsigned *port)
{
	struct sockaddr_in any = { .sin_family = AF_INET };
	socklen_t len = sizeof(any);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;

	assert_true(fd >= 0);
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)), 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&any, sizeof(any)), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&any, &len), 0);
	*port = ntohs(any.sin_port);
	return fd;
}

static void a_client_waits_for_its_server(void **state)
{
	struct oob client;
	int held = hold_port(&server.port);

	assert_int_equal(oob_connect(&client, "127.0.0.1", server.port, 10000), 0);
	assert_true(server.refused > 0);
	pthread_join(server.thread, NULL);
	assert_int_equal(server.rc, 0);
	/* Both ends in the plain form, though the server's socket serves IPv6 too. */
	assert_string_equal(client.local, "127.0.0.1");
	assert_string_equal(server.oob.local, "127.0.0.1");
	oob_close(&client);
	oob_close(&server.oob);
	close(held);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(both_sides_get_the_others_blob, setup, teardown),
		cmocka_unit_test_setup_teardown(a_blob_that_does_not_fit_is_not_read, setup,
						teardown),
		cmocka_unit_test_setup_teardown(
			a_side_that_is_silent_is_an_error_where_there_is_a_limit, setup,
			teardown),
		cmocka_unit_test_setup_teardown(a_side_that_left_is_an_error_and_no_signal,
						setup, teardown),
		cmocka_unit_test_setup_teardown(a_barrier_tells_that_the_other_gave_up, setup,
						teardown),
		cmocka_unit_test(a_client_waits_for_its_server),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
