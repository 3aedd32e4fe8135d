/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What the child of a fork has of the arena, and of a peer's, and what its parent keeps. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include <rdma/fi_errno.h>
#include "arena.h"
#include "fault.h"
#include "memfd.h"
#include "reader.h"

#define MIB	((size_t)1 << 20)
#define THREADS 4
/* How many allocate during a fork: the allocator of gcc 12's AddressSanitizer can be locked in the child for ever. */
#ifdef __SANITIZE_ADDRESS__
#define THREADS_READ 0
#else
#define THREADS_READ THREADS
#endif
#define PAIRS	   64
#define FORKS	   200
#define FORKS_READ 20
/* More than an arena of chunks that are used once could stand. */
#define FORKS_MANY 1200

static struct arena *arena;
static size_t page;

static int start(void **state)
{
	arena = arena_get();
	page = (size_t)sysconf(_SC_PAGESIZE);
	return arena ? 0 : -1;
}

static char *allocate(size_t len, enum arena_kind kind)
{
	void *addr = NULL;

	assert_int_equal(arena_alloc(arena, len, 1, kind, &addr, NULL), 0);
	return addr;
}

/* Returns how a child ends that is told to go on through a pipe. */
static int child_says(pid_t pid, int go)
{
	int status = -1;

	if (go >= 0)
		assert_int_equal(write(go, "x", 1), 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

/* What a process shows of its arena, and where it has stored 'x'. */
struct shown {
	struct arena_peer_id id;
	uint64_t at;
};

/* The threads that read go on. */
static _Atomic bool going;

/* Opens and closes readers. Returns NULL, or @arg: one did not find what is shown. */
static void *read_on(void *arg)
{
	const struct shown *shown = arg;

	while (atomic_load(&going)) {
		struct arena_reader reader;
		const char *addr;

		if (arena_reader_open(&reader, &shown->id))
			return arg;
		addr = arena_reader_find(&reader, shown->at, 1, false);
		if (!addr || *addr != 'x')
			return arg;
		arena_reader_close(&reader);
	}
	return NULL;
}

/* In the child of a process that reads: it has the reader, and can open and close others. */
static int read_as_child(const struct shown *shown, struct arena_reader *parents)
{
	const char *addr = arena_reader_find(parents, shown->at, 1, false);
	struct arena_reader reader;

	if (!addr || *addr != 'x' || arena_reader_open(&reader, &shown->id))
		return 1;
	if (arena_reader_find(&reader, shown->at, 1, false) != addr)
		return 2;
	arena_reader_close(&reader);
	arena_reader_close(parents);
	return 0;
}

/* Forks while threads open and close readers. Returns 0, or what is wrong. */
static int read_and_fork(struct shown *shown)
{
	pthread_t threads[THREADS];
	struct arena_reader reader;
	void *fault, *faults = NULL;
	int bad = 0;

	alarm(600);
	arena_peers_watch();
	if (arena_reader_open(&reader, &shown->id))
		return 10;
	atomic_store(&going, true);
	for (int t = 0; t < THREADS_READ; t++)
		if (pthread_create(&threads[t], NULL, read_on, shown))
			return 11;
	for (int i = 0; i < FORKS_READ && !bad; i++) {
		pid_t pid = fork();

		if (!pid)
			_exit(read_as_child(shown, &reader));
		bad = child_says(pid, -1);
	}
	atomic_store(&going, false);
	for (int t = 0; t < THREADS_READ; t++) {
		pthread_join(threads[t], &fault);
		faults = faults ? faults : fault;
	}
	if (!arena_reader_find(&reader, shown->at, 1, false))
		return 12;
	arena_reader_close(&reader);
	return bad || faults ? 13 : 0;
}

/* The first test, while no thread keeps what was freed: ThreadSanitizer's children of threads start none. */
static void children_find_the_readers_of_a_peer_whole(void **state)
{
	struct shown shown = { .id = { .process = state, .pid = (uint32_t)getpid() } };
	int tell[2];
	char *addr;
	pid_t pid;

	assert_int_equal(pipe(tell), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid)
		_exit(read(tell[0], &shown, sizeof(shown)) == sizeof(shown)
			      ? read_and_fork(&shown)
			      : 20);
	/* what a fork finds allocated is shown to nobody */
	addr = allocate(MIB, ARENA_READ);
	addr[0] = 'x';
	shown.at = (uintptr_t)addr;
	assert_true(arena_directory_at(arena, &shown.id.fd, shown.id.nonce));
	assert_int_equal(write(tell[1], &shown, sizeof(shown)), sizeof(shown));
	assert_int_equal(child_says(pid, -1), 0);
	assert_int_equal(arena_free(arena, addr), 0);
	close(tell[0]);
	close(tell[1]);
}

static void neither_sees_what_the_other_stores_later(void **state)
{
	int go[2], back[2], status;
	char byte;
	pid_t pid;

	for (int kind = ARENA_READ; kind <= ARENA_WRITE; kind++) {
		char *addr = allocate(MIB, (enum arena_kind)kind);

		assert_int_equal(pipe(go) | pipe(back), 0);
		memset(addr, 1, 2 * page);
		pid = fork();
		assert_true(pid >= 0);
		if (!pid) {
			addr[1] = 9;
			status = write(back[1], "y", 1) == 1 && read(go[0], &byte, 1) == 1;
			_exit(status && addr[0] == 1 && addr[page] == 1 && !addr[2 * page] ? 0
											   : 1);
		}
		assert_int_equal(read(back[0], &byte, 1), 1);
		assert_int_equal(addr[1], 1);
		addr[0] = 5;
		memset(addr + page, 5, page);
		addr[2 * page] = 5;
		assert_int_equal(child_says(pid, go[1]), 0);
		assert_int_equal(addr[0], 5);
		assert_int_equal(addr[page + 1], 5);
		for (int i = 0; i < 2; i++) {
			close(go[i]);
			close(back[i]);
		}
		assert_int_equal(arena_free(arena, addr), 0);
	}
}

/* A thread stores a number to the first page of a pair, then to the second one. */
struct pairs {
	_Atomic uint32_t *words;
	_Atomic bool *end;
};

static _Atomic uint32_t *word(_Atomic uint32_t *words, size_t n)
{
	return (_Atomic uint32_t *)((char *)words + n * page);
}

static void *store_pairs(void *arg)
{
	struct pairs *pairs = arg;

	for (uint32_t n = 1; !atomic_load(pairs->end); n++)
		for (size_t i = 0; i < PAIRS; i++) {
			atomic_store(word(pairs->words, 2 * i), n);
			atomic_store(word(pairs->words, 2 * i + 1), n);
		}
	return NULL;
}

/* In a copy that is one moment's, the first page of a pair is the second one's number or one ahead. */
static bool in_order(_Atomic uint32_t *words)
{
	uint32_t ahead, last = 0;

	for (size_t i = 0; i < PAIRS; i++) {
		uint32_t first = atomic_load(word(words, 2 * i));
		uint32_t second = atomic_load(word(words, 2 * i + 1));

		ahead = first - second;
		if (ahead > 1 || (i && last - first > 1))
			return false;
		last = second;
	}
	return true;
}

static void a_child_has_one_moment_of_four_threads(void **state)
{
	struct pairs pairs[THREADS];
	_Atomic bool end = false;
	pthread_t threads[THREADS];
	bool good = true;
	pid_t pid;

	for (int t = 0; t < THREADS; t++) {
		pairs[t].words = (void *)allocate(2 * PAIRS * page,
						  t & 1 ? ARENA_WRITE : ARENA_READ);
		pairs[t].end = &end;
		assert_int_equal(pthread_create(&threads[t], NULL, store_pairs, &pairs[t]), 0);
	}
	for (int i = 0; i < FORKS; i++) {
		/* Every few forks there is memory that was never left before. */
		char *more = i % 8 ? NULL : allocate(MIB, ARENA_READ);

		pid = fork();
		assert_true(pid >= 0);
		if (!pid) {
			for (int t = 0; t < THREADS; t++)
				good = good && in_order(pairs[t].words);
			_exit(good ? 0 : 1);
		}
		good = good && !child_says(pid, -1);
		if (more)
			arena_free(arena, more);
	}
	atomic_store(&end, true);
	for (int t = 0; t < THREADS; t++) {
		pthread_join(threads[t], NULL);
		assert_true(in_order(pairs[t].words));
		assert_int_equal(arena_free(arena, pairs[t].words), 0);
	}
	assert_true(good);
}

static void what_is_allocated_after_a_fork_is_shown(void **state)
{
	char *before = allocate(MIB, ARENA_READ), *after;
	struct arena_place place = { 0 }, next = { 0 };
	pid_t pid;

	assert_true(arena_find(arena, before, MIB, &place));
	pid = fork();
	assert_true(pid >= 0);
	if (!pid)
		_exit(0);
	assert_int_equal(child_says(pid, -1), 0);
	assert_false(arena_find(arena, before, MIB, &next));
	assert_true(arena->directory->entries[place.chunk].retired);
	after = allocate(MIB, ARENA_READ);
	assert_true(arena_find(arena, after, MIB, &next));
	assert_int_not_equal(place.chunk, next.chunk);
	assert_int_equal(arena_free(arena, before), 0);
	assert_int_equal(arena_free(arena, after), 0);
}

static void freeing_takes_nothing_from_a_child(void **state)
{
	char *addr = allocate(MIB, ARENA_READ), byte;
	int go[2];
	pid_t pid;

	assert_int_equal(pipe(go), 0);
	memset(addr, 3, MIB);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid)
		_exit(read(go[0], &byte, 1) == 1 && addr[0] == 3 && addr[MIB - 1] == 3 ? 0 : 1);
	assert_int_equal(arena_free(arena, addr), 0);
	assert_int_equal(child_says(pid, go[1]), 0);
	close(go[0]);
	close(go[1]);
}

static void protections_are_kept_in(enum arena_kind kind)
{
	char *addr = allocate(MIB, kind);
	int data[2];
	pid_t pid;

	assert_int_equal(pipe(data), 0);
	assert_int_equal(write(data[1], "z", 1), 1);
	addr[0] = 4;
	assert_int_equal(mprotect(addr, page, PROT_READ), 0);
	pid = fork();
	assert_true(pid >= 0);
	/* the kernel stores for us, and says that it may not */
	if (!pid)
		_exit(read(data[0], addr, 1) == -1 && errno == EFAULT && addr[0] == 4 ? 0 : 1);
	assert_int_equal(child_says(pid, -1), 0);
	assert_int_equal(read(data[0], addr, 1), -1);
	close(data[0]);
	close(data[1]);
	assert_int_equal(mprotect(addr, page, PROT_READ | PROT_WRITE), 0);
	addr[0] = 5;
	assert_int_equal(arena_free(arena, addr), 0);
}

static void protections_are_kept(void **state)
{
	protections_are_kept_in(ARENA_READ);
	protections_are_kept_in(ARENA_WRITE);
}

/* A peer that still has the chunk mapped for writing. */
static void a_late_store_of_a_peer_is_seen_by_nobody(void **state)
{
	char *addr = allocate(MIB, ARENA_WRITE), byte;
	struct arena_place place = { 0 };
	void *mapped;
	int go[2];
	pid_t pid;

	assert_true(arena_find(arena, addr, MIB, &place));
	addr[0] = 1;
	assert_int_equal(sys_memfd_map(arena->chunks[place.chunk].fd,
				       arena->chunks[place.chunk].len, SYS_MEMFD_WRITE, &mapped),
			 0);
	assert_int_equal(pipe(go), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid)
		_exit(read(go[0], &byte, 1) == 1 && addr[0] == 1 ? 0 : 1);
	((char *)mapped)[place.offset] = 8;
	assert_int_equal(addr[0], 1);
	assert_int_equal(child_says(pid, go[1]), 0);
	close(go[0]);
	close(go[1]);
	sys_memfd_unmap(mapped, arena->chunks[place.chunk].len);
	assert_int_equal(arena_free(arena, addr), 0);
}

/* Something is LIVE at each fork that was not at the one before. */
static void chunks_that_were_left_are_used_again(void **state)
{
	char *held = allocate(page, ARENA_READ), *last = allocate(page, ARENA_READ), *next;
	struct arena_usage usage;
	struct arena_place place;

	held[0] = 1;
	for (int n = 0; n < FORKS_MANY; n++) {
		pid_t pid;

		next = allocate(page, n & 1 ? ARENA_READ : ARENA_WRITE);
		assert_true(arena_find(arena, next, page, &place));
		next[0] = (char)n;
		pid = fork();
		assert_true(pid >= 0);
		if (!pid)
			_exit(held[0] == 1 && next[0] == (char)n ? 0 : 1);
		assert_int_equal(child_says(pid, -1), 0);
		assert_int_equal(next[0], (char)n);
		assert_int_equal(arena_free(arena, last), 0);
		last = next;
	}
	arena_usage(arena, &usage);
	assert_true(usage.chunks <= 16 * ARENA_SLOT);
	assert_true(arena->chunk_cnt <= 16);
	assert_int_equal(arena_free(arena, last), 0);
	assert_int_equal(arena_free(arena, held), 0);
}

static void a_chunk_with_nothing_allocated_outlives_a_fork(void **state)
{
	char *addr = allocate(MIB, ARENA_READ), *again;
	struct arena_place before = { 0 }, after = { 0 };
	uint64_t serial;
	pid_t pid;

	assert_true(arena_find(arena, addr, MIB, &before));
	serial = arena->chunks[before.chunk].serial;
	memset(addr, 7, MIB);
	assert_int_equal(arena_free(arena, addr), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		/* the child's own chunks may be where the parent's are */
		again = allocate(MIB, ARENA_READ);
		_exit(again[0] == 0 && again[MIB - 1] == 0 ? 0 : 1);
	}
	assert_int_equal(child_says(pid, -1), 0);
	again = allocate(MIB, ARENA_READ);
	assert_true(arena_find(arena, again, MIB, &after));
	assert_int_equal(after.chunk, before.chunk);
	assert_true(arena->chunks[after.chunk].serial == serial);
	assert_int_equal(again[0], 7);
	assert_int_equal(arena_free(arena, again), 0);
}

/* In a child: 0, or what is wrong. @addr is the parent's, with a 1 at its beginning. */
static int child_begins_anew(char *addr, const uint8_t *parents)
{
	struct arena_place place;
	uint8_t nonce[ARENA_NONCE];
	char *own;
	uint32_t fd;

	if (arena_directory_at(arena, &fd, nonce) || arena_find(arena, addr, 1, &place))
		return 1;
	own = allocate(MIB, ARENA_WRITE);
	own[0] = 2;
	if (!arena_find(arena, own, MIB, &place) || !arena_directory_at(arena, &fd, nonce) ||
	    !memcmp(nonce, parents, ARENA_NONCE))
		return 2;
	if (addr[0] != 1 || arena_free(arena, addr) || !arena_free(arena, addr))
		return 3;
	return arena_free(arena, own) ? 4 : 0;
}

static void a_child_begins_an_arena_of_its_own(void **state)
{
	char *addr = allocate(MIB, ARENA_READ);
	uint8_t nonce[ARENA_NONCE], after[ARENA_NONCE];
	uint32_t fd, fd_after;
	int status;
	pid_t pid;

	assert_true(arena_directory_at(arena, &fd, nonce));
	addr[0] = 1;
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		pid = fork();
		if (pid && (waitpid(pid, &status, 0) != pid || status))
			_exit(5);
		_exit(child_begins_anew(addr, nonce));
	}
	assert_int_equal(child_says(pid, -1), 0);
	assert_true(arena_directory_at(arena, &fd_after, after));
	assert_int_equal(fd, fd_after);
	assert_memory_equal(nonce, after, ARENA_NONCE);
	assert_int_equal(addr[0], 1);
	assert_int_equal(arena_free(arena, addr), 0);
}

