/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Unit tests of direct access: what a domain publishes, how a peer uses it, and which accesses are
 * waited for. Both endpoints are in this process, which may read and write its own memory as any
 * other's.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <rdma/fi_errno.h>
#include "arena.h"
#include "fault.h"
#include "key_access.h"
#include "mock_core.h"
#include "mock_engine.h"
#include "peer_arena.h"
#include "process_vm.h"
#include "reader.h"
#include "peer_keys.h"
#include "share.h"

#define RMA    (FI_REMOTE_READ | FI_REMOTE_WRITE)
#define KEY    7u
#define LEN    ((3u << 20) + 12345u)
#define ROUNDS 20000
#define LINES  300u /* of the table, in the hostile test */

/* The initiator, and the owner with what its domain shows. */
static struct mock a, b;
static struct wire_share *share;
static struct mr_table table;
static unsigned char *memory, *buf;
static uint32_t region; /* index of KEY */

static int expose(uint64_t key, uint64_t access, size_t iov_cnt, bool notify, uint32_t *index)
{
	struct iovec iov[] = { { memory, LEN / 2 }, { memory + LEN / 2, LEN - LEN / 2 } };
	struct mr_spec spec = { .iov = iov,
				.iov_cnt = iov_cnt,
				.access = access,
				.key = key,
				.object = &b,
				.live = true,
				.notify = notify };

	if (iov_cnt == 1)
		iov[0].iov_len = LEN;
	return mr_insert(&table, &spec, index);
}

static void open_both(uint64_t remote_events)
{
	static _Atomic uint32_t regions;
	struct mr_memory slabs;
	struct wire_conn *conn;

	memory = malloc(LEN);
	buf = malloc(LEN);
	assert_true(memory && buf);
	assert_int_equal(pshm_wire_ops.share_open(&share, &slabs, &regions), 0);
	mr_init(&table, MR_KEYS_GIVEN, &slabs);
	mock_open(&a);
	mock_open_sharing(&b, share, remote_events);
	assert_int_equal(mock_connect(&a, &b.addr, &conn), 0);
	mock_until(&a, &b, a.conn && b.conn);
}

static int setup_bare(void **state)
{
	open_both(0);
	return 0;
}

static int setup(void **state)
{
	open_both(0);
	assert_int_equal(expose(KEY, RMA, 1, false, &region), 0);
	return 0;
}

static int setup_told(void **state)
{
	open_both(FI_REMOTE_WRITE);
	assert_int_equal(expose(KEY, RMA, 1, false, &region), 0);
	return 0;
}

static int teardown(void **state)
{
	sys_fault_clear();
	mock_close(&a);
	mock_close(&b);
	mr_fini(&table);
	pshm_wire_ops.share_close(share);
	free(memory);
	free(buf);
	return 0;
}

static int access_begin(bool write, uint64_t key, uint64_t addr, size_t len, struct mock_op *op)
{
	struct packet_target target = { .addr = addr, .len = len, .key = key };
	struct iovec iov = { buf, len };
	struct wire_access access = {
		.write = write, .targets = &target, .target_cnt = 1, .iov = &iov, .iov_cnt = 1
	};

	mock_op_init(op);
	return pshm_wire_ops.direct(a.conn, &access, &op->op);
}

/* Until it ends; the owner does nothing. Returns 0 or -FI_E* */
static int access_end(int ret, struct mock_op *op)
{
	if (ret)
		return ret < 0 ? ret : 0;
	mock_until(&a, NULL, op->done);
	return op->status;
}

static int access_all(bool write, uint64_t key, uint64_t addr, size_t len)
{
	struct mock_op op;

	return access_end(access_begin(write, key, addr, len, &op), &op);
}

static void memory_of_a_peer_that_does_not_poll_is_written_and_read(void **state)
{
	static const size_t lens[] = { 1, 8193, 65536, 1 << 20, (1 << 20) + 1, LEN };

	for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		size_t len = lens[i], at = LEN - len;

		memset(memory, 0, LEN);
		mock_pattern(buf, len, i);
		assert_int_equal(access_all(true, KEY, at, len), 0);
		assert_true(mock_is_pattern(memory + at, len, i));
		assert_true(!at || !memory[at - 1]);
		memset(buf, 0, len);
		assert_int_equal(access_all(false, KEY, at, len), 0);
		assert_true(mock_is_pattern(buf, len, i));
		assert_false(pshm_wire_ops.share_used(share, region));
	}
}

