/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Memory of the arena that a device has, through forks. The device is a second mapping of the chunk's file, and a watcher that
 * gives up nothing of what it holds: what this process stores it has to see, and the other way round, and the
 * child has what there was at the fork.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include <rdma/fi_errno.h>
#include "arena.h"
#include "fault.h"
#include "retain.h"

/* Two of them are never in one piece. */
#define LEN (2 * RETAIN_GRAIN)

static struct arena *arena;
static size_t page;

static struct {
	struct arena_watcher watcher;
	/* what the device has, in a chunk; no bytes: nothing */
	struct arena_place place;
	size_t len;
	char *seen;
} device;

static int device_revoke(struct arena_watcher *watcher, const struct arena_place *place,
			 size_t len)
{
	return place->chunk == device.place.chunk &&
			       place->offset < device.place.offset + device.len &&
			       device.place.offset < place->offset + len
		       ? -FI_EBUSY
		       : 0;
}

static int start(void **state)
{
	page = (size_t)sysconf(_SC_PAGESIZE);
	arena = arena_get();
	if (!arena)
		return -1;
	device.watcher.revoke = device_revoke;
	arena_watch(arena, &device.watcher);
	return 0;
}

static int clear(void **state)
{
	sys_fault_clear();
	device.len = 0;
	return 0;
}

static char *allocate_kind(enum arena_kind kind, char byte)
{
	void *addr = NULL;

	assert_int_equal(arena_alloc(arena, LEN, RETAIN_GRAIN, kind, &addr, NULL), 0);
	return memset(addr, byte, LEN);
}

static char *allocate(char byte)
{
	return allocate_kind(ARENA_READ, byte);
}

static void device_gets(char *addr, size_t len)
{
	void *mapped;

	assert_true(arena_find(arena, addr, len, &device.place));
	device.len = len;
	assert_int_equal(sys_memfd_map(arena->chunks[device.place.chunk].fd,
				       arena->chunks[device.place.chunk].len, SYS_MEMFD_WRITE,
				       &mapped),
			 0);
	device.seen = (char *)mapped + device.place.offset;
}

static void device_gives_up(void)
{
	device.len = 0;
	sys_memfd_unmap(device.seen - device.place.offset,
			arena->chunks[device.place.chunk].len);
}

struct child {
	int go[2];
	pid_t pid;
};

static void child_starts(struct child *child, int (*body)(char *), char *addr)
{
	char byte;

	assert_int_equal(pipe(child->go), 0);
	child->pid = fork();
	assert_true(child->pid >= 0);
	if (!child->pid) {
		alarm(600);
		close(child->go[1]);
		_exit(read(child->go[0], &byte, 1) == 1 ? body(addr) : 99);
	}
}

/* Lets it go on. Returns how it ends. */
static int child_ends(struct child *child)
{
	int status = -1;

	assert_int_equal(write(child->go[1], "x", 1), 1);
	assert_int_equal(waitpid(child->pid, &status, 0), child->pid);
	close(child->go[0]);
	close(child->go[1]);
	return status;
}

/* In the child: 1 at the beginning of both halves, and what is stored is its own. */
static int has_the_snapshot(char *addr)
{
	for (size_t at = 0; at < LEN; at++)
		if (addr[at] != 1)
			return 1;
	addr[0] = addr[LEN - 1] = 7;
	return arena_free(arena, addr) ? 2 : 0;
}

static void a_device_keeps_the_parents_pages(void **state)
{
	char *addr = allocate(1), *other = allocate(1);
	struct child child;

	/* half of what is allocated */
	device_gets(addr, RETAIN_GRAIN);
	for (int fork = 0; fork < 3; fork++) {
		child_starts(&child, has_the_snapshot, fork == 2 ? other : addr);
		addr[0] = 2;
		addr[LEN - 1] = 2;
		other[0] = 2;
		assert_int_equal(device.seen[0], 2);
		device.seen[1] = 3;
		assert_int_equal(addr[1], 3);
		assert_int_equal(child_ends(&child), 0);
		assert_int_equal(device.seen[0], 2);
		assert_int_equal(addr[1], 3);
		addr[0] = addr[1] = addr[LEN - 1] = other[0] = 1;
	}
	device_gives_up();
	/* now it is the parent's and the child's alike */
	child_starts(&child, has_the_snapshot, addr);
	addr[0] = 2;
	assert_int_equal(child_ends(&child), 0);
	assert_int_equal(addr[0], 2);
	assert_int_equal(arena_free(arena, addr), 0);
	assert_int_equal(arena_free(arena, other), 0);
}

