/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A peer that goes on with a key over memory that was freed: the owner lives, finds no peer's data in its other
 * memory, and closes the region. Both endpoints are in this process, over shared memory. The memory is in a chunk
 * that ends when it is freed: since the process has forked, or since it is of the pool of huge pages.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>
#include <rdma/fi_rma.h>
#include "two_ends.h"

#define LEN	   ((size_t)1 << 20)
#define DEADLINE_S 20

static struct two_ends ends;

static int start(void **state)
{
	return two_ends_open(&ends, 0);
}

static int end(void **state)
{
	return two_ends_close(&ends);
}

/* Reads or writes the region, whose addresses are from 0 on. */
static void access_key(uint64_t key, void *buf, size_t len, bool write)
{
	time_t until = time(NULL) + DEADLINE_S;
	struct fi_cq_msg_entry entry;
	ssize_t ret, done = -FI_EAGAIN;

	do {
		ret = write ? fi_write(ends.ep, buf, len, NULL, ends.to, 0, key, NULL)
			    : fi_read(ends.ep, buf, len, NULL, ends.to, 0, key, NULL);
		if (ret == -FI_EAGAIN)
			done = fi_cq_read(ends.cq, &entry, 1);
	} while (ret == -FI_EAGAIN && time(NULL) < until);
	assert_int_equal(ret, 0);
	while (done == -FI_EAGAIN && time(NULL) < until)
		done = fi_cq_read(ends.cq, &entry, 1);
	assert_int_equal(done, 1);
}

static void fork_once(void)
{
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid)
		_exit(0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
}

static void free_and_access(uint64_t flags, size_t len)
{
	static unsigned char buf[LEN];
	struct fid_mr *mr;
	void *addr;

	assert_int_equal(ends.mem->alloc(LEN, 0, flags, &addr), 0);
	memset(addr, 5, LEN);
	assert_int_equal(fi_mr_reg(ends.domain, addr, LEN, FI_REMOTE_READ | FI_REMOTE_WRITE, 0,
				   7, 0, &mr, NULL),
			 0);
	access_key(fi_mr_key(mr), buf, len, false);
	assert_int_equal(buf[len - 1], 5);
	fork_once();
	assert_int_equal(ends.mem->free(addr), 0);
	for (int i = 0; i < 3; i++) {
		memset(buf, 9, len);
		access_key(fi_mr_key(mr), buf, len, true);
		access_key(fi_mr_key(mr), buf, len, false);
	}
	assert_int_equal(fi_close(&mr->fid), 0);
}

static void a_key_over_freed_memory_harms_nobody(void **state)
{
	static const size_t lens[] = { 64, 8192, LEN };
	static const uint64_t flags[] = { 0, WEFT_MEM_REMOTE_WRITE, WEFT_MEM_HUGE };

	for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++)
		for (size_t k = 0; k < sizeof(flags) / sizeof(flags[0]); k++)
			free_and_access(flags[k], lens[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_key_over_freed_memory_harms_nobody),
	};

	return cmocka_run_group_tests(tests, start, end);
}
