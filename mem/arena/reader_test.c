/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Tests of reading a peer's arena: the child of a fork has one, and this process, which has none, maps it once
 * for all of its readers. One child serves all tests, since it takes seconds to begin where the processor is
 * emulated; each leaves it with a chunk that is read and one that is written.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include <rdma/fi_errno.h>
#include "arena.h"
#include "fault.h"
#include "memfd.h"
#include "reader.h"

#define LEN	((size_t)1 << 20)
#define THREADS 4
#define ROUNDS	50

/* What the owner tells of itself. */
struct told {
	struct arena_peer_id id;
	struct arena_place read, write;
	uint64_t read_addr;
	/* of the chunks */
	int read_fd, write_fd;
};

struct owner {
	pid_t pid;
	int to, from;
	struct told told;
};

/* The chunk that is written ends, and another one has its addresses, index and place. Returns that. */
static void *chunk_anew(struct arena *arena, void *addr)
{
	arena_retire(arena, addr);
	if (arena_free(arena, addr) || arena_alloc(arena, LEN, 1, ARENA_WRITE, &addr, NULL))
		_exit(1);
	memset(addr, 77, LEN);
	return addr;
}

/*
 * Commands to the owner: 'r' retires the chunk that is written, 'f' ends it and makes another one, 'q' ends,
 * '?' says its first byte.
 */
static void owner_run(int in, int out)
{
	struct arena *arena = arena_get();
	struct told told = { .id.pid = (uint32_t)getpid() };
	unsigned char *read_addr, *write_addr;
	void *addr;
	char command;

	if (!arena || arena_alloc(arena, LEN, 1, ARENA_READ, &addr, NULL))
		_exit(1);
	read_addr = addr;
	memset(addr, 17, LEN);
	if (arena_alloc(arena, LEN, 1, ARENA_WRITE, &addr, NULL))
		_exit(1);
	write_addr = addr;
	told.id.fd = (uint32_t)arena->directory_fd;
	memcpy(told.id.nonce, arena->directory->head.nonce, ARENA_NONCE);
	told.read_addr = (uintptr_t)read_addr;
	if (!arena_find(arena, read_addr, LEN, &told.read) ||
	    !arena_find(arena, write_addr, LEN, &told.write))
		_exit(1);
	told.read_fd = arena->chunks[told.read.chunk].fd;
	told.write_fd = arena->chunks[told.write.chunk].fd;
	if (write(out, &told, sizeof(told)) != sizeof(told))
		_exit(1);
	while (read(in, &command, 1) == 1 && command != 'q') {
		if (command == 'r')
			arena_retire(arena, write_addr);
		if (command == 'f')
			write_addr = chunk_anew(arena, write_addr);
		if (write(out, write_addr, 1) != 1)
			_exit(1);
	}
	_exit(0);
}

static int owner_start(void **state)
{
	struct owner *o = calloc(1, sizeof(*o));
	int to[2], from[2];

	if (!o || pipe(to) || pipe(from))
		return -1;
	o->pid = fork();
	if (!o->pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		owner_run(to[0], from[1]);
	}
	close(to[0]);
	close(from[1]);
	o->to = to[1];
	o->from = from[0];
	*state = o;
	if (read(o->from, &o->told, sizeof(o->told)) != sizeof(o->told))
		return -1;
	o->told.id.process = o;
	return 0;
}

static int owner_end(void **state)
{
	struct owner *o = *state;
	int status;

	/* it may have ended already */
	signal(SIGPIPE, SIG_IGN);
	if ((write(o->to, "q", 1) != 1 && errno != EPIPE) ||
	    waitpid(o->pid, &status, 0) != o->pid)
		return -1;
	close(o->to);
	close(o->from);
	free(o);
	return status;
}

static unsigned char owner_ask(struct owner *o, char command)
{
	unsigned char byte;

	assert_int_equal(write(o->to, &command, 1), 1);
	assert_int_equal(read(o->from, &byte, 1), 1);
	return byte;
}

static void open_reader(const struct owner *o, struct arena_reader *reader)
{
	assert_int_equal(arena_reader_open(reader, &o->told.id), 0);
}

