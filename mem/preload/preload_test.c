/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A program under libweft-mem.so (LD_PRELOAD), which it knows nothing of: where its memory comes from, and
 * that each call does what it does without the library.
 *
 * usage: preload_test [other]: a second allocator is preloaded behind it (other_allocator.c)
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <setjmp.h>
#include <spawn.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include "arena.h"

#define KIB	1024u
#define MIB	(KIB * KIB)
#define LARGE	(64 * KIB)
#define THREADS 4

/* Not looked at by the compiler, which knows what malloc() returns. */
static void *volatile kept;

static size_t page;
static arena_export *export;
static bool other;

static int start(void **state)
{
	page = (size_t)sysconf(_SC_PAGESIZE);
	export = (arena_export *)dlsym(RTLD_DEFAULT, ARENA_EXPORT);
	return export ? 0 : -1;
}

/* Returns the chunk + 1 that has all of a range and is shown to peers, or 0. */
static uint32_t shown(const void *addr, size_t len)
{
	struct arena_place place;

	return arena_find(export(ARENA_VERSION, sizeof(struct arena)), addr, len, &place)
		       ? place.chunk + 1
		       : 0;
}

static bool is_zero(const char *addr, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (addr[i])
			return false;
	return true;
}

static void large_memory_comes_from_the_arena(void **state)
{
	char *ptr = malloc(LARGE);

	assert_true(shown(ptr, LARGE));
	assert_in_range(malloc_usable_size(ptr), LARGE, 2 * LARGE);
	memset(ptr, 1, malloc_usable_size(ptr));
	free(ptr);
	ptr = calloc(LARGE, 3);
	assert_true(shown(ptr, 3 * LARGE));
	assert_true(is_zero(ptr, 3 * LARGE));
	memset(ptr, 1, 3 * LARGE);
	free(ptr);
	ptr = calloc(3, LARGE);
	assert_true(is_zero(ptr, 3 * LARGE));
	free(ptr);
	ptr = valloc(LARGE);
	assert_true(shown(ptr, LARGE));
	assert_int_equal((uintptr_t)ptr % page, 0);
	free(ptr);
	ptr = pvalloc(LARGE - 1);
	assert_true(shown(ptr, LARGE));
	free(ptr);
	assert_null(export(ARENA_VERSION + 1, sizeof(struct arena)));
	assert_null(export(ARENA_VERSION, 1));
}

/* By the C library, or by the allocator that is preloaded behind this one. */
static bool elsewhere(void *ptr)
{
	bool (*has)(const void *) = (bool (*)(const void *))dlsym(RTLD_DEFAULT, "other_has");

	if (shown(ptr, 1))
		return false;
	return !other || has(ptr);
}

static void small_memory_comes_from_where_it_did(void **state)
{
	void *ptr = malloc(100), *memory = NULL;

	assert_true(elsewhere(ptr));
	ptr = realloc(ptr, 200);
	assert_true(elsewhere(ptr));
	assert_true(malloc_usable_size(ptr) >= 200);
	free(ptr);
	ptr = malloc(LARGE - 1);
	assert_true(elsewhere(ptr));
	free(ptr);
	ptr = calloc(10, 10);
	assert_true(elsewhere(ptr));
	free(ptr);
	assert_int_equal(posix_memalign(&memory, 64, 100), 0);
	assert_true(elsewhere(memory));
	free(memory);
	ptr = aligned_alloc(4096, 4096);
	assert_true(elsewhere(ptr));
	free(ptr);
	free(NULL);
}

static void alignments_are_kept(void **state)
{
	void *ptr = NULL;

	for (size_t align = sizeof(void *); align <= 4 * MIB; align *= 2) {
		assert_int_equal(posix_memalign(&ptr, align, MIB + 1), 0);
		assert_int_equal((uintptr_t)ptr % align, 0);
		assert_true(shown(ptr, MIB + 1));
		free(ptr);
		ptr = memalign(align, LARGE);
		assert_int_equal((uintptr_t)ptr % align, 0);
		free(ptr);
		ptr = aligned_alloc(align, 4 * MIB);
		assert_int_equal((uintptr_t)ptr % align, 0);
		free(ptr);
	}
	kept = NULL;
	assert_int_equal(posix_memalign((void **)&kept, 24, MIB), EINVAL);
	assert_int_equal(posix_memalign((void **)&kept, 2, MIB), EINVAL);
	assert_null(kept);
}

static void what_can_not_be_is_refused(void **state)
{
	volatile size_t many = SIZE_MAX / 2 + 2;
	int error = 0;

	errno = 0;
	kept = malloc(many);
	assert_null(kept);
	assert_int_equal(errno, ENOMEM);
	errno = 0;
	kept = calloc(many, 2);
	assert_null(kept);
	assert_int_equal(errno, ENOMEM);
	kept = malloc(MIB);
	errno = 0;
	assert_null(reallocarray(kept, many, 2));
	assert_int_equal(errno, ENOMEM);
	assert_null(realloc(kept, many));
	errno = 77;
	free(kept);
	error = errno;
	assert_int_equal(error, 77);
}

