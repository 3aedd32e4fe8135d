/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Programs under libweft-mem.so (LD_PRELOAD), with FI_MEM_DECAY=1: one that stops allocating, one that forks
 * while the keeper gives back, one that forbids threads, and one in a control group with little memory.
 *
 * usage: keep_test [full|alone]: what is run in that control group; without threads
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>
#include "arena.h"
#include "group.h"

#define MIB	   ((size_t)1 << 20)
#define DEADLINE_S 20
#define THREADS	   2
/* So long, forks meet several rounds of the keeper. */
#define FORKING_S 3
/* What a process returns that can't be kept from making threads. */
#define REFUSED 77

static char *self;
/* Not looked at by the compiler, which knows what malloc() returns. */
static char *volatile kept;

static bool resident(const void *addr)
{
	unsigned char vec = 0;

	assert_int_equal(mincore((void *)(uintptr_t)addr, 1, &vec), 0);
	return vec & 1;
}

static void a_program_that_stops_allocating_gives_back(void **state)
{
	time_t end = time(NULL) + DEADLINE_S;
	char *used = malloc(MIB), *at;
	bool seen;

	memset(used, 2, MIB);
	/* it is kept at first, whenever this thread is not kept from running for a second */
	do {
		kept = malloc(32 * MIB);
		assert_non_null(kept);
		memset(kept, 1, 32 * MIB);
		at = (char *)(((uintptr_t)kept + MIB) & ~(MIB - 1));
		free(kept);
		seen = resident(at);
	} while (!seen && time(NULL) < end);
	assert_true(seen);
	while ((resident(at) || resident(at + 30 * MIB)) && time(NULL) < end)
		usleep(1000);
	assert_false(resident(at));
	assert_false(resident(at + 30 * MIB));
	for (size_t i = 0; i < MIB; i++)
		assert_int_equal(used[i], 2);
	free(used);
}

/*
 * The end of a block has gone and its beginning has not, whenever the keeper is not kept from running
 * for most of the second. What is allocated then is zero where it has to be.
 */
static void a_large_block_goes_piece_by_piece(void **state)
{
	time_t end = time(NULL) + DEADLINE_S;
	size_t len = 64 * MIB;
	bool seen = false;
	char *addr;

	while (!seen && time(NULL) < end) {
		kept = malloc(len);
		assert_non_null(kept);
		memset(kept, 1, len);
		addr = (char *)((uintptr_t)kept & ~(MIB - 1));
		free(kept);
		while (resident(addr + len - MIB) && time(NULL) < end)
			usleep(1000);
		seen = resident(addr + 2 * MIB);
		kept = calloc(1, len);
		for (size_t i = 0; i < len; i += 8)
			assert_int_equal(*(volatile uint64_t *)(kept + i), 0);
		free(kept);
	}
	assert_true(seen);
}

/* Allocates and frees until it is told to end. */
static void *churn(void *arg)
{
	_Atomic bool *end = arg;

	for (size_t n = 0; !atomic_load(end); n++) {
		size_t len = (1 + n % 8) * MIB;
		char *volatile addr = malloc(len);

		if (!addr)
			return arg;
		memset(addr, (int)n, len);
		free(addr);
	}
	return NULL;
}

/* In a child. Returns 0, or what is wrong. */
static int child_allocates(const char *before)
{
	char *volatile addr;

	alarm(DEADLINE_S);
	for (size_t i = 0; i < MIB; i += 4096)
		if (before[i] != 3)
			return 1;
	for (int i = 0; i < 4; i++) {
		addr = malloc(4 * MIB);
		if (!addr)
			return 2;
		memset(addr, i, 4 * MIB);
		free(addr);
	}
	return 0;
}

static void children_allocate_whatever_the_keeper_does(void **state)
{
	time_t end = time(NULL) + FORKING_S;
	_Atomic bool stop = false;
	pthread_t threads[THREADS];
	char *before = malloc(MIB);
	int status = 0, cnt = 0;
	void *failed;

	memset(before, 3, MIB);
	for (int t = 0; t < THREADS; t++)
		assert_int_equal(pthread_create(&threads[t], NULL, churn, &stop), 0);
	for (; !status && time(NULL) < end; cnt++) {
		pid_t pid = fork();

		assert_true(pid >= 0);
		if (!pid)
			_exit(child_allocates(before));
		assert_int_equal(waitpid(pid, &status, 0), pid);
	}
	atomic_store(&stop, true);
	for (int t = 0; t < THREADS; t++) {
		assert_int_equal(pthread_join(threads[t], &failed), 0);
		assert_null(failed);
	}
	print_message("%d forks\n", cnt);
	assert_int_equal(status, 0);
	free(before);
}