/* Returns the mappings of arenas' directories and chunks that this process has. */
static int mapping_cnt(void)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[512];
	int cnt = 0;

	assert_non_null(maps);
	while (fgets(line, sizeof(line), maps))
		cnt += strstr(line, "memfd:weft-") != NULL;
	fclose(maps);
	return cnt;
}

static void a_peer_loads_and_stores(void **state)
{
	struct owner *o = *state;
	const struct told *t = &o->told;
	struct arena_reader reader;
	unsigned char *addr;

	open_reader(o, &reader);
	addr = arena_reader_at(&reader, t->read.chunk, t->read.offset, LEN, false);
	assert_non_null(addr);
	assert_int_equal(addr[0], 17);
	assert_int_equal(addr[LEN - 1], 17);
	assert_ptr_equal(arena_reader_find(&reader, t->read_addr, LEN, false), addr);
	assert_ptr_equal(arena_reader_find(&reader, t->read_addr + 5, LEN - 5, false), addr + 5);
	assert_null(arena_reader_at(&reader, t->read.chunk, t->read.offset, 1, true));

	addr = arena_reader_at(&reader, t->write.chunk, t->write.offset, LEN, true);
	assert_non_null(addr);
	addr[0] = 99;
	assert_int_equal(owner_ask(o, '?'), 99);
	arena_reader_close(&reader);
	arena_reader_close(&reader);
}

static void places_outside_are_refused(void **state)
{
	struct owner *o = *state;
	const struct told *t = &o->told;
	struct arena_reader reader;
	uint64_t len;

	open_reader(o, &reader);
	assert_non_null(arena_reader_at(&reader, t->read.chunk, t->read.offset, 1, false));
	len = reader.maps[t->read.chunk].len;
	assert_non_null(arena_reader_at(&reader, t->read.chunk, len - 1, 1, false));
	assert_null(arena_reader_at(&reader, t->read.chunk, len - 1, 2, false));
	assert_null(arena_reader_at(&reader, t->read.chunk, len + 1, 0, false));
	assert_null(arena_reader_at(&reader, t->read.chunk, 1, UINT64_MAX, false));
	assert_null(arena_reader_at(&reader, 2, 0, 1, false));
	assert_null(arena_reader_at(&reader, ARENA_CHUNKS, 0, 1, false));
	assert_null(arena_reader_at(&reader, UINT32_MAX, 0, 1, false));
	assert_null(arena_reader_find(&reader, 0, 1, false));
	assert_null(arena_reader_find(&reader, UINT64_MAX, 1, false));
	assert_null(
		arena_reader_find(&reader, t->read_addr - t->read.offset + len - 1, 2, false));
	arena_reader_close(&reader);
}

static void a_retired_chunk_is_refused(void **state)
{
	struct owner *o = *state;
	const struct told *t = &o->told;
	struct arena_reader reader;
	uint64_t number;

	open_reader(o, &reader);
	assert_non_null(arena_reader_at(&reader, t->write.chunk, t->write.offset, 1, true));
	number = reader.maps[t->write.chunk].number;
	assert_true(arena_reader_valid(&reader, t->write.chunk, number));
	owner_ask(o, 'r');
	assert_false(arena_reader_valid(&reader, t->write.chunk, number));
	assert_null(arena_reader_at(&reader, t->write.chunk, t->write.offset, 1, true));
	assert_non_null(arena_reader_at(&reader, t->read.chunk, t->read.offset, 1, false));
	arena_reader_close(&reader);
	owner_ask(o, 'f');
}

