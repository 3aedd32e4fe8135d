/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The arena against a model of what is allocated, and each state of a range. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>
#include <rdma/fi_errno.h>
#include "arena.h"
#include "ranges.h"
#include "fault.h"

#define MIB    ((size_t)1 << 20)
#define HELD   64
#define ROUNDS 20000

static struct arena *arena;

static void *allocate(size_t len, enum arena_kind kind, bool *zero)
{
	void *addr = NULL;

	assert_int_equal(arena_alloc(arena, len, 1, kind, &addr, zero), 0);
	assert_non_null(addr);
	return addr;
}

static bool resident(const void *addr)
{
	unsigned char vec = 0;

	assert_int_equal(mincore((void *)(uintptr_t)addr, 1, &vec), 0);
	return vec & 1;
}

static void keep_nobody(struct arena *unused)
{
}

/*
 * What is free keeps its pages until a test gives them back: the keeper, which does so after a while, or when the
 * machine is short of memory, does not run here.
 */
static int start(void **state)
{
	arena = arena_get();
	if (!arena)
		return -1;
	arena->keeper_start = keep_nobody;
	return 0;
}

static void there_is_one_arena(void **state)
{
	assert_ptr_equal(arena_get(), arena);
	assert_ptr_equal(arena_started(), arena);
	assert_ptr_equal(arena_own(), arena);
}

/* Returns the bytes of the allocation that begins at @addr, or 0. */
static size_t size_of(const void *addr)
{
	const struct arena_range *range = ranges_at(arena, addr);

	return range ? range->len : 0;
}

static void lengths_and_alignments_are_checked(void **state)
{
	struct arena_usage usage;
	void *addr;

	assert_int_equal(arena_alloc(arena, 0, 1, ARENA_READ, &addr, NULL), -FI_EINVAL);
	assert_int_equal(arena_alloc(arena, 1, 3, ARENA_READ, &addr, NULL), -FI_EINVAL);
	assert_int_equal(arena_alloc(arena, 1, 1, ARENA_KINDS, &addr, NULL), -FI_EINVAL);
	assert_int_equal(arena_alloc(arena, SIZE_MAX, 1, ARENA_READ, &addr, NULL), -FI_ENOMEM);
	assert_int_equal(arena_alloc(arena, SIZE_MAX / 2, 1, ARENA_READ, &addr, NULL),
			 -FI_ENOMEM);
	for (size_t align = 1; align <= 4 * MIB; align *= 4) {
		assert_int_equal(arena_alloc(arena, 100, align, ARENA_READ, &addr, NULL), 0);
		assert_int_equal((uintptr_t)addr % align, 0);
		assert_int_equal(size_of(addr), sysconf(_SC_PAGESIZE));
		assert_int_equal(arena_free(arena, addr), 0);
	}
	assert_int_equal(arena_free(arena, addr), -FI_EINVAL);
	assert_int_equal(arena_free(arena, &usage), -FI_EINVAL);
	assert_int_equal(arena_free(arena, NULL), -FI_EINVAL);
	assert_int_equal(size_of(addr), 0);
	arena_usage(arena, &usage);
	assert_int_equal(usage.live, 0);
}