static void resized_memory_keeps_its_bytes(void **state)
{
	static const size_t lens[] = { 100,	LARGE,	 MIB, 50,	2 * LARGE, 40 * MIB,
				       3 * MIB, 4 * MIB, 1,   10 * MIB, LARGE };
	unsigned char *ptr = NULL;
	size_t old = 0;

	for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		ptr = realloc(ptr, lens[i]);
		assert_non_null(ptr);
		assert_int_equal(!shown(ptr, 1), lens[i] < LARGE);
		for (size_t b = 0; b < (old < lens[i] ? old : lens[i]); b += 61)
			assert_int_equal(ptr[b], (unsigned char)(b * 7 + i - 1));
		for (size_t b = 0; b < lens[i]; b++)
			ptr[b] = (unsigned char)(b * 7 + i);
		old = lens[i];
	}
	assert_null(realloc(ptr, 0));
	kept = malloc(100);
	kept = reallocarray(kept, 3, LARGE);
	assert_true(shown(kept, 3 * LARGE));
	free(kept);
}

static void freed_memory_is_reused_with_its_pages(void **state)
{
	unsigned char vec = 0;
	char *ptr = malloc(4 * MIB), *again;

	memset(ptr, 1, 4 * MIB);
	free(ptr);
	again = malloc(4 * MIB);
	assert_true((size_t)(again - ptr) + page < 2 * page);
	assert_int_equal(mincore((void *)((uintptr_t)again & ~(page - 1)), 1, &vec), 0);
	assert_true(vec & 1);
	free(again);
}

static void advice_gives_zeros(void **state)
{
	static const int advices[] = { MADV_DONTNEED, MADV_FREE, MADV_REMOVE };

	for (size_t i = 0; i < 3; i++) {
		char *ptr = aligned_alloc(page, MIB);

		memset(ptr, 1, MIB);
		assert_int_equal(madvise(ptr + page, 2 * page, advices[i]), 0);
		assert_int_equal(ptr[page - 1], 1);
		assert_true(is_zero(ptr + page, 2 * page));
		assert_int_equal(ptr[3 * page], 1);
		assert_true(shown(ptr, MIB));
		assert_int_equal(madvise(ptr + 1, page, advices[i]), -1);
		assert_int_equal(errno, EINVAL);
		assert_int_equal(madvise(ptr, MIB, MADV_DOFORK), 0);
		free(ptr);
	}
}

/* Returns whether the kernel may store at an address. */
static bool writable(void *addr)
{
	int data[2];
	bool can;

	assert_int_equal(pipe(data), 0);
	assert_int_equal(write(data[1], "w", 1), 1);
	can = read(data[0], addr, 1) == 1;
	close(data[0]);
	close(data[1]);
	return can;
}

#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102
#define MADV_GUARD_REMOVE  103
#endif

static void guard_pages_guard_and_leave_zeros(void **state)
{
	char *ptr = aligned_alloc(page, MIB);

	memset(ptr, 1, MIB);
	if (madvise(ptr + page, 2 * page, MADV_GUARD_INSTALL)) {
		assert_int_equal(errno, EINVAL);
		print_message("this kernel has no guard pages of files\n");
		assert_true(writable(ptr + page));
		free(ptr);
		return;
	}
	assert_false(writable(ptr + page) || writable(ptr + 3 * page - 1));
	assert_int_equal(ptr[page - 1], 1);
	assert_int_equal(ptr[3 * page], 1);
	assert_int_equal(madvise(ptr + page, 2 * page, MADV_GUARD_REMOVE), 0);
	assert_true(is_zero(ptr + page, 2 * page));
	assert_true(writable(ptr + page));
	free(ptr);
}

static void protections_hold(void **state)
{
	char *ptr = aligned_alloc(page, MIB);

	assert_int_equal(mprotect(ptr, page, PROT_READ), 0);
	assert_false(writable(ptr));
	assert_true(writable(ptr + page));
	assert_int_equal(mprotect(ptr, page, PROT_READ | PROT_WRITE), 0);
	assert_true(writable(ptr));
	assert_true(shown(ptr, MIB));
	free(ptr);
}

