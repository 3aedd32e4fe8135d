/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Unit tests of accesses to regions in the peer's arena, which are mapped: by loads and stores within a call, and in
 * steps, and how the owner takes its memory back from a peer that is stopped in one. Both endpoints are in this process,
 * which maps its own chunks as any other's.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <rdma/fi_errno.h>
#include "arena.h"
#include "mock_keys.h"
#include "peer_arena.h"
#include "reader.h"
#include "peer_keys.h"

#define KEY MOCK_KEY
#define LEN MOCK_KEYS_LEN

static struct mock_keys k;

static int setup(void **state)
{
	mock_keys_open(&k, 0);
	assert_int_equal(mock_keys_expose(&k, KEY, MOCK_RMA, 1, false, &k.region), 0);
	return 0;
}

static int teardown(void **state)
{
	mock_keys_close(&k);
	return 0;
}

/* Registers memory of the arena instead of malloc's. Returns it. */
static unsigned char *expose_kind(enum arena_kind kind, uint64_t key, uint32_t *index)
{
	struct iovec iov = { .iov_len = LEN };
	struct mr_spec spec = { .iov = &iov,
				.iov_cnt = 1,
				.access = MOCK_RMA,
				.key = key,
				.object = &k.table,
				.live = true };

	assert_int_equal(arena_alloc(arena_get(), LEN, 1, kind, &iov.iov_base, NULL), 0);
	assert_int_equal(mr_insert(&k.table, &spec, index), 0);
	return iov.iov_base;
}

/* The same of memory that peers may store to. */
static unsigned char *expose_arena(uint64_t key, uint32_t *index)
{
	return expose_kind(ARENA_WRITE, key, index);
}

static void a_peer_that_is_stopped_in_a_store_is_cut_off(void **state)
{
	struct packet_target target = { .addr = 5, .len = 8, .key = KEY + 1 };
	struct pshm_conn *conn = NULL;
	unsigned char *ours, *theirs;
	uint32_t other;

	ours = expose_arena(KEY + 1, &other);
	memset(ours, 1, LEN);
	for (int i = 0; i < 2000; i++)
		mock_poll(NULL, &k.b);
	conn = pshm_conn_of(k.a.conn);
	theirs = pshm_wire_ops.reach(k.a.conn, &target, FI_REMOTE_WRITE);
	assert_non_null(theirs);
	theirs[0] = 2;
	assert_int_equal(ours[5], 2);

	mr_invalidate(&k.table, other);
	assert_true(pshm_wire_ops.share_used(k.share, other));
	assert_false(pshm_wire_ops.share_used(k.share, k.region));
	assert_true(pshm_wire_ops.share_cut(k.share, other, ours, LEN));
	assert_false(pshm_wire_ops.share_used(k.share, other));
	theirs[1] = 3;
	assert_int_equal(ours[5], 2);
	assert_int_equal(ours[6], 1);
	assert_int_equal(ours[LEN - 1], 1);
	assert_false(pshm_wire_ops.reached(k.a.conn, FI_REMOTE_WRITE));
	assert_null(pshm_wire_ops.reach(k.a.conn, &target, FI_REMOTE_WRITE));

	/* the next access that has this number is one again */
	atomic_store(&conn->pair->inside[conn->side].entered, conn->entered + 1);
	atomic_store(mock_keys_mark(&k), other);
	assert_true(pshm_wire_ops.share_used(k.share, other));
	atomic_store(mock_keys_mark(&k), 0);
	assert_int_equal(arena_free(arena_get(), ours), 0);
}

/* Its key has ended: what it reads now it drops. Others go on with the chunk. */
static void a_peer_that_is_stopped_in_a_load_takes_no_memory_away(void **state)
{
	struct packet_target target = { .addr = 5, .len = 8, .key = KEY + 1 };
	struct arena_place place;
	unsigned char *ours;
	uint32_t other;

	ours = expose_kind(ARENA_READ, KEY + 1, &other);
	memset(ours, 1, LEN);
	for (int i = 0; i < 2000; i++)
		mock_poll(NULL, &k.b);
	assert_non_null(pshm_wire_ops.reach(k.a.conn, &target, FI_REMOTE_READ));
	pshm_enter(pshm_conn_of(k.a.conn), other | PSHM_INSIDE_MAPPED);
	mr_invalidate(&k.table, other);
	assert_true(pshm_wire_ops.share_used(k.share, other));
	assert_true(pshm_wire_ops.share_cut(k.share, other, ours, LEN));
	assert_false(pshm_wire_ops.share_used(k.share, other));
	assert_true(arena_find(arena_get(), ours, LEN, &place));
	pshm_leave(pshm_conn_of(k.a.conn));
	assert_false(pshm_wire_ops.reached(k.a.conn, FI_REMOTE_READ));
	mr_remove(&k.table, other);
	assert_int_equal(arena_free(arena_get(), ours), 0);
}