/* A program that has no /proc (chroot), or as many descriptors as it may have. */
static void a_child_has_its_memory_where_the_kernel_can_not_be_asked(void **state)
{
	static const int errors[] = { FI_ENOENT, FI_EMFILE };

	for (int i = 0; i < 4; i++) {
		int error = errors[i / 2];
		char *addr = allocate(64 * MIB, i & 1 ? ARENA_READ : ARENA_WRITE);
		pid_t pid;

		memset(addr, 7, MIB);
		addr[63 * MIB] = 8;
		sys_fault_set(SYS_CALL_OPEN_MAPS, error, 0, 0);
		if (error == FI_EMFILE)
			sys_fault_set(SYS_CALL_FCNTL_DUP, error, 0, 0);
		pid = fork();
		assert_true(pid >= 0);
		if (!pid) {
			char *own = allocate(MIB, ARENA_READ);

			own[0] = 1;
			_exit(addr[0] == 7 && addr[MIB - 1] == 7 && addr[63 * MIB] == 8 &&
					      !addr[MIB]
				      ? 0
				      : 1);
		}
		sys_fault_clear();
		addr[0] = 9;
		assert_int_equal(child_says(pid, -1), 0);
		assert_int_equal(addr[63 * MIB], 8);
		assert_int_equal(arena_free(arena, addr), 0);
	}
}

