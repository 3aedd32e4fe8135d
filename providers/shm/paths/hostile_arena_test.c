/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Tests of the shm wire against a peer that shows an arena of its own making: lines that lend what
 * is not there, directories with anything in them, and words of the pair that are overwritten.
 * Nothing crashes, hangs or reads beyond the peer's memory, and other peers are served as before.
 */
#define _GNU_SOURCE /* memfd_create */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>
#include <rdma/fi_errno.h>
#include "fault.h"
#include "lines.h"
#include "memfd.h"
#include "seeded.h"
#include "mock_victim.h"
#include "peer_arena.h"
#include "reader.h"

#define CHUNK ((size_t)1 << 20)
#define ROOM  ((size_t)1 << 20)
#define PLACE ((uint32_t)PSHM_PLACE << RING_KIND_SHIFT)

static struct mock a, b;
/* The arena of the peer that is bare memory: a directory, and a chunk with a pattern. */
static struct arena_directory *directory;
static int directory_fd, chunk_fd;
static void *chunk;
/* The connection of b with it, and the one with a. */
static struct pshm_region region;
static struct pshm_pair *pair;
static struct wire_conn *good;
static uint64_t sent;

static void entry_set(uint32_t idx, int fd, uint64_t len)
{
	struct arena_entry *entry = &directory->entries[idx];

	entry->base = 0x10000000 + idx * CHUNK;
	entry->len = len;
	entry->fd = (uint32_t)fd;
	entry->kind = ARENA_READ;
	entry->serial = idx + 1;
	assert_int_equal(sys_memfd_inode(fd, &entry->inode), 0);
}

static void arena_made(void)
{
	void *addr;

	directory_fd = sys_memfd_create("directory", sizeof(*directory), 0400);
	chunk_fd = sys_memfd_create("chunk", CHUNK, 0400);
	assert_true(directory_fd >= 0 && chunk_fd >= 0);
	assert_int_equal(
		sys_memfd_map(directory_fd, sizeof(*directory), SYS_MEMFD_WRITE, &addr), 0);
	directory = addr;
	assert_int_equal(sys_memfd_map(chunk_fd, CHUNK, SYS_MEMFD_WRITE, &chunk), 0);
	mock_pattern(chunk, CHUNK, MOCK_BIG);
	directory->head.magic = ARENA_MAGIC;
	directory->head.layout = ARENA_LAYOUT;
	entry_set(0, chunk_fd, CHUNK);
	atomic_store(&directory->head.cnt, 1);
}

static int setup(void **state)
{
	mock_open(&a);
	mock_open(&b);
	b.room = malloc(ROOM);
	b.room_len = ROOM;
	b.room_iovs = 1;
	mock_connected(&a, &b, &b.addr);
	good = a.conn;
	sent = 0;
	arena_made();
	return b.room ? 0 : -1;
}

static int teardown(void **state)
{
	sys_fault_clear();
	mock_close(&a);
	mock_close(&b);
	free(b.room);
	sys_memfd_unmap(directory, sizeof(*directory));
	sys_memfd_unmap(chunk, CHUNK);
	close(directory_fd);
	close(chunk_fd);
	return 0;
}

/* The other connection works. */
static void others_go_on(void)
{
	b.garbled = false;
	b.next_tag = sent;
	for (int i = 0; i < 4; i++)
		assert_true(mock_put(good, sent++, 40));
	mock_until(&b, NULL, b.next_tag == sent);
	assert_false(b.garbled);
}

static void shown(uint32_t fd, uint32_t wanted)
{
	struct pshm_shown *s = &pair->shown[PSHM_REQUESTER];

	s->arena_fd = fd;
	memcpy(s->arena_nonce, directory->head.nonce, sizeof(s->arena_nonce));
	atomic_store(&s->arena_wanted, wanted);
	atomic_store(&s->arena_shown, 1);
}

