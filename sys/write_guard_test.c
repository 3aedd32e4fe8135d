/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Unit tests of write guards and of guarded writes; this process is also the other one. */
#define _GNU_SOURCE
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>
#include <rdma/fi_errno.h>
#include "fault.h"
#include "process_vm.h"
#include "write_guard.h"
#include <cmocka.h>

enum { LEN = 100000 };

static unsigned char from[LEN], to[LEN];
static void *write_guard;

static int prepare(void **state)
{
	memset(from, 7, sizeof(from));
	memset(to, 0, sizeof(to));
	return sys_write_guard_open(&write_guard);
}

static int clear(void **state)
{
	sys_fault_clear();
	sys_write_guard_close(write_guard);
	write_guard = NULL;
	return 0;
}

/* Our 100,000 bytes in pieces of other lengths than the other's. */
static ssize_t written(size_t remote_len)
{
	struct iovec local[2] = { { from, 10 }, { from + 10, LEN - 10 } };
	struct iovec remote[3] = { { to, 5000 },
				   { to + 5000, 1 },
				   { to + 5001, remote_len - 5001 } };

	return sys_process_vm_write_guarded(getpid(), write_guard, local, 2, remote, 3);
}

static void open_write_guard_lets_writes_pass(void **state)
{
	assert_int_equal(written(LEN), LEN);
	assert_memory_equal(from, to, LEN);
	assert_int_equal(sys_process_vm_write_guarded(getpid(), write_guard, NULL, 0, NULL, 0),
			 0);
}

static void write_guard_that_is_shut_lets_nothing_pass(void **state)
{
	assert_int_equal(sys_write_guard_shut(write_guard), 0);
	assert_int_equal(written(LEN), -FI_EFAULT);
	assert_int_equal(to[0], 0);
	assert_int_equal(sys_process_vm_write_guarded(getpid(), write_guard, NULL, 0, NULL, 0),
			 -FI_EFAULT);
}

static void write_that_ends_early_fails(void **state)
{
	struct iovec local = { from, 20 };
	struct iovec remote[2] = { { to, 10 }, { (void *)4096, 10 } };

	assert_int_equal(
		sys_process_vm_write_guarded(getpid(), write_guard, &local, 1, remote, 2),
		-FI_EFAULT);
	assert_int_equal(written(LEN - 1), -FI_EINVAL);
}

/* In the range that sys_write_guard_open() asks for; a sanitizer may have taken part of that. */
static bool stands_alone(uint64_t at)
{
	return at >= 0x600000000000u && at < 0x7c0000000000u;
}

static void write_guards_stand_apart(void **state)
{
	enum { CNT = 64 };
	uint64_t at[CNT], least = UINT64_MAX;
	void *write_guards[CNT];
	int alone = 0;

	for (int i = 0; i < CNT; i++) {
		assert_int_equal(sys_write_guard_open(&write_guards[i]), 0);
		*(volatile char *)write_guards[i] = 1;
		if (stands_alone((uintptr_t)write_guards[i]))
			at[alone++] = (uintptr_t)write_guards[i];
	}
	for (int i = 0; i < alone; i++) {
		for (int k = 0; k < i; k++) {
			uint64_t apart = at[i] > at[k] ? at[i] - at[k] : at[k] - at[i];

			least = apart < least ? apart : least;
		}
	}
	for (int i = 0; i < CNT; i++)
		sys_write_guard_close(write_guards[i]);
	print_message("%d of %d stand alone, the two next to each other %llu bytes apart\n",
		      alone, CNT, (unsigned long long)least);
	assert_true(least > 1u << 16);
}

static void refusals_are_told(void **state)
{
	void *other = NULL;

	sys_fault_set(SYS_CALL_PROCESS_VM_WRITEV, EPERM, 0, 1);
	assert_int_equal(written(LEN), -FI_EPERM);
	sys_fault_set(SYS_CALL_MMAP, ENOMEM, 0, 1);
	assert_int_equal(sys_write_guard_open(&other), -FI_ENOMEM);
	assert_null(other);
	sys_fault_set(SYS_CALL_MPROTECT, ENOMEM, 0, 1);
	assert_int_equal(sys_write_guard_shut(write_guard), -FI_ENOMEM);
	assert_int_equal(written(LEN), LEN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(open_write_guard_lets_writes_pass, prepare,
						clear),
		cmocka_unit_test_setup_teardown(write_guard_that_is_shut_lets_nothing_pass,
						prepare, clear),
		cmocka_unit_test_setup_teardown(write_that_ends_early_fails, prepare, clear),
		cmocka_unit_test(write_guards_stand_apart),
		cmocka_unit_test_setup_teardown(refusals_are_told, prepare, clear),
	};

	return cmocka_run_group_tests_name("sys-write-guard", tests, NULL, NULL);
}
