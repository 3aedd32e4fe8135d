/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Unit tests of copies between processes; this process is also the other one. */
#define _GNU_SOURCE
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <rdma/fi_errno.h>
#include "fault.h"
#include "process_vm.h"
#include "seeded.h"
#include <cmocka.h>

enum { LEN = 20000, PIECES = 100 };

static unsigned char from[LEN], to[LEN];
static uint64_t seed = 0x5eed0004;

static uint32_t below(uint32_t n)
{
	return (uint32_t)seeded_below(&seed, n);
}

static int prepare(void **state)
{
	for (int i = 0; i < LEN; i++)
		from[i] = (unsigned char)(i * 7 + i / 251);
	memset(to, 0, sizeof(to));
	return 0;
}

static int clear(void **state)
{
	sys_fault_clear();
	return 0;
}

/* Cuts a buffer into pieces of odd lengths, empty ones among them. Returns their number. */
static size_t cut(struct iovec *iov, unsigned char *buf, size_t len, uint32_t most)
{
	size_t n = 0;

	while (len && n < PIECES - 1) {
		size_t piece = below(most);

		piece = piece < len ? piece : len;
		iov[n++] = (struct iovec){ .iov_base = buf, .iov_len = piece };
		buf += piece;
		len -= piece;
	}
	iov[n++] = (struct iovec){ .iov_base = buf, .iov_len = len };
	return n;
}

static void one_piece_is_copied(void **state)
{
	struct iovec local = { to, LEN }, remote = { from, LEN };

	assert_int_equal(sys_process_vm_read(getpid(), &local, 1, &remote, 1), LEN);
	assert_memory_equal(from, to, LEN);
}

static void any_cut_of_both_sides_is_copied_whole(void **state)
{
	struct iovec local[PIECES], remote[PIECES];

	printf("seed %#llx\n", (unsigned long long)seed);
	for (int i = 0; i < 300; i++) {
		uint32_t most = 2 + below(i % 3 ? 600 : 20);
		size_t lcnt = cut(local, to, LEN, most);
		size_t rcnt = cut(remote, from, LEN, 2 + below(600));
		ssize_t n;

		memset(to, 0, LEN);
		n = sys_process_vm_read(getpid(), local, lcnt, remote, rcnt);
		assert_int_equal(n, LEN);
		assert_memory_equal(from, to, LEN);
	}
}

static void the_shorter_side_decides(void **state)
{
	struct iovec local[2] = { { to, 10 }, { to + 10, 0 } }, remote = { from, LEN };

	assert_int_equal(sys_process_vm_read(getpid(), local, 2, &remote, 1), 10);
	assert_memory_equal(from, to, 10);
	assert_int_equal(to[10], 0);
	assert_int_equal(sys_process_vm_read(getpid(), local, 0, &remote, 1), 0);
	remote.iov_len = 3;
	local[0].iov_len = LEN;
	assert_int_equal(sys_process_vm_read(getpid(), local, 1, &remote, 1), 3);
}

static void partly_mapped_memory_is_a_fault(void **state)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	unsigned char *map = mmap(NULL, 3 * page, PROT_READ | PROT_WRITE,
				  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	unsigned char *copy = calloc(3, page);
	struct iovec local = { copy, 3 * page }, remote = { map, 3 * page };

	assert_ptr_not_equal(map, MAP_FAILED);
	assert_non_null(copy);
	memset(map, 9, 3 * page);
	assert_int_equal(munmap(map + 2 * page, page), 0);
	/* The kernel answers two pages; the rest has to be asked for to learn why. */
	assert_int_equal(sys_process_vm_read(getpid(), &local, 1, &remote, 1), -FI_EFAULT);
	assert_int_equal(copy[2 * page - 1], 9);
	assert_int_equal(copy[2 * page], 0);
	munmap(map, 2 * page);
	free(copy);
}

static void gone_process_is_told(void **state)
{
	struct iovec local = { to, 1 }, remote = { from, 1 };
	pid_t child = fork();

	assert_true(child >= 0);
	if (!child)
		_exit(0);
	assert_int_equal(waitpid(child, NULL, 0), child);
	assert_int_equal(sys_process_vm_read(child, &local, 1, &remote, 1), -ESRCH);
}

static void impossible_lengths_are_refused(void **state)
{
	struct iovec local[2] = { { to, SIZE_MAX }, { to, SIZE_MAX } };
	struct iovec remote[2] = { { from, SIZE_MAX }, { from, 5 } };

	assert_int_equal(sys_process_vm_read(getpid(), local, 2, remote, 2), -FI_EINVAL);
}

static void failing_calls_are_passed_on(void **state)
{
	struct iovec local[PIECES], remote = { from, LEN };
	size_t cnt = cut(local, to, LEN, 300);

	sys_fault_set(SYS_CALL_PROCESS_VM_READV, EPERM, 0, 1);
	assert_int_equal(sys_process_vm_read(getpid(), local, cnt, &remote, 1), -FI_EPERM);
	assert_int_equal(sys_process_vm_read(getpid(), local, cnt, &remote, 1), LEN);
	sys_fault_set(SYS_CALL_PROCESS_VM_READV, ENOMEM, 1, 1); /* of several windows */
	assert_int_equal(sys_process_vm_read(getpid(), local, cnt, &remote, 1), -FI_ENOMEM);
}

#define test(name) cmocka_unit_test_setup_teardown(name, prepare, clear)

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(one_piece_is_copied),	   test(any_cut_of_both_sides_is_copied_whole),
		test(the_shorter_side_decides),	   test(partly_mapped_memory_is_a_fault),
		test(gone_process_is_told),	   test(impossible_lengths_are_refused),
		test(failing_calls_are_passed_on),
	};
	struct iovec local = { to, 1 }, remote = { from, 1 };
	ssize_t probe = sys_process_vm_read(getpid(), &local, 1, &remote, 1);

	if (probe == -FI_ENOSYS || probe == -FI_EPERM) {
		printf("skipped: process_vm_readv is %s here\n",
		       probe == -FI_EPERM ? "forbidden" : "unknown");
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
