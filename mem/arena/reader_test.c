/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Tests of reading a peer's arena: another process has one (owner.h), and this process, which has none, maps it
 * once for all of its readers. One owner serves all tests, since it takes seconds to begin where the processor is
 * emulated; each leaves it with a chunk that is read and one that is written.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include <rdma/fi_errno.h>
#include "arena.h"
#include "fault.h"
#include "owner.h"
#include "reader.h"

#define THREADS 4
#define ROUNDS	50

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
	const struct owner_told *t = &o->told;
	struct arena_reader reader;
	unsigned char *addr;

	open_reader(o, &reader);
	addr = arena_reader_find(&reader, t->read_addr, OWNER_LEN, false);
	assert_non_null(addr);
	assert_int_equal(addr[0], 17);
	assert_int_equal(addr[OWNER_LEN - 1], 17);
	assert_ptr_equal(arena_reader_find(&reader, t->read_addr + 5, OWNER_LEN - 5, false),
			 addr + 5);
	assert_null(arena_reader_find(&reader, t->read_addr, 1, true));

	addr = arena_reader_find(&reader, t->write_addr, OWNER_LEN, true);
	assert_non_null(addr);
	addr[0] = 99;
	assert_int_equal(owner_ask(o, '?'), 99);
	arena_reader_close(&reader);
	arena_reader_close(&reader);
}

static void places_outside_are_refused(void **state)
{
	struct owner *o = *state;
	const struct owner_told *t = &o->told;
	struct arena_reader reader;
	uint64_t end;

	open_reader(o, &reader);
	assert_non_null(arena_reader_find(&reader, t->read_addr, 1, false));
	end = t->read_addr - t->read.offset + reader.maps[t->read.chunk].len;
	assert_non_null(arena_reader_find(&reader, end - 1, 1, false));
	assert_null(arena_reader_find(&reader, end - 1, 2, false));
	assert_null(arena_reader_find(&reader, t->read_addr, UINT64_MAX, false));
	assert_null(arena_reader_find(&reader, 0, 1, false));
	assert_null(arena_reader_find(&reader, UINT64_MAX, 1, false));
	arena_reader_close(&reader);
}

static void a_retired_chunk_is_refused(void **state)
{
	struct owner *o = *state;
	const struct owner_told *t = &o->told;
	struct arena_reader reader;
	uint64_t number;

	open_reader(o, &reader);
	assert_non_null(arena_reader_find(&reader, t->write_addr, 1, true));
	number = reader.maps[t->write.chunk].number;
	assert_true(arena_reader_valid(&reader, t->write.chunk, number));
	owner_ask(o, 'r');
	assert_false(arena_reader_valid(&reader, t->write.chunk, number));
	assert_null(arena_reader_find(&reader, t->write_addr, 1, true));
	assert_non_null(arena_reader_find(&reader, t->read_addr, 1, false));
	arena_reader_close(&reader);
	owner_ask(o, 'f');
}

static void a_chunk_is_not_taken_for_the_one_before_it(void **state)
{
	struct owner *o = *state;
	const struct owner_told *t = &o->told;
	struct arena_reader reader;
	uint64_t number, serial, addr;
	unsigned char *before, *after;

	open_reader(o, &reader);
	before = arena_reader_find(&reader, t->write_addr, OWNER_LEN, true);
	assert_non_null(before);
	number = reader.maps[t->write.chunk].number;
	serial = reader.maps[t->write.chunk].serial;
	addr = t->write_addr;
	assert_int_equal(owner_ask(o, 'f'), 77);
	assert_false(arena_reader_valid(&reader, t->write.chunk, number));
	/* what was mapped stays so while it may be used, and is nobody's */
	before[0] = 5;
	assert_int_equal(owner_ask(o, '?'), 77);
	after = arena_reader_find(&reader, addr, OWNER_LEN, true);
	assert_non_null(after);
	assert_ptr_not_equal(after, before);
	assert_int_equal(before[0], 5);
	assert_int_equal(after[0], 77);
	assert_false(arena_reader_valid(&reader, t->write.chunk, number));
	assert_null(arena_reader_lent(&reader, t->write.chunk, (uint32_t)serial, 0, OWNER_LEN));
	after[0] = 6;
	assert_int_equal(owner_ask(o, '?'), 6);
	assert_non_null(reader.stale);
	arena_reader_tidy(&reader);
	assert_null(reader.stale);
	assert_ptr_equal(arena_reader_find(&reader, addr, OWNER_LEN, true), after);
	arena_reader_close(&reader);
}

static void two_readers_of_an_owner_are_one(void **state)
{
	struct owner *o = *state;
	const struct owner_told *t = &o->told;
	struct arena_reader first, second;
	unsigned char *addr;

	open_reader(o, &first);
	open_reader(o, &second);
	assert_ptr_equal(first.directory, second.directory);
	assert_int_equal(mapping_cnt(), 1);
	addr = arena_reader_find(&first, t->read_addr, OWNER_LEN, false);
	assert_non_null(addr);
	assert_ptr_equal(arena_reader_find(&second, t->read_addr, OWNER_LEN, false), addr);
	assert_int_equal(mapping_cnt(), 2);
	arena_reader_close(&first);
	assert_int_equal(mapping_cnt(), 2);
	assert_int_equal(addr[0], 17);
	assert_ptr_equal(arena_reader_find(&second, t->read_addr, OWNER_LEN, false), addr);
	arena_reader_close(&second);
	assert_int_equal(mapping_cnt(), 0);
}

