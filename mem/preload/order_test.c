/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A program under libweft-mem.so (LD_PRELOAD) that installs its fork handlers before any library of its own could,
 * and whose other threads allocate under the lock that these handlers take.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#define MIB	   ((size_t)1 << 20)
#define DEADLINE_S 20

static sem_t asked, answered;
static bool watched, in_time;
/* Not looked at by the compiler, which knows what malloc() returns. */
static void *volatile memory;

/* What a thread does under the program's lock, which the forking one waits for. */
static void prepare(void)
{
	struct timespec end;

	if (!watched)
		return;
	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += DEADLINE_S;
	sem_post(&asked);
	in_time = !sem_timedwait(&answered, &end);
}

static void nothing(void)
{
}

static void install(int argc, char **argv, char **env)
{
	pthread_atfork(prepare, nothing, nothing);
}

/* They run before the constructors of all libraries but one. */
__attribute__((section(".preinit_array"), used)) static void (*const first)(int, char **,
									    char **) = install;

static void *allocate(void *arg)
{
	sem_wait(&asked);
	memory = malloc(2 * MIB);
	free(memory);
	sem_post(&answered);
	return NULL;
}

static void a_lock_of_the_program_comes_before_the_heaps(void **state)
{
	pthread_t thread;
	int status = -1;
	pid_t pid;

	memory = malloc(MIB);
	free(memory);
	assert_int_equal(sem_init(&asked, 0, 0) | sem_init(&answered, 0, 0), 0);
	assert_int_equal(pthread_create(&thread, NULL, allocate, NULL), 0);
	watched = true;
	pid = fork();
	assert_true(pid >= 0);
	if (!pid)
		_exit(0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_true(in_time);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_lock_of_the_program_comes_before_the_heaps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