static int is_read_only(char *addr)
{
	int data[2];

	if (pipe(data) || write(data[1], "z", 1) != 1)
		return 1;
	/* the kernel stores for us, and says that it may not */
	if (read(data[0], addr, 1) != -1 || addr[0] != 1)
		return 2;
	addr[page] = 2;
	return write(data[1], addr + 2 * page, 1) == -1 ? 0 : 3;
}

static void protections_are_kept_in_a_copy(void **state)
{
	char *addr = allocate(1);
	struct child child;

	device_gets(addr, LEN);
	assert_int_equal(mprotect(addr, page, PROT_READ), 0);
	assert_int_equal(mprotect(addr + 2 * page, page, PROT_NONE), 0);
	child_starts(&child, is_read_only, addr);
	assert_int_equal(child_ends(&child), 0);
	assert_int_equal(mprotect(addr, 3 * page, PROT_READ | PROT_WRITE), 0);
	device_gives_up();
	assert_int_equal(arena_free(arena, addr), 0);
}

static int ends(char *addr)
{
	return 0;
}

/* What was left is the child's too: freeing it in the parent takes nothing away. */
static void freeing_what_is_held_in_part_takes_nothing_from_a_child(void **state)
{
	char *addr = allocate(1), *again;
	struct arena_usage before, after;
	struct child child;

	arena_usage(arena, &before);
	device_gets(addr, RETAIN_GRAIN);
	child_starts(&child, has_the_snapshot, addr);
	assert_int_equal(arena_free(arena, addr), 0);
	again = allocate(4);
	assert_int_equal(child_ends(&child), 0);
	device_gives_up();
	assert_int_equal(arena_free(arena, again), 0);
	/* the chunk of the first one ends with what is done next */
	again = allocate(4);
	child_starts(&child, ends, addr);
	assert_int_equal(child_ends(&child), 0);
	arena_usage(arena, &after);
	assert_int_equal(after.live, LEN);
	assert_true(after.chunks <= before.chunks + ARENA_SLOT);
	assert_int_equal(arena_free(arena, again), 0);
}

static int nothing_is_allocated(char *addr)
{
	void *own;

	return arena_alloc(arena, page, 1, ARENA_READ, &own, NULL) == -FI_ENOMEM ? 0 : 1;
}

static void a_child_without_a_copy_has_no_arena(void **state)
{
	char *addr = allocate(1);
	struct child child;

	device_gets(addr, LEN);
	sys_fault_set(SYS_CALL_PREAD, FI_EIO, 0, 0);
	child_starts(&child, nothing_is_allocated, addr);
	sys_fault_clear();
	addr[0] = 2;
	assert_int_equal(device.seen[0], 2);
	assert_int_equal(child_ends(&child), 0);
	device_gives_up();
	assert_int_equal(arena_free(arena, addr), 0);
}

static int all_is_there(char *addr)
{
	return addr[0] == 4 && addr[LEN - 1] == 4 && arena_get() ? 0 : 1;
}

/* A peer that was stopped in a store is told that it is lost. */
static void a_child_has_no_pages_that_a_peer_may_still_store_to(void **state)
{
	void *addr = NULL;
	struct child child;

	assert_int_equal(arena_alloc(arena, LEN, 1, ARENA_WRITE, &addr, NULL), 0);
	memset(addr, 4, LEN);
	sys_fault_set(SYS_CALL_POPULATE, FI_ENOMEM, 0, 0);
	child_starts(&child, nothing_is_allocated, addr);
	assert_int_equal(child_ends(&child), 0);
	/* nor is it said to be cut off */
	assert_int_equal(arena_cut(arena, addr, LEN), -FI_EBUSY);
	/* the next time there is some, in parts */
	sys_fault_clear();
	sys_fault_set(SYS_CALL_POPULATE, FI_ENOMEM, 0, 1);
	child_starts(&child, all_is_there, addr);
	sys_fault_clear();
	assert_int_equal(child_ends(&child), 0);
	assert_int_equal(arena_cut(arena, addr, LEN), 0);
	assert_int_equal(arena_free(arena, addr), 0);
}