/* What no peer can have mapped closes whatever a peer says of it: memory of others, and all addresses. */
static void a_mark_where_nothing_is_mapped_keeps_no_region_open(void **state)
{
	struct pshm_conn *conn = pshm_conn_of(k.a.conn);
	unsigned char *ours;
	uint32_t other;

	pshm_enter(conn, k.region | PSHM_INSIDE_MAPPED);
	mr_invalidate(&k.table, k.region);
	assert_true(pshm_wire_ops.share_used(k.share, k.region));
	assert_true(pshm_wire_ops.share_cut(k.share, k.region, k.memory, LEN));
	assert_false(pshm_wire_ops.share_used(k.share, k.region));
	ours = expose_arena(KEY + 1, &other);
	pshm_enter(conn, k.region | PSHM_INSIDE_MAPPED);
	assert_true(pshm_wire_ops.share_cut(k.share, k.region, NULL, SIZE_MAX));
	assert_false(arena_find(arena_get(), ours, LEN, &(struct arena_place){ 0 }));
	pshm_leave(conn);
	mr_remove(&k.table, other);
	assert_int_equal(arena_free(arena_get(), ours), 0);
}

/* No packet tells the owner that a peer is active, but it can look. */
static void the_owner_sees_that_a_peer_has_stored(void **state)
{
	struct packet_target target = { .addr = 5, .len = 8, .key = KEY + 1 };
	unsigned char *ours;
	uint32_t other;

	ours = expose_arena(KEY + 1, &other);
	for (int i = 0; i < 2000; i++)
		mock_poll(NULL, &k.b);
	assert_false(pshm_wire_ops.stored(k.b.wire));
	for (int i = 0; i < 3; i++) {
		assert_non_null(pshm_wire_ops.reach(k.a.conn, &target, FI_REMOTE_WRITE));
		assert_true(pshm_wire_ops.reached(k.a.conn, FI_REMOTE_WRITE));
		assert_true(pshm_wire_ops.stored(k.b.wire));
		assert_false(pshm_wire_ops.stored(k.b.wire));
		assert_false(pshm_wire_ops.stored(k.a.wire));
	}
	assert_non_null(pshm_wire_ops.reach(k.a.conn, &target, FI_REMOTE_READ));
	assert_true(pshm_wire_ops.reached(k.a.conn, FI_REMOTE_READ));
	assert_false(pshm_wire_ops.stored(k.b.wire));
	mr_remove(&k.table, other);
	assert_int_equal(arena_free(arena_get(), ours), 0);
}

/* The first access after that goes by packet; it makes the next one look the key up. */
static void a_key_that_is_given_again_leads_to_its_new_region(void **state)
{
	struct packet_target target = { .addr = 5, .len = 8, .key = KEY + 1 };
	unsigned char *ours[2], *theirs;
	uint32_t other;

	for (int i = 0; i < 2; i++) {
		ours[i] = expose_arena(KEY + 1, &other);
		for (int j = 0; j < 2000; j++)
			mock_poll(NULL, &k.b);
		theirs = pshm_wire_ops.reach(k.a.conn, &target, FI_REMOTE_WRITE);
		if (!theirs)
			theirs = pshm_wire_ops.reach(k.a.conn, &target, FI_REMOTE_WRITE);
		assert_non_null(theirs);
		theirs[0] = (unsigned char)(i + 7);
		assert_true(pshm_wire_ops.reached(k.a.conn, FI_REMOTE_WRITE));
		assert_int_equal(ours[i][5], i + 7);
		mr_invalidate(&k.table, other);
		mr_remove(&k.table, other);
		assert_null(pshm_wire_ops.reach(k.a.conn, &target, FI_REMOTE_WRITE));
	}
	assert_int_equal(ours[0][5], 7);
	assert_int_equal(arena_free(arena_get(), ours[0]), 0);
	assert_int_equal(arena_free(arena_get(), ours[1]), 0);
}