static void memory_that_is_refused_costs_nothing_that_is_kept(void **state)
{
	struct arena_usage before, after;
	void *kept = allocate(MIB, ARENA_READ, NULL), *other = allocate(MIB, ARENA_WRITE, NULL);
	struct rlimit limit, less;
	void *addr;

	assert_int_equal(arena_free(arena, kept), 0);
	assert_int_equal(arena_free(arena, other), 0);
	arena_usage(arena, &before);
	assert_true(before.quarantined >= 2 * MIB);
	/* as where there is no pool of huge pages */
	sys_fault_set(SYS_CALL_MEMFD_CREATE, FI_ENOMEM, 0, 1);
	assert_int_equal(arena_alloc(arena, MIB, 1, ARENA_HUGE, &addr, NULL), 0);
	sys_fault_clear();
	arena_usage(arena, &after);
	assert_int_equal(after.chunks, before.chunks);
	assert_int_equal(after.quarantined, before.quarantined - MIB);
	assert_int_equal(arena_free(arena, addr), 0);
	arena_usage(arena, &before);
	/* more than there are addresses, and than a file may have */
	assert_int_equal(arena_alloc(arena, (size_t)1 << 50, 1, ARENA_READ, &addr, NULL),
			 -FI_ENOMEM);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
	less = (struct rlimit){ 64 * MIB, limit.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &less), 0);
	assert_int_equal(arena_alloc(arena, 512 * MIB, 1, ARENA_READ, &addr, NULL), -FI_ENOMEM);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	arena_usage(arena, &after);
	assert_int_equal(after.chunks, before.chunks);
	assert_int_equal(after.quarantined, before.quarantined);
}

static void a_range_is_found_where_one_chunk_has_all_of_it(void **state)
{
	struct arena_place place = { 0 }, last = { 0 };
	char *addr = allocate(4 * MIB, ARENA_READ, NULL);
	const struct arena_chunk *chunk;

	assert_true(arena_find(arena, addr, 4 * MIB, &place));
	chunk = &arena->chunks[place.chunk];
	assert_ptr_equal((char *)chunk->base + place.offset, addr);
	assert_true(arena_find(arena, addr + 4 * MIB - 1, 1, &last));
	assert_int_equal(last.offset, place.offset + 4 * MIB - 1);
	assert_false(arena_find(arena, addr, chunk->len - place.offset + 1, &last));
	assert_false(arena_find(arena, addr, SIZE_MAX, &last));
	assert_false(arena_find(arena, &place, 1, &last));
	assert_false(arena_find(arena, (char *)arena->base + arena->len, 1, &last));
	assert_false(arena_find(arena, (char *)arena->base - 1, 1, &last));
	assert_false(arena_find(NULL, addr, 1, &last));
	assert_int_equal(arena_free(arena, addr), 0);
}

static void kinds_share_no_chunk(void **state)
{
	struct arena_place a = { 0 }, b = { 0 };
	void *read = allocate(1, ARENA_READ, NULL), *write = allocate(1, ARENA_WRITE, NULL);

	assert_true(arena_find(arena, read, 1, &a));
	assert_true(arena_find(arena, write, 1, &b));
	assert_int_not_equal(a.chunk, b.chunk);
	assert_int_equal(arena->chunks[a.chunk].kind, ARENA_READ);
	assert_int_equal(arena->chunks[b.chunk].kind, ARENA_WRITE);
	arena_free(arena, read);
	arena_free(arena, write);
}

static void freed_pages_are_kept_and_used_first(void **state)
{
	char *addr = allocate(2 * MIB, ARENA_READ, NULL), *again;
	struct arena_usage usage;
	bool zero;

	memset(addr, 9, 2 * MIB);
	assert_int_equal(arena_free(arena, addr), 0);
	arena_usage(arena, &usage);
	assert_true(usage.quarantined >= 2 * MIB);
	assert_true(resident(addr));
	again = allocate(2 * MIB, ARENA_READ, &zero);
	assert_ptr_equal(again, addr);
	assert_false(zero);
	assert_int_equal(again[MIB], 9);
	assert_int_equal(arena_free(arena, again), 0);

	arena_trim(arena, 0);
	arena_usage(arena, &usage);
	assert_int_equal(usage.quarantined, 0);
	assert_false(resident(addr));
	again = allocate(2 * MIB, ARENA_READ, &zero);
	assert_true(zero);
	assert_int_equal(again[MIB], 0);
	assert_int_equal(arena_free(arena, again), 0);
}

struct refusing {
	struct arena_watcher watcher;
	int calls;
	bool busy;
	struct arena_place place;
	size_t len;
};

