/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A program under libweft-mem.so and an allocator that is preloaded behind it and has fork handlers. With the argument
 * 'other' it is that of the tests, which has its locks in a fork before libweft-mem.so prepares for it, until
 * libweft-mem.so is done; else any.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#define KIB	   ((size_t)1 << 10)
#define DEADLINE_S 20
#define BLOCKS	   300
#define FORKS	   40

static void (*other_lock)(bool lock);
static sem_t asked, answered;
static bool watched, in_time;
static _Atomic bool over;
static void *blocks[BLOCKS];

/* Of many lengths: each is divided, and joined with others. */
static void large_use(unsigned int seed)
{
	for (size_t i = 0; i < BLOCKS; i++)
		blocks[i] = malloc((64 + (i * 37 + seed) % 200) * KIB);
	for (size_t i = 0; i < BLOCKS; i += 2)
		free(blocks[i]);
	for (size_t i = 1; i < BLOCKS; i += 2)
		free(blocks[i]);
}

/* Runs before libweft-mem.so's, as those of an allocator that was there later do. */
static void prepare(void)
{
	struct timespec end;

	if (!watched)
		return;
	other_lock(true);
	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += DEADLINE_S;
	sem_post(&asked);
	in_time = !sem_timedwait(&answered, &end);
	if (!in_time)
		other_lock(false);
}

/* Run after libweft-mem.so's. */
static void forked(void)
{
	if (watched)
		other_lock(false);
}

static void *use_once(void *arg)
{
	sem_wait(&asked);
	large_use(0);
	sem_post(&answered);
	return NULL;
}

/* Returns how a process of its own ends, which forks in turn. */
static int run(int (*part)(void))
{
	int status = -1;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid) {
		setpgid(0, 0);
		alarm(DEADLINE_S * 3);
		_exit(part());
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	/* a child that hangs in fork() is not ended by the alarm */
	kill(-pid, SIGKILL);
	return status;
}

/* Returns 0 if a child is forked and ends, or what is wrong. */
static int fork_once(void)
{
	int status = -1;
	pid_t pid = fork();

	if (pid < 0)
		return 1;
	if (!pid) {
		large_use(1);
		_exit(0);
	}
	return waitpid(pid, &status, 0) == pid && !status ? 0 : 2;
}

static int fork_while_locked(void)
{
	pthread_t thread;
	int err;

	/* chunks of before this fork end in the next one */
	large_use(2);
	err = fork_once();
	if (err || pthread_create(&thread, NULL, use_once, NULL))
		return 3;
	watched = true;
	err = fork_once();
	watched = false;
	pthread_join(thread, NULL);
	return err ? err : in_time ? 0 : 4;
}

static void a_fork_waits_for_no_allocator(void **state)
{
	if (!other_lock)
		skip();
	assert_int_equal(run(fork_while_locked), 0);
}

static void *use_always(void *arg)
{
	void *volatile small = NULL;

	while (!atomic_load(&over)) {
		large_use(3);
		for (size_t i = 0; i < BLOCKS; i++) {
			small = malloc(i * 16);
			free(small);
		}
	}
	return NULL;
}

static int fork_often(void)
{
	pthread_t thread;
	int err = 0;

	if (pthread_create(&thread, NULL, use_always, NULL))
		return 5;
	for (int i = 0; i < FORKS && !err; i++) {
		int status = -1;
		pid_t pid = fork();
		void *volatile small;

		if (!pid) {
			small = malloc(100);
			free(small);
			_exit(0);
		}
		err = waitpid(pid, &status, 0) == pid ? status : 6;
	}
	atomic_store(&over, true);
	pthread_join(thread, NULL);
	return err ? 7 : 0;
}

static void forks_and_allocations_of_another_thread_go_on(void **state)
{
	/* that one takes no locks by itself, and nothing back */
	if (other_lock)
		skip();
	assert_int_equal(run(fork_often), 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_fork_waits_for_no_allocator),
		cmocka_unit_test(forks_and_allocations_of_another_thread_go_on),
	};

	if (argc > 1 && !strcmp(argv[1], "other")) {
		*(void **)&other_lock = dlsym(RTLD_DEFAULT, "other_lock");
		if (!other_lock)
			return 1;
	}
	if (sem_init(&asked, 0, 0) || sem_init(&answered, 0, 0) ||
	    pthread_atfork(prepare, forked, forked))
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
