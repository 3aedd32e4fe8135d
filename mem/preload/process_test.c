/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A program under libweft-mem.so (LD_PRELOAD) has threads that allocate, forks, starts other programs, and is limited
 * in its addresses: what each has, and whether peers reach it.
 *
 * usage: process_test [limited]: what is run with a limit
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>
#include "program.h"

#define MIB	(1u << 20)
#define THREADS 4

/* Not looked at by the compiler, which knows what malloc() returns. */
static void *volatile kept;

/* What other ways to start a process leave as it was. */
static void starting_programs_changes_nothing(void **state)
{
	char *argv[] = { (char *)"true", NULL };
	char *ptr = malloc(MIB);
	int status = -1;
	pid_t pid;

	assert_int_equal(posix_spawnp(&pid, "true", NULL, NULL, argv, environ), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(system("exit 3"), 3 << 8);
	pid = vfork();
	if (!pid) {
		execvp("true", argv);
		_exit(9);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_true(program_shown(ptr, MIB));
	free(ptr);
}

/* Its child has none of the arena: it ends instead of storing to this process's memory. */
static void the_child_of_a_raw_clone_can_not_reach_it(void **state)
{
	char *ptr = malloc(MIB);
	int status = -1;
	pid_t pid;

	*ptr = 1;
	pid = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
	assert_true(pid >= 0);
	if (!pid) {
		struct sigaction none = { .sa_handler = SIG_DFL };

		sigaction(SIGSEGV, &none, NULL);
		*(volatile char *)ptr = 2;
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(*ptr, 1);
	free(ptr);
}

struct worker {
	unsigned int seed;
	int rounds;
	_Atomic bool *end;
	/* NULL, or a block that is filled with its number */
	unsigned char *blocks[16];
	size_t lens[16];
};

static size_t random_len(struct worker *w)
{
	return (size_t)1 << (6 + rand_r(&w->seed) % 14) | ((size_t)rand_r(&w->seed) & 4095);
}

static bool block_good(const struct worker *w, int i)
{
	const unsigned char *block = w->blocks[i];

	if (!block)
		return true;
	for (size_t b = 0; b < w->lens[i]; b += 997)
		if (block[b] != (unsigned char)(i + 1))
			return false;
	return block[w->lens[i] - 1] == (unsigned char)(i + 1);
}

static bool work_once(struct worker *w)
{
	int i = rand_r(&w->seed) % 16, what = rand_r(&w->seed) % 4;
	bool good = block_good(w, i);
	void *ptr = w->blocks[i];
	size_t len = random_len(w);

	w->blocks[i] = NULL;
	if (what == 0) {
		free(ptr);
		return good;
	}
	if (what == 1 && ptr) {
		size_t old = w->lens[i];

		ptr = realloc(ptr, len);
		good = good && ptr && *(unsigned char *)ptr == i + 1 &&
		       ((unsigned char *)ptr)[(old < len ? old : len) - 1] == i + 1;
	} else {
		free(ptr);
		ptr = what == 2 ? calloc(1, len) : malloc(len);
		good = good && ptr && (what != 2 || program_is_zero(ptr, len < 300 ? len : 300));
	}
	if (ptr)
		memset(ptr, i + 1, len);
	w->lens[i] = len;
	w->blocks[i] = ptr;
	return good;
}

static void *work(void *arg)
{
	struct worker *w = arg;
	bool good = true;

	for (int n = 0; good && (w->end ? !atomic_load(w->end) : n < w->rounds); n++)
		good = work_once(w);
	for (int i = 0; i < 16; i++) {
		good = good && block_good(w, i);
		free(w->blocks[i]);
		w->blocks[i] = NULL;
	}
	return good ? NULL : w;
}

static void threads_keep_their_bytes(void **state)
{
	unsigned int seed = (unsigned int)time(NULL);
	struct worker workers[THREADS];
	pthread_t threads[THREADS];
	void *bad;

	print_message("seed %u\n", seed);
	for (int t = 0; t < THREADS; t++) {
		workers[t] = (struct worker){ .seed = t ? seed + (unsigned int)t : 1,
					      .rounds = 3000 };
		assert_int_equal(pthread_create(&threads[t], NULL, work, &workers[t]), 0);
	}
	for (int t = 0; t < THREADS; t++) {
		pthread_join(threads[t], &bad);
		assert_null(bad);
	}
}

/* Each thread allocates, frees and checks; a child checks what one thread had, and goes on. */
static void a_child_has_all_memory_and_its_own(void **state)
{
	struct worker workers[THREADS], mine = { .seed = 7, .rounds = 200 };
	pthread_t threads[THREADS];
	_Atomic bool end = false;
	bool good = true;
	int status;
	void *bad;

	for (int t = 0; t < THREADS; t++) {
		workers[t] = (struct worker){ .seed = 11 + (unsigned int)t, .end = &end };
		assert_int_equal(pthread_create(&threads[t], NULL, work, &workers[t]), 0);
	}
	for (int n = 0; n < 70; n++) {
		for (int i = 0; i < 20; i++)
			good = good && work_once(&mine);
		pid_t pid = fork();

		if (!pid) {
			mine.rounds = 30;
			_exit(work(&mine) ? 1 : 0);
		}
		good = good && pid > 0 && waitpid(pid, &status, 0) == pid && !status;
	}
	atomic_store(&end, true);
	for (int t = 0; t < THREADS; t++) {
		pthread_join(threads[t], &bad);
		good = good && !bad;
	}
	assert_true(good && !work(&mine));
}

static void after_a_fork_new_memory_is_shown(void **state)
{
	char *before = malloc(MIB), *after;
	int status = -1;
	pid_t pid;

	assert_true(program_shown(before, MIB));
	pid = fork();
	if (!pid) {
		/* so is the child's own */
		after = malloc(MIB);
		_exit(after && program_shown(after, MIB) && !program_shown(before, 1) ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_false(program_shown(before, 1));
	after = malloc(MIB);
	assert_true(program_shown(after, MIB));
	free(before);
	free(after);
}

static void after_many_forks_too(void **state)
{
	size_t len = 96 * MIB; /* more than was freed before */
	int status = -1;
	char *ptr;

	for (int n = 0; n < 100; n++) {
		pid_t pid = fork();

		if (!pid)
			_exit(0);
		assert_int_equal(waitpid(pid, &status, 0), pid);
	}
	ptr = malloc(len);
	assert_true(ptr && program_shown(ptr, len));
	free(ptr);
}

/* What is run with a limit. Returns 0, or what is wrong. */
static int be_limited(void)
{
	kept = malloc(MIB);
	return !kept ? 1 : program_arena() ? 2 : 0;
}

static void a_program_with_a_limit_has_none(void **state)
{
	static const int resources[] = { RLIMIT_AS, RLIMIT_DATA };
	struct rlimit limit = { .rlim_cur = 1 << 30, .rlim_max = RLIM_INFINITY };

	for (size_t i = 0; i < 2; i++) {
		int status = -1;
		pid_t pid = fork();

		if (!pid) {
			setrlimit(resources[i], &limit);
			execl("/proc/self/exe", "process_test", "limited", (char *)NULL);
			_exit(9);
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
	}
}

/* What a program does that limits its addresses late. Returns 0, or what is wrong. */
static int limit_itself(const char *before)
{
	struct rlimit limit = { .rlim_cur = (rlim_t)4 << 30, .rlim_max = RLIM_INFINITY };
	char *volatile small, *volatile mapped;
	int status = -1;
	pid_t pid;

	if (setrlimit(RLIMIT_AS, &limit))
		return 1;
	mapped = mmap(NULL, 64 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		      0);
	small = malloc(512 * MIB);
	if (mapped == MAP_FAILED || !small)
		return 2;
	mapped[0] = small[0] = 1;
	pid = fork();
	if (!pid)
		_exit(before[0] == 7 && before[MIB - 1] == 7 ? 0 : 1);
	if (waitpid(pid, &status, 0) != pid || status)
		return 3;
	free(small);
	small = malloc(MIB);
	return small ? 0 : 4;
}

static void a_program_may_limit_its_addresses(void **state)
{
	char *before = malloc(MIB);
	int status = -1;
	pid_t pid;

	memset(before, 7, MIB);
	pid = fork();
	if (!pid)
		_exit(limit_itself(before));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	free(before);
}

int main(int argc, char **argv)
{
	/* Those of many forks come last: memory from before them is used again. */
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(starting_programs_changes_nothing),
		cmocka_unit_test(a_program_with_a_limit_has_none),
		cmocka_unit_test(a_program_may_limit_its_addresses),
		cmocka_unit_test(the_child_of_a_raw_clone_can_not_reach_it),
		cmocka_unit_test(threads_keep_their_bytes),
		cmocka_unit_test(after_a_fork_new_memory_is_shown),
		cmocka_unit_test(a_child_has_all_memory_and_its_own),
		cmocka_unit_test(after_many_forks_too),
	};

	if (argc > 1)
		return program_start(NULL) ? 3 : be_limited();
	return cmocka_run_group_tests(tests, program_start, NULL);
}
