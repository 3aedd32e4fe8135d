/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Readers of an arena whose owner shows anything: a directory of the test's own, with as many entries as there
 * can be, of sparse files. What it costs the reader in mappings, addresses and time has an end.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include <rdma/fi_errno.h>
#include "chunk.h"
#include "maps.h"
#include "memfd.h"
#include "reader.h"
#include "reserve.h"

#define SMALL	 ((size_t)64 << 10)
#define BIG	 ((size_t)512 << 30)
#define ARENA_AT ((uint64_t)1 << 40)
#define GIB	 ((uint64_t)1 << 30)

static struct arena_directory *directory;
static int directory_fd, small_fd, big_fd;

/* Shows a file as so many chunks, one behind the other. */
static void show(int fd, size_t len, uint32_t cnt)
{
	uint64_t inode;

	assert_int_equal(sys_memfd_inode(fd, &inode), 0);
	for (uint32_t i = 0; i < cnt; i++) {
		struct arena_entry *entry = &directory->entries[i];

		entry->base = ARENA_AT + i * len;
		entry->len = len;
		entry->inode = inode;
		entry->fd = (uint32_t)fd;
		entry->kind = ARENA_READ;
		atomic_store(&entry->retired, 0);
		atomic_store(&entry->serial, i + 1);
	}
	atomic_store(&directory->head.cnt, cnt);
}

static int forge(void **state)
{
	void *addr;

	directory_fd = sys_memfd_create("directory", sizeof(*directory), 0400);
	small_fd = sys_memfd_create("small", SMALL, 0400);
	big_fd = sys_memfd_create("big", BIG, 0400);
	if (directory_fd < 0 || small_fd < 0 || big_fd < 0 ||
	    sys_memfd_map(directory_fd, sizeof(*directory), SYS_MEMFD_WRITE, &addr))
		return -1;
	directory = addr;
	directory->head.magic = ARENA_MAGIC;
	directory->head.layout = ARENA_LAYOUT;
	return 0;
}

static int forget(void **state)
{
	sys_memfd_unmap(directory, sizeof(*directory));
	close(directory_fd);
	close(small_fd);
	close(big_fd);
	return 0;
}

/* Opens a reader of it, as that of another process for each number. */
static int open_as(struct arena_reader *reader, uintptr_t process)
{
	struct arena_peer_id id = { .process = (const void *)process,
				    .pid = (uint32_t)getpid(),
				    .fd = (uint32_t)directory_fd };

	memcpy(id.nonce, directory->head.nonce, ARENA_NONCE);
	return arena_reader_open(reader, &id);
}

static uint32_t mapped_cnt(const struct arena_reader *reader)
{
	uint32_t cnt = 0;

	for (uint32_t i = 0; i < reader->cnt; i++)
		cnt += reader->maps[i].addr != NULL;
	return cnt;
}

/* Looks at all entries once; returns the calls that it takes, none of which maps more than a few chunks. */
static uint32_t pass(struct arena_reader *reader, uint64_t serial)
{
	uint32_t calls = 0, before, after = mapped_cnt(reader);
	uint64_t until;

	do {
		before = after;
		until = arena_reader_map_until(reader, serial);
		after = mapped_cnt(reader);
		assert_true(after - before <= 16);
		calls++;
	} while (!until && reader->pass.idx);
	return calls;
}

static void a_process_gets_a_share_of_the_mappings(void **state)
{
	uint64_t most = sys_maps_max() / 16;
	struct arena_reader reader, other;

	show(small_fd, SMALL, ARENA_CHUNKS);
	assert_int_equal(open_as(&reader, 1), 0);
	assert_int_equal(open_as(&other, 2), 0);
	assert_true(pass(&reader, UINT64_MAX) <= ARENA_CHUNKS);
	assert_int_equal(mapped_cnt(&reader), most < ARENA_CHUNKS ? most : ARENA_CHUNKS);
	assert_true(reader.beyond || most >= ARENA_CHUNKS);
	/* another process has its own */
	pass(&other, 8);
	assert_int_equal(mapped_cnt(&other), 8);
	assert_false(other.beyond);
	arena_reader_close(&reader);
	arena_reader_close(&other);
}

static void a_process_gets_the_addresses_of_an_arena(void **state)
{
	struct arena_reader reader;

	show(big_fd, BIG, 4);
	assert_int_equal(open_as(&reader, 1), 0);
	if (!arena_reader_find(&reader, ARENA_AT, 8, false)) {
		arena_reader_close(&reader);
		print_message("skip: there are not so many addresses\n");
		skip();
	}
	assert_non_null(arena_reader_find(&reader, ARENA_AT + BIG, 8, false));
	assert_null(arena_reader_find(&reader, ARENA_AT + 2 * BIG, 8, false));
	assert_true(reader.beyond);
	assert_int_equal(mapped_cnt(&reader), 2);
	arena_reader_close(&reader);
	/* those that it gave back serve the next one */
	assert_int_equal(open_as(&reader, 1), 0);
	assert_non_null(arena_reader_find(&reader, ARENA_AT + 2 * BIG, 8, false));
	arena_reader_close(&reader);
}

