/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Reserved addresses, what is mapped there, and what refusals leave. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include <rdma/fi_errno.h>
#include "fault.h"
#include "memfd.h"
#include "reserve.h"

#define ALIGN ((size_t)2 << 20)
#define LEN   ((size_t)64 << 20)
#define PART  ((size_t)4 << 20)

static bool mapped(void *addr)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	unsigned char vec;

	return !mincore((void *)((uintptr_t)addr & ~(page - 1)), 1, &vec);
}

static void reserved_addresses_begin_where_asked(void **state)
{
	char *addr;

	assert_int_equal(sys_reserve(LEN, ALIGN, 0, (void **)&addr), 0);
	assert_int_equal((uintptr_t)addr % ALIGN, 0);
	assert_true(mapped(addr));
	assert_true(mapped(addr + LEN - 1));
	sys_reserve_end(addr, LEN);
	assert_false(mapped(addr));
	sys_reserve_end(NULL, 0);
	assert_int_equal(sys_reserve(SIZE_MAX - ALIGN / 2, ALIGN, 0, (void **)&addr),
			 -FI_EINVAL);
	assert_int_equal(sys_reserve(SIZE_MAX / 2, ALIGN, 0, (void **)&addr), -FI_ENOMEM);
}

static void memory_is_mapped_at_its_place_and_not_in_a_child(void **state)
{
	struct sys_memfd_id id;
	char *addr, *again;
	int fd, status;
	pid_t pid;

	assert_int_equal(sys_reserve(LEN, ALIGN, 0, (void **)&addr), 0);
	fd = sys_memfd_create("reserve", PART, 0600);
	assert_true(fd >= 0);
	assert_int_equal(sys_reserve_map(addr + PART, PART, fd), 0);
	addr[PART] = 7;
	assert_int_equal(sys_memfd_map(fd, PART, 0, (void **)&again), 0);
	assert_int_equal(again[0], 7);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid)
		_exit(mapped(addr) && !mapped(addr + PART) && !mapped(addr + 2 * PART - 1) ? 0
											   : 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(sys_memfd_identify(fd, &id), 0);
	assert_int_equal(sys_memfd_punch(fd, &id, 0, PART), 0);
	assert_int_equal(addr[PART], 0);
	assert_int_equal(again[0], 0);
	sys_memfd_unmap(again, PART);
	sys_reserve_end(addr, LEN);
	close(fd);
}