static int refuse(struct arena_watcher *watcher, const struct arena_place *place, size_t len)
{
	struct refusing *r = container_of(watcher, struct refusing, watcher);

	r->calls++;
	r->place = *place;
	r->len = len;
	return r->busy ? -FI_EBUSY : 0;
}

static void pages_in_use_are_kept(void **state)
{
	struct refusing r = { .watcher.revoke = refuse, .busy = true };
	char *addr = allocate(MIB, ARENA_READ, NULL);
	struct arena_usage usage;

	arena_trim(arena, 0);
	memset(addr, 5, MIB);
	assert_int_equal(arena_free(arena, addr), 0);
	arena_watch(arena, &r.watcher);
	arena_trim(arena, 0);
	assert_int_equal(r.calls, 1);
	assert_int_equal(r.len, MIB);
	assert_ptr_equal((char *)arena->chunks[r.place.chunk].base + r.place.offset, addr);
	assert_int_equal(addr[0], 5);
	arena_usage(arena, &usage);
	assert_int_equal(usage.quarantined, MIB);

	r.busy = false;
	arena_trim(arena, 0);
	assert_int_equal(r.calls, 2);
	arena_unwatch(arena, &r.watcher);
	assert_false(resident(addr));
	arena_usage(arena, &usage);
	assert_int_equal(usage.quarantined, 0);
}

static void whole_pages_are_purged_and_no_more(void **state)
{
	struct refusing r = { .watcher.revoke = refuse, .busy = true };
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *addr = allocate(4 * page, ARENA_READ, NULL);

	memset(addr, 3, 4 * page);
	assert_int_equal(arena_purge(arena, addr + 1, 2 * page), 0);
	assert_int_equal(addr[page - 1], 3);
	assert_int_equal(addr[page], 0);
	assert_int_equal(addr[2 * page - 1], 0);
	assert_int_equal(addr[2 * page], 3);
	assert_int_equal(arena_purge(arena, addr + 1, page - 2), 0);
	arena_watch(arena, &r.watcher);
	assert_int_equal(arena_purge(arena, addr + 2 * page, page), -FI_EBUSY);
	arena_unwatch(arena, &r.watcher);
	assert_int_equal(addr[2 * page], 3);
	assert_int_equal(arena_purge(arena, &r, 2 * page), -FI_EINVAL);
	assert_int_equal(arena_free(arena, addr), 0);
}

static void a_retired_chunk_is_not_used_again(void **state)
{
	char *addr = allocate(MIB, ARENA_WRITE, NULL), *other, *more;
	struct arena_place place = { 0 }, found = { 0 };

	assert_true(arena_find(arena, addr, MIB, &place));
	other = allocate(MIB, ARENA_WRITE, NULL);
	arena_free(arena, other);
	arena_retire(arena, addr);
	assert_false(arena_find(arena, addr, 1, &found));
	memset(addr, 1, MIB);
	more = allocate(MIB, ARENA_WRITE, NULL);
	assert_true(arena_find(arena, more, MIB, &found));
	assert_int_not_equal(found.chunk, place.chunk);
	assert_int_equal(arena_free(arena, addr), 0);
	assert_int_equal(arena_free(arena, more), 0);
	assert_false(resident(addr));
}

static void what_is_discarded_in_a_retired_chunk_has_no_pages(void **state)
{
	const struct arena_chunk *chunk;
	struct arena_place place = { 0 };
	struct stat st;
	char *addr;

	/* a chunk of its own */
	addr = allocate(64 * MIB, ARENA_READ, NULL);
	assert_true(arena_find(arena, addr, 64 * MIB, &place));
	chunk = &arena->chunks[place.chunk];
	memset(addr, 7, MIB);
	arena_retire(arena, addr);
	assert_int_equal(addr[0], 7);
	assert_int_equal(arena_discard(arena, addr, MIB), 0);
	assert_int_equal(addr[0], 0);
	assert_int_equal(addr[MIB - 1], 0);
	assert_int_equal(fstat(chunk->fd, &st), 0);
	assert_int_equal(st.st_blocks, 0);
	assert_int_equal(arena_discard(arena, &st, MIB), -FI_EINVAL);
	assert_int_equal(arena_free(arena, addr), 0);
}