/* A victim to which the arena is shown, and polls in which it maps what it may. */
static void victim_shown(uint32_t wanted)
{
	pair = mock_victim_made(&b, &a, &region);
	b.downs = 0;
	b.down_err = 0;
	b.big_done = 0;
	shown((uint32_t)directory_fd, wanted);
	for (int i = 0; i < 9 && b.conn; i++)
		mock_sweep(&b, NULL);
}

static void victim_ends(void)
{
	if (b.conn)
		pshm_wire_ops.disconnect(b.conn);
	b.conn = NULL;
	pshm_region_close(&region);
}

static uint32_t mapped_cnt(void)
{
	return atomic_load(&pair->inside[PSHM_ACCEPTOR].mapped);
}

static void lend(uint32_t at, uint64_t offset, uint32_t len)
{
	struct pshm_place place = { at, at + 1, offset };

	mock_forged_line(&b, &region, len, PLACE, &place, sizeof(place));
}

static void what_is_in_a_mapped_chunk_arrives(void **state)
{
	victim_shown(1);
	assert_int_equal(mapped_cnt(), 1);
	lend(0, 0, 4096);
	lend(0, 0, 1);
	lend(0, 0, (uint32_t)CHUNK);
	assert_int_equal(b.big_done, 3);
	assert_false(b.garbled);
	assert_int_equal(b.downs, 0);
	victim_ends();
}

static void places_that_are_not_mapped_end_the_connection(void **state)
{
	static const struct {
		uint32_t at, len;
		uint64_t offset;
	} places[] = {
		{ 1, 8, 0 },
		{ 2, 8, 0 },
		{ ARENA_CHUNKS - 1, 8, 0 },
		{ ARENA_CHUNKS, 8, 0 },
		{ UINT32_MAX, 8, 0 },
		{ 0, 8, CHUNK - 7 },
		{ 0, 8, CHUNK },
		{ 0, 8, CHUNK + 1 },
		{ 0, 8, UINT64_MAX },
		{ 0, 8, UINT64_MAX - 7 },
		{ 0, 8, (uint64_t)1 << 63 },
		{ 0, CHUNK + 1, 0 },
		{ 0, UINT32_MAX, 0 },
		{ 0, UINT32_MAX, CHUNK - 1 },
		{ 0, 0, 0 },
		{ 0, 0, CHUNK },
	};

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		victim_shown(2);
		lend(places[i].at, places[i].offset, places[i].len);
		assert_int_equal(b.downs, 1);
		assert_int_equal(b.down_err, -FI_EPROTO);
		assert_int_equal(b.big_done, 0);
		victim_ends();
		others_go_on();
	}
}

static void place_before_anything_is_mapped_ends_the_connection(void **state)
{
	for (uint32_t wanted = 0; wanted < 2; wanted++) {
		pair = mock_victim_made(&b, &a, &region);
		b.downs = 0;
		if (wanted)
			shown((uint32_t)directory_fd, 1);
		lend(0, 0, 4096);
		assert_int_equal(b.downs, 1);
		assert_int_equal(b.down_err, -FI_EPROTO);
		victim_ends();
	}
	others_go_on();
}

static void place_with_bits_of_other_kinds_ends_the_connection(void **state)
{
	struct pshm_place place = { .chunk = 0 };

	victim_shown(1);
	mock_forged_line(&b, &region, 64, (uint32_t)(PSHM_PLACE | PSHM_PROBE) << RING_KIND_SHIFT,
			 &place, sizeof(place));
	assert_int_equal(b.down_err, -FI_EPROTO);
	victim_ends();
	others_go_on();
}

/* The peer claims to have mapped everything, or writes to what is ours. */
static void words_that_say_anything_do_no_harm(void **state)
{
	static const uint32_t values[] = { 1,	     2,		ARENA_CHUNKS, ARENA_CHUNKS + 1,
					   1u << 31, UINT32_MAX };

	atomic_store(&directory->head.cnt, UINT32_MAX);
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
		for (size_t j = 0; j < sizeof(values) / sizeof(values[0]); j++) {
			pair = mock_victim_made(&b, &a, &region);
			atomic_store(&pair->inside[PSHM_ACCEPTOR].mapped, values[j]);
			atomic_store(&pair->inside[PSHM_REQUESTER].mapped, values[j]);
			atomic_store(&pair->shown[PSHM_ACCEPTOR].arena_shown, values[j]);
			atomic_store(&pair->shown[PSHM_ACCEPTOR].arena_wanted, values[i]);
			shown((uint32_t)directory_fd, values[i]);
			mock_sweep(&b, NULL);
			mock_sweep(&b, NULL);
			lend(values[j], 0, 64);
			victim_ends();
			others_go_on();
		}
}

