/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Programs under libweft-mem.so that leave little to it: no standard streams, a thread that is to be cancelled, a stack of
 * the least size. Each is a process that runs this file again, so that the heap starts there too.
 *
 * usage: thread_test [streams | cancelled CALL | small CALL]: what is run in that process; CALL is malloc, free or fork
 */
#include <limits.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#define MIB	   ((size_t)1 << 20)
#define BLOCKS	   64
#define DEADLINE_S 20

static char *self;
static char *blocks[BLOCKS];
static const char *call;
static _Atomic int ready, past;

/* Runs this file again. Returns how that ends. */
static int run(const char *what, const char *which)
{
	int status = -1;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid) {
		for (int fd = 0; !strcmp(what, "streams") && fd <= STDERR_FILENO; fd++)
			close(fd);
		execl(self, self, what, which, (char *)NULL);
		_exit(98);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static void what_is_printed_nowhere_is_not_in_memory(void **state)
{
	assert_int_equal(run("streams", NULL), 0);
}

static void a_thread_is_not_cancelled_in_a_call_that_is_no_such_point(void **state)
{
	assert_int_equal(run("cancelled", "malloc"), 0);
	assert_int_equal(run("cancelled", "free"), 0);
	assert_int_equal(run("cancelled", "fork"), 0);
}

static void the_least_stack_is_enough(void **state)
{
	assert_int_equal(run("small", "malloc"), 0);
	assert_int_equal(run("small", "free"), 0);
	assert_int_equal(run("small", "fork"), 0);
}

/* In the other process. */

static int be_without_streams(void)
{
	char *ptr = calloc(4, MIB);

	if (!ptr)
		return 1;
	for (int i = 0; i < 2000; i++) {
		printf("a line on standard output\n");
		fprintf(stderr, "a line on standard error\n");
	}
	fflush(stdout);
	for (size_t i = 0; i < 4 * MIB; i++)
		if (ptr[i])
			return 2;
	return 0;
}

static int fork_once(void)
{
	int status = -1;
	pid_t pid = fork();

	if (!pid)
		_exit(0);
	return pid < 0 || waitpid(pid, &status, 0) != pid || status;
}

/* Has memory to be freed or forked with. What was allocated before a fork is given back as it is freed. */
static int allocate(void)
{
	if (!strcmp(call, "malloc"))
		return 0;
	for (int i = 0; i < BLOCKS; i++) {
		blocks[i] = malloc(MIB);
		if (!blocks[i])
			return 1;
		memset(blocks[i], 1, MIB);
	}
	return strcmp(call, "free") ? 0 : fork_once();
}

/* The process that is forked here says only whether it is there: waitpid() is a cancellation point. */
static void make_call(void)
{
	if (!strcmp(call, "malloc"))
		blocks[0] = malloc(MIB);
	else if (!strcmp(call, "fork") && !fork())
		_exit(0);
	for (int i = 0; !strcmp(call, "free") && i < BLOCKS; i++)
		free(blocks[i]);
}

static void *thread_main(void *arg)
{
	while (!ready)
		;
	make_call();
	past = 1;
	pthread_testcancel();
	return NULL;
}

static int be_cancelled(void)
{
	pthread_t thread;
	void *result = NULL;
	char *ptr;

	if (allocate() || pthread_create(&thread, NULL, thread_main, NULL) ||
	    pthread_cancel(thread))
		return 1;
	ready = 1;
	if (pthread_join(thread, &result) || result != PTHREAD_CANCELED || !past)
		return 2;
	/* nobody has the locks */
	ptr = malloc(MIB);
	free(ptr);
	return ptr ? fork_once() : 3;
}

static int be_small(void)
{
	pthread_attr_t attr;
	pthread_t thread;

	ready = 1;
	if (allocate() || pthread_attr_init(&attr) ||
	    pthread_attr_setstacksize(&attr, PTHREAD_STACK_MIN) ||
	    pthread_create(&thread, &attr, thread_main, NULL))
		return 1;
	return pthread_join(thread, NULL) || !past ? 2 : 0;
}

static int be(const char *what)
{
	/* a lock that nobody gives back is waited for */
	alarm(DEADLINE_S);
	if (!strcmp(what, "streams"))
		return be_without_streams();
	return !strcmp(what, "small") ? be_small() : be_cancelled();
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_printed_nowhere_is_not_in_memory),
		cmocka_unit_test(a_thread_is_not_cancelled_in_a_call_that_is_no_such_point),
		cmocka_unit_test(the_least_stack_is_enough),
	};

	self = argv[0];
	call = argc > 2 ? argv[2] : "";
	if (argc > 1)
		return be(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