static void pieces_on_both_sides_are_one_sequence(void **state)
{
	struct packet_target targets[] = { { .addr = 100, .len = 5, .key = KEY },
					   { .addr = 5000, .len = 1500000, .key = KEY },
					   { .addr = 4, .len = 0, .key = KEY },
					   { .addr = 2000000, .len = 100000, .key = KEY } };
	struct iovec iov[] = {
		{ buf, 3 }, { buf + 3, 700000 }, { buf + 700003, 0 }, { buf + 700003, 900002 }
	};
	struct wire_access access = {
		.write = true, .targets = targets, .target_cnt = 4, .iov = iov, .iov_cnt = 4
	};
	struct mock_op op;

	mock_pattern(buf, LEN, 5);
	mock_op_init(&op);
	assert_int_equal(access_end(pshm_wire_ops.direct(a.conn, &access, &op.op), &op), 0);
	assert_memory_equal(memory + 100, buf, 5);
	assert_memory_equal(memory + 5000, buf + 5, 1500000);
	assert_memory_equal(memory + 2000000, buf + 1500005, 100000);
}

static void one_round_of_progress_moves_a_bounded_part(void **state)
{
	struct mock_op op;
	int rounds = 0;

	assert_int_equal(access_all(true, KEY, 0, 1), 0); /* it is known not to poll */
	mock_poll(&a, NULL);
	assert_int_equal(access_begin(true, KEY, 0, LEN, &op), 0);
	for (; !op.done; rounds++)
		a.wire->ops->poll(a.wire);
	assert_int_equal(op.status, 0);
	assert_in_range(rounds, 3, 4);
}

/* Without a yield: where other programs run, the peer would not poll meanwhile. */
static void a_peer_that_polls_is_better_asked(void **state)
{
	int watched = 0, known = 0;
	struct mock_op op;

	for (int i = 0; i < 100 && known != -FI_EBUSY; i++) {
		known = access_begin(true, KEY, 0, LEN, &op);
		if (known)
			continue;
		while (!op.done) {
			b.wire->ops->poll(b.wire);
			b.wire->ops->poll(b.wire);
			a.wire->ops->poll(a.wire);
		}
		watched = op.status;
	}
	assert_int_equal(watched, -FI_EBUSY);
	/* and once more at once, from what is known */
	assert_int_equal(known, -FI_EBUSY);
}

static void what_is_not_allowed_is_not_done(void **state)
{
	uint32_t index;

	assert_int_equal(expose(KEY + 1, FI_REMOTE_READ, 1, false, &index), 0);
	assert_int_equal(expose(KEY + 2, RMA, 2, false, &index), 0);
	assert_int_equal(expose(KEY + 3, RMA, 1, true, &index), 0);
	memset(memory, 0, LEN);
	memset(buf, 1, LEN);
	assert_int_equal(access_all(true, KEY + 99, 0, 9000), -FI_EKEYREJECTED);
	assert_int_equal(access_all(true, KEY, 1, LEN), -FI_EACCES);
	assert_int_equal(access_all(true, KEY, UINT64_MAX, 9000), -FI_EACCES);
	assert_int_equal(access_all(true, KEY + 1, 0, 9000), -FI_EACCES);
	assert_int_equal(access_all(true, KEY + 2, 0, 9000), -FI_EOPNOTSUPP);
	assert_int_equal(access_all(true, KEY + 3, 0, 9000), -FI_EOPNOTSUPP);
	mr_set_notify(&table, region);
	assert_int_equal(access_all(true, KEY, 0, 9000), -FI_EOPNOTSUPP);
	for (size_t i = 0; i < LEN; i++)
		assert_int_equal(memory[i], 0);
}

static void an_endpoint_that_counts_is_asked(void **state)
{
	assert_int_equal(access_all(true, KEY, 0, 9000), -FI_EOPNOTSUPP);
	assert_int_equal(access_all(false, KEY, 0, 9000), 0);
}

static void regions_are_shown_once_there_are_any(void **state)
{
	assert_int_equal(access_all(true, KEY, 0, 9000), -FI_EOPNOTSUPP);
	assert_int_equal(expose(KEY, RMA, 1, false, &region), 0);
	assert_int_equal(access_all(true, KEY, 0, 9000), 0);
	/* more than the first slab has room for */
	for (uint32_t i = 0; i < 3000; i++) {
		assert_int_equal(expose(KEY + 1 + i, RMA, 1, false, &region), 0);
		assert_int_equal(access_all(true, KEY + 1 + i, 0, 1), 0);
	}
}

static void without_memory_for_the_table_packets_remain(void **state)
{
	sys_fault_set(SYS_CALL_MEMFD_CREATE, EMFILE, 0, 1);
	assert_int_equal(expose(KEY, RMA, 1, false, &region), 0);
	assert_int_equal(access_all(true, KEY, 0, 9000), -FI_EOPNOTSUPP);
}