static void what_is_loaded_is_the_regions_after_its_chunk_was_retired(void **state)
{
	struct packet_target target = { .addr = 5, .len = 8, .key = KEY + 1 };
	unsigned char *ours;
	uint32_t other;

	ours = expose_arena(KEY + 1, &other);
	memset(ours, 1, LEN);
	for (int i = 0; i < 2000; i++)
		mock_poll(NULL, &k.b);
	assert_non_null(pshm_wire_ops.reach(k.a.conn, &target, FI_REMOTE_READ));
	assert_true(pshm_wire_ops.reached(k.a.conn, FI_REMOTE_READ));
	assert_int_equal(arena_cut(arena_get(), ours, LEN), 0);
	ours[5] = 2;
	assert_null(pshm_wire_ops.reach(k.a.conn, &target, FI_REMOTE_READ));
	/* a key that does not resolve is no region that did */
	target.key = FI_KEY_NOTAVAIL;
	assert_null(pshm_wire_ops.reach(k.a.conn, &target, FI_REMOTE_READ));
	mr_remove(&k.table, other);
	assert_int_equal(arena_free(arena_get(), ours), 0);
}

/* Looks at the peer's arena by an address: the linker replaces arena_reader_find() by this function. */
void *__real_arena_reader_find(struct arena_reader *reader, uint64_t addr, uint64_t len,
			       bool store);
void *__wrap_arena_reader_find(struct arena_reader *reader, uint64_t addr, uint64_t len,
			       bool store);
/* What a hostile owner changes once it was looked at, or NULL */
static _Atomic uint64_t *changes;

void *__wrap_arena_reader_find(struct arena_reader *reader, uint64_t addr, uint64_t len,
			       bool store)
{
	void *at = __real_arena_reader_find(reader, addr, len, store);

	if (changes)
		atomic_fetch_add(changes, 1000);
	changes = NULL;
	return at;
}

/* Else bytes would be loaded where another mapping has been, or is. */
static void a_chunk_that_becomes_another_one_while_it_is_looked_for_is_not_used(void **state)
{
	struct packet_target target = { .addr = 5, .len = 8, .key = KEY + 1 };
	struct arena_place place = { .chunk = 0 };
	struct arena_reader *reader;
	_Atomic uint64_t *serial;
	unsigned char *ours;
	uint32_t other;

	ours = expose_arena(KEY + 1, &other);
	for (int i = 0; i < 2000; i++)
		mock_poll(NULL, &k.b);
	assert_true(arena_find(arena_get(), ours, LEN, &place));
	serial = &arena_get()->directory->entries[place.chunk].serial;
	changes = serial;
	for (int i = 0; i < 3; i++)
		assert_null(pshm_wire_ops.reach(k.a.conn, &target, FI_REMOTE_READ));
	assert_null(changes);
	/* what is mapped now is another chunk, which the region is not known to be in */
	reader = pshm_conn_of(k.a.conn)->arena;
	assert_non_null(arena_reader_find(reader, (uintptr_t)ours, LEN, false));
	arena_reader_tidy(reader);
	assert_null(pshm_wire_ops.reach(k.a.conn, &target, FI_REMOTE_READ));
	assert_null(pshm_wire_ops.reach(k.a.conn, &target, FI_REMOTE_WRITE));
	atomic_fetch_sub(serial, 1000);
	mr_remove(&k.table, other);
	assert_int_equal(arena_free(arena_get(), ours), 0);
}

static void pages_without_data_are_cut_off_too(void **state)
{
	struct packet_target target = { .addr = 0, .len = 8, .key = KEY + 1 };
	unsigned char *ours, *theirs;
	uint32_t other;

	ours = expose_arena(KEY + 1, &other);
	for (int i = 0; i < 2000; i++)
		mock_poll(NULL, &k.b);
	theirs = pshm_wire_ops.reach(k.a.conn, &target, FI_REMOTE_WRITE);
	assert_non_null(theirs);
	mr_invalidate(&k.table, other);
	assert_true(pshm_wire_ops.share_cut(k.share, other, ours, LEN));
	theirs[LEN / 2] = 9;
	assert_int_equal(ours[LEN / 2], 0);
	assert_false(pshm_wire_ops.reached(k.a.conn, FI_REMOTE_WRITE));
	/* a part that this process may not write can't be made its own */
	assert_int_equal(mprotect(ours, 4096, PROT_READ), 0);
	assert_int_equal(arena_cut(arena_get(), ours, LEN), -FI_EACCES);
	assert_int_equal(mprotect(ours, 4096, PROT_READ | PROT_WRITE), 0);
	/* and what is no memory of the arena is nobody's to cut off */
	assert_int_equal(arena_cut(arena_get(), &ours, 1), 0);
	assert_int_equal(arena_free(arena_get(), ours), 0);
}