/* What a part of a chunk is can't be known there: the child lacks it, and finds no zeros instead. */
static void what_a_child_lacks_ends_it(void **state)
{
	char *addr = allocate(MIB, ARENA_READ);
	pid_t pid;
	int status;

	addr[0] = 7;
	arena_retire(arena, addr);
	sys_fault_set(SYS_CALL_OPEN_MAPS, FI_ENOENT, 0, 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		/* the test's own handler would go on */
		signal(SIGSEGV, SIG_DFL);
		_exit(*(volatile char *)addr);
	}
	sys_fault_clear();
	status = child_says(pid, -1);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGSEGV);
	assert_int_equal(addr[0], 7);
	assert_int_equal(arena_free(arena, addr), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(children_find_the_readers_of_a_peer_whole),
		cmocka_unit_test(neither_sees_what_the_other_stores_later),
		cmocka_unit_test(a_child_has_one_moment_of_four_threads),
		cmocka_unit_test(what_is_allocated_after_a_fork_is_shown),
		cmocka_unit_test(freeing_takes_nothing_from_a_child),
		cmocka_unit_test(protections_are_kept),
		cmocka_unit_test(a_late_store_of_a_peer_is_seen_by_nobody),
		cmocka_unit_test(chunks_that_were_left_are_used_again),
		cmocka_unit_test(a_chunk_with_nothing_allocated_outlives_a_fork),
		cmocka_unit_test(a_child_begins_an_arena_of_its_own),
		cmocka_unit_test(a_child_has_its_memory_where_the_kernel_can_not_be_asked),
		cmocka_unit_test(what_a_child_lacks_ends_it),
	};

	return cmocka_run_group_tests(tests, start, NULL);
}