static void a_chunk_is_not_taken_for_the_one_before_it(void **state)
{
	struct owner *o = *state;
	const struct told *t = &o->told;
	struct arena_reader reader;
	uint64_t number, serial, addr;
	unsigned char *before, *after;

	open_reader(o, &reader);
	before = arena_reader_at(&reader, t->write.chunk, t->write.offset, LEN, true);
	assert_non_null(before);
	number = reader.maps[t->write.chunk].number;
	serial = reader.maps[t->write.chunk].serial;
	addr = reader.maps[t->write.chunk].base + t->write.offset;
	assert_int_equal(owner_ask(o, 'f'), 77);
	assert_false(arena_reader_valid(&reader, t->write.chunk, number));
	/* what was mapped stays so while it may be used, and is nobody's */
	before[0] = 5;
	assert_int_equal(owner_ask(o, '?'), 77);
	after = arena_reader_find(&reader, addr, LEN, true);
	assert_non_null(after);
	assert_ptr_not_equal(after, before);
	assert_int_equal(before[0], 5);
	assert_int_equal(after[0], 77);
	assert_false(arena_reader_valid(&reader, t->write.chunk, number));
	assert_null(arena_reader_lent(&reader, t->write.chunk, (uint32_t)serial, 0, LEN));
	after[0] = 6;
	assert_int_equal(owner_ask(o, '?'), 6);
	assert_non_null(reader.stale);
	arena_reader_tidy(&reader);
	assert_null(reader.stale);
	assert_ptr_equal(arena_reader_find(&reader, addr, LEN, true), after);
	arena_reader_close(&reader);
}

static void two_readers_of_an_owner_are_one(void **state)
{
	struct owner *o = *state;
	const struct told *t = &o->told;
	struct arena_reader first, second;
	unsigned char *addr;

	open_reader(o, &first);
	open_reader(o, &second);
	assert_ptr_equal(first.directory, second.directory);
	assert_int_equal(mapping_cnt(), 1);
	addr = arena_reader_at(&first, t->read.chunk, t->read.offset, LEN, false);
	assert_non_null(addr);
	assert_ptr_equal(arena_reader_find(&second, t->read_addr, LEN, false), addr);
	assert_int_equal(mapping_cnt(), 2);
	arena_reader_close(&first);
	assert_int_equal(mapping_cnt(), 2);
	assert_int_equal(addr[0], 17);
	assert_ptr_equal(arena_reader_find(&second, t->read_addr, LEN, false), addr);
	arena_reader_close(&second);
	assert_int_equal(mapping_cnt(), 0);
}

static void a_chunk_that_ended_is_kept_for_those_who_read_it(void **state)
{
	struct owner *o = *state;
	const struct told *t = &o->told;
	struct arena_reader first, second;
	unsigned char *before, *after;
	uint64_t addr;

	open_reader(o, &first);
	open_reader(o, &second);
	before = arena_reader_at(&first, t->write.chunk, t->write.offset, LEN, true);
	assert_non_null(before);
	addr = first.maps[t->write.chunk].base + t->write.offset;
	assert_ptr_equal(arena_reader_find(&second, addr, LEN, true), before);
	assert_int_equal(owner_ask(o, 'f'), 77);
	arena_reader_tidy(&first);
	assert_int_equal(mapping_cnt(), 2);
	after = arena_reader_find(&first, addr, LEN, true);
	assert_non_null(after);
	assert_int_equal(after[0], 77);
	assert_int_equal(mapping_cnt(), 3);
	/* the second one may still be using what it has found, which is nobody's */
	before[0] = 5;
	assert_int_equal(after[0], 77);
	assert_ptr_equal(arena_reader_find(&second, addr, LEN, true), after);
	arena_reader_tidy(&second);
	assert_int_equal(mapping_cnt(), 2);
	arena_reader_close(&second);
	assert_int_equal(after[0], 77);
	arena_reader_close(&first);
	assert_int_equal(mapping_cnt(), 0);
}

/* A number that is another process's by now, or that of two processes that say the same of themselves. */
static void processes_are_not_taken_for_each_other(void **state)
{
	struct owner *o = *state;
	const struct told *t = &o->told;
	struct arena_peer_id id = t->id;
	struct arena_reader first, second;

	open_reader(o, &first);
	id.process = &id;
	assert_int_equal(arena_reader_open(&second, &id), 0);
	assert_ptr_not_equal(first.directory, second.directory);
	assert_ptr_not_equal(arena_reader_find(&first, t->read_addr, LEN, false),
			     arena_reader_find(&second, t->read_addr, LEN, false));
	arena_reader_close(&second);
	id = t->id;
	id.nonce[0]++;
	assert_int_equal(arena_reader_open(&second, &id), -FI_ENOENT);
	arena_reader_close(&first);
}

