/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A program under libweft-mem.so (LD_PRELOAD): what it has protected, or advised, and frees is ordinary memory to the
 * next one that gets it; and what the kernel refuses of private memory is refused.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <malloc.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

/* Linux 6.13; of files' memory 6.15 */
#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102
#endif

#define MIB	   ((size_t)1 << 20)
#define LEN	   (4 * MIB)
#define DEADLINE_S 20

static size_t page;

/* Looked at by nobody but the allocator: the compiler must not know that it is what malloc() returned. */
static char *allocate(size_t len)
{
	void *volatile addr = NULL;

	addr = aligned_alloc(page, len);
	assert_non_null(addr);
	return addr;
}

static int start(void **state)
{
	page = (size_t)sysconf(_SC_PAGESIZE);
	return 0;
}

static void freed_memory_is_writable_whatever_protected_it(void **state)
{
	static const int prots[] = { PROT_READ, PROT_NONE, PROT_READ | PROT_EXEC };
	char *addr, *again = NULL;

	for (size_t i = 0; i < sizeof(prots) / sizeof(prots[0]); i++) {
		addr = allocate(LEN);
		memset(addr, 1, LEN);
		assert_int_equal(mprotect(addr, LEN, prots[i]), 0);
		free(addr);
		again = allocate(LEN);
		assert_ptr_equal(again, addr);
		memset(again, 2, LEN);
		/* only a part of it */
		assert_int_equal(mprotect(again + page, page, prots[i]), 0);
		free(again);
		again = allocate(LEN);
		memset(again, 3, LEN);
		free(again);
	}
}

static void resized_memory_leaves_no_protection_behind(void **state)
{
	char *addr = allocate(LEN), *volatile less, *again;

	memset(addr, 1, LEN);
	assert_int_equal(mprotect(addr + MIB, 3 * MIB, PROT_READ), 0);
	less = realloc(addr, MIB);
	assert_int_equal(less[0], 1);
	assert_int_equal(less[MIB - 1], 1);
	again = allocate(3 * MIB);
	memset(again, 2, 3 * MIB);
	less = realloc(less, 2 * MIB);
	assert_int_equal(less[MIB - 1], 1);
	memset(less, 2, 2 * MIB);
	free(less);
	free(again);
}

static void protection_of_neighbours_stays(void **state)
{
	char *a = allocate(MIB), *b = allocate(MIB);
	int data[2];

	assert_int_equal(pipe(data), 0);
	assert_int_equal(mprotect(b, MIB, PROT_NONE), 0);
	free(a);
	assert_int_equal(write(data[1], b, 1), -1);
	assert_int_equal(errno, EFAULT);
	assert_int_equal(write(data[1], b + MIB - 1, 1), -1);
	free(b);
	close(data[0]);
	close(data[1]);
}

