/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A fork while another thread is in the core, which the child does not have: what the child calls, and its exit, wait
 * for no lock of that thread.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include <rdma/providers/fi_prov.h>

#include "fake_provider.h"
#include "registry.h"
#include "start.h"

/* So long another thread stays where it is, unless it has seen the fork before */
#define STAYS_NS   300000000u
#define DEADLINE_S 20

/* This thread stays in the next allocation that the core makes. */
static _Thread_local bool stays;
static atomic_bool inside, forked;

/* The linker leads what the core allocates with its locks here. */
void *__real_calloc(size_t cnt, size_t len);
void *__wrap_calloc(size_t cnt, size_t len);
char *__real_strdup(const char *text);
char *__wrap_strdup(const char *text);

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void stay(void)
{
	uint64_t end = now_ns() + STAYS_NS;

	if (!stays)
		return;
	stays = false;
	atomic_store(&inside, true);
	while (!atomic_load(&forked) && now_ns() < end)
		sched_yield();
}

void *__wrap_calloc(size_t cnt, size_t len)
{
	stay();
	return __real_calloc(cnt, len);
}

char *__wrap_strdup(const char *text)
{
	stay();
	return __real_strdup(text);
}

static void *call_and_stay(void *arg)
{
	void (*const *call)(void) = arg;

	stays = true;
	(*call)();
	return NULL;
}

/* Forks while another thread is in a call, which the child makes too before it exits. */
static void assert_child_goes_on(void (*call)(void))
{
	pthread_t thread;
	int status = -1;
	pid_t pid;

	atomic_store(&inside, false);
	atomic_store(&forked, false);
	assert_int_equal(pthread_create(&thread, NULL, call_and_stay, &call), 0);
	while (!atomic_load(&inside))
		sched_yield();
	pid = fork();
	if (!pid) {
		alarm(DEADLINE_S);
		call();
		/* as exit() does, without what looks for leaks of threads that are not here, at _exit() too */
		core_stop();
		syscall(SYS_exit_group, 0);
	}
	atomic_store(&forked, true);
	assert_true(pid > 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void list_settings(void)
{
	struct fi_param *list;
	int cnt;

	if (!fi_getparams(&list, &cnt))
		fi_freeparams(list);
}

static void list_providers(void)
{
	struct registry_entry **list;
	size_t cnt;

	list = registry_list(&cnt);
	if (list)
		registry_list_free(list, cnt);
}

static void a_child_of_a_process_that_starts_goes_on(void **state)
{
	core_stop();
	assert_child_goes_on(core_start);
}

static void a_child_reads_settings_that_others_read(void **state)
{
	core_start();
	assert_child_goes_on(list_settings);
}

static void a_child_lists_providers_that_others_list(void **state)
{
	fake_register(0, "tcp", 1);
	assert_child_goes_on(list_providers);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fake_setup, fake_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_child_of_a_process_that_starts_goes_on),
		TEST(a_child_reads_settings_that_others_read),
		TEST(a_child_lists_providers_that_others_list),
	};

	return cmocka_run_group_tests_name("fork", tests, NULL, NULL);
}