static void a_table_that_can_not_be_opened_is_looked_for_otherwise(void **state)
{
	struct mock_op op;

	sys_fault_set(SYS_CALL_OPEN_FD, EACCES, 0, 1);
	assert_int_equal(access_all(true, KEY, 0, 9000), 0);
	pshm_direct_drop(pshm_conn_of(a.conn)); /* forgets the table */
	sys_fault_set(SYS_CALL_OPEN_FD, EACCES, 0, 1);
	sys_fault_set(SYS_CALL_PIDFD_GETFD, EPERM, 0, 1);
	assert_true(access_begin(true, KEY, 0, 9000, &op) < 0);
	assert_int_equal(sys_fault_armed, 0);
	assert_true(access_begin(true, KEY, 0, 9000, &op) < 0); /* it is not tried again */
}

static void for_want_of_descriptors_it_is_tried_again(void **state)
{
	struct mock_op op;

	sys_fault_set(SYS_CALL_OPEN_FD, EMFILE, 0, 1);
	assert_int_equal(access_begin(true, KEY, 0, 9000, &op), -FI_EMFILE);
	assert_int_equal(access_all(true, KEY, 0, 9000), 0);
}

static void a_refusal_is_remembered_in_its_direction(void **state)
{
	struct mock_op op;

	sys_fault_set(SYS_CALL_PROCESS_VM_WRITEV, EPERM, 0, 1);
	assert_int_equal(access_all(true, KEY, 0, 9000), -FI_EPERM);
	assert_int_equal(access_begin(true, KEY, 0, 9000, &op), -FI_EPERM);
	assert_int_equal(access_all(false, KEY, 0, 9000), 0);
	assert_false(pshm_wire_ops.share_used(share, region));
}

static void writes_pass_the_write_guard_that_is_shown(void **state)
{
	const struct pshm_conn *conn = pshm_conn_of(a.conn);
	struct pshm_shown *shown = &conn->pair->shown[pshm_other(conn)];
	uint64_t write_guard = shown->write_guard;
	struct mock_op op;

	assert_true(write_guard);
	shown->write_guard = 0; /* without a published write guard there are no writes */
	assert_int_equal(access_begin(true, KEY, 0, 9000, &op), -FI_EOPNOTSUPP);
	assert_int_equal(access_all(false, KEY, 0, 9000), 0);
	pshm_direct_drop(pshm_conn_of(a.conn));
	shown->write_guard = 4096; /* where another program has nothing */
	memset(buf, 1, 9000);
	memset(memory, 2, 9000);
	assert_int_equal(access_all(true, KEY, 0, 9000), -FI_EFAULT);
	for (int i = 0; i < 9000; i++)
		assert_int_equal(memory[i], 2);
	pshm_direct_drop(pshm_conn_of(a.conn));
	shown->write_guard = write_guard;
	assert_int_equal(access_all(true, KEY, 0, 9000), 0);
}

