/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Memory of the process's arena, registered with a device that really pins: the device reads and writes
 * the bytes that the process sees, also after the arena has taken pages away.
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <grp.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include <rdma/fabric.h>
#include <rdma/fi_errno.h>
#include "arena.h"
#include "pin.h"
#include "uring_device.h"

#define LOCAL (FI_SEND | FI_RECV | FI_READ | FI_WRITE)
#define KIB   ((size_t)1 << 10)
#define MIB   ((size_t)1 << 20)
#define SKIP  77

static struct uring_device device;
static struct mem_pins *pins;
static struct arena *arena;
static int file = -1;
static int times_spent;

static void is_spent(void *arg)
{
	times_spent++;
}

static void open_pins(size_t grain)
{
	struct mem_pin_config config = { .ops = &uring_device_ops,
					 .device = &device,
					 .grain = grain,
					 .access = LOCAL,
					 .spent = is_spent };

	times_spent = 0;
	if (mem_pins_create(&config, &pins))
		abort();
}

static unsigned char *allocate(size_t len, unsigned char byte)
{
	void *addr;

	if (arena_alloc(arena, len, 1, ARENA_READ, &addr, NULL))
		abort();
	memset(addr, byte, len);
	return addr;
}

/* The device writes all of the range to the file. Returns the byte that it consists of, or -1. */
static int device_sees(const struct mem_pin_ref *ref, unsigned char *addr, size_t len)
{
	unsigned char found[4096];
	size_t reached;

	for (size_t done = 0; done < len; done += reached) {
		uint64_t handle = mem_pins_handle(pins, ref, addr + done, &reached);

		reached = reached < len - done ? reached : len - done;
		if (uring_device_write(&device, handle, addr + done, reached, file, (off_t)done))
			return -1;
	}
	for (size_t done = 0; done < len; done += reached) {
		reached = len - done < sizeof(found) ? len - done : sizeof(found);
		if (pread(file, found, reached, (off_t)done) != (ssize_t)reached)
			return -1;
		for (size_t i = 0; i < reached; i++)
			if (found[i] != found[0] || (done && found[0] != addr[0]))
				return -1;
	}
	return found[0];
}

static void the_device_reaches_what_is_registered(void **state)
{
	static const size_t lens[] = { 1, 4 * KIB, 100 * KIB, 3 * MIB };

	open_pins(MIB);
	for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		unsigned char *addr = allocate(lens[i], 7);
		struct mem_pin_ref ref;
		size_t reached;

		assert_int_equal(mem_pins_get(pins, addr, lens[i], LOCAL, &ref), 0);
		assert_null(ref.own);
		assert_int_equal(device_sees(&ref, addr, lens[i]), 7);
		memset(addr, 8, lens[i]);
		assert_int_equal(device_sees(&ref, addr, lens[i]), 8);
		assert_int_equal(pwrite(file, "\x9", 1, 0), 1);
		assert_int_equal(uring_device_read(&device,
						   mem_pins_handle(pins, &ref, addr, &reached),
						   addr, 1, file, 0),
				 0);
		assert_int_equal(addr[0], 9);
		mem_pins_put(pins, &ref);
		assert_int_equal(arena_free(arena, addr), 0);
	}
	mem_pins_destroy(pins);
}

/* The range is freed and allocated again with its pages gone between; its neighbours stay. */
static void a_range_that_lost_its_pages_is_not_stale(void **state)
{
	unsigned char *before = allocate(64 * KIB, 1), *addr = allocate(64 * KIB, 2);
	unsigned char *after = allocate(64 * KIB, 3), *again;
	struct mem_pin_ref ref;
	struct mem_pins_stats stats;

	open_pins(2 * MIB);
	for (int round = 0; round < 200; round++) {
		assert_int_equal(mem_pins_get(pins, addr, 64 * KIB, LOCAL, &ref), 0);
		assert_int_equal(arena_purge(arena, addr, 64 * KIB), -FI_EBUSY);
		mem_pins_put(pins, &ref);
		assert_int_equal(arena_free(arena, addr), 0);
		arena_trim(arena, 0);
		assert_int_equal(mem_pins_get(pins, before, 64 * KIB, LOCAL, &ref), 0);
		assert_int_equal(device_sees(&ref, before, 64 * KIB), 1);
		mem_pins_put(pins, &ref);
		again = allocate(64 * KIB, (unsigned char)round);
		assert_ptr_equal(again, addr);
		assert_int_equal(mem_pins_get(pins, addr, 64 * KIB, LOCAL, &ref), 0);
		assert_int_equal(device_sees(&ref, addr, 64 * KIB), round);
		mem_pins_put(pins, &ref);
	}
	mem_pins_stats(pins, &stats);
	assert_true(stats.revoked >= 200);
	mem_pins_destroy(pins);
	assert_int_equal(arena_free(arena, before), 0);
	assert_int_equal(arena_free(arena, addr), 0);
	assert_int_equal(arena_free(arena, after), 0);
}

/* In the child: it has what there was at the fork, and nothing that came later. Returns an exit status. */
static int has_what_was(const unsigned char *addr, int go)
{
	char byte;

	alarm(600);
	if (read(go, &byte, 1) != 1)
		return 1;
	for (size_t i = 0; i < 3 * MIB; i++)
		if (addr[i] != 1)
			return 2;
	return 0;
}