/* What was too much is tried again, once, where another one has given something back. */
static void what_is_unmapped_makes_room_for_what_was_too_much(void **state)
{
	struct arena_reader full, reader;

	show(big_fd, BIG, 4);
	assert_int_equal(open_as(&full, 1), 0);
	assert_int_equal(open_as(&reader, 1), 0);
	pass(&full, 2);
	if (mapped_cnt(&full) < 2) {
		arena_reader_close(&full);
		arena_reader_close(&reader);
		print_message("skip: there are not so many addresses\n");
		skip();
	}
	for (int i = 0; i < 3; i++) {
		assert_int_equal(arena_reader_map_until(&reader, 3), 2);
		assert_null(arena_reader_find(&reader, ARENA_AT + 2 * BIG, 8, false));
	}
	assert_true(reader.beyond);
	assert_int_equal(reader.failures, 1);
	arena_reader_close(&full);
	/* the chunks of both are still mapped by the other one */
	assert_int_equal(arena_reader_map_until(&reader, 3), 2);
	/* the first one ends */
	atomic_store(&directory->entries[0].serial, 0);
	atomic_fetch_add(&directory->head.dropped, 1);
	arena_reader_tidy(&reader);
	assert_int_equal(arena_reader_map_until(&reader, 3), 3);
	assert_non_null(arena_reader_find(&reader, ARENA_AT + 2 * BIG, 8, false));
	assert_int_equal(reader.failures, 1);
	arena_reader_close(&reader);
}

static void all_processes_together_have_a_share(void **state)
{
	const uint32_t most = (uint32_t)(ARENA_PEERS_LEN / (2 * BIG));
	struct arena_reader readers[64];
	uint32_t cnt;

	assert_true(most < 64);
	show(big_fd, BIG, 2);
	for (cnt = 0; cnt <= most; cnt++) {
		assert_int_equal(open_as(&readers[cnt], cnt + 1), 0);
		if (arena_reader_map_until(&readers[cnt], 2) != 2)
			break;
	}
	print_message("%u processes have their addresses\n", cnt);
	assert_true(cnt <= most);
	for (uint32_t i = 0; i <= cnt; i++)
		arena_reader_close(&readers[i]);
}

/* In a child, whose addresses are few. */
static int few_addresses(void)
{
	struct rlimit limit = { 1024 * GIB, 1024 * GIB };
	struct arena_reader reader;

	show(big_fd, 64 * GIB, 8);
	if (setrlimit(RLIMIT_AS, &limit) || sys_reserve_limit() != 1024 * GIB ||
	    open_as(&reader, 1))
		return 1;
	pass(&reader, 8);
	return mapped_cnt(&reader) == 4 ? 0 : 2;
}

static void a_limit_of_addresses_is_shared_too(void **state)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	skip(); /* it has terabytes of its own */
#endif
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid)
		_exit(few_addresses());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void a_process_has_few_arenas(void **state)
{
	struct arena_reader readers[ARENA_PEER_ARENAS + 1];

	show(small_fd, SMALL, 1);
	for (uint32_t i = 0; i <= ARENA_PEER_ARENAS; i++) {
		directory->head.nonce[0]++;
		assert_int_equal(open_as(&readers[i], 1), i < ARENA_PEER_ARENAS ? 0 : -FI_E2BIG);
	}
	for (uint32_t i = 0; i < ARENA_PEER_ARENAS; i++)
		arena_reader_close(&readers[i]);
	assert_int_equal(open_as(&readers[0], 1), 0);
	arena_reader_close(&readers[0]);
}

/* All say that they have the address, and none is what it says. */
static void who_looks_for_an_address_tries_few(void **state)
{
	struct arena_reader reader;

	show(small_fd, SMALL, 100);
	for (uint32_t i = 0; i < 100; i++) {
		directory->entries[i].base = ARENA_AT;
		directory->entries[i].inode++;
	}
	assert_int_equal(open_as(&reader, 1), 0);
	assert_null(arena_reader_find(&reader, ARENA_AT, 8, false));
	assert_true(reader.failures > 0 && reader.failures <= 4);
	/* what was refused is not tried again: in the end the one that is right is found */
	directory->entries[99].inode--;
	for (int i = 0; i < 100 && !mapped_cnt(&reader); i++)
		arena_reader_find(&reader, ARENA_AT, 8, false);
	assert_int_equal(mapped_cnt(&reader), 1);
	assert_int_equal(reader.failures, 99);
	arena_reader_close(&reader);
}

static void an_owner_of_what_is_not_there_is_given_up(void **state)
{
	const uint32_t cnt = 2 * ARENA_READER_FAILURES;
	struct arena_reader reader;

	show(small_fd, SMALL, cnt);
	/* the latest first: what is missing does not make those behind it of no interest */
	for (uint32_t i = 0; i < ARENA_READER_FAILURES; i++) {
		directory->entries[i].inode++;
		atomic_store(&directory->entries[i].serial, cnt - i);
	}
	assert_int_equal(open_as(&reader, 1), 0);
	assert_true(pass(&reader, UINT64_MAX) <= ARENA_READER_FAILURES);
	assert_int_equal(reader.failures, ARENA_READER_FAILURES);
	assert_true(reader.beyond);
	assert_int_equal(mapped_cnt(&reader), 0);
	assert_null(arena_reader_find(&reader, ARENA_AT + (ARENA_READER_FAILURES + 1) * SMALL,
				      8, false));
	arena_reader_close(&reader);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_process_gets_a_share_of_the_mappings),
		cmocka_unit_test(a_process_gets_the_addresses_of_an_arena),
		cmocka_unit_test(what_is_unmapped_makes_room_for_what_was_too_much),
		cmocka_unit_test(all_processes_together_have_a_share),
		cmocka_unit_test(a_limit_of_addresses_is_shared_too),
		cmocka_unit_test(a_process_has_few_arenas),
		cmocka_unit_test(who_looks_for_an_address_tries_few),
		cmocka_unit_test(an_owner_of_what_is_not_there_is_given_up),
	};

	return cmocka_run_group_tests(tests, forge, forget);
}