static void memory_that_is_gone_is_no_refusal(void **state)
{
	struct iovec hole = { mmap(NULL, 65536, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
			      65536 };
	struct mr_spec spec = { .iov = &hole,
				.iov_cnt = 1,
				.access = RMA,
				.key = KEY + 1,
				.object = &b,
				.live = true };
	uint32_t index;

	assert_true(hole.iov_base != MAP_FAILED);
	assert_int_equal(mr_insert(&table, &spec, &index), 0);
	assert_int_equal(access_all(true, KEY + 1, 0, 65536), -FI_EFAULT); /* read-only */
	munmap(hole.iov_base, hole.iov_len);
	assert_int_equal(access_all(false, KEY + 1, 0, 65536), -FI_EFAULT);
	assert_int_equal(access_all(true, KEY, 0, 65536), 0);
}

static void a_key_that_goes_ends_what_is_under_way(void **state)
{
	struct mock_op op;

	memset(memory, 0, LEN);
	memset(buf, 1, LEN);
	assert_int_equal(access_all(true, KEY, 0, 1), 0);
	mock_poll(&a, NULL);
	assert_int_equal(access_begin(true, KEY, 0, LEN, &op), 0);
	mr_invalidate(&table, region);
	assert_false(pshm_wire_ops.share_used(share, region));
	mock_until(&a, NULL, op.done);
	assert_int_equal(op.status, -FI_EKEYREJECTED);
	assert_int_equal(memory[LEN - 1], 0);
	assert_int_equal(access_all(true, KEY, 0, 9000), -FI_EKEYREJECTED);
	mr_validate(&table, region);
	assert_int_equal(access_all(true, KEY, 0, 9000), 0);
}

static _Atomic uint32_t *mark_of_a(void)
{
	struct pshm_conn *conn = pshm_conn_of(a.conn);

	return &conn->pair->inside[conn->side].line;
}

static void who_is_inside_is_seen_by_the_owner(void **state)
{
	uint32_t other;

	assert_int_equal(expose(KEY + 1, RMA, 1, false, &other), 0);
	atomic_store(mark_of_a(), region);
	assert_true(pshm_wire_ops.share_used(share, region));
	assert_true(pshm_wire_ops.share_marked(share, region));
	assert_false(pshm_wire_ops.share_used(share, other));
	assert_false(pshm_wire_ops.share_marked(share, other));
	atomic_store(mark_of_a(), 0);
	assert_false(pshm_wire_ops.share_used(share, region));
	assert_false(pshm_wire_ops.share_marked(share, region));
}

/* Registers memory of the arena instead of malloc's. Returns it. */
static unsigned char *expose_arena(uint64_t key, uint32_t *index)
{
	struct iovec iov = { .iov_len = LEN };
	struct mr_spec spec = { .iov = &iov,
				.iov_cnt = 1,
				.access = RMA,
				.key = key,
				.object = &table,
				.live = true };

	assert_int_equal(arena_alloc(arena_get(), LEN, 1, ARENA_WRITE, &iov.iov_base, NULL), 0);
	assert_int_equal(mr_insert(&table, &spec, index), 0);
	return iov.iov_base;
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
		mock_poll(NULL, &b);
	conn = pshm_conn_of(a.conn);
	theirs = pshm_wire_ops.reach(a.conn, &target, FI_REMOTE_WRITE);
	assert_non_null(theirs);
	theirs[0] = 2;
	assert_int_equal(ours[5], 2);

	mr_invalidate(&table, other);
	assert_true(pshm_wire_ops.share_used(share, other));
	assert_false(pshm_wire_ops.share_used(share, region));
	assert_true(pshm_wire_ops.share_cut(share, other, ours, LEN));
	assert_false(pshm_wire_ops.share_used(share, other));
	theirs[1] = 3;
	assert_int_equal(ours[5], 2);
	assert_int_equal(ours[6], 1);
	assert_int_equal(ours[LEN - 1], 1);
	assert_false(pshm_wire_ops.reached(a.conn, FI_REMOTE_WRITE));
	assert_null(pshm_wire_ops.reach(a.conn, &target, FI_REMOTE_WRITE));

	/* the next access that has this number is one again */
	atomic_store(&conn->pair->inside[conn->side].entered, conn->entered + 1);
	atomic_store(mark_of_a(), other);
	assert_true(pshm_wire_ops.share_used(share, other));
	atomic_store(mark_of_a(), 0);
	assert_int_equal(arena_free(arena_get(), ours), 0);
}

/* Writes a byte to b as a peer does that was told of that write guard. Returns as the system call does. */
static ssize_t write_guarded(uint64_t write_guard, unsigned char byte)
{
	struct iovec local = { &byte, 1 }, remote = { memory, 1 };

	return sys_process_vm_write_guarded(getpid(), (void *)(uintptr_t)write_guard, &local, 1,
					    &remote, 1);
}

/* Between its look at the key and its call. Others go on to write, through another guard. */
static void a_peer_that_is_stopped_before_its_call_is_cut_off(void **state)
{
	const struct pshm_conn *conn = pshm_conn_of(a.conn);
	struct pshm_shown *shown = &conn->pair->shown[pshm_other(conn)];
	uint64_t write_guard;

	memset(buf, 1, 9000);
	assert_int_equal(access_all(true, KEY, 0, 9000), 0);
	write_guard = shown->write_guard;
	assert_int_equal(write_guarded(write_guard, 2), 1);
	atomic_store(mark_of_a(), region);
	mr_invalidate(&table, region);
	assert_true(pshm_wire_ops.share_used(share, region));
	assert_true(pshm_wire_ops.share_cut(share, region, memory, LEN));
	assert_false(pshm_wire_ops.share_used(share, region));
	assert_int_equal(write_guarded(write_guard, 3), -FI_EFAULT);
	assert_int_equal(memory[0], 2);
	atomic_store(mark_of_a(), 0);
	mr_validate(&table, region);
	assert_true(shown->write_guard && shown->write_guard != write_guard);
	/* by packet once, since it knows the former one */
	assert_int_equal(access_all(true, KEY, 0, 9000), -FI_EFAULT);
	assert_int_equal(access_all(true, KEY, 0, 9000), 0);
	assert_int_equal(memory[0], 1);
}

/* No packet tells the owner that a peer is active, but it can look. */
static void the_owner_sees_that_a_peer_has_stored(void **state)
{
	struct packet_target target = { .addr = 5, .len = 8, .key = KEY + 1 };
	unsigned char *ours;
	uint32_t other;

	ours = expose_arena(KEY + 1, &other);
	for (int i = 0; i < 2000; i++)
		mock_poll(NULL, &b);
	assert_false(pshm_wire_ops.stored(b.wire));
	for (int i = 0; i < 3; i++) {
		assert_non_null(pshm_wire_ops.reach(a.conn, &target, FI_REMOTE_WRITE));
		assert_true(pshm_wire_ops.reached(a.conn, FI_REMOTE_WRITE));
		assert_true(pshm_wire_ops.stored(b.wire));
		assert_false(pshm_wire_ops.stored(b.wire));
		assert_false(pshm_wire_ops.stored(a.wire));
	}
	assert_non_null(pshm_wire_ops.reach(a.conn, &target, FI_REMOTE_READ));
	assert_true(pshm_wire_ops.reached(a.conn, FI_REMOTE_READ));
	assert_false(pshm_wire_ops.stored(b.wire));
	mr_remove(&table, other);
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
		for (int k = 0; k < 2000; k++)
			mock_poll(NULL, &b);
		theirs = pshm_wire_ops.reach(a.conn, &target, FI_REMOTE_WRITE);
		if (!theirs)
			theirs = pshm_wire_ops.reach(a.conn, &target, FI_REMOTE_WRITE);
		assert_non_null(theirs);
		theirs[0] = (unsigned char)(i + 7);
		assert_true(pshm_wire_ops.reached(a.conn, FI_REMOTE_WRITE));
		assert_int_equal(ours[i][5], i + 7);
		mr_invalidate(&table, other);
		mr_remove(&table, other);
		assert_null(pshm_wire_ops.reach(a.conn, &target, FI_REMOTE_WRITE));
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
		mock_poll(NULL, &b);
	assert_non_null(pshm_wire_ops.reach(a.conn, &target, FI_REMOTE_READ));
	assert_true(pshm_wire_ops.reached(a.conn, FI_REMOTE_READ));
	assert_int_equal(arena_cut(arena_get(), ours, LEN), 0);
	ours[5] = 2;
	assert_null(pshm_wire_ops.reach(a.conn, &target, FI_REMOTE_READ));
	/* a key that does not resolve is no region that did */
	target.key = FI_KEY_NOTAVAIL;
	assert_null(pshm_wire_ops.reach(a.conn, &target, FI_REMOTE_READ));
	mr_remove(&table, other);
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
		mock_poll(NULL, &b);
	assert_true(arena_find(arena_get(), ours, LEN, &place));
	serial = &arena_get()->directory->entries[place.chunk].serial;
	changes = serial;
	for (int i = 0; i < 3; i++)
		assert_null(pshm_wire_ops.reach(a.conn, &target, FI_REMOTE_READ));
	assert_null(changes);
	/* what is mapped now is another chunk, which the region is not known to be in */
	reader = pshm_conn_of(a.conn)->arena;
	assert_non_null(arena_reader_find(reader, (uintptr_t)ours, LEN, false));
	arena_reader_tidy(reader);
	assert_null(pshm_wire_ops.reach(a.conn, &target, FI_REMOTE_READ));
	assert_null(pshm_wire_ops.reach(a.conn, &target, FI_REMOTE_WRITE));
	atomic_fetch_sub(serial, 1000);
	mr_remove(&table, other);
	assert_int_equal(arena_free(arena_get(), ours), 0);
}

/* Returns how many page faults an access of all of a region takes. */
static long faults_of(bool write, uint64_t key)
{
	struct rusage before, after;

	assert_int_equal(access_all(write, key, 0, 1), 0);
	assert_int_equal(getrusage(RUSAGE_SELF, &before), 0);
	assert_int_equal(access_all(write, key, 0, LEN), 0);
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
		mock_poll(NULL, &b);
	memset(buf, 1, LEN);
	loads = faults_of(false, KEY + 1);
	memset(buf, 7, LEN);
	stores = faults_of(true, KEY + 2);
	print_message("loads %ld, stores %ld\n", loads, stores);
	assert_in_range(stores, 0, 2 * loads + 32);
	for (size_t i = 0; i < LEN; i++)
		assert_int_equal(ours[1][i], 7);
	for (int i = 0; i < 2; i++) {
		mr_remove(&table, indexes[i]);
		assert_int_equal(arena_free(arena_get(), ours[i]), 0);
	}
}

/*
 * As where its loads have been slower. The first read of it is made by loads, and so are those of a peer that does
 * not poll.
 */
static void a_region_that_is_mapped_may_be_asked_for(void **state)
{
	struct pshm_lending *lending = &pshm_conn_of(a.conn)->lending;
	struct mock_op op;
	unsigned char *ours;
	uint32_t index;
	int ret;

	ours = expose_arena(KEY + 1, &index);
	mock_pattern(ours, LEN, 3);
	for (int i = 0; i < 2000; i++)
		mock_poll(NULL, &b);
	while (pshm_lending_read(lending, LEN))
		;
	assert_int_equal(access_all(false, KEY + 1, 0, LEN), 0);
	assert_true(mock_is_pattern(buf, LEN, 3));
	memset(buf, 0, LEN);
	assert_int_equal(access_all(false, KEY + 1, 0, LEN), 0);
	assert_true(mock_is_pattern(buf, LEN, 3));
	while (pshm_lending_read(lending, LEN))
		;
	b.wire->ops->poll(b.wire);
	b.wire->ops->poll(b.wire);
	ret = access_begin(false, KEY + 1, 0, LEN, &op);
	while (!ret && !op.done) {
		b.wire->ops->poll(b.wire);
		b.wire->ops->poll(b.wire);
		a.wire->ops->poll(a.wire);
	}
	assert_int_equal(ret ? ret : op.status, -FI_EBUSY);
	/* of what is short, or stored, the peer is not asked */
	assert_int_equal(access_all(false, KEY + 1, 0, PSHM_EAGER_MAX), 0);
	assert_int_equal(access_all(true, KEY + 1, 0, LEN), 0);
	mr_remove(&table, index);
	assert_int_equal(arena_free(arena_get(), ours), 0);
}

static void pages_without_data_are_cut_off_too(void **state)
{
	struct packet_target target = { .addr = 0, .len = 8, .key = KEY + 1 };
	unsigned char *ours, *theirs;
	uint32_t other;

	ours = expose_arena(KEY + 1, &other);
	for (int i = 0; i < 2000; i++)
		mock_poll(NULL, &b);
	theirs = pshm_wire_ops.reach(a.conn, &target, FI_REMOTE_WRITE);
	assert_non_null(theirs);
	mr_invalidate(&table, other);
	assert_true(pshm_wire_ops.share_cut(share, other, ours, LEN));
	theirs[LEN / 2] = 9;
	assert_int_equal(ours[LEN / 2], 0);
	assert_false(pshm_wire_ops.reached(a.conn, FI_REMOTE_WRITE));
	/* a part that this process may not write can't be made its own */
	assert_int_equal(mprotect(ours, 4096, PROT_READ), 0);
	assert_int_equal(arena_cut(arena_get(), ours, LEN), -FI_EACCES);
	assert_int_equal(mprotect(ours, 4096, PROT_READ | PROT_WRITE), 0);
	assert_int_equal(arena_cut(arena_get(), &ours, 1), -FI_EINVAL);
	assert_int_equal(arena_free(arena_get(), ours), 0);
}

static void who_is_inside_when_its_connection_ends_is_still_seen(void **state)
{
	_Atomic uint32_t *mark = mark_of_a();

	atomic_store(mark, region);
	b.wire->ops->disconnect(b.conn);
	assert_true(pshm_wire_ops.share_used(share, region));
	mock_close(&b);
	assert_true(pshm_wire_ops.share_used(share, region));
	atomic_store(mark, 0);
	assert_false(pshm_wire_ops.share_used(share, region));
}

/* Returns how often this process has memory of that name mapped. */
static int mapped(const char *name)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[512];
	int cnt = 0;

	assert_non_null(maps);
	while (fgets(line, sizeof(line), maps))
		cnt += strstr(line, name) != NULL;
	fclose(maps);
	return cnt;
}

