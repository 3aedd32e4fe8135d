/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Unit tests of payload in the arena: what is lent and when it is the program's again, reads of
 * mapped memory, and the ways by which neither is possible. Both endpoints are in this process,
 * which maps its own chunks as any other's.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <sys/wait.h>
#include <unistd.h>
#include <rdma/fi_errno.h>
#include "arena.h"
#include "fault.h"
#include "mock_engine.h"
#include "peer_arena.h"
#include "reader.h"

#define LEN ((1u << 20) + 4096u)
#define BIG 60000u

/* a sends or offers, b receives or reads. */
static struct mock a, b;
static struct arena *arena;
static unsigned char *from, *to;

static unsigned char *in_arena(size_t len)
{
	void *addr = NULL;

	assert_int_equal(arena_alloc(arena, len, 1, ARENA_READ, &addr, NULL), 0);
	return addr;
}

static int setup(void **state)
{
	arena = arena_get();
	if (!arena)
		return -1;
	mock_meet(&a, &b);
	from = in_arena(LEN);
	to = malloc(LEN);
	b.room = to;
	b.room_len = LEN;
	b.room_iovs = 1;
	return to ? 0 : -1;
}

static int teardown(void **state)
{
	sys_fault_clear();
	mock_close(&a);
	mock_close(&b);
	free(to);
	return arena_free(arena, from);
}

static struct pshm_conn *at(const struct mock *m)
{
	return pshm_conn_of(m->conn);
}

static bool lent(void)
{
	return !list_empty(&at(&a)->lent);
}

static uint32_t chunk_of(const void *addr)
{
	struct arena_place place = { 0 };

	assert_true(arena_find(arena, addr, 1, &place));
	return place.chunk;
}

static void send_begin(uint32_t tag, void *buf, uint32_t len, struct mock_op *op)
{
	mock_pattern(buf, len, MOCK_BIG + tag);
	assert_int_equal(mock_sendv(a.conn, MOCK_BIG + tag, buf, len, 1, op), 0);
}

/* Sends one and waits for it. Returns true if it was lent. */
static bool send_all(uint32_t tag, void *buf, uint32_t len)
{
	uint32_t before = b.big_done;
	struct mock_op op;
	bool was_lent;

	send_begin(tag, buf, len, &op);
	was_lent = lent();
	mock_until(&a, &b, op.done && b.big_done > before);
	assert_int_equal(op.done, 1);
	assert_int_equal(op.status, 0);
	assert_false(b.garbled);
	assert_true(mock_is_pattern(to, len, MOCK_BIG + tag));
	return was_lent;
}

/* Until b has mapped the chunk of @addr, which it is asked for. */
static void mapped(const void *addr)
{
	struct pshm_place place;

	for (int i = 0; i < 100 && !pshm_arena_lends(at(&a), addr, 1, &place); i++)
		mock_sweep(&a, &b);
	assert_true(pshm_arena_lends(at(&a), addr, 1, &place));
}

/* Polls in which b would have mapped what it may. */
static void polls(void)
{
	mock_sweep(&a, &b);
	mock_sweep(&a, &b);
}

static void first_payload_is_sent_and_later_payload_lent(void **state)
{
	assert_false(send_all(0, from, BIG));
	mapped(from);
	for (uint32_t i = 1; i < 20; i++) {
		assert_true(send_all(i, from + i * 4099, BIG + i));
		assert_true(mock_is_pattern(from + i * 4099, BIG + i, MOCK_BIG + i));
	}
	assert_true(send_all(20, from, PSHM_EAGER_MAX));
}

static void payload_is_the_senders_again_once_it_was_taken(void **state)
{
	struct mock_op op;

	mapped(from);
	send_begin(1, from, BIG, &op);
	for (int i = 0; i < 100; i++)
		mock_poll(&a, NULL);
	assert_false(op.done);
	assert_true(lent());
	assert_true(pshm_wire_ops.lent(a.wire));
	assert_false(pshm_wire_ops.lent(b.wire));
	mock_until(NULL, &b, b.big_done);
	mock_until(&a, NULL, op.done);
	assert_false(pshm_wire_ops.lent(a.wire));
	assert_false(lent());
	assert_true(mock_is_pattern(to, BIG, MOCK_BIG + 1));
}