static void a_fork_takes_no_page_from_the_device(void **state)
{
	unsigned char *addr = allocate(3 * MIB, 1), *part = addr + MIB + 5;
	struct mem_pin_ref ref;
	int go[2], status;
	size_t reached;
	pid_t pid;

	open_pins(MIB);
	assert_int_equal(mem_pins_get(pins, part, 9, LOCAL, &ref), 0);
	assert_int_equal(pipe(go), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		close(go[1]);
		_exit(has_what_was(addr, go[0]));
	}
	memset(addr, 2, 3 * MIB);
	assert_int_equal(device_sees(&ref, part, 9), 2);
	assert_int_equal(pwrite(file, "\x3", 1, 0), 1);
	assert_int_equal(uring_device_read(&device, mem_pins_handle(pins, &ref, part, &reached),
					   part, 1, file, 0),
			 0);
	assert_int_equal(part[0], 3);
	assert_int_equal(write(go[1], "x", 1), 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	close(go[0]);
	close(go[1]);
	mem_pins_put(pins, &ref);
	mem_pins_destroy(pins);
	assert_int_equal(arena_free(arena, addr), 0);
}

/* What a_range_that_lost_its_pages_is_not_stale() would see: nobody watches the arena here. */
static void without_a_watcher_the_device_has_the_old_pages(void **state)
{
	unsigned char *addr = allocate(64 * KIB, 1), found;
	uint64_t handle;

	assert_int_equal(uring_device_ops.pin(&device, addr, 64 * KIB, LOCAL, &handle), 0);
	assert_int_equal(arena_purge(arena, addr, 64 * KIB), 0);
	addr[0] = 2;
	assert_int_equal(uring_device_write(&device, handle, addr, 1, file, 0), 0);
	assert_int_equal(pread(file, &found, 1, 0), 1);
	assert_int_equal(found, 1);
	uring_device_ops.unpin(&device, handle);
	assert_int_equal(arena_free(arena, addr), 0);
}

/*
 * Older kernels give locked memory back some time after it was deregistered, and then nothing can be
 * said of a limit.
 */
static bool gives_back_late(void *addr)
{
	uint64_t handle;

	for (int i = 0; i < 8; i++) {
		if (uring_device_ops.pin(&device, addr, 512 * KIB, LOCAL, &handle))
			return true;
		uring_device_ops.unpin(&device, handle);
	}
	return false;
}

/* A user whose limit is much less than what it registers in turn. Returns an exit status. */
static int be_poor(void)
{
	struct rlimit limit;
	struct mem_pins_stats stats;
	struct mem_pin_ref ref, all;
	unsigned char *addr;

	if (getrlimit(RLIMIT_MEMLOCK, &limit) || limit.rlim_max < MIB)
		return SKIP;
	limit.rlim_cur = MIB;
	if (setrlimit(RLIMIT_MEMLOCK, &limit) ||
	    (!geteuid() && (setgroups(0, NULL) || setresgid(65534, 65534, 65534) ||
			    setresuid(65534, 65534, 65534))))
		return SKIP;
	if (uring_device_open(&device))
		return SKIP;
	arena = arena_get();
	addr = arena ? allocate(8 * MIB, 5) : NULL;
	if (!addr || gives_back_late(addr))
		return SKIP;
	open_pins(0);
	for (int round = 0; round < 3; round++)
		for (size_t at = 0; at < 8 * MIB; at += 256 * KIB) {
			memset(addr + at, round, 256 * KIB);
			if (mem_pins_get(pins, addr + at, 256 * KIB, LOCAL, &ref) ||
			    device_sees(&ref, addr + at, 256 * KIB) != round)
				return 1;
			mem_pins_put(pins, &ref);
		}
	mem_pins_stats(pins, &stats);
	if (!stats.evicted || stats.grains > 8 || times_spent)
		return 2;
	if (mem_pins_get(pins, addr, 8 * MIB, LOCAL, &all) != -FI_ENOMEM || times_spent != 1)
		return 3;
	if (mem_pins_get(pins, addr, 4096, LOCAL, &ref) || device_sees(&ref, addr, 4096) != 2)
		return 4;
	mem_pins_put(pins, &ref);
	mem_pins_destroy(pins);
	uring_device_close(&device);
	return 0;
}

static void little_locked_memory_serves_much(void **state)
{
	int status;
	pid_t child = fork();

	assert_true(child >= 0);
	if (!child)
		_exit(be_poor());
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == SKIP)
		print_message(
			"skip: no limit of locked memory that works at once, or no io_uring\n");
	else
		assert_int_equal(WEXITSTATUS(status), 0);
}

/* Most that is registered at a time by the tests below. */
static bool may_lock_enough(void)
{
	unsigned char *addr = allocate(7 * MIB, 0);
	uint64_t handle;
	int err = uring_device_ops.pin(&device, addr, 7 * MIB, LOCAL, &handle);

	if (!err)
		uring_device_ops.unpin(&device, handle);
	arena_free(arena, addr);
	return !err;
}

int main(void)
{
	const struct CMUnitTest poor[] = { cmocka_unit_test(little_locked_memory_serves_much) };
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_device_reaches_what_is_registered),
		cmocka_unit_test(a_range_that_lost_its_pages_is_not_stale),
		cmocka_unit_test(a_fork_takes_no_page_from_the_device),
		cmocka_unit_test(without_a_watcher_the_device_has_the_old_pages),
	};
	int err, failed;

	file = memfd_create("device", MFD_CLOEXEC);
	/* Before this process has an arena or a device, which a child does not share. */
	failed = cmocka_run_group_tests(poor, NULL, NULL);
	err = uring_device_open(&device);
	if (err) {
		printf("skip: no io_uring: %s\n", strerror(-err));
		return failed ? failed : SKIP;
	}
	arena = arena_get();
	if (!arena || !may_lock_enough()) {
		printf("skip: no arena, or too little memory may be locked\n");
		return failed ? failed : SKIP;
	}
	failed += cmocka_run_group_tests(tests, NULL, NULL);
	uring_device_close(&device);
	return failed;
}