static void who_says_again_and_again_to_be_inside_gets_no_more_memory(void **state)
{
	for (int i = 0; i < 100; i++) {
		struct wire_conn *conn;

		atomic_store(mark_of_a(), region + 1);
		b.wire->ops->disconnect(b.conn);
		b.conn = NULL;
		mock_until(&a, &b, !a.conn);
		assert_int_equal(mock_connect(&a, &b.addr, &conn), 0);
		mock_until(&a, &b, a.conn && b.conn);
	}
	assert_in_range(mapped("weft-pair"), 2, 20);
	assert_true(pshm_wire_ops.share_used(share, region + 1));
	assert_false(pshm_wire_ops.share_used(share, region));
}

/* None of them unmaps what another one uses. */
static void connections_to_a_domain_map_its_table_once(void **state)
{
	struct mock others[3];
	struct wire_conn *conn;

	assert_int_equal(access_all(true, KEY, 0, 9000), 0);
	for (int i = 0; i < 3; i++) {
		mock_open(&others[i]);
		assert_int_equal(mock_connect(&others[i], &b.addr, &conn), 0);
		mock_until(&others[i], &b, others[i].conn != NULL);
		assert_int_equal(pshm_reading_make(pshm_conn_of(others[i].conn)), 0);
	}
	/* as the owner has it, and as those have it that read it */
	assert_int_equal(mapped("weft-table"), 2);
	for (int i = 0; i < 3; i++)
		mock_close(&others[i]);
	assert_int_equal(access_all(false, KEY, 0, 9000), 0);
	pshm_direct_drop(pshm_conn_of(a.conn));
	assert_int_equal(mapped("weft-table"), 1);
}