/* Returns what a child finds at an address. */
static int child_finds(const char *addr)
{
	int status = -1;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid)
		_exit(*addr);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void memory_is_wiped_in_a_child(void **state)
{
	char *addr = allocate(MIB), *again;

	memset(addr, 5, MIB);
	assert_int_equal(madvise(addr + 1, page, MADV_WIPEONFORK), -1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(madvise(addr, 4 * page, MADV_WIPEONFORK), 0);
	assert_int_equal(addr[0], 5);
	assert_int_equal(child_finds(addr), 0);
	assert_int_equal(child_finds(addr + 4 * page), 5);
	assert_int_equal(addr[0], 5);
	assert_int_equal(madvise(addr, 4 * page, MADV_KEEPONFORK), 0);
	assert_int_equal(child_finds(addr), 5);
	/* not to the next one */
	assert_int_equal(madvise(addr, 4 * page, MADV_WIPEONFORK), 0);
	free(addr);
	again = allocate(MIB);
	memset(again, 6, MIB);
	assert_int_equal(child_finds(again), 6);
	assert_int_equal(child_finds(again + MIB - 1), 6);
	free(again);
}

/*
 * A program that has closed its descriptors, as a daemon does, and forks: the child gets a copy. Returns what is
 * wrong, or 0; in a process of its own.
 */
static int fork_without_descriptors(void)
{
	char *addr = aligned_alloc(page, MIB);
	int status = -1;
	pid_t pid;

	memset(addr, 5, MIB);
	if (mprotect(addr + page, page, PROT_READ))
		return 1;
	closefrom(STDERR_FILENO + 1);
	pid = fork();
	if (!pid) {
		addr[0] = 6;
		/* it is as protected as it was */
		if (mprotect(addr, page, PROT_READ) || addr[page] != 5 || addr[MIB - 1] != 5)
			_exit(2);
		_exit(read(STDIN_FILENO, addr + page, 1) == -1 && errno == EFAULT ? 0 : 3);
	}
	if (waitpid(pid, &status, 0) != pid || addr[0] != 5)
		return 4;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 5;
}

static void a_child_has_a_copy_that_is_protected(void **state)
{
	int status = -1, data[2];
	pid_t pid;

	assert_int_equal(pipe(data), 0);
	assert_int_equal(write(data[1], "0", 1), 1);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		setpgid(0, 0);
		alarm(DEADLINE_S);
		dup2(data[0], STDIN_FILENO);
		_exit(fork_without_descriptors());
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	/* a child that hangs in fork() is not ended by the alarm */
	kill(-pid, SIGKILL);
	assert_int_equal(status, 0);
	close(data[0]);
	close(data[1]);
}

static void advice_leaves_what_a_program_has_mapped_itself(void **state)
{
	char *addr = allocate(MIB);
	int file = memfd_create("own", 0);
	char byte = 0;

	memset(addr, 5, MIB);
	assert_int_equal(ftruncate(file, (off_t)(2 * page)), 0);
	assert_int_equal(pwrite(file, "f", 1, 0), 1);
	assert_ptr_equal(mmap(addr + page, 2 * page, PROT_READ | PROT_WRITE,
			      MAP_SHARED | MAP_FIXED, file, 0),
			 addr + page);
	assert_ptr_equal(mmap(addr + 4 * page, page, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
			 addr + 4 * page);
	addr[4 * page] = 6;
	assert_int_equal(madvise(addr, MIB, MADV_DONTNEED), 0);
	assert_int_equal(addr[0], 0);
	assert_int_equal(addr[page], 'f');
	assert_int_equal(addr[4 * page], 0);
	assert_int_equal(addr[MIB - 1], 0);
	/* it is the file still */
	addr[page + 1] = 'g';
	assert_int_equal(pread(file, &byte, 1, 1), 1);
	assert_int_equal(byte, 'g');
	close(file);
	free(addr);
}

static void freed_memory_has_no_guard_pages(void **state)
{
	char *addr = allocate(MIB), *again;

	if (madvise(addr + page, 2 * page, MADV_GUARD_INSTALL)) {
		printf("no guard pages of shared memory\n");
		free(addr);
		skip();
	}
	free(addr);
	again = allocate(MIB);
	assert_ptr_equal(again, addr);
	memset(again, 1, MIB);
	free(again);
}

static void guarded_memory_is_resized(void **state)
{
	static const size_t lens[] = { 2 * MIB, MIB / 2, 100 };
	char *addr, *volatile again;

	for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		addr = allocate(MIB);
		memset(addr, 5, MIB);
		if (madvise(addr, page, MADV_GUARD_INSTALL))
			assert_int_equal(mprotect(addr, page, PROT_NONE), 0);
		again = realloc(addr, lens[i]);
		assert_non_null(again);
		if (lens[i] > page)
			assert_int_equal(again[page], 5);
		memset(again, 6, lens[i]);
		free(again);
	}
}

static void what_can_not_be_remapped_is_refused(void **state)
{
	char *addr = allocate(MIB);

	memset(addr, 7, MIB);
	assert_ptr_equal(mremap(addr, 4 * page, 4 * page, MREMAP_MAYMOVE | MREMAP_FIXED, addr),
			 MAP_FAILED);
	assert_int_equal(errno, EINVAL);
	assert_ptr_equal(
		mremap(addr, 4 * page, 4 * page, MREMAP_MAYMOVE | MREMAP_FIXED, addr + page),
		MAP_FAILED);
	assert_int_equal(errno, EINVAL);
	assert_ptr_equal(
		mremap(addr + page, 4 * page, 4 * page, MREMAP_MAYMOVE | MREMAP_FIXED, addr),
		MAP_FAILED);
	assert_ptr_equal(mremap(addr, SIZE_MAX, page, MREMAP_MAYMOVE), MAP_FAILED);
	assert_int_equal(errno, EINVAL);
	assert_ptr_equal(mremap(addr, SIZE_MAX / 2, page, MREMAP_MAYMOVE), MAP_FAILED);
	assert_int_equal(errno, EFAULT);
	for (size_t i = 0; i < MIB; i++)
		assert_int_equal(addr[i], 7);
	free(addr);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(freed_memory_is_writable_whatever_protected_it),
		cmocka_unit_test(resized_memory_leaves_no_protection_behind),
		cmocka_unit_test(protection_of_neighbours_stays),
		cmocka_unit_test(memory_is_wiped_in_a_child),
		cmocka_unit_test(a_child_has_a_copy_that_is_protected),
		cmocka_unit_test(advice_leaves_what_a_program_has_mapped_itself),
		cmocka_unit_test(freed_memory_has_no_guard_pages),
		cmocka_unit_test(guarded_memory_is_resized),
		cmocka_unit_test(what_can_not_be_remapped_is_refused),
	};

	return cmocka_run_group_tests(tests, start, NULL);
}