/* Returns how many page faults an access of all of a region takes. */
static long faults_of(bool write, uint64_t key)
{
	struct rusage before, after;

	assert_int_equal(mock_access_all(&k, write, key, 0, 1), 0);
	assert_int_equal(getrusage(RUSAGE_SELF, &before), 0);
	assert_int_equal(mock_access_all(&k, write, key, 0, LEN), 0);
	assert_int_equal(getrusage(RUSAGE_SELF, &after), 0);
	return after.ru_minflt - before.ru_minflt;
}

/* A store maps the page that it is to, a load the pages around it too. */
static void the_first_stores_to_a_region_take_no_more_faults_than_loads(void **state)
{
	long loads, stores;
	uint32_t indexes[2];
	unsigned char *ours[2];

	for (int i = 0; i < 2; i++) {
		ours[i] = expose_arena(KEY + 1 + (uint64_t)i, &indexes[i]);
		memset(ours[i], i, LEN);
	}
	for (int i = 0; i < 2000; i++)
		mock_poll(NULL, &k.b);
	memset(k.buf, 1, LEN);
	loads = faults_of(false, KEY + 1);
	memset(k.buf, 7, LEN);
	stores = faults_of(true, KEY + 2);
	print_message("loads %ld, stores %ld\n", loads, stores);
	assert_in_range(stores, 0, 2 * loads + 32);
	for (size_t i = 0; i < LEN; i++)
		assert_int_equal(ours[1][i], 7);
	for (int i = 0; i < 2; i++) {
		mr_remove(&k.table, indexes[i]);
		assert_int_equal(arena_free(arena_get(), ours[i]), 0);
	}
}

/*
 * As where its loads have been slower. The first read of it is made by loads, and so are those of a peer that does
 * not poll.
 */
static void a_region_that_is_mapped_may_be_asked_for(void **state)
{
	struct pshm_lending *lending = &pshm_conn_of(k.a.conn)->lending;
	struct mock_op op;
	unsigned char *ours;
	uint32_t index;
	int ret;

	ours = expose_arena(KEY + 1, &index);
	mock_pattern(ours, LEN, 3);
	for (int i = 0; i < 2000; i++)
		mock_poll(NULL, &k.b);
	while (pshm_lending_read(lending, LEN))
		;
	assert_int_equal(mock_access_all(&k, false, KEY + 1, 0, LEN), 0);
	assert_true(mock_is_pattern(k.buf, LEN, 3));
	memset(k.buf, 0, LEN);
	assert_int_equal(mock_access_all(&k, false, KEY + 1, 0, LEN), 0);
	assert_true(mock_is_pattern(k.buf, LEN, 3));
	while (pshm_lending_read(lending, LEN))
		;
	k.b.wire->ops->poll(k.b.wire);
	k.b.wire->ops->poll(k.b.wire);
	ret = mock_access_begin(&k, false, KEY + 1, 0, LEN, &op);
	while (!ret && !op.done) {
		k.b.wire->ops->poll(k.b.wire);
		k.b.wire->ops->poll(k.b.wire);
		k.a.wire->ops->poll(k.a.wire);
	}
	assert_int_equal(ret ? ret : op.status, -FI_EBUSY);
	/* of what is short, or stored, the peer is not asked */
	assert_int_equal(mock_access_all(&k, false, KEY + 1, 0, PSHM_EAGER_MAX), 0);
	assert_int_equal(mock_access_all(&k, true, KEY + 1, 0, LEN), 0);
	mr_remove(&k.table, index);
	assert_int_equal(arena_free(arena_get(), ours), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_peer_that_is_stopped_in_a_store_is_cut_off),
		TEST(a_peer_that_is_stopped_in_a_load_takes_no_memory_away),
		TEST(a_mark_where_nothing_is_mapped_keeps_no_region_open),
		TEST(the_owner_sees_that_a_peer_has_stored),
		TEST(a_key_that_is_given_again_leads_to_its_new_region),
		TEST(what_is_loaded_is_the_regions_after_its_chunk_was_retired),
		TEST(a_chunk_that_becomes_another_one_while_it_is_looked_for_is_not_used),
		TEST(pages_without_data_are_cut_off_too),
		TEST(the_first_stores_to_a_region_take_no_more_faults_than_loads),
		TEST(a_region_that_is_mapped_may_be_asked_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