static void an_owner_that_has_ended_is_read_until_the_last_closes(void **state)
{
	struct owner *o = *state;
	const struct told *t = &o->told;
	struct arena_reader first, second;
	const unsigned char *addr;
	siginfo_t info;

	open_reader(o, &first);
	open_reader(o, &second);
	addr = arena_reader_find(&first, t->read_addr, LEN, false);
	assert_int_equal(write(o->to, "q", 1), 1);
	assert_int_equal(waitid(P_PID, (id_t)o->pid, &info, WEXITED | WNOWAIT), 0);
	/* what is mapped is there for both; what is not can't be had any more */
	assert_ptr_equal(arena_reader_find(&second, t->read_addr, LEN, false), addr);
	assert_null(arena_reader_at(&second, t->write.chunk, t->write.offset, 1, true));
	arena_reader_close(&first);
	assert_int_equal(addr[LEN - 1], 17);
	arena_reader_close(&second);
	assert_int_equal(mapping_cnt(), 0);
}

/* The threads that read go on. */
static _Atomic bool going;

/* Reads all there is, again and again. What is found is whole, whoever maps it or lets go of it meanwhile. */
static void *read_rounds(void *arg)
{
	const struct owner *o = arg;
	const struct told *t = &o->told;

	for (int round = 0; round < ROUNDS || atomic_load(&going); round++) {
		struct arena_reader reader;
		const unsigned char *addr;

		if (arena_reader_open(&reader, &t->id))
			return "not opened";
		addr = arena_reader_find(&reader, t->read_addr, LEN, false);
		if (!addr || addr[0] != 17 || addr[LEN - 1] != 17)
			return "not found";
		addr = arena_reader_at(&reader, t->write.chunk, t->write.offset, LEN, true);
		if (addr && addr[1] != 0 && addr[1] != 77)
			return "another chunk's";
		arena_reader_tidy(&reader);
		arena_reader_close(&reader);
	}
	return NULL;
}

static void threads_share_what_is_mapped(void **state)
{
	struct owner *o = *state;
	pthread_t threads[THREADS];
	void *fault;

	atomic_store(&going, true);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, read_rounds, o), 0);
	for (int i = 0; i < 4; i++)
		owner_ask(o, 'f');
	atomic_store(&going, false);
	for (int i = 0; i < THREADS; i++) {
		assert_int_equal(pthread_join(threads[i], &fault), 0);
		if (fault)
			fail_msg("%s", (const char *)fault);
	}
	assert_int_equal(mapping_cnt(), 0);
}

static void only_that_directory_is_opened(void **state)
{
	struct owner *o = *state;
	const struct told *t = &o->told;
	struct arena_reader reader;
	struct arena_peer_id id = t->id;

	id.nonce[0]++;
	assert_int_equal(arena_reader_open(&reader, &id), -FI_ENOENT);
	id = t->id;
	id.fd = (uint32_t)t->read_fd;
	assert_int_equal(arena_reader_open(&reader, &id), -FI_ENOENT);
	id.fd = 0;
	assert_int_equal(arena_reader_open(&reader, &id), -FI_EINVAL);
	id.fd = UINT32_MAX;
	assert_true(arena_reader_open(&reader, &id) < 0);
	id = t->id;
	id.pid = 0;
	assert_int_equal(arena_reader_open(&reader, &id), -FI_EINVAL);
	id.pid = UINT32_MAX;
	assert_true(arena_reader_open(&reader, &id) < 0);
}

static void lack_of_descriptors_passes(void **state)
{
	struct owner *o = *state;
	const struct told *t = &o->told;
	struct arena_reader reader;

	sys_fault_set(SYS_CALL_OPEN_FD, FI_EMFILE, 0, 0);
	assert_int_equal(arena_reader_open(&reader, &t->id), -FI_EMFILE);
	sys_fault_clear();
	open_reader(o, &reader);
	sys_fault_set(SYS_CALL_OPEN_FD, FI_EMFILE, 0, 0);
	assert_null(arena_reader_at(&reader, t->read.chunk, t->read.offset, 1, false));
	sys_fault_clear();
	assert_non_null(arena_reader_at(&reader, t->read.chunk, t->read.offset, 1, false));
	sys_fault_set(SYS_CALL_OPEN_FD, FI_EPERM, 0, 0);
	assert_null(arena_reader_at(&reader, t->write.chunk, t->write.offset, 1, false));
	sys_fault_clear();
	/* what is refused once stays refused */
	assert_null(arena_reader_at(&reader, t->write.chunk, t->write.offset, 1, false));
	arena_reader_close(&reader);
}