/* A chunk that can't be mapped, by what its entry says. Returns true if it was */
static bool entry_is_mapped(void)
{
	bool is;

	victim_shown(1);
	is = mapped_cnt() == 1;
	lend(0, 0, 64);
	assert_int_equal(b.downs, is ? 0 : 1);
	victim_ends();
	others_go_on();
	return is;
}

static void chunks_that_are_not_what_they_say_are_not_mapped(void **state)
{
	struct arena_entry right = directory->entries[0], *entry = &directory->entries[0];
	int loose = memfd_create("loose", MFD_ALLOW_SEALING), pipes[2], zero, fd;
	static const uint64_t lens[] = { 0, CHUNK + 1, 2 * CHUNK, UINT64_MAX,
					 (uint64_t)1 << 63 };

	assert_true(entry_is_mapped());
	entry->inode ^= 1;
	assert_false(entry_is_mapped());
	for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		*entry = right;
		entry->len = lens[i];
		assert_false(entry_is_mapped());
	}
	/* of a retired one only what was lent before is read */
	*entry = right;
	entry->retired = 1;
	assert_true(entry_is_mapped());

	/* memory that can shrink, no memory, nothing, and the descriptor of a directory */
	assert_int_equal(ftruncate(loose, CHUNK), 0);
	assert_int_equal(pipe(pipes), 0);
	zero = open("/dev/zero", O_RDWR | O_CLOEXEC);
	fd = open("/proc", O_RDONLY | O_CLOEXEC);
	for (int i = 0; i < 4; i++) {
		*entry = right;
		entry_set(0, ((const int[]){ loose, pipes[0], zero, fd })[i], CHUNK);
		assert_false(entry_is_mapped());
	}
	*entry = right;
	entry->fd = 1u << 20;
	assert_false(entry_is_mapped());
	entry->fd = UINT32_MAX;
	assert_false(entry_is_mapped());
	*entry = right;
	entry->kind = UINT32_MAX; /* for reading, as what is not known */
	assert_true(entry_is_mapped());
	close(loose);
	close(pipes[0]);
	close(pipes[1]);
	close(zero);
	close(fd);
}

static bool directory_is_opened(uint32_t fd)
{
	bool is;

	pair = mock_victim_made(&b, &a, &region);
	b.downs = 0;
	shown(fd, 1);
	mock_sweep(&b, NULL);
	mock_sweep(&b, NULL);
	is = mapped_cnt() == 1;
	victim_ends();
	others_go_on();
	return is;
}

static void directories_that_are_none_are_refused(void **state)
{
	int loose = memfd_create("loose", MFD_ALLOW_SEALING);
	int little = sys_memfd_create("little", 4096, 0600);

	assert_true(directory_is_opened((uint32_t)directory_fd));
	assert_int_equal(ftruncate(loose, sizeof(*directory)), 0);
	assert_int_equal(pwrite(loose, directory, sizeof(*directory), 0), sizeof(*directory));
	assert_false(directory_is_opened((uint32_t)loose));
	assert_int_equal(pwrite(little, directory, 4096, 0), 4096);
	assert_false(directory_is_opened((uint32_t)little));
	assert_false(directory_is_opened((uint32_t)chunk_fd));
	assert_false(directory_is_opened(0));
	assert_false(directory_is_opened(UINT32_MAX));
	directory->head.layout++;
	assert_false(directory_is_opened((uint32_t)directory_fd));
	directory->head.layout--;
	directory->head.magic++;
	assert_false(directory_is_opened((uint32_t)directory_fd));
	close(loose);
	close(little);
}