static void a_fork_keeps_nothing_of_what_is_free(void **state)
{
	char *at, *used = malloc(MIB);
	int status = -1;
	pid_t pid;

	memset(used, 1, MIB);
	kept = malloc(20 * MIB);
	memset(kept, 1, 20 * MIB);
	at = (char *)(((uintptr_t)kept + MIB) & ~(MIB - 1));
	free(kept);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid)
		_exit(used[0] == 1 ? 0 : 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_false(resident(at));
	assert_false(resident(at + 18 * MIB));
	free(used);
}

/* Returns the chunks that there are. */
static uint32_t chunks(void)
{
	arena_export *export = (arena_export *)dlsym(RTLD_DEFAULT, ARENA_EXPORT);
	struct arena *arena = export(ARENA_VERSION, sizeof(*arena));
	uint32_t cnt = 0;

	platform_lock(&arena->lock);
	for (uint32_t i = 0; i < arena->chunk_cnt; i++)
		cnt += arena->chunks[i].len != 0;
	platform_unlock(&arena->lock);
	return cnt;
}

/* Memory of before the last fork is freed after it, so that two generations have some at any time. */
static void chunks_end_when_what_a_fork_left_is_freed(void **state)
{
	char *before = NULL;
	uint32_t most = 0;
	time_t end;
	int status;

	for (int i = 0; i < 200; i++) {
		char *volatile addr = malloc(MIB);
		pid_t pid = fork();

		assert_true(addr && pid >= 0);
		if (!pid)
			_exit(0);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
		memset(addr, i, MIB);
		free(before);
		before = addr;
		most = chunks() > most ? chunks() : most;
	}
	free(before);
	/* far fewer than there were forks */
	assert_in_range(most, 1, 20);
	end = time(NULL) + DEADLINE_S;
	while (chunks() > 2 && time(NULL) < end)
		usleep(1000);
	assert_in_range(chunks(), 0, 2);
}

/* No thread can be made from here on. */
static bool forbid_clone(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(filter) / sizeof(filter[0]), filter };

	return !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) &&
	       !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

/* Returns 0, or what is wrong. */
static int be_alone(void)
{
	char *at;

	if (!forbid_clone())
		return REFUSED;
	for (int i = 0; i < 3; i++) {
		kept = malloc(32 * MIB);
		if (!kept)
			return 1;
		memset(kept, 1, 32 * MIB);
		at = (char *)(((uintptr_t)kept + MIB) & ~(MIB - 1));
		free(kept);
		if (resident(at) || resident(at + 30 * MIB))
			return 2;
	}
	return 0;
}

static void a_program_that_forbids_threads_keeps_nothing(void **state)
{
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid) {
		execl(self, self, "alone", (char *)NULL);
		_exit(98);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == REFUSED) {
		printf("no filter of system calls\n");
		skip();
	}
	assert_int_equal(status, 0);
}

/* 160 MiB are used and 64 have been free when 80 more are wanted, of 256. */
static int be_full(void)
{
	char *more;

	kept = malloc(160 * MIB);
	if (!kept)
		return 1;
	memset(kept, 1, 160 * MIB);
	kept = malloc(64 * MIB);
	if (!kept)
		return 2;
	memset(kept, 1, 64 * MIB);
	free(kept);
	more = mmap(NULL, 80 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (more == MAP_FAILED)
		return 3;
	memset(more, 1, 80 * MIB);
	return 0;
}

static void what_is_kept_leaves_room_in_a_control_group(void **state)
{
	char *argv[] = { self, (char *)"full", NULL };
	int status;

	/* else the heap takes only half of what there is */
	setenv("FI_MEM_LIMIT", "1G", 1);
	status = group_run("268435456", argv);
	unsetenv("FI_MEM_LIMIT");
	if (status < 0)
		skip();
	assert_int_equal(status, 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_program_that_stops_allocating_gives_back),
		cmocka_unit_test(a_large_block_goes_piece_by_piece),
		cmocka_unit_test(children_allocate_whatever_the_keeper_does),
		cmocka_unit_test(a_fork_keeps_nothing_of_what_is_free),
		cmocka_unit_test(chunks_end_when_what_a_fork_left_is_freed),
		cmocka_unit_test(a_program_that_forbids_threads_keeps_nothing),
		cmocka_unit_test(what_is_kept_leaves_room_in_a_control_group),
	};

	self = argv[0];
	if (argc > 1)
		return !strcmp(argv[1], "full") ? be_full() : be_alone();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