/* Returns true if a system call was refused, or is unknown to this kernel or emulator. */
static bool refused(ssize_t result)
{
	return result < 0 && (errno == EPERM || errno == ENOSYS);
}

/* Returns true if the owner's memory can be had by its addresses. */
static bool reaches_owner(uint32_t pid)
{
	char byte = 0, path[64];
	struct iovec iov = { &byte, 1 };

	snprintf(path, sizeof(path), "/proc/%u/mem", pid);
	return !refused(process_vm_readv((pid_t)pid, &iov, 1, &iov, 1, 0)) ||
	       !refused(process_vm_writev((pid_t)pid, &iov, 1, &iov, 1, 0)) ||
	       open(path, O_RDONLY) >= 0;
}

/* Returns true if a descriptor for reading can be made one for writing, by mapping it. */
static bool maps_to_write(int read_only)
{
	void *at = mmap(NULL, LEN, PROT_READ, MAP_SHARED, read_only, 0);

	return at == MAP_FAILED || !mprotect(at, LEN, PROT_READ | PROT_WRITE) ||
	       mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_SHARED, read_only, 0) != MAP_FAILED;
}

/* Returns 0 if nothing can be had of the owner's chunks by somebody who holds descriptors of them. */
static int rob(const struct told *t, int read_only, int path_only)
{
	char path[64];
	struct arena_reader reader;

	if (setgid(65534) || setuid(65534))
		return 1;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", read_only);
	if (open(path, O_RDWR) >= 0 || maps_to_write(read_only))
		return 2;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", path_only);
	if (open(path, O_RDONLY) >= 0 || open(path, O_RDWR) >= 0)
		return 3;
	if (ftruncate(read_only, 0) == 0 || fchmod(read_only, 0666) == 0)
		return 4;
	if (reaches_owner(t->id.pid))
		return 6;
	return arena_reader_open(&reader, &t->id) < 0 ? 0 : 5;
}

static void another_user_gets_nothing(void **state)
{
	struct owner *o = *state;
	const struct told *t = &o->told;
	char path[64];
	int read_only, path_only, status;
	pid_t pid;

	if (getuid())
		skip();
	snprintf(path, sizeof(path), "/proc/%u/fd/%d", t->id.pid, t->read_fd);
	read_only = open(path, O_RDONLY);
	snprintf(path, sizeof(path), "/proc/%u/fd/%d", t->id.pid, t->write_fd);
	path_only = open(path, O_PATH);
	assert_true(read_only >= 0 && path_only >= 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid)
		_exit(rob(t, read_only, path_only));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	close(read_only);
	close(path_only);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		/* with the descriptors that the owner has at first */
		cmocka_unit_test(another_user_gets_nothing),
		cmocka_unit_test(only_that_directory_is_opened),
		cmocka_unit_test(a_peer_loads_and_stores),
		cmocka_unit_test(places_outside_are_refused),
		cmocka_unit_test(lack_of_descriptors_passes),
		cmocka_unit_test(a_retired_chunk_is_refused),
		cmocka_unit_test(a_chunk_is_not_taken_for_the_one_before_it),
		cmocka_unit_test(two_readers_of_an_owner_are_one),
		cmocka_unit_test(a_chunk_that_ended_is_kept_for_those_who_read_it),
		cmocka_unit_test(processes_are_not_taken_for_each_other),
		cmocka_unit_test(threads_share_what_is_mapped),
		/* the last one: the owner ends */
		cmocka_unit_test(an_owner_that_has_ended_is_read_until_the_last_closes),
	};

	return cmocka_run_group_tests(tests, owner_start, owner_end);
}