static void nobody_goes_in_once_the_connection_has_ended(void **state)
{
	struct mock_op op;

	memset(memory, 0, LEN);
	memset(buf, 1, LEN);
	assert_int_equal(access_all(true, KEY, 0, 1), 0);
	b.wire->ops->disconnect(b.conn);
	assert_int_equal(access_end(access_begin(true, KEY, 0, 9000, &op), &op),
			 -FI_EKEYREJECTED);
	assert_int_equal(memory[1], 0);
}

static void packets_are_taken_when_the_peer_has_polled(void **state)
{
	assert_true(pshm_wire_ops.taken(a.conn));
	assert_true(mock_put(a.conn, 0, 8));
	assert_false(pshm_wire_ops.taken(a.conn));
	mock_until(&b, NULL, b.next_tag == 1);
	mock_until(&b, NULL, pshm_wire_ops.taken(a.conn));
}

/*
 * The second one has not ended: there is no room, and then there is, but no call was made that uses
 * it.
 */
static void payload_whose_header_has_not_left_is_not_taken(void **state)
{
	struct mock_op ops[2];

	((struct pshm_wire *)a.wire)->area_max = 0;
	for (int i = 0; i < 2; i++)
		assert_int_equal(mock_sendv(a.conn, MOCK_BIG, buf, 60000, 1, &ops[i]), 0);
	for (int i = 0; i < 100; i++)
		mock_poll(&b, NULL);
	assert_int_equal(b.packets, 1);
	assert_false(pshm_wire_ops.taken(a.conn));
	mock_until(&a, &b, ops[0].done && ops[1].done && b.packets == 2);
	mock_until(&b, NULL, pshm_wire_ops.taken(a.conn));
}