static void payload_elsewhere_or_in_pieces_or_short_is_not_lent(void **state)
{
	unsigned char *plain = malloc(BIG);
	struct mock_op op;

	assert_non_null(plain);
	mapped(from);
	assert_false(send_all(1, plain, BIG));
	assert_false(send_all(2, from, 1024));
	mock_pattern(from, BIG, MOCK_BIG + 3);
	assert_int_equal(mock_sendv(a.conn, MOCK_BIG + 3, from, BIG, 3, &op), 0);
	assert_false(lent());
	mock_until(&a, &b, op.done && b.big_done == 3);
	assert_false(b.garbled);
	free(plain);
}

/* The end of the chunk, and a byte more: addresses behind it are no memory of that chunk. */
static void payload_that_leaves_its_chunk_is_not_lent(void **state)
{
	const struct arena_chunk *chunk = &arena->chunks[chunk_of(from)];
	const unsigned char *end = (unsigned char *)chunk->base + chunk->len;
	struct pshm_place place;

	mapped(from);
	assert_true(pshm_arena_lends(at(&a), end - BIG, BIG, &place));
	assert_int_equal(place.offset, chunk->len - BIG);
	assert_false(pshm_arena_lends(at(&a), end - BIG, BIG + 1, &place));
	assert_false(pshm_arena_lends(at(&a), end - 1, SIZE_MAX, &place));
	assert_false(pshm_arena_lends(at(&a), (void *)UINTPTR_MAX, 1, &place));
	assert_false(pshm_arena_lends(at(&a), NULL, BIG, &place));
}

/* Packets, payload that is lent and payload in fragments: each kind arrives in the order of sends. */
static void order_is_kept_among_kinds(void **state)
{
	unsigned char *plain = malloc(4 * BIG);
	struct mock_op ops[4];
	uint64_t last = 0;

	assert_non_null(plain);
	mapped(from);
	for (uint32_t round = 0; round < 50; round++) {
		b.packets = 0;
		b.big_done = 0;
		assert_true(mock_put(a.conn, 4 * round, 8));
		send_begin(1, from, BIG, &ops[0]);
		assert_true(mock_put(a.conn, 4 * round + 1, 8));
		send_begin(2, plain, 4 * BIG, &ops[1]);
		assert_true(mock_put(a.conn, 4 * round + 2, 800));
		send_begin(3, from + BIG, BIG, &ops[2]);
		send_begin(4, from + 2 * BIG, 2 * BIG, &ops[3]);
		assert_true(mock_put(a.conn, 4 * round + 3, 8));
		mock_until(&a, &b, b.big_done == 4 && b.next_tag == 4 * round + 4);
		mock_until(&a, &b, ops[0].done && ops[1].done && ops[2].done && ops[3].done);
		assert_int_equal(b.packets, 8);
		last = 0;
		for (uint32_t i = 0; i < 8; i++) {
			if (b.tags[i] < MOCK_BIG)
				continue;
			assert_true(b.tags[i] == (last ? last + 1 : MOCK_BIG + 1));
			last = b.tags[i];
		}
		assert_int_equal(b.tags[1], MOCK_BIG + 1);
		assert_false(b.garbled);
	}
	free(plain);
}

/* As many as the ring has room for, then more; each from a place of its own. */
static void many_are_lent_at_once(void **state)
{
	enum { CNT = 1000, EACH = 4096 };
	unsigned char *all = in_arena(CNT * EACH);
	struct mock_op *ops = calloc(CNT, sizeof(*ops));
	uint32_t done = 0;

	assert_non_null(ops);
	mapped(all);
	for (uint32_t i = 0; i < CNT; i++)
		send_begin(i, all + i * EACH, EACH, &ops[i]);
	assert_true(lent());
	mock_until(&a, &b, b.big_done == CNT);
	assert_false(b.garbled);
	mock_until(&a, &b, ({
		for (done = 0; done < CNT && ops[done].done; done++)
			;
		done == CNT;
	}));
	for (uint32_t i = 0; i < CNT; i++)
		assert_true(ops[i].done == 1 && !ops[i].status);
	free(ops);
	assert_int_equal(arena_free(arena, all), 0);
}