/* What a child has lost of the range is the first hole that is large enough, but for the addresses around. */
static void what_a_child_maps_is_not_in_the_range(void **state)
{
	char *addr;
	int fd, status;
	pid_t pid;

	assert_int_equal(sys_reserve(LEN, ALIGN, 4 * LEN, (void **)&addr), 0);
	assert_int_equal((uintptr_t)addr % ALIGN, 0);
	fd = sys_memfd_create("reserve", LEN, 0600);
	assert_true(fd >= 0);
	assert_int_equal(sys_reserve_map(addr, LEN, fd), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		char *mine = sys_reserve_zero(LEN);

		_exit(mine && (mine + LEN <= addr || mine >= addr + LEN) ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	sys_reserve_end(addr, LEN);
	close(fd);
}

static void what_has_ended_is_zeros_that_nobody_else_sees(void **state)
{
	char *addr, *shared;
	int fd;

	assert_int_equal(sys_reserve(LEN, ALIGN, 0, (void **)&addr), 0);
	fd = sys_memfd_create("reserve", PART, 0600);
	assert_true(fd >= 0);
	assert_int_equal(sys_reserve_map(addr, PART, fd), 0);
	addr[0] = 7;
	assert_int_equal(sys_memfd_map(fd, PART, 0, (void **)&shared), 0);
	sys_fault_set(SYS_CALL_MMAP, ENOMEM, 0, 1);
	assert_int_equal(sys_reserve_zeros(addr, PART), -FI_ENOMEM);
	sys_fault_clear();
	assert_int_equal(addr[0], 7);
	assert_int_equal(sys_reserve_zeros(addr, PART), 0);
	assert_int_equal(addr[0], 0);
	addr[PART - 1] = 8;
	assert_int_equal(shared[0], 7);
	assert_int_equal(shared[PART - 1], 0);
	sys_memfd_unmap(shared, PART);
	sys_reserve_end(addr, LEN);
	close(fd);
}

static void two_files_have_two_numbers(void **state)
{
	int a = sys_memfd_create("a", PART, 0600), b = sys_memfd_create("b", PART, 0600);
	uint64_t inode_a, inode_b;

	assert_int_equal(sys_memfd_inode(a, &inode_a), 0);
	assert_int_equal(sys_memfd_inode(b, &inode_b), 0);
	assert_int_not_equal(inode_a, inode_b);
	close(a);
	close(b);
	assert_int_equal(sys_memfd_inode(a, &inode_a), -FI_EBADF);
}

static void a_refusal_leaves_the_reservation(void **state)
{
	struct sys_memfd_id id;
	char *addr;
	int fd;

	assert_int_equal(sys_reserve(LEN, ALIGN, 0, (void **)&addr), 0);
	fd = sys_memfd_create("reserve", PART, 0600);
	assert_int_equal(sys_memfd_identify(fd, &id), 0);
	sys_fault_set(SYS_CALL_MMAP, FI_ENOMEM, 0, 0);
	assert_int_equal(sys_reserve_map(addr, PART, fd), -FI_ENOMEM);
	assert_int_equal(sys_reserve(LEN, ALIGN, 0, (void **)&addr), -FI_ENOMEM);
	assert_null(sys_reserve_zero(LEN));
	sys_fault_clear();
	sys_fault_set(SYS_CALL_FALLOCATE, FI_ENOMEM, 0, 0);
	assert_int_equal(sys_memfd_punch(fd, &id, 0, PART), -FI_ENOMEM);
	sys_fault_clear();
	assert_true(mapped(addr));
	sys_reserve_end(addr, LEN);
	close(fd);
}

static void pages_are_removed_from_one_file_without_a_descriptor(void **state)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct sys_memfd_id id;
	char *addr;
	int fd, other;

	assert_int_equal(sys_reserve(LEN, ALIGN, 0, (void **)&addr), 0);
	fd = sys_memfd_create("reserve", PART, 0600);
	other = sys_memfd_create("other", page, 0600);
	assert_int_equal(sys_memfd_identify(fd, &id), 0);
	assert_int_equal(sys_reserve_map(addr, PART, fd), 0);
	assert_int_equal(sys_reserve_map(addr + page, page, other), 0);
	close(fd);
	memset(addr, 1, PART);
	assert_int_equal(sys_reserve_remove(addr, PART, &id), 0);
	assert_int_equal(addr[0], 0);
	assert_int_equal(addr[page], 1);
	assert_int_equal(addr[PART - 1], 0);
	addr[0] = 1;
	sys_fault_set(SYS_CALL_FALLOCATE, FI_ENOMEM, 0, 0);
	assert_int_equal(sys_reserve_remove(addr, PART, &id), -FI_ENOMEM);
	sys_fault_clear();
	assert_int_equal(addr[0], 1);
	close(other);
	sys_reserve_end(addr, LEN);
}

static void a_table_is_zero(void **state)
{
	uint64_t *table = sys_reserve_zero(LEN);

	assert_non_null(table);
	assert_int_equal(table[LEN / sizeof(*table) - 1], 0);
	table[1] = 5;
	sys_reserve_end(table, LEN);
}

static void what_is_left_is_private_and_as_it_was(void **state)
{
	char *addr, *shared;
	struct sys_memfd_id id;
	int fd;

	assert_int_equal(sys_reserve(LEN, ALIGN, 0, (void **)&addr), 0);
	fd = sys_memfd_create("reserve", PART, 0600);
	assert_true(fd >= 0);
	assert_int_equal(sys_memfd_identify(fd, &id), 0);
	assert_int_equal(sys_reserve_map(addr, PART, fd), 0);
	assert_int_equal(sys_memfd_map(fd, PART, SYS_MEMFD_WRITE, (void **)&shared), 0);
	memset(addr, 1, PART);
	assert_int_equal(mprotect(addr + PART / 2, PART / 2, PROT_READ), 0);
	sys_fault_set(SYS_CALL_MMAP, FI_ENOMEM, 0, 0);
	assert_int_equal(sys_reserve_leave(addr, PART, fd, &id, NULL), -FI_ENOMEM);
	sys_fault_clear();
	addr[0] = 2;
	assert_int_equal(shared[0], 2);
	assert_int_equal(sys_reserve_leave(addr, LEN, fd, &id, NULL), 0);
	addr[0] = 3;
	assert_int_equal(shared[0], 2);
	assert_int_equal(addr[PART - 1], 1);
	assert_int_equal(mprotect(addr + PART / 2, PART / 2, PROT_READ | PROT_WRITE), 0);
	sys_reserve_own(addr, PART);
	shared[PART - 1] = 4;
	assert_int_equal(addr[PART - 1], 1);
	assert_int_equal(sys_reserve_clear(addr, PART / 2), 0);
	assert_int_equal(addr[0], 0);
	assert_int_equal(addr[PART / 2], 1);
	addr[0] = 5;
	assert_int_equal(shared[0], 2);
	sys_memfd_unmap(shared, PART);
	close(fd);
	sys_reserve_end(addr, LEN);
}

static void addresses_have_the_limit_of_the_process(void **state)
{
	struct rlimit limit;

	assert_int_equal(getrlimit(RLIMIT_AS, &limit), 0);
	assert_true(sys_reserve_limit() ==
		    (limit.rlim_cur == RLIM_INFINITY ? UINT64_MAX : limit.rlim_cur));
	sys_fault_set(SYS_CALL_GETRLIMIT, EPERM, 0, 0);
	assert_true(sys_reserve_limit() == UINT64_MAX);
	sys_fault_clear();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reserved_addresses_begin_where_asked),
		cmocka_unit_test(memory_is_mapped_at_its_place_and_not_in_a_child),
		cmocka_unit_test(what_a_child_maps_is_not_in_the_range),
		cmocka_unit_test(what_has_ended_is_zeros_that_nobody_else_sees),
		cmocka_unit_test(two_files_have_two_numbers),
		cmocka_unit_test(a_refusal_leaves_the_reservation),
		cmocka_unit_test(pages_are_removed_from_one_file_without_a_descriptor),
		cmocka_unit_test(a_table_is_zero),
		cmocka_unit_test(what_is_left_is_private_and_as_it_was),
		cmocka_unit_test(addresses_have_the_limit_of_the_process),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
