/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Unit tests of what tools are told of shared memory: messages that were lent and read, and keys, as they are in
 * the page of counters of this process. Both endpoints are in it.
 */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <sys/mman.h>
#include <unistd.h>
#include "arena.h"
#include "mock_engine.h"
#include "mr.h"
#include "peer_arena.h"
#include "shown.h"

#define LEN 100000u

static struct mock a, b;
static struct wire_share *share;
static struct mr_table table;
static _Atomic uint32_t regions;
static unsigned char *from, *to;

/* Returns the page of this process, which the arena has made. */
static const struct weft_mem_stats *page(void)
{
	static const char name[] = "/memfd:" WEFT_MEM_STATS_FILE " (deleted)";
	static const struct weft_mem_stats *stats;
	DIR *dir = stats ? NULL : opendir("/proc/self/fd");
	const struct dirent *entry;
	char target[64];

	while (dir && (entry = readdir(dir))) {
		if (readlinkat(dirfd(dir), entry->d_name, target, sizeof(target)) ==
			    (ssize_t)strlen(name) &&
		    !memcmp(target, name, strlen(name)))
			stats = mmap(NULL, sizeof(*stats), PROT_READ, MAP_SHARED,
				     atoi(entry->d_name), 0);
	}
	if (dir)
		closedir(dir);
	assert_true(stats && stats != MAP_FAILED);
	return stats;
}

static uint64_t told(enum weft_mem_shm_count idx)
{
	const struct weft_mem_stats *stats = page();

	for (uint32_t i = 0; i < WEFT_MEM_STATS_PARTS; i++)
		if (stats->parts[i].kind == WEFT_MEM_PART_SHM)
			return stats->parts[i].counts[idx];
	return 0;
}

static int setup(void **state)
{
	struct mr_memory slabs;
	void *addr = NULL;

	if (!arena_get() || arena_alloc(arena_get(), LEN, 1, ARENA_READ, &addr, NULL) ||
	    pshm_wire_ops.share_open(&share, &slabs, &regions))
		return -1;
	from = addr;
	to = malloc(LEN);
	mr_init(&table, MR_KEYS_GIVEN, &slabs);
	mock_open(&a);
	mock_open_sharing(&b, share, 0);
	mock_connected(&a, &b, &b.addr);
	b.room = to;
	b.room_len = LEN;
	b.room_iovs = 1;
	return to ? 0 : -1;
}

static int teardown(void **state)
{
	mock_close(&a);
	mock_close(&b);
	mr_fini(&table);
	pshm_wire_ops.share_close(share);
	free(to);
	return arena_free(arena_get(), from);
}

static void messages_that_are_copied_once_are_told(void **state)
{
	uint64_t lent = told(WEFT_MEM_SHM_LENT), bytes = told(WEFT_MEM_SHM_LENT_BYTES);
	uint64_t read = told(WEFT_MEM_SHM_READ), got = told(WEFT_MEM_SHM_READ_BYTES);
	struct iovec here = { to, LEN };
	struct pshm_place place;
	struct mock_op op;

	for (int i = 0; i < 100 && !pshm_arena_lends(pshm_conn_of(a.conn), from, LEN, &place);
	     i++)
		mock_sweep(&a, &b);
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(mock_sendv(a.conn, MOCK_BIG + i, from, 5000 + i, 1, &op), 0);
		mock_until(&a, &b, op.done && b.big_done == i + 1);
	}
	if (!mock_get(b.conn, 1, from, &here, 1, &op))
		mock_until(NULL, &b, op.done);
	mock_sweep(&a, &b);
	assert_int_equal(told(WEFT_MEM_SHM_LENT), lent + 3);
	assert_int_equal(told(WEFT_MEM_SHM_LENT_BYTES), bytes + 15003);
	assert_int_equal(told(WEFT_MEM_SHM_READ), read + 1);
	assert_int_equal(told(WEFT_MEM_SHM_READ_BYTES), got + LEN);
}

static void regions_and_keys_are_told_until_their_domain_closes(void **state)
{
	struct iovec iov = { from, LEN };
	struct mr_spec spec = { .iov = &iov, .iov_cnt = 1, .object = &iov, .live = true };
	uint32_t index;

	for (spec.key = 1; spec.key <= 3; spec.key++)
		assert_int_equal(mr_insert(&table, &spec, &index), 0);
	regions = 5;
	mock_sweep(&a, &b);
	assert_int_equal(told(WEFT_MEM_SHM_KEYS), 3);
	assert_int_equal(told(WEFT_MEM_SHM_REGIONS), 5);
	mr_remove(&table, index);
	regions = 4;
	mock_sweep(&a, &b);
	assert_int_equal(told(WEFT_MEM_SHM_KEYS), 2);
	assert_int_equal(told(WEFT_MEM_SHM_REGIONS), 4);
	regions = 1;
	mock_sweep(&a, &b);
	assert_int_equal(told(WEFT_MEM_SHM_REGIONS), 1);
	teardown(NULL);
	assert_int_equal(told(WEFT_MEM_SHM_KEYS), 0);
	assert_int_equal(told(WEFT_MEM_SHM_REGIONS), 0);
	assert_int_equal(setup(NULL), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(messages_that_are_copied_once_are_told),
		TEST(regions_and_keys_are_told_until_their_domain_closes),
	};

	alarm(600);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
