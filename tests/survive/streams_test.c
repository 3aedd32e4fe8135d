/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A process that was started without standard input, output and error opens endpoints of a provider: none of
 * their descriptors has the number of one, so that what the program prints later goes nowhere.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include "node.h"

#define LEN ((size_t)1 << 20)

static const char *provider;

/* Returns the first standard stream that is a descriptor, or -1. */
static int stream_open(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) >= 0)
			return fd;
	return -1;
}

/* Sends a message; where sending has to wait for the connection it makes progress. */
static void converse(struct node *from, struct node *to, fi_addr_t dest, uint8_t *buf)
{
	int done = 0;
	ssize_t ret;

	NODE_CHECK(NULL, !fi_trecv(to->ep, buf + LEN, LEN, NULL, FI_ADDR_UNSPEC, 1, 0, NULL));
	while ((ret = fi_tsend(from->ep, buf, LEN, NULL, dest, 1, NULL)) == -FI_EAGAIN)
		node_turn(from);
	NODE_CHECK(NULL, !ret);
	NODE_UNTIL(NULL, done == 2,
		   ((done += node_turn(from) == 1), (done += node_turn(to) == 1), false));
}

/* Returns 0, or 10 and the stream that has become a descriptor. */
static int run_without_streams(void)
{
	struct node_attr attr = { .provider = provider, .cq_size = 64, .sleeps = true };
	uint8_t *buf = calloc(2, LEN);
	struct node first, second;
	char name[NODE_NAME];
	int stream;

	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		close(fd);
	NODE_CHECK(NULL, buf && !node_open(&first, NULL, &attr));
	NODE_CHECK(NULL, !node_open(&second, NULL, &attr));
	node_name(&second, name);
	converse(&first, &second, node_knows(&first, name), buf);
	fi_cq_sread(first.cq, &first.entry, 1, NULL, 5);
	stream = stream_open();
	node_close(&second);
	node_close(&first);
	free(buf);
	return stream < 0 ? 0 : 10 + stream;
}

static void no_descriptor_is_a_standard_stream(void **state)
{
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (!pid)
		_exit(run_without_streams());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_descriptor_is_a_standard_stream),
	};

	if (argc < 2)
		return 2;
	provider = argv[1];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