/* Where the process has that chunk, says its directory. */
static int read_address(uint64_t addr, size_t len, struct mock_op *op)
{
	return mock_get(b.conn, 1, (const void *)(uintptr_t)addr,
			&(struct iovec){ b.room, len }, 1, op);
}

/* Addresses that two chunks have, that wrap, or that change between two looks. */
static void addresses_that_cannot_be_are_not_read(void **state)
{
	uint64_t base = directory->entries[0].base;
	struct mock_op op;

	sys_fault_set(SYS_CALL_PROCESS_VM_READV, EPERM, 0, 0);
	victim_shown(0);
	assert_int_equal(read_address(base, CHUNK, &op), 0);
	mock_until(&b, NULL, op.done);
	assert_int_equal(op.status, 0);
	assert_true(mock_is_pattern(b.room, CHUNK, MOCK_BIG));
	assert_int_equal(read_address(base + CHUNK - 5, 5, &op), 1);
	assert_memory_equal(b.room, (char *)chunk + CHUNK - 5, 5);
	/* what is mapped stays as it was found, whatever the entry says now */
	directory->entries[0].base = UINT64_MAX - 100;
	directory->entries[0].len = UINT64_MAX;
	assert_int_equal(read_address(base + 5, 5, &op), 1);
	assert_memory_equal(b.room, (char *)chunk + 5, 5);
	for (uint32_t i = 0; i < 3; i++) {
		op.done = 0;
		if (!read_address(((const uint64_t[]){ base - 1, base + CHUNK, 8 })[i], 16, &op))
			mock_until(&b, NULL, op.done);
		assert_true(!op.done || op.status == -FI_EPERM);
	}
	victim_ends();
	others_go_on();
}

/* Random bytes in what is shown, and in the directory, while b polls, reads and takes lines. */
static void scribbled_arena_does_no_harm(void **state)
{
	struct arena_directory right = *directory;
	uint64_t seed = 0x5eed2002;

	print_message("seed %#llx\n", (unsigned long long)seed);
	for (int victim = 0; victim < 60; victim++) {
		struct mock_op ops[8] = { { .done = 0 } };

		*directory = right;
		for (uint32_t i = 0; i < 8; i++)
			entry_set(i, chunk_fd, CHUNK);
		atomic_store(&directory->head.cnt, seeded_random(&seed) % 9);
		victim_shown(8);
		for (int round = 0; round < 64 && b.conn; round++) {
			unsigned char *d = (unsigned char *)directory;
			unsigned char *s = (unsigned char *)pair->shown;

			for (uint32_t i = seeded_random(&seed) % 8; i; i--)
				d[seeded_random(&seed) % (64 * 9)] =
					(unsigned char)seeded_random(&seed);
			s[seeded_random(&seed) % (sizeof(pair->shown) + sizeof(pair->inside))] =
				(unsigned char)seeded_random(&seed);
			if (round < 8)
				read_address(0x10000000 + seeded_random(&seed) % (10 * CHUNK),
					     seeded_random(&seed) % ROOM, &ops[round]);
			for (int i = 0; i < 13 && b.conn; i++)
				b.wire->ops->poll(b.wire);
			if (b.conn && seeded_random(&seed) % 4)
				lend(seeded_random(&seed) % 9, seeded_random(&seed) % CHUNK,
				     seeded_random(&seed) % (uint32_t)CHUNK / 8);
		}
		victim_ends();
		others_go_on();
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_is_in_a_mapped_chunk_arrives),
		TEST(places_that_are_not_mapped_end_the_connection),
		TEST(place_before_anything_is_mapped_ends_the_connection),
		TEST(place_with_bits_of_other_kinds_ends_the_connection),
		TEST(words_that_say_anything_do_no_harm),
		TEST(chunks_that_are_not_what_they_say_are_not_mapped),
		TEST(directories_that_are_none_are_refused),
		TEST(addresses_that_cannot_be_are_not_read),
		TEST(scribbled_arena_does_no_harm),
	};

	alarm(600);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