/* Where the program has changed something only the kernel knows what to take. */
static void what_can_not_be_looked_at_is_not_said_to_be_cut_off(void **state)
{
	static const enum sys_call calls[] = { SYS_CALL_OPEN_MAPS, SYS_CALL_PREAD };
	char *addr;

	for (size_t i = 0; i < 2; i++) {
		addr = allocate_kind(ARENA_WRITE, 4);
		arena_protect(arena, addr);
		/* what is mapped there is found out to leave it, and then to take it */
		sys_fault_set(calls[i], FI_EMFILE, calls[i] == SYS_CALL_OPEN_MAPS, 1);
		assert_int_equal(arena_cut(arena, addr, LEN), -FI_EBUSY);
		sys_fault_clear();
		assert_int_equal(arena_cut(arena, addr, LEN), 0);
		assert_int_equal(addr[LEN - 1], 4);
		assert_int_equal(arena_free(arena, addr), 0);
	}
}

static void a_range_of_a_device_is_not_cut_off(void **state)
{
	char *addr = allocate_kind(ARENA_WRITE, 1);

	device_gets(addr, RETAIN_GRAIN);
	assert_int_equal(arena_cut(arena, addr + RETAIN_GRAIN - 1, 2), -FI_EBUSY);
	addr[0] = 2;
	assert_int_equal(device.seen[0], 2);
	/* another part of the chunk is */
	assert_int_equal(arena_cut(arena, addr + RETAIN_GRAIN, RETAIN_GRAIN), 0);
	addr[0] = 3;
	addr[RETAIN_GRAIN] = 3;
	assert_int_equal(device.seen[0], 3);
	assert_int_equal(device.seen[RETAIN_GRAIN], 1);
	device_gives_up();
	assert_int_equal(arena_cut(arena, addr, LEN), 0);
	assert_int_equal(addr[0], 3);
	assert_int_equal(arena_free(arena, addr), 0);
}

/* Peers can't store to it: what they read is dropped by them. */
static void what_peers_only_read_is_not_cut_off(void **state)
{
	struct arena_place place;
	char *addr = allocate(1);

	device_gets(addr, LEN);
	assert_int_equal(arena_cut(arena, addr, LEN), 0);
	assert_true(arena_find(arena, addr, LEN, &place));
	addr[LEN - 1] = 2;
	assert_int_equal(device.seen[LEN - 1], 2);
	device_gives_up();
	assert_int_equal(arena_free(arena, addr), 0);
}

static int nothing(char *addr)
{
	return 0;
}

/* What peers store to is taken back only once all that they take for stored is there. */
static void stores_settle_where_barriers_are_forbidden(void **state)
{
	void *forked = NULL, *cut = NULL;
	struct child child;
	uint64_t start_ns;

	assert_int_equal(arena_alloc(arena, LEN, 1, ARENA_WRITE, &forked, NULL), 0);
	sys_fault_set(SYS_CALL_MEMBARRIER, FI_EPERM, 0, 0);
	start_ns = platform_now_ns();
	child_starts(&child, nothing, forked);
	assert_true(platform_now_ns() - start_ns >= PLATFORM_SETTLE_NS);
	assert_int_equal(child_ends(&child), 0);
	assert_int_equal(arena_alloc(arena, LEN, 1, ARENA_WRITE, &cut, NULL), 0);
	start_ns = platform_now_ns();
	assert_int_equal(arena_cut(arena, cut, LEN), 0);
	assert_true(platform_now_ns() - start_ns >= PLATFORM_SETTLE_NS);
	assert_int_equal(arena_free(arena, forked), 0);
	assert_int_equal(arena_free(arena, cut), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(a_device_keeps_the_parents_pages, clear),
		cmocka_unit_test_teardown(protections_are_kept_in_a_copy, clear),
		cmocka_unit_test_teardown(
			freeing_what_is_held_in_part_takes_nothing_from_a_child, clear),
		cmocka_unit_test_teardown(a_child_without_a_copy_has_no_arena, clear),
		cmocka_unit_test_teardown(a_child_has_no_pages_that_a_peer_may_still_store_to,
					  clear),
		cmocka_unit_test_teardown(what_can_not_be_looked_at_is_not_said_to_be_cut_off,
					  clear),
		cmocka_unit_test_teardown(a_range_of_a_device_is_not_cut_off, clear),
		cmocka_unit_test_teardown(what_peers_only_read_is_not_cut_off, clear),
		cmocka_unit_test_teardown(stores_settle_where_barriers_are_forbidden, clear),
	};

	return cmocka_run_group_tests(tests, start, NULL);
}
