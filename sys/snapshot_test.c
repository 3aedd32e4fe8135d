/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What a child gets of memory that stays its parent's. */
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
#include "fault.h"
#include "mock_descriptors.h"
#include "reserve.h"
#include "snapshot.h"

/* Linux 6.13; of files' memory 6.15 */
#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102
#define MADV_GUARD_REMOVE  103
#endif

#define PAGES 8u

static size_t page;
static struct sys_memfd_id id;
static char *addr;

/* PAGES pages of a memfd; the last one can't be accessed, and another memfd has one of them. */
static int start(void **state)
{
	int fd, other;

	page = (size_t)sysconf(_SC_PAGESIZE);
	fd = sys_memfd_create("ours", PAGES * page, 0600);
	other = sys_memfd_create("other", page, 0600);
	if (sys_reserve(PAGES * page, page, 0, (void **)&addr) || sys_memfd_identify(fd, &id) ||
	    sys_reserve_map(addr, PAGES * page, fd) ||
	    sys_reserve_map(addr + 2 * page, page, other))
		return -1;
	close(fd);
	close(other);
	memset(addr, 1, PAGES * page);
	return mprotect(addr + (PAGES - 1) * page, page, PROT_NONE);
}

static int stop(void **state)
{
	sys_fault_clear();
	sys_reserve_end(addr, PAGES * page);
	return 0;
}

/* In the child. */
static int put(struct sys_snapshot *s)
{
	int data[2];

	if (sys_snapshot_put(s) || sys_snapshot_put(s))
		return 1;
	if (addr[0] != 1 || addr[2 * page - 1] != 1)
		return 2;
	/* what was added and not copied is zero */
	if (addr[3 * page] || addr[(PAGES - 1) * page - 1])
		return 3;
	addr[0] = 5;
	/* that which could not be accessed still can't */
	if (pipe(data) || write(data[1], addr + (PAGES - 1) * page, 1) != -1)
		return 4;
	if (mprotect(addr + (PAGES - 1) * page, page, PROT_READ))
		return 5;
	return addr[(PAGES - 1) * page] == 1 ? 0 : 6;
}

static void a_child_has_the_copy_and_the_parent_the_memory(void **state)
{
	struct sys_snapshot s = { .parts = NULL };
	int before = mock_descriptors(), status;
	pid_t pid;

	assert_int_equal(sys_snapshot_add(&s, addr, PAGES * page, &id), 0);
	assert_int_equal(sys_snapshot_copy(&s, addr, 2 * page), 0);
	assert_int_equal(sys_snapshot_copy(&s, addr + (PAGES - 1) * page, page), 0);
	sys_snapshot_shut(&s);
	assert_int_equal(mock_descriptors(), before);
	addr[0] = 2;
	pid = fork();
	assert_true(pid >= 0);
	if (!pid)
		_exit(put(&s));
	addr[page] = 3;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	sys_snapshot_drop(&s);
	assert_null(s.parts);
	assert_int_equal(addr[0], 2);
	assert_int_equal(addr[page], 3);
}

static void what_is_refused_is_told(void **state)
{
	struct sys_snapshot s = { .parts = NULL };
	int before = mock_descriptors();

	sys_fault_set(SYS_CALL_OPEN_MAPS, FI_EMFILE, 0, 0);
	assert_int_equal(sys_snapshot_add(&s, addr, page, &id), -FI_EMFILE);
	sys_fault_clear();
	sys_fault_set(SYS_CALL_MMAP, FI_ENOMEM, 0, 0);
	assert_int_equal(sys_snapshot_add(&s, addr, page, &id), -FI_ENOMEM);
	sys_fault_clear();
	assert_int_equal(sys_snapshot_add(&s, addr, page, &id), 0);
	sys_fault_set(SYS_CALL_PREAD, FI_EIO, 0, 0);
	assert_int_equal(sys_snapshot_copy(&s, addr, page), -FI_EIO);
	sys_fault_clear();
	sys_snapshot_shut(&s);
	sys_snapshot_drop(&s);
	assert_int_equal(mock_descriptors(), before);
}

/* qemu-user takes any advice, and does nothing. */
static bool guard(char *at)
{
	int data[2];
	bool guarded;

	if (madvise(at, page, MADV_GUARD_INSTALL))
		return false;
	assert_int_equal(pipe(data), 0);
	guarded = write(data[1], at, 1) == -1;
	close(data[0]);
	close(data[1]);
	return guarded;
}

static void a_guard_page_is_copied_as_zeros(void **state)
{
	struct sys_snapshot s = { .parts = NULL };
	int status;
	pid_t pid;

	if (!guard(addr + page)) {
		print_message("no guard pages of shared memory\n");
		skip();
	}
	memset(addr, 8, page);
	memset(addr + 3 * page, 8, page);
	assert_int_equal(sys_snapshot_add(&s, addr, PAGES * page, &id), 0);
	/* from the middle of a page to that of another one */
	assert_int_equal(sys_snapshot_copy(&s, addr + 1, 3 * page), 0);
	sys_snapshot_shut(&s);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid)
		_exit(sys_snapshot_put(&s) || addr[0] || addr[1] != 8 || addr[page - 1] != 8 ||
		      addr[page] || addr[2 * page - 1] || addr[3 * page] != 8);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	sys_snapshot_drop(&s);
	assert_int_equal(madvise(addr + page, page, MADV_GUARD_REMOVE), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_child_has_the_copy_and_the_parent_the_memory),
		cmocka_unit_test(what_is_refused_is_told),
		cmocka_unit_test(a_guard_page_is_copied_as_zeros),
	};

	return cmocka_run_group_tests(tests, start, stop);
}
