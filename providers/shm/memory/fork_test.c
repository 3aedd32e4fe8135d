/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A fork in the middle of what is allocated and freed, as another thread's would be: it waits for no lock that is held
 * meanwhile. An allocator with fork handlers of its own may have taken its locks when it waits.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include "lists.h"
#include "process.h"
#include "region.h"

#define DEADLINE_S 20

static uint32_t forks;
static bool watched;

/* The linker leads platform_alloc() and platform_free() here. */
void *__real_platform_alloc(size_t len);
void *__wrap_platform_alloc(size_t len);
void __real_platform_free(void *ptr);
void __wrap_platform_free(void *ptr);

static void fork_now(void)
{
	int status = -1;
	pid_t pid;

	if (!watched)
		return;
	/* The alarm ends this process, and a fork that waits for ever is in it. */
	alarm(DEADLINE_S);
	pid = fork();
	if (!pid)
		_exit(0);
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	alarm(0);
	forks++;
}

void *__wrap_platform_alloc(size_t len)
{
	fork_now();
	return __real_platform_alloc(len);
}

void __wrap_platform_free(void *ptr)
{
	fork_now();
	__real_platform_free(ptr);
}

static int start(void **state)
{
	pshm_fork_watch();
	return 0;
}

static void a_process_is_found_without_an_allocation_under_the_lock(void **state)
{
	struct pshm_process *first, *again;

	forks = 0;
	watched = true;
	assert_int_equal(pshm_process_get((uint32_t)getpid(), &first), 0);
	assert_int_equal(pshm_process_get((uint32_t)getpid(), &again), 0);
	pshm_process_put(again);
	pshm_process_put(first);
	watched = false;
	assert_ptr_equal(first, again);
	assert_true(forks >= 2);
}

static void an_inbox_is_made_without_an_allocation_under_the_lock(void **state)
{
	const uint8_t nonce[PSHM_NONCE] = { 1 };
	struct pshm_own_inbox first, second;

	forks = 0;
	watched = true;
	assert_int_equal(pshm_inbox_create(nonce, &first), 0);
	assert_int_equal(pshm_inbox_create(nonce, &second), 0);
	pshm_inbox_destroy(&first);
	pshm_inbox_destroy(&second);
	watched = false;
	assert_true(forks >= 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_process_is_found_without_an_allocation_under_the_lock),
		cmocka_unit_test(an_inbox_is_made_without_an_allocation_under_the_lock),
	};

	return cmocka_run_group_tests(tests, start, NULL);
}
