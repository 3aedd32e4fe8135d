/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Memory of the host's pool of huge pages, also when that is empty. The pool is made larger while the tests run,
 * which only root may do.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include <rdma/fi_errno.h>
#include <weft/mem.h>
#include "arena.h"
#include "fault.h"
#include "host.h"
#include "maps.h"
#include "mem_ops.h"
#include "memfd.h"
#include "reader.h"

#define SETTING "/proc/sys/vm/nr_hugepages"
#define MIB	((size_t)1 << 20)
#define LEN	(4 * MIB)
/* Of the pool, for two chunks. */
#define PAGES	    32
#define DEADLINE_NS 20000000000u
/* More than the pool of a machine on which tests run. */
#define CHUNKS_MAX 1000

static struct arena *arena;
static struct weft_mem_ops *ops;
static const char *reason;

static long pool(void)
{
	FILE *file = fopen(SETTING, "r");
	long cnt = -1;

	if (!file)
		return -1;
	if (fscanf(file, "%ld", &cnt) != 1)
		cnt = -1;
	fclose(file);
	return cnt;
}

static bool pool_set(long cnt)
{
	char word[32];

	snprintf(word, sizeof(word), "%ld", cnt);
	return host_set(SETTING, word) && pool() == cnt;
}

/* The pool will be this again when this process has ended. Returns false: it can't be changed. */
static bool pool_keep(long cnt)
{
	struct host_setting setting = { .path = SETTING };

	if (cnt < 0 || !pool_set(cnt))
		return false;
	snprintf(setting.before, sizeof(setting.before), "%ld", cnt);
	return !host_keep(&setting, 1);
}

static int start(void **state)
{
	long before = pool();

	if (!pool_keep(before))
		reason = errno ? strerror(errno) : "the kernel has none";
	else if (!pool_set(before + PAGES))
		reason = "the host has no memory for it";
	if (mem_ops_open(WEFT_MEM_OPS, 0, (void **)&ops))
		return -1;
	arena = arena_get();
	return arena ? 0 : -1;
}

static int restore(void **state)
{
	return host_restore();
}

static bool allowed(void)
{
	if (!reason)
		return true;
	printf("there is no pool of huge pages: %s\n", reason);
	return false;
}

static char *allocate(size_t len)
{
	void *addr = NULL;

	assert_int_equal(ops->alloc(len, 0, WEFT_MEM_HUGE, &addr), 0);
	return addr;
}

/* Returns the chunk of an address. */
static const struct arena_chunk *chunk_of(const void *addr)
{
	struct arena_place place = { 0 };

	assert_true(arena_find(arena, addr, 1, &place));
	return &arena->chunks[place.chunk];
}

static bool is_huge(const void *addr)
{
	return chunk_of(addr)->kind == ARENA_HUGE;
}

/* Returns the KiB of the pool's pages that are mapped where @addr is. */
static unsigned long huge_kib(const void *addr)
{
	FILE *file = fopen("/proc/self/smaps", "r");
	unsigned long from, to, kib, found = 0;
	bool here = false;
	char line[512];

	assert_non_null(file);
	while (fgets(line, sizeof(line), file)) {
		if (sscanf(line, "%lx-%lx ", &from, &to) == 2)
			here = (uintptr_t)addr >= from && (uintptr_t)addr < to;
		else if (here && (sscanf(line, "Shared_Hugetlb: %lu", &kib) == 1 ||
				  sscanf(line, "Private_Hugetlb: %lu", &kib) == 1))
			found += kib;
	}
	fclose(file);
	return found;
}

/* Takes what the pool has. @taken: out, CHUNKS_MAX of them. Returns how many. */
static size_t empty_pool(void **taken)
{
	size_t cnt = 0;

	while (cnt < CHUNKS_MAX && is_huge(taken[cnt++] = allocate(ARENA_SLOT)))
		continue;
	assert_in_range(cnt, 1, CHUNKS_MAX - 1);
	return cnt;
}

static void free_all(void **taken, size_t cnt)
{
	for (size_t i = 0; i < cnt; i++)
		assert_int_equal(ops->free(taken[i]), 0);
}

/* Returns how a child ends. */
static int child_says(pid_t pid)
{
	int status = -1;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static pid_t fork_child(void)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid)
		signal(SIGSEGV, SIG_DFL);
	return pid;
}

static void memory_that_asks_has_pages_of_the_pool(void **state)
{
	struct arena_usage usage, after;
	char *addr, *next;

	if (!allowed())
		skip();
	arena_usage(arena, &usage);
	addr = allocate(LEN);
	assert_true(is_huge(addr));
	for (size_t i = 0; i < LEN; i += 512)
		assert_int_equal(addr[i], 0);
	memset(addr, 7, LEN);
	assert_int_equal(huge_kib(addr), LEN / 1024);
	next = allocate(MIB);
	assert_ptr_equal(chunk_of(next), chunk_of(addr));
	assert_int_equal(ops->free(addr), 0);
	next[0] = 1;
	assert_int_equal(ops->free(next), 0);
	/* the pool has its pages again */
	arena_usage(arena, &after);
	assert_int_equal(after.chunks, usage.chunks);
	assert_int_equal(after.quarantined, usage.quarantined);
}