static void a_chunk_that_ended_is_kept_for_those_who_read_it(void **state)
{
	struct owner *o = *state;
	const struct owner_told *t = &o->told;
	struct arena_reader first, second;
	unsigned char *before, *after;
	uint64_t addr;

	open_reader(o, &first);
	open_reader(o, &second);
	before = arena_reader_find(&first, t->write_addr, OWNER_LEN, true);
	assert_non_null(before);
	addr = t->write_addr;
	assert_ptr_equal(arena_reader_find(&second, addr, OWNER_LEN, true), before);
	assert_int_equal(owner_ask(o, 'f'), 77);
	arena_reader_tidy(&first);
	assert_int_equal(mapping_cnt(), 2);
	after = arena_reader_find(&first, addr, OWNER_LEN, true);
	assert_non_null(after);
	assert_int_equal(after[0], 77);
	assert_int_equal(mapping_cnt(), 3);
	/* the second one may still be using what it has found, which is nobody's */
	before[0] = 5;
	assert_int_equal(after[0], 77);
	assert_ptr_equal(arena_reader_find(&second, addr, OWNER_LEN, true), after);
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
	const struct owner_told *t = &o->told;
	struct arena_peer_id id = t->id;
	struct arena_reader first, second;

	open_reader(o, &first);
	id.process = &id;
	assert_int_equal(arena_reader_open(&second, &id), 0);
	assert_ptr_not_equal(first.directory, second.directory);
	assert_ptr_not_equal(arena_reader_find(&first, t->read_addr, OWNER_LEN, false),
			     arena_reader_find(&second, t->read_addr, OWNER_LEN, false));
	arena_reader_close(&second);
	id = t->id;
	id.nonce[0]++;
	assert_int_equal(arena_reader_open(&second, &id), -FI_ENOENT);
	arena_reader_close(&first);
}

static void an_owner_that_has_ended_is_read_until_the_last_closes(void **state)
{
	struct owner *o = *state;
	const struct owner_told *t = &o->told;
	struct arena_reader first, second;
	const unsigned char *addr;
	siginfo_t info;

	open_reader(o, &first);
	open_reader(o, &second);
	addr = arena_reader_find(&first, t->read_addr, OWNER_LEN, false);
	assert_int_equal(write(o->to, "q", 1), 1);
	assert_int_equal(waitid(P_PID, (id_t)o->pid, &info, WEXITED | WNOWAIT), 0);
	/* what is mapped is there for both; what is not can't be had any more */
	assert_ptr_equal(arena_reader_find(&second, t->read_addr, OWNER_LEN, false), addr);
	assert_null(arena_reader_find(&second, t->write_addr, 1, true));
	arena_reader_close(&first);
	assert_int_equal(addr[OWNER_LEN - 1], 17);
	arena_reader_close(&second);
	assert_int_equal(mapping_cnt(), 0);
}

/* The threads that read go on. */
static _Atomic bool going;

/* Reads all there is, again and again. What is found is whole, whoever maps it or lets go of it meanwhile. */
static void *read_rounds(void *arg)
{
	const struct owner *o = arg;
	const struct owner_told *t = &o->told;

	for (int round = 0; round < ROUNDS || atomic_load(&going); round++) {
		struct arena_reader reader;
		const unsigned char *addr;

		if (arena_reader_open(&reader, &t->id))
			return "not opened";
		addr = arena_reader_find(&reader, t->read_addr, OWNER_LEN, false);
		if (!addr || addr[0] != 17 || addr[OWNER_LEN - 1] != 17)
			return "not found";
		addr = arena_reader_find(&reader, t->write_addr, OWNER_LEN, true);
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
	const struct owner_told *t = &o->told;
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
	const struct owner_told *t = &o->told;
	static const int lacks[] = { FI_EMFILE, ENFILE, FI_ENOMEM };
	struct arena_reader reader;

	sys_fault_set(SYS_CALL_OPEN_FD, FI_EMFILE, 0, 0);
	assert_int_equal(arena_reader_open(&reader, &t->id), -FI_EMFILE);
	sys_fault_clear();
	open_reader(o, &reader);
	for (size_t i = 0; i < sizeof(lacks) / sizeof(lacks[0]); i++) {
		sys_fault_set(SYS_CALL_OPEN_FD, lacks[i], 0, 0);
		assert_null(arena_reader_find(&reader, t->read_addr, 1, false));
		sys_fault_clear();
	}
	assert_int_equal(reader.failures, 0);
	assert_non_null(arena_reader_find(&reader, t->read_addr, 1, false));
	sys_fault_set(SYS_CALL_OPEN_FD, FI_EPERM, 0, 0);
	assert_null(arena_reader_find(&reader, t->write_addr, 1, false));
	sys_fault_clear();
	/* what is refused once stays refused */
	assert_null(arena_reader_find(&reader, t->write_addr, 1, false));
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
	void *at = mmap(NULL, OWNER_LEN, PROT_READ, MAP_SHARED, read_only, 0);

	return at == MAP_FAILED || !mprotect(at, OWNER_LEN, PROT_READ | PROT_WRITE) ||
	       mmap(NULL, OWNER_LEN, PROT_READ | PROT_WRITE, MAP_SHARED, read_only, 0) !=
		       MAP_FAILED;
}

/* Returns 0 if nothing can be had of the owner's chunks by somebody who holds descriptors of them. */
static int rob(const struct owner_told *t, int read_only, int path_only)
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
	const struct owner_told *t = &o->told;
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