static void the_child_of_a_fork_shows_nothing(void **state)
{
	uint32_t index;
	int status;
	pid_t child = fork();

	assert_true(child >= 0);
	if (!child) {
		struct mock_op op;

		mr_remove(&table, region);
		expose(KEY + 1, RMA, 1, false, &index);
		_exit(access_begin(true, KEY, 0, 9000, &op) != -FI_EOPBADSTATE ||
		      pshm_wire_ops.share_used(share, region));
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(access_all(true, KEY, 0, 9000), 0);
	assert_int_equal(access_all(true, KEY + 1, 0, 9000), -FI_EKEYREJECTED);
}

static void a_table_that_is_only_just_begun_is_looked_at_again(void **state)
{
	struct pshm_conn *conn = pshm_conn_of(b.conn);
	struct mr_header *header;

	header = (struct mr_header *)((char *)pshm_share_table(conn->wire->share)->addr +
				      PSHM_TABLE_HEAD);
	/* as when it has been shown, and nothing is in it yet */
	atomic_store(&header->magic, 0);
	assert_int_equal(access_all(true, KEY, 0, 9000), -FI_EAGAIN);
	atomic_store(&header->magic, MR_MAGIC);
	assert_int_equal(access_all(true, KEY, 0, 9000), 0);
}

static uint64_t random_of(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005u + 1442695040888963407u;
	return *seed >> 32 ^ *seed << 32;
}

/* A word of the table becomes anything; what it names stays in memory that may be spoiled. */
static void spoil(struct mr_line *lines, uint64_t *seed)
{
	struct mr_line *line = &lines[random_of(seed) % LINES];
	_Atomic uint32_t *words = (_Atomic uint32_t *)line;
	uint64_t value = random_of(seed);

	if (value & 1)
		value %= LINES;
	atomic_store(&words[random_of(seed) % 16], (uint32_t)value);
	if (line == lines)
		return;
	atomic_store(&line->base, (uintptr_t)memory + random_of(seed) % 65536);
	if (random_of(seed) % 4)
		atomic_store(&line->len, random_of(seed) % (LEN - 65536));
	else
		atomic_store(&line->base, UINT64_MAX - random_of(seed) % 65536);
}

static void a_hostile_table_does_no_harm(void **state)
{
	struct pshm_conn *conn = pshm_conn_of(b.conn);
	uint64_t seed = (uint64_t)time(NULL);
	static unsigned char honest[LINES * sizeof(struct mr_line)];
	struct mr_line *lines;
	struct mock_op op;
	uint32_t index;
	int done = 0;

	print_message("seed %llu\n", (unsigned long long)seed);
	for (uint32_t i = 1; i < 250; i++)
		assert_int_equal(expose(KEY + i, RMA, 1, false, &index), 0);
	/* as the owner has it mapped: for writing */
	lines = (struct mr_line *)((char *)pshm_share_table(conn->wire->share)->addr +
				   PSHM_TABLE_HEAD);
	memcpy(honest, lines, sizeof(honest));
	/* A table that is no table when it is first looked at is not looked at again. */
	assert_int_equal(access_all(true, KEY, 0, 9000), 0);
	for (int i = 0; i < ROUNDS; i++) {
		uint64_t key = KEY + random_of(&seed) % LINES;
		size_t len = 1 + random_of(&seed) % 9000;
		int ret;

		if (i % 100 == 0)
			memcpy(lines, honest, sizeof(honest));
		spoil(lines, &seed);
		ret = access_end(access_begin(i % 2, key, random_of(&seed) % 65536, len, &op),
				 &op);
		assert_true(ret <= 0);
		done += !ret;
	}
	print_message("%d of %d were done\n", done, ROUNDS);
	assert_true(done > 0);
}

#define TEST(name, start) cmocka_unit_test_setup_teardown(name, start, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(memory_of_a_peer_that_does_not_poll_is_written_and_read, setup),
		TEST(pieces_on_both_sides_are_one_sequence, setup),
		TEST(one_round_of_progress_moves_a_bounded_part, setup),
		TEST(a_peer_that_polls_is_better_asked, setup),
		TEST(what_is_not_allowed_is_not_done, setup),
		TEST(an_endpoint_that_counts_is_asked, setup_told),
		TEST(regions_are_shown_once_there_are_any, setup_bare),
		TEST(without_memory_for_the_table_packets_remain, setup_bare),
		TEST(a_table_that_can_not_be_opened_is_looked_for_otherwise, setup),
		TEST(for_want_of_descriptors_it_is_tried_again, setup),
		TEST(a_refusal_is_remembered_in_its_direction, setup),
		TEST(writes_pass_the_write_guard_that_is_shown, setup),
		TEST(memory_that_is_gone_is_no_refusal, setup),
		TEST(a_key_that_goes_ends_what_is_under_way, setup),
		TEST(who_is_inside_is_seen_by_the_owner, setup),
		TEST(a_peer_that_is_stopped_in_a_store_is_cut_off, setup),
		TEST(a_peer_that_is_stopped_before_its_call_is_cut_off, setup),
		TEST(the_owner_sees_that_a_peer_has_stored, setup),
		TEST(a_key_that_is_given_again_leads_to_its_new_region, setup),
		TEST(what_is_loaded_is_the_regions_after_its_chunk_was_retired, setup),
		TEST(a_chunk_that_becomes_another_one_while_it_is_looked_for_is_not_used, setup),
		TEST(pages_without_data_are_cut_off_too, setup),
		TEST(the_first_stores_to_a_region_take_no_more_faults_than_loads, setup),
		TEST(a_region_that_is_mapped_may_be_asked_for, setup),
		TEST(who_is_inside_when_its_connection_ends_is_still_seen, setup),
		TEST(who_says_again_and_again_to_be_inside_gets_no_more_memory, setup),
		TEST(connections_to_a_domain_map_its_table_once, setup),
		TEST(nobody_goes_in_once_the_connection_has_ended, setup),
		TEST(packets_are_taken_when_the_peer_has_polled, setup),
		TEST(payload_whose_header_has_not_left_is_not_taken, setup),
		TEST(the_child_of_a_fork_shows_nothing, setup),
		TEST(a_table_that_is_only_just_begun_is_looked_at_again, setup),
		TEST(a_hostile_table_does_no_harm, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