/* What a receiver has no room for is dropped, and the sender gets its memory back. */
static void lent_payload_is_dropped_or_cut(void **state)
{
	struct mock_op op;

	mapped(from);
	b.room_iovs = 0;
	send_begin(1, from, BIG, &op);
	assert_true(lent());
	mock_until(&a, &b, op.done && b.big_done == 1);
	b.room_iovs = 3;
	b.room_len = 70001;
	memset(to, 0x77, LEN);
	send_begin(2, from, BIG, &op);
	mock_until(&a, &b, op.done && b.big_done == 2);
	assert_false(b.garbled);
	assert_int_equal(to[70001], 0x77);
	assert_int_equal(op.status, 0);
}

static void engine_that_refuses_a_lent_packet_ends_the_connection(void **state)
{
	struct mock_op op;

	mapped(from);
	b.packet_err = -FI_EPROTO;
	send_begin(1, from, BIG, &op);
	mock_until(NULL, &b, b.downs);
	assert_int_equal(b.down_err, -FI_EPROTO);
	mock_until(&a, NULL, a.downs);
	assert_int_equal(a.down_err, -FI_ECONNRESET);
	assert_int_equal(op.done, 0);
}

static void engine_may_end_the_connection_in_a_lent_packet(void **state)
{
	struct mock_op op;

	mapped(from);
	send_begin(1, from, BIG, &op);
	b.end_in_packet = b.conn;
	mock_until(&a, &b, a.downs);
	assert_int_equal(b.big_done, 0);
	assert_int_equal(op.done, 0);
}

static void peer_that_may_not_map_gets_payload_in_fragments(void **state)
{
	mock_hide_proc();
	for (uint32_t i = 0; i < 5; i++) {
		assert_false(send_all(i, from, BIG));
		polls();
	}
	assert_true(at(&b)->arena_refused);
	/* for good: it is not asked again for each payload */
	sys_fault_clear();
	polls();
	assert_false(send_all(5, from, BIG));
}

/* Memory and descriptors may be there later. */
static void peer_that_lacks_descriptors_maps_later(void **state)
{
	struct pshm_place place;

	sys_fault_set(SYS_CALL_OPEN_FD, EMFILE, 0, 0);
	assert_false(send_all(1, from, BIG));
	polls();
	assert_false(at(&b)->arena_refused);
	sys_fault_set(SYS_CALL_OPEN_FD, 0, 0, 0);
	/* the directory now, and no room for the chunk */
	sys_fault_set(SYS_CALL_MMAP, ENOMEM, 1, 0);
	polls();
	assert_false(pshm_arena_lends(at(&a), from, 1, &place));
	assert_false(send_all(2, from, BIG));
	sys_fault_clear();
	mapped(from);
	assert_true(send_all(3, from, BIG));
}

/* Nonce of another arena, and a descriptor that is none. */
static void directory_that_is_not_the_one_shown_is_refused(void **state)
{
	struct pshm_shown *shown = &at(&a)->pair->shown[at(&a)->side];

	mock_until(&a, &b, atomic_load(&shown->arena_shown));
	shown->arena_nonce[3] ^= 1;
	assert_false(send_all(1, from, BIG));
	polls();
	assert_false(send_all(2, from, BIG));
	assert_true(at(&b)->arena_refused);
	assert_null(at(&b)->arena);
}

static void sender_that_closes_takes_its_memory_back(void **state)
{
	struct mock_op op;

	mapped(from);
	assert_true(mock_put(a.conn, 0, 8));
	send_begin(1, from, BIG, &op);
	a.wire->ops->disconnect(a.conn);
	memset(from, 0xee, BIG);
	mock_until(NULL, &b, b.downs);
	assert_int_equal(b.next_tag, 1);
	assert_int_equal(b.down_err, -FI_ECONNRESET);
	assert_int_equal(b.big_done, 0);
	assert_int_equal(op.done, 0);
}

static void take_back(void)
{
	b.in_packet = NULL;
	a.wire->ops->disconnect(a.conn);
	a.conn = NULL;
	memset(from, 0xee, BIG);
}