static void unmapped_memory_is_gone(void **state)
{
	char *ptr = aligned_alloc(page, MIB), *other_mapping;

	memset(ptr, 1, MIB);
	assert_int_equal(munmap(ptr + 1, page), -1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(munmap(ptr + page, page), 0);
	assert_false(writable(ptr + page));
	assert_int_equal(ptr[2 * page], 1);
	assert_false(shown(ptr, MIB));
	/* The kernel gives the addresses to nobody else. */
	other_mapping = mmap(ptr + page, page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(other_mapping, ptr + page);
	munmap(other_mapping, page);
}

static void memory_mapped_over_it_is_the_programs(void **state)
{
	char *ptr = aligned_alloc(page, MIB);

	memset(ptr, 1, MIB);
	assert_ptr_equal(mmap(ptr, page, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
			 ptr);
	assert_true(is_zero(ptr, page));
	assert_int_equal(ptr[page], 1);
	assert_false(shown(ptr, 1));
	ptr[0] = 5;
	assert_int_equal(madvise(ptr, 2 * page, MADV_DONTNEED), 0);
	assert_true(is_zero(ptr, 2 * page));
	assert_int_equal(ptr[2 * page], 1);
}

static void remapped_memory_moves(void **state)
{
	char *ptr = aligned_alloc(page, MIB), *to, *place;

	memset(ptr, 1, MIB);
	assert_ptr_equal(mremap(ptr, 4 * page, 8 * page, 0), MAP_FAILED);
	assert_int_equal(errno, ENOMEM);
	assert_ptr_equal(mremap(ptr, 4 * page, 4 * page, 0), ptr);
	to = mremap(ptr, 4 * page, 8 * page, MREMAP_MAYMOVE);
	assert_ptr_not_equal(to, MAP_FAILED);
	assert_int_equal(to[4 * page - 1], 1);
	/* not what follows it in the file */
	assert_true(is_zero(to + 4 * page, 4 * page));
	assert_false(writable(ptr));
	assert_int_equal(ptr[4 * page], 1);
	assert_false(shown(ptr + 4 * page, page));
	munmap(to, 8 * page);
	place = mmap(NULL, 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	to = mremap(ptr + 4 * page, 2 * page, 2 * page, MREMAP_MAYMOVE | MREMAP_FIXED, place);
	assert_ptr_equal(to, place);
	assert_int_equal(to[0], 1);
	munmap(to, 2 * page);
	assert_ptr_equal(mremap(ptr + 8 * page, 2 * page, page, 0), ptr + 8 * page);
	assert_false(writable(ptr + 9 * page));
	assert_true(writable(ptr + 8 * page));
}

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
	assert_true(shown(ptr, MIB));
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
		good = good && ptr && (what != 2 || is_zero(ptr, len < 300 ? len : 300));
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

	assert_true(shown(before, MIB));
	pid = fork();
	if (!pid) {
		/* so is the child's own */
		after = malloc(MIB);
		_exit(after && shown(after, MIB) && !shown(before, 1) ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_false(shown(before, 1));
	after = malloc(MIB);
	assert_true(shown(after, MIB));
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
	assert_true(ptr && shown(ptr, len));
	free(ptr);
}

/* What is run with a limit. Returns 0, or what is wrong. */
static int be_limited(void)
{
	kept = malloc(MIB);
	return !kept ? 1 : export(ARENA_VERSION, sizeof(struct arena)) ? 2 : 0;
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
			execl("/proc/self/exe", "preload_test", "limited", (char *)NULL);
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
		cmocka_unit_test(large_memory_comes_from_the_arena),
		cmocka_unit_test(small_memory_comes_from_where_it_did),
		cmocka_unit_test(alignments_are_kept),
		cmocka_unit_test(what_can_not_be_is_refused),
		cmocka_unit_test(resized_memory_keeps_its_bytes),
		cmocka_unit_test(freed_memory_is_reused_with_its_pages),
		cmocka_unit_test(advice_gives_zeros),
		cmocka_unit_test(guard_pages_guard_and_leave_zeros),
		cmocka_unit_test(protections_hold),
		cmocka_unit_test(starting_programs_changes_nothing),
		cmocka_unit_test(a_program_with_a_limit_has_none),
		cmocka_unit_test(a_program_may_limit_its_addresses),
		cmocka_unit_test(the_child_of_a_raw_clone_can_not_reach_it),
		cmocka_unit_test(threads_keep_their_bytes),
		cmocka_unit_test(after_a_fork_new_memory_is_shown),
		cmocka_unit_test(unmapped_memory_is_gone),
		cmocka_unit_test(memory_mapped_over_it_is_the_programs),
		cmocka_unit_test(remapped_memory_moves),
		cmocka_unit_test(a_child_has_all_memory_and_its_own),
		cmocka_unit_test(after_many_forks_too),
	};

	/* That one never takes memory back. */
	const struct CMUnitTest with_other[] = {
		cmocka_unit_test(large_memory_comes_from_the_arena),
		cmocka_unit_test(small_memory_comes_from_where_it_did),
		cmocka_unit_test(what_can_not_be_is_refused),
		cmocka_unit_test(resized_memory_keeps_its_bytes),
	};

	if (argc > 1 && !strcmp(argv[1], "limited"))
		return start(NULL) ? 3 : be_limited();
	other = argc > 1;
	return other ? cmocka_run_group_tests(with_other, start, NULL)
		     : cmocka_run_group_tests(tests, start, NULL);
}