static void what_is_used_again_is_not_said_to_be_zero(void **state)
{
	char *held, *addr;
	void *again;
	bool zero;

	if (!allowed())
		skip();
	held = allocate(LEN);
	addr = allocate(LEN);
	memset(addr, 7, LEN);
	assert_int_equal(ops->free(addr), 0);
	assert_int_equal(arena_alloc(arena, LEN, 1, ARENA_HUGE, &again, &zero), 0);
	assert_false(zero);
	assert_int_equal(ops->free(again), 0);
	assert_int_equal(ops->free(held), 0);
}

static void memory_that_peers_write_is_ordinary(void **state)
{
	void *addr;

	assert_int_equal(ops->alloc(LEN, 0, WEFT_MEM_HUGE | WEFT_MEM_REMOTE_WRITE, &addr), 0);
	assert_int_equal(chunk_of(addr)->kind, ARENA_WRITE);
	assert_int_equal(ops->free(addr), 0);
	assert_int_equal(ops->alloc(LEN, 0, WEFT_MEM_HUGE << 1, &addr), -FI_EINVAL);
}

static void nobody_takes_a_page_away(void **state)
{
	char *addr;
	int fd;

	if (!allowed())
		skip();
	addr = allocate(LEN);
	memset(addr, 7, LEN);
	fd = chunk_of(addr)->fd;
	assert_int_equal(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 2 * MIB),
			 -1);
	assert_int_equal(errno, EPERM);
	assert_int_equal(madvise(addr, LEN, MADV_REMOVE), -1);
	assert_ptr_equal(mmap(NULL, ARENA_SLOT, PROT_WRITE, MAP_SHARED, fd, 0), MAP_FAILED);
	assert_int_equal(arena_purge(arena, addr, LEN), -FI_EBUSY);
	/* nobody stores to them either */
	assert_int_equal(arena_cut(arena, addr, LEN), 0);
	assert_true(is_huge(addr));
	arena_trim(arena, 0);
	for (size_t i = 0; i < LEN; i += 512)
		assert_int_equal(addr[i], 7);
	assert_int_equal(ops->free(addr), 0);
}

static void a_peer_trusts_no_page_that_may_go(void **state)
{
	struct sys_map map;
	void *addr;
	size_t len;
	int fd;

	if (!allowed())
		skip();
	fd = sys_memfd_create_huge("test", 2 * SYS_MEMFD_HUGE, 0400);
	assert_true(fd >= 0);
	assert_int_equal(sys_memfd_size(fd, &len), -FI_EINVAL);
	assert_int_equal(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
				   (off_t)SYS_MEMFD_HUGE),
			 0);
	assert_int_equal(sys_memfd_fix(fd), 0);
	assert_int_equal(sys_memfd_size(fd, &len), -FI_EINVAL);
	close(fd);
	fd = sys_memfd_create_huge("test", 2 * SYS_MEMFD_HUGE, 0400);
	assert_int_equal(sys_memfd_fix(fd), 0);
	assert_int_equal(sys_memfd_size(fd, &len), 0);
	assert_int_equal(len, 2 * SYS_MEMFD_HUGE);
	/* a part of a page would be mapped as all of it, and stay */
	assert_int_equal(sys_memfd_map(fd, SYS_MEMFD_HUGE + 4096, 0, &addr), -FI_EINVAL);
	assert_int_equal(sys_memfd_map(fd, 4096, 0, &addr), -FI_EINVAL);
	assert_int_equal(sys_memfd_map(fd, SYS_MEMFD_HUGE, 0, &addr), 0);
	sys_memfd_unmap(addr, SYS_MEMFD_HUGE);
	assert_int_equal(sys_maps_find(addr, &map), -FI_ENOENT);
	close(fd);
}

/* In a child: the parent is the peer. Returns 0, or what is wrong. */
static int read_parent(const struct arena_peer_id *parent, uint64_t at)
{
	struct arena_reader reader;
	const char *mapped;

	if (arena_reader_open(&reader, parent))
		return 1;
	mapped = arena_reader_find(&reader, at, LEN, false);
	if (!mapped || arena_reader_find(&reader, at, LEN, true))
		return 2;
	for (size_t i = 0; i < LEN; i += 512)
		if (mapped[i] != 7)
			return 3;
	arena_reader_close(&reader);
	return 0;
}