/* The receiver has begun with the packet when its sender ends the connection and stores. */
static void payload_that_changes_while_it_is_read_is_no_success(void **state)
{
	struct mock_op op;

	mapped(from);
	send_begin(1, from, BIG, &op);
	b.in_packet = take_back;
	mock_until(NULL, &b, b.downs);
	assert_int_equal(b.packets, 1);
	assert_int_equal(b.big_done, 0);
	assert_int_equal(b.down_err, -FI_ECONNRESET);
}

/* Before it was mapped, or after: it is not lent, and does not keep later chunks from it. */
static void memory_of_a_retired_chunk_is_not_lent(void **state)
{
	unsigned char *retired = from;

	mapped(retired);
	assert_true(send_all(1, retired, BIG));
	arena_retire(arena, retired);
	assert_false(send_all(2, retired, BIG));
	from = in_arena(LEN);
	assert_int_not_equal(chunk_of(from), 0);
	assert_int_equal(arena_free(arena, retired), 0);
	mapped(from);
	assert_true(send_all(3, from, BIG));
}

static void chunk_that_was_retired_before_it_was_mapped_delays_no_other(void **state)
{
	unsigned char *retired = from;

	arena_retire(arena, retired);
	from = in_arena(LEN);
	assert_int_equal(arena_free(arena, retired), 0);
	mapped(from);
	assert_true(send_all(1, from, BIG));
}

/* As that of a peer that has sent nothing for long. */
static void a_cold_connection_lets_go_of_a_chunk_that_has_ended(void **state)
{
	struct pshm_wire *w = at(&b)->wire;
	uint32_t chunk = chunk_of(from);

	mapped(from);
	assert_non_null(at(&b)->arena->maps[chunk].addr);
	arena_retire(arena, from);
	assert_int_equal(arena_free(arena, from), 0);
	assert_int_equal(w->up_cnt, 1);
	w->hot_cnt = 0;
	mock_sweep(NULL, &b);
	assert_int_equal(w->hot_cnt, 0);
	assert_null(at(&b)->arena->maps[chunk].addr);
	assert_null(at(&b)->arena->stale);
	w->hot_cnt = 1;
	from = in_arena(LEN);
	mapped(from);
	assert_true(send_all(1, from, BIG));
}

/* What is retired while it is lent stays as it was for the peer. */
static void payload_whose_chunk_is_retired_while_it_is_lent_arrives(void **state)
{
	unsigned char *retired = from;
	struct mock_op op;

	mapped(from);
	send_begin(1, from, BIG, &op);
	assert_true(lent());
	arena_retire(arena, from);
	mock_until(&a, &b, op.done && b.big_done == 1);
	assert_false(b.garbled);
	from = in_arena(LEN);
	assert_int_equal(arena_free(arena, retired), 0);
}

/* A copy of the process drops what is lent and what is mapped; its parent goes on. */
static void fork_leaves_what_is_lent_to_the_parent(void **state)
{
	struct mock_op op;
	int status;
	pid_t copy;

	mapped(from);
	send_begin(1, from, BIG, &op);
	assert_true(lent());
	copy = fork();
	assert_true(copy >= 0);
	if (!copy) {
		alarm(600);
		mock_poll(&a, &b);
		mock_close(&a);
		mock_close(&b);
		_exit(op.done || b.big_done);
	}
	assert_int_equal(waitpid(copy, &status, 0), copy);
	assert_int_equal(status, 0);
	memset(from + BIG, 0xee, LEN - BIG);
	mock_until(&a, &b, op.done && b.big_done == 1);
	assert_false(b.garbled);
	arena_free(arena, from);
	from = in_arena(LEN);
	mapped(from);
	assert_true(send_all(2, from, BIG));
}

static int read_pieces(const struct iovec *source, uint32_t cnt, uint32_t pieces, size_t len,
		       struct mock_op *op)
{
	struct wire_source s = { .id = 1, .iov_cnt = cnt };
	struct iovec iov[WIRE_IOV_MAX];
	size_t step = len / pieces;

	memcpy(s.iov, source, cnt * sizeof(*source));
	for (uint32_t i = 0; i < pieces; i++)
		iov[i] = (struct iovec){ to + i * step, i + 1 < pieces ? step : len - i * step };
	mock_op_init(op);
	return b.wire->ops->get(b.conn, &s, iov, pieces, &op->op);
}