static void the_child_of_a_fork_has_its_own(void **state)
{
	char *addr = allocate(MIB, ARENA_READ, NULL);
	struct arena_place place;
	void *again;
	int status;
	pid_t pid;

	addr[0] = 1;
	pid = fork();
	assert_true(pid >= 0);
	if (!pid)
		_exit(arena_get() == arena && !arena_find(arena, addr, 1, &place) &&
				      !arena_alloc(arena, 1, 1, ARENA_READ, &again, NULL) &&
				      arena_find(arena, again, 1, &place) &&
				      !arena_free(arena, again) && !arena_free(arena, addr)
			      ? 0
			      : 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(addr[0], 1);
	assert_int_equal(arena_free(arena, addr), 0);
}

static void refused_memory_is_an_error(void **state)
{
	struct arena_usage before, after;
	void *addr;

	arena_usage(arena, &before);
	for (int call = 0; call < 2; call++) {
		sys_fault_set(call ? SYS_CALL_MMAP : SYS_CALL_MEMFD_CREATE, FI_ENOMEM, 0, 0);
		assert_int_equal(arena_alloc(arena, 2048 * MIB, 1, ARENA_READ, &addr, NULL),
				 -FI_ENOMEM);
		sys_fault_clear();
	}
	arena_usage(arena, &after);
	assert_int_equal(after.live, before.live);
}

/* Model: what is allocated, and the byte that all of it has. */
struct held {
	unsigned char *addr;
	size_t len;
	unsigned char value;
};

static size_t random_len(unsigned int *seed)
{
	size_t most = (size_t)1 << (12 + rand_r(seed) % 12);

	return 1 + (size_t)rand_r(seed) % most;
}

static void held_check(const struct held *h)
{
	assert_int_equal(h->addr[0], h->value);
	assert_int_equal(h->addr[h->len / 2], h->value);
	assert_int_equal(h->addr[h->len - 1], h->value);
}

static void held_allocate(struct held *h, unsigned int *seed)
{
	enum arena_kind kind = rand_r(seed) % 4 ? ARENA_READ : ARENA_WRITE;
	bool zero;

	h->len = random_len(seed);
	h->addr = allocate(h->len, kind, &zero);
	if (zero) {
		assert_int_equal(h->addr[0], 0);
		assert_int_equal(h->addr[h->len / 2], 0);
		assert_int_equal(h->addr[h->len - 1], 0);
	}
	h->value = (unsigned char)(1 + rand_r(seed) % 255);
	memset(h->addr, h->value, h->len);
}

static void allocations_do_not_overlap(unsigned int seed)
{
	struct held held[HELD] = { { .len = 0 } };
	struct arena_usage usage;

	printf("seed %u\n", seed);
	for (int round = 0; round < ROUNDS; round++) {
		struct held *h = &held[rand_r(&seed) % HELD];

		if (h->addr) {
			held_check(h);
			assert_int_equal(arena_free(arena, h->addr), 0);
			h->addr = NULL;
		} else {
			held_allocate(h, &seed);
		}
		if (!(rand_r(&seed) % 500))
			arena_trim(arena, (size_t)rand_r(&seed) % (64 * MIB));
	}
	for (int i = 0; i < HELD; i++) {
		if (!held[i].addr)
			continue;
		held_check(&held[i]);
		assert_int_equal(arena_free(arena, held[i].addr), 0);
	}
	arena_usage(arena, &usage);
	assert_int_equal(usage.live, 0);
	arena_trim(arena, 0);
	arena_usage(arena, &usage);
	assert_int_equal(usage.quarantined, 0);
}

static void allocations_keep_their_bytes(void **state)
{
	allocations_do_not_overlap(1);
	allocations_do_not_overlap((unsigned int)time(NULL));
}

static void parts_are_freed_whatever_allocation_they_are_of(void **state)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct arena_usage before, usage;
	void *first, *second;
	pid_t pid;
	int status;

	arena_usage(arena, &before);
	assert_int_equal(arena_alloc(arena, 4 * page, 1, ARENA_READ, &first, NULL), 0);
	assert_int_equal(arena_free_part(arena, first, page + 1), -FI_EINVAL);
	assert_int_equal(arena_free_part(arena, (char *)first + page, page), 0);
	assert_int_equal(size_of(first), page);
	assert_int_equal(size_of((char *)first + 2 * page), 2 * page);
	assert_int_equal(arena_free_part(arena, (char *)first + page, page), -FI_EINVAL);
	/* it is given out again, and its neighbours are what they were */
	memset(first, 1, page);
	assert_int_equal(arena_alloc(arena, page, 1, ARENA_READ, &second, NULL), 0);
	memset(second, 2, page);
	assert_int_equal(*(char *)first, 1);
	assert_int_equal(arena_free(arena, second), 0);
	/* beyond what is LIVE it ends */
	assert_int_equal(arena_free_part(arena, first, 4 * page), -FI_EINVAL);
	assert_int_equal(arena_free_part(arena, (char *)first + 2 * page, 2 * page), 0);
	assert_int_equal(arena_free_part(arena, NULL, page), -FI_EINVAL);
	/* of a chunk that was left, too, which ends with its last part */
	assert_int_equal(arena_alloc(arena, 64 * MIB, 1, ARENA_READ, &first, NULL), 0);
	pid = fork();
	if (!pid)
		_exit(0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(arena_free_part(arena, (char *)first + 32 * MIB, 32 * MIB), 0);
	assert_int_equal(arena_free_part(arena, first, 32 * MIB), 0);
	arena_usage(arena, &usage);
	assert_int_equal(usage.live, before.live);
}

/* Each of them needs more than half of the addresses. */
static void addresses_of_what_is_free_are_used_again(void **state)
{
	size_t lens[] = { arena->len / 10 * 6, arena->len / 10 * 7, arena->len / 10 * 6 };
	char *byte;
	void *addr;

	for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		int err = arena_alloc(arena, lens[i], 1, i == 2 ? ARENA_WRITE : ARENA_READ,
				      &addr, NULL);

		if (err && !i)
			skip();
		assert_int_equal(err, 0);
		byte = addr;
		assert_int_equal(byte[0], 0);
		byte[0] = 1;
		byte[lens[i] - 1] = 2;
		assert_int_equal(arena_free(arena, addr), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(there_is_one_arena),
		cmocka_unit_test(lengths_and_alignments_are_checked),
		cmocka_unit_test(memory_that_is_refused_costs_nothing_that_is_kept),
		cmocka_unit_test(a_range_is_found_where_one_chunk_has_all_of_it),
		cmocka_unit_test(kinds_share_no_chunk),
		cmocka_unit_test(freed_pages_are_kept_and_used_first),
		cmocka_unit_test(pages_in_use_are_kept),
		cmocka_unit_test(whole_pages_are_purged_and_no_more),
		cmocka_unit_test(a_retired_chunk_is_not_used_again),
		cmocka_unit_test(what_is_discarded_in_a_retired_chunk_has_no_pages),
		cmocka_unit_test(the_child_of_a_fork_has_its_own),
		cmocka_unit_test(refused_memory_is_an_error),
		cmocka_unit_test(parts_are_freed_whatever_allocation_they_are_of),
		cmocka_unit_test(allocations_keep_their_bytes),
		cmocka_unit_test(addresses_of_what_is_free_are_used_again),
	};

	return cmocka_run_group_tests(tests, start, NULL);
}