static void a_peer_loads_from_it(void **state)
{
	struct arena_peer_id us = { .process = state, .pid = (uint32_t)getpid() };
	char *addr;
	pid_t pid;

	if (!allowed())
		skip();
	addr = allocate(LEN);
	memset(addr, 7, LEN);
	assert_true(arena_directory_at(arena, &us.fd, us.nonce));
	pid = fork_child();
	if (!pid)
		_exit(read_parent(&us, (uintptr_t)addr));
	assert_int_equal(child_says(pid), 0);
	assert_int_equal(ops->free(addr), 0);
}

static void an_empty_pool_gives_ordinary_memory(void **state)
{
	void *taken[CHUNKS_MAX];
	char *last;
	size_t cnt;

	cnt = empty_pool(taken);
	last = taken[cnt - 1];
	assert_int_equal(chunk_of(last)->kind, ARENA_READ);
	memset(last, 1, LEN);
	for (size_t i = 0; i + 1 < cnt; i++)
		memset(taken[i], 1, ARENA_SLOT);
	free_all(taken, cnt);
}

static void without_seals_it_is_ordinary_memory(void **state)
{
	char *addr;

	if (!allowed())
		skip();
	/* the second time: of the seal against taking pages away */
	for (uint32_t skipped = 0; skipped < 2; skipped++) {
		sys_fault_set(SYS_CALL_FCNTL_SEAL, EPERM, skipped, 1);
		addr = allocate(LEN);
		sys_fault_clear();
		assert_int_equal(chunk_of(addr)->kind, ARENA_READ);
		memset(addr, 1, LEN);
		assert_int_equal(ops->free(addr), 0);
	}
}

static void the_pool_is_as_it_was_when_a_test_is_killed(void **state)
{
	uint64_t end_ns = platform_now_ns() + DEADLINE_NS;
	long cnt = pool();
	int status;
	pid_t pid;

	if (!allowed())
		skip();
	pid = fork_child();
	if (!pid) {
		if (pool_keep(cnt) && pool_set(cnt + 1))
			kill(getpid(), SIGKILL);
		_exit(1);
	}
	status = child_says(pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	while (pool() != cnt && platform_now_ns() < end_ns)
		sched_yield();
	assert_int_equal(pool(), cnt);
}

/* In a child. Returns 0, or what is wrong. */
static int child_without(char *huge, const char *ordinary)
{
	struct arena_place place;
	void *own;

	if (ordinary[0] != 7 || ordinary[LEN - 1] != 7 || arena_find(arena, huge, 1, &place))
		return 1;
	/* what comes next is not where the parent's is */
	if (ops->alloc(2 * ARENA_SLOT, 0, 0, &own) ||
	    ((char *)own < huge + LEN && huge < (char *)own + 2 * ARENA_SLOT))
		return 2;
	memset(own, 1, 2 * ARENA_SLOT);
	if (ops->free(huge) || ops->free(huge) != -FI_EINVAL)
		return 3;
	return ops->free(own) ? 4 : 0;
}

static void a_fork_needs_no_page_of_an_empty_pool(void **state)
{
	char *huge, *ordinary;
	void *taken[CHUNKS_MAX], *addr;
	size_t cnt;
	pid_t pid;
	int status;

	if (!allowed())
		skip();
	huge = allocate(LEN);
	memset(huge, 7, LEN);
	assert_int_equal(ops->alloc(LEN, 0, 0, &addr), 0);
	ordinary = addr;
	memset(ordinary, 7, LEN);
	cnt = empty_pool(taken);
	for (int i = 0; i < 3; i++) {
		pid = fork_child();
		if (!pid)
			_exit(child_without(huge, ordinary));
		memset(huge, 7, LEN);
		assert_int_equal(child_says(pid), 0);
		/* peers go on with it, and nothing of it was copied */
		assert_true(is_huge(huge));
		assert_int_equal(huge_kib(huge), LEN / 1024);
	}
	pid = fork_child();
	if (!pid)
		_exit(*(volatile char *)huge);
	status = child_says(pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
	free_all(taken, cnt);
	assert_int_equal(ops->free(ordinary), 0);
	assert_int_equal(ops->free(huge), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(memory_that_asks_has_pages_of_the_pool),
		cmocka_unit_test(what_is_used_again_is_not_said_to_be_zero),
		cmocka_unit_test(memory_that_peers_write_is_ordinary),
		cmocka_unit_test(nobody_takes_a_page_away),
		cmocka_unit_test(a_peer_trusts_no_page_that_may_go),
		cmocka_unit_test(a_peer_loads_from_it),
		cmocka_unit_test(an_empty_pool_gives_ordinary_memory),
		cmocka_unit_test(without_seals_it_is_ordinary_memory),
		cmocka_unit_test(a_fork_needs_no_page_of_an_empty_pool),
		cmocka_unit_test(the_pool_is_as_it_was_when_a_test_is_killed),
	};

	return cmocka_run_group_tests(tests, start, restore);
}