/* Reads and checks the bytes. Returns the status of the read. */
static int read_all(const struct iovec *source, uint32_t cnt, uint32_t pieces)
{
	size_t len = 0, got = 0;
	struct mock_op op;
	int ret;

	for (uint32_t i = 0; i < cnt; i++) {
		mock_pattern(source[i].iov_base, source[i].iov_len, i);
		len += source[i].iov_len;
	}
	memset(to, 0, LEN);
	ret = read_pieces(source, cnt, pieces, len, &op);
	if (ret < 0)
		return ret;
	if (!ret)
		mock_until(&b, NULL, op.done);
	if (!ret && op.status)
		return op.status;
	for (uint32_t i = 0; i < cnt; got += source[i++].iov_len)
		assert_true(mock_is_pattern(to + got, source[i].iov_len, i));
	return 0;
}

/* From now on the kernel reads nothing for us: what is read is mapped. */
static void kernel_refuses(void)
{
	sys_fault_set(SYS_CALL_PROCESS_VM_READV, EPERM, 0, 0);
	mock_until(&a, &b, atomic_load(&at(&a)->pair->shown[at(&a)->side].arena_shown));
}

static void mapped_memory_is_read_without_the_kernel(void **state)
{
	const struct iovec one = { from, LEN };
	const struct iovec three[] = { { from + 5, 70001 },
				       { from + 200000, 1 },
				       { from + 300001, 600000 } };
	const struct iovec empty[] = { { from, 0 }, { from + 77, 50000 }, { from + 9, 0 } };

	kernel_refuses();
	assert_int_equal(read_all(&one, 1, 1), 0);
	for (uint32_t pieces = 1; pieces <= 4; pieces++) {
		assert_int_equal(read_all(&one, 1, pieces), 0);
		assert_int_equal(read_all(three, 3, pieces), 0);
		assert_int_equal(read_all(empty, 3, pieces), 0);
	}
}

/* Lets b's choice for messages of this length begin a burst through the ring, or of reads. */
static void burst_begins(size_t len, bool lends)
{
	struct pshm_lending *lending = &at(&b)->lending;

	while (pshm_lending_next(lending, len) != lends)
		;
}

/* A receiver that has measured so asks a sender that polls for what it has mapped, and others not. */
static void mapped_memory_may_be_asked_for(void **state)
{
	const struct iovec one = { from, LEN };
	struct mock_op op;

	kernel_refuses();
	assert_int_equal(read_all(&one, 1, 1), 0);
	burst_begins(LEN, false);
	assert_int_equal(read_pieces(&one, 1, 1, LEN, &op), 0);
	for (int i = 0; i < 3; i++)
		mock_poll(&a, NULL);
	mock_until(&b, NULL, op.done);
	assert_int_equal(op.status, -FI_EBUSY);
	assert_int_equal(op.op.moved, 0);
	assert_int_equal(read_all(&one, 1, 1), 0);
	assert_true(mock_is_pattern(to, LEN, 0));
}

/* What the receiver has asked for is not left to it to copy after all. */
static void payload_that_is_asked_for_goes_through_the_ring(void **state)
{
	assert_false(send_all(0, from, BIG));
	mapped(from);
	assert_true(send_all(1, from, PSHM_EAGER_MAX));
	assert_false(send_all(2, from, PSHM_EAGER_MAX + 1));
	assert_false(send_all(3, from, LEN));
}

static void source_that_is_partly_mapped_is_read_by_the_kernel(void **state)
{
	unsigned char *plain = malloc(BIG);
	const struct iovec source[] = { { from, BIG }, { plain, BIG }, { from + BIG, BIG } };

	assert_non_null(plain);
	assert_int_equal(read_all(source, 3, 2), 0);
	kernel_refuses();
	assert_int_equal(read_all(source, 3, 2), -FI_EPERM);
	assert_int_equal(read_all(source, 1, 2), 0);
	free(plain);
}

static void source_that_leaves_its_chunk_is_not_read_by_loads(void **state)
{
	const struct arena_chunk *chunk = &arena->chunks[chunk_of(from)];
	unsigned char *end = (unsigned char *)chunk->base + chunk->len;
	struct mock_op op;

	kernel_refuses();
	assert_int_equal(read_all(&(struct iovec){ from, 10 }, 1, 1), 0);
	assert_int_equal(read_pieces(&(struct iovec){ end - 10, 10 }, 1, 1, 10, &op), 1);
	assert_int_equal(read_pieces(&(struct iovec){ end - 10, 11 }, 1, 1, 11, &op), 0);
	mock_until(&b, NULL, op.done);
	assert_int_equal(op.status, -FI_EPERM);
	assert_int_equal(
		read_pieces(&(struct iovec){ (void *)(UINTPTR_MAX - 5), 10 }, 1, 1, 10, &op),
		-FI_EFAULT);
	assert_int_equal(read_pieces(&(struct iovec){ from, 10 }, 1, 1, 11, &op), -FI_EFAULT);
}

static void retired_chunk_is_read_by_the_kernel(void **state)
{
	const struct iovec one = { from, BIG };
	unsigned char *retired = from;

	assert_int_equal(read_all(&one, 1, 1), 0);
	arena_retire(arena, from);
	assert_int_equal(read_all(&one, 1, 1), 0);
	kernel_refuses();
	assert_int_equal(read_all(&one, 1, 1), -FI_EPERM);
	from = in_arena(LEN);
	assert_int_equal(arena_free(arena, retired), 0);
}

static void read_of_a_peer_that_ended_is_no_success(void **state)
{
	struct mock_op op;

	mock_pattern(from, LEN, 1);
	assert_int_equal(read_pieces(&(struct iovec){ from, LEN }, 1, 1, LEN, &op), 0);
	a.wire->ops->disconnect(a.conn);
	memset(from, 0xee, LEN);
	mock_until(&b, NULL, op.done || b.downs);
	if (op.done)
		assert_int_equal(op.status, -FI_ECONNRESET);
}

/* The directory can't be opened: the kernel reads, as before there were arenas. */
static void refused_directory_leaves_reads_to_the_kernel(void **state)
{
	mock_until(&a, &b, atomic_load(&at(&a)->pair->shown[at(&a)->side].arena_shown));
	sys_fault_set(SYS_CALL_OPEN_FD, EACCES, 0, 1);
	assert_int_equal(read_all(&(struct iovec){ from, LEN }, 1, 2), 0);
	assert_true(at(&b)->arena_refused);
	kernel_refuses();
	assert_int_equal(read_all(&(struct iovec){ from, LEN }, 1, 2), -FI_EPERM);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(first_payload_is_sent_and_later_payload_lent),
		TEST(payload_is_the_senders_again_once_it_was_taken),
		TEST(payload_elsewhere_or_in_pieces_or_short_is_not_lent),
		TEST(payload_that_leaves_its_chunk_is_not_lent),
		TEST(order_is_kept_among_kinds),
		TEST(many_are_lent_at_once),
		TEST(lent_payload_is_dropped_or_cut),
		TEST(engine_that_refuses_a_lent_packet_ends_the_connection),
		TEST(engine_may_end_the_connection_in_a_lent_packet),
		TEST(peer_that_may_not_map_gets_payload_in_fragments),
		TEST(peer_that_lacks_descriptors_maps_later),
		TEST(directory_that_is_not_the_one_shown_is_refused),
		TEST(sender_that_closes_takes_its_memory_back),
		TEST(payload_that_changes_while_it_is_read_is_no_success),
		TEST(memory_of_a_retired_chunk_is_not_lent),
		TEST(chunk_that_was_retired_before_it_was_mapped_delays_no_other),
		TEST(a_cold_connection_lets_go_of_a_chunk_that_has_ended),
		TEST(payload_whose_chunk_is_retired_while_it_is_lent_arrives),
		TEST(fork_leaves_what_is_lent_to_the_parent),
		TEST(mapped_memory_is_read_without_the_kernel),
		TEST(mapped_memory_may_be_asked_for),
		TEST(payload_that_is_asked_for_goes_through_the_ring),
		TEST(source_that_is_partly_mapped_is_read_by_the_kernel),
		TEST(source_that_leaves_its_chunk_is_not_read_by_loads),
		TEST(retired_chunk_is_read_by_the_kernel),
		TEST(read_of_a_peer_that_ended_is_no_success),
		TEST(refused_directory_leaves_reads_to_the_kernel),
	};

	alarm(600);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
