/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Tests of cooperative copies, with both ends in one process, which is polled or not as if they
 * were two: b reads a buffer of a; a begins to poll in the middle.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>
#include <unistd.h>
#include <rdma/fi_errno.h>
#include "fault.h"
#include "lines.h"
#include "mock_engine.h"
#include "seeded.h"
#include "process_vm.h"

#define LEN (20u * PSHM_CHUNK_LEN + 777u)
#define ID  9u /* of a's send */

static struct mock a, b;
static unsigned char *from, *to;
static struct mock_op op;

static int setup(void **state)
{
	mock_meet(&a, &b);
	from = malloc(LEN);
	to = calloc(1, LEN + 1);
	assert_true(from && to);
	mock_pattern(from, LEN, ID);
	a.offer_id = ID;
	a.offer[0] = (struct iovec){ from, LEN };
	a.offer_cnt = 1;
	return 0;
}

static int teardown(void **state)
{
	sys_fault_clear();
	mock_close(&a);
	mock_close(&b);
	free(from);
	free(to);
	return 0;
}

static struct pshm_conn *at(const struct mock *m)
{
	return (struct pshm_conn *)m->conn;
}

/* b's slot, as a may write it */
static struct pshm_coop_copy *slot_at(uint32_t idx)
{
	return &at(&a)->pair->coop_copies[at(&b)->side][idx];
}

/* b asks, and reads alone until it shares the rest. */
static void begin(const struct iovec *iov, size_t iov_cnt, struct mock_op *o)
{
	uint32_t before = at(&b)->coop_slots;

	assert_int_equal(mock_get(b.conn, ID, from, iov, iov_cnt, o), 0);
	mock_until(&b, NULL, at(&b)->coop_slots != before || o->done);
	assert_int_equal(o->done, 0);
}

static void begin_whole(void)
{
	struct iovec iov = { to, LEN };

	begin(&iov, 1, &op);
}

static void ended_well(void)
{
	assert_int_equal(op.done, 1);
	assert_int_equal(op.status, 0);
	assert_memory_equal(to, from, LEN);
	assert_int_equal(to[LEN], 0);
	assert_int_equal(at(&b)->coop_slots, 0);
}

static void peer_that_comes_by_writes_chunks(void **state)
{
	begin_whole();
	mock_until(&b, NULL, (uint32_t)atomic_load(&slot_at(0)->word) == 3);
	mock_until(&a, NULL, at(&a)->chunks_written == 5); /* b computes */
	/* a polls now and then */
	while (!op.done) {
		mock_poll(&b, NULL);
		mock_poll(&b, NULL);
		mock_poll(&a, NULL);
	}
	ended_well();
	assert_true(at(&a)->chunks_written >= 8);
	/* and forgets it */
	mock_until(&a, NULL, list_empty(&at(&a)->coop_writes));
}

/* What is there is there from the start, and nothing of the rest. */
static void asked_for_the_rest(size_t least)
{
	assert_int_equal(op.done, 1);
	assert_int_equal(op.status, -FI_EBUSY);
	assert_in_range(op.op.moved, least, LEN - 1);
	assert_memory_equal(to, from, op.op.moved);
	for (size_t i = op.op.moved; i < LEN; i++)
		assert_int_equal(to[i], 0);
}

static void peer_that_keeps_pace_is_asked_for_the_rest(void **state)
{
	begin_whole();
	mock_until(&a, &b, op.done);
	asked_for_the_rest(4 * PSHM_CHUNK_LEN);
	assert_true(op.op.moved < LEN / 2);
	/* also when there is a chunk that it could not write */
	memset(to, 0, LEN);
	begin_whole();
	sys_fault_set(SYS_CALL_PROCESS_VM_WRITEV, EFAULT, 1, 1);
	mock_until(&a, &b, op.done);
	asked_for_the_rest(4 * PSHM_CHUNK_LEN);
}

/* Where its ring is as large as it gets, that is, with no more than it began with. */
static void peer_with_a_small_ring_is_not_asked(void **state)
{
	unsigned char *big = calloc(1, 40000);
	struct mock_op sent;

	((struct pshm_wire *)a.wire)->area_max = 0;
	assert_int_equal(mock_sendv(a.conn, MOCK_BIG, big, 40000, 1, &sent), 0);
	mock_until(&a, &b, sent.done && b.packets);
	/* although it polls */
	assert_int_equal(mock_get(b.conn, ID, from, &(struct iovec){ to, LEN }, 1, &op), 0);
	mock_until(&a, &b, op.done);
	ended_well();
	assert_true(at(&a)->chunks_written >= 5);
	/* short payload is as fast through it */
	assert_int_equal(mock_get(b.conn, ID, from, &(struct iovec){ to, 100000 }, 1, &op), 0);
	for (int i = 0; i < 10; i++)
		mock_poll(&a, NULL);
	mock_until(&a, &b, op.done);
	assert_int_equal(op.status, -FI_EBUSY);
	assert_int_equal(op.op.moved, 0);
	/* and it may grow later */
	((struct pshm_wire *)a.wire)->area_max = PSHM_AREAS_MAX;
	assert_int_equal(mock_sendv(a.conn, MOCK_BIG, big, 40000, 1, &sent), 0);
	mock_until(&a, &b, sent.done && b.packets == 2 && at(&b)->rx_moved);
	memset(to, 0, LEN);
	assert_int_equal(mock_get(b.conn, ID, from, &(struct iovec){ to, LEN }, 1, &op), 0);
	for (int i = 0; i < 10; i++)
		mock_poll(&a, NULL);
	mock_until(&a, &b, op.done);
	assert_int_equal(op.status, -FI_EBUSY);
	free(big);
}

static void peer_alone_does_not_end_it(void **state)
{
	begin_whole();
	mock_until(&a, NULL, at(&a)->chunks_written == 20);
	for (int i = 0; i < 100; i++)
		mock_poll(&a, NULL);
	assert_int_equal(at(&a)->chunks_written, 20);
	assert_int_equal(op.done, 0);
	mock_until(&b, NULL, op.done);
	ended_well();
}

/* The write guard may be unmapped by then, and its address mapped to something else. */
static void peer_that_comes_too_late_writes_nothing_at_all(void **state)
{
	const unsigned char *write_guard;

	begin_whole();
	write_guard = ((struct pshm_wire *)b.wire)->write_guard;
	mock_until(&b, NULL, op.done);
	ended_well();
	for (int i = 0; i < 10; i++)
		mock_poll(&a, NULL);
	assert_int_equal(*write_guard, 0);
	assert_int_equal(at(&a)->chunks_written, 0);
	assert_true(list_empty(&at(&a)->coop_writes));
}

static void pieces_and_parts_of_a_send_are_shared(void **state)
{
	struct iovec iov[4] = {
		{ to, 1 }, { to + 1, 100000 }, { to + 100001, 5 }, { to + 100006, 700000 }
	};

	/* the sender's is in pieces too, and longer */
	a.offer[0].iov_len = 123457;
	a.offer[1] = (struct iovec){ from + 123457, LEN - 123457 };
	a.offer_cnt = 2;
	begin(iov, 4, &op);
	mock_until(&a, NULL, at(&a)->chunks_written == 3);
	mock_until(&b, NULL, op.done);
	assert_int_equal(op.status, 0);
	assert_memory_equal(to, from, 800006);
	assert_int_equal(to[800006], 0);
}

static void short_payload_is_not_shared(void **state)
{
	struct iovec iov = { to, PSHM_COOP_COPY_MIN };

	assert_int_equal(mock_get(b.conn, ID, from, &iov, 1, &op), 0);
	mock_until(&b, NULL, op.done);
	assert_int_equal(at(&b)->coop_gens[0], 0);
	assert_memory_equal(to, from, PSHM_COOP_COPY_MIN);
}

static void peer_that_may_not_write_says_so_once(void **state)
{
	begin_whole();
	sys_fault_set(SYS_CALL_PROCESS_VM_WRITEV, EPERM, 0, 0);
	for (int i = 0; i < 10; i++)
		mock_poll(&a, NULL);
	assert_true(at(&a)->put_refused);
	mock_until(&b, NULL, op.done);
	ended_well();
	assert_int_equal(at(&a)->chunks_written, 0);
	/* the other direction is not concerned, this one is not tried again */
	assert_false(at(&b)->put_refused);
	memset(to, 0, LEN);
	assert_int_equal(mock_get(b.conn, ID, from, &(struct iovec){ to, LEN }, 1, &op), 0);
	mock_until(&b, NULL, op.done);
	ended_well();
	assert_int_equal(at(&b)->coop_gens[0], 1);
}

static void right_to_write_may_be_lost(void **state)
{
	begin_whole();
	mock_until(&a, NULL, at(&a)->chunks_written == 2);
	sys_fault_set(SYS_CALL_PROCESS_VM_WRITEV, EPERM, 0, 0);
	mock_until(&a, NULL, at(&a)->put_refused);
	mock_until(&b, NULL, op.done);
	ended_well();
}

static void chunk_that_failed_is_read(void **state)
{
	begin_whole();
	sys_fault_set(SYS_CALL_PROCESS_VM_WRITEV, EFAULT, 2, 1);
	mock_until(&a, NULL, at(&a)->chunks_written == 2);
	for (int i = 0; i < 10; i++)
		mock_poll(&a, NULL);
	assert_int_equal(at(&a)->chunks_written, 2);
	assert_true(list_empty(&at(&a)->coop_writes));
	mock_until(&b, NULL, op.done);
	ended_well();
	/* no reason not to try again */
	memset(to, 0, LEN);
	begin_whole();
	mock_until(&a, NULL, at(&a)->chunks_written == 4);
	mock_until(&b, NULL, op.done);
	ended_well();
}

static void read_after_the_end_of_the_peer_fails(void)
{
	a.wire->ops->disconnect(a.conn);
	memset(from, 0xee, LEN);
	mock_until(&b, NULL, op.done || b.downs);
	if (op.done)
		assert_int_equal(op.status, -FI_ECONNRESET);
}

/* Its send has ended with the connection, and the memory is its program's. */
static void read_of_a_peer_that_ended_is_no_success(void **state)
{
	struct iovec iov = { to, LEN };

	assert_int_equal(mock_get(b.conn, ID, from, &iov, 1, &op), 0);
	assert_int_equal(op.done, 0);
	read_after_the_end_of_the_peer_fails();
}

static void shared_read_of_a_peer_that_ended_is_no_success(void **state)
{
	begin_whole();
	read_after_the_end_of_the_peer_fails();
}

static void bytes_that_were_not_offered_are_not_written(void **state)
{
	begin_whole();
	a.offer_cnt = 0;
	for (int i = 0; i < 10; i++)
		mock_poll(&a, NULL);
	assert_int_equal(at(&a)->chunks_written, 0);
	mock_until(&b, NULL, op.done);
	ended_well();
	a.offer_cnt = 1;
	a.offer[0].iov_len = LEN - 1;
	begin_whole();
	mock_until(&a, NULL, at(&a)->chunks_written == 19);
	mock_until(&a, NULL, list_empty(&at(&a)->coop_writes));
	mock_until(&b, NULL, op.done);
	ended_well();
}

static void failed_read_ends_once_the_peer_holds_nothing(void **state)
{
	uint32_t chunk;

	begin_whole();
	assert_int_equal(pshm_coop_copy_claim(slot_at(0), 1, 20, &chunk), PSHM_CLAIMED);
	sys_fault_set(SYS_CALL_PROCESS_VM_READV, EIO, 0, 0);
	for (int i = 0; i < 50; i++)
		mock_poll(&b, NULL);
	assert_int_equal(op.done, 0);
	pshm_coop_copy_set_written(slot_at(0), 1, 0);
	mock_until(&b, NULL, op.done);
	assert_int_equal(op.status, -FI_EIO);
}

/* The sender has claimed a chunk and is stopped: no other transfer waits for it. */
static void held_chunk_delays_its_transfer_alone(void **state)
{
	unsigned char *other = calloc(1, LEN);
	struct mock_op op2;
	uint32_t chunk;

	begin_whole();
	assert_int_equal(pshm_coop_copy_claim(slot_at(0), 1, 21, &chunk), PSHM_CLAIMED);
	assert_int_equal(mock_get(b.conn, ID, from, &(struct iovec){ other, LEN }, 1, &op2), 0);
	mock_until(&b, NULL, op2.done);
	assert_int_equal(op2.status, 0);
	assert_memory_equal(other, from, LEN);
	assert_true(mock_put(a.conn, 0, 8));
	mock_until(&b, NULL, b.next_tag == 1);
	for (int i = 0; i < 50; i++)
		mock_poll(&b, NULL);
	assert_int_equal(op.done, 0);
	/* it continues, and has not written */
	pshm_coop_copy_set_written(slot_at(0), 1, chunk + 1);
	mock_until(&b, NULL, op.done);
	ended_well();
	free(other);
}

#define OTHERS 6

/* Peers of b, from each of which it reads. */
static struct mock others[OTHERS];
static struct mock_op reads[OTHERS];

static void read_from_others(void)
{
	struct wire_conn *conns[OTHERS], *conn;

	for (int i = 0; i < OTHERS; i++) {
		mock_open(&others[i]);
		b.conn = NULL;
		assert_int_equal(mock_connect(&others[i], &b.addr, &conn), 0);
		mock_until(&others[i], &b, others[i].conn && b.conn);
		conns[i] = b.conn;
	}
	for (int i = 0; i < OTHERS; i++)
		assert_int_equal(
			mock_get(conns[i], ID, from, &(struct iovec){ to, LEN }, 1, &reads[i]),
			0);
	/* it is known that they do not poll */
	for (uint64_t end = platform_now_ns() + 10000000; platform_now_ns() < end;)
		platform_yield();
}

static void others_end(void)
{
	for (int i = 0; i < OTHERS; i++)
		mock_until(&b, NULL, reads[i].done);
	for (int i = 0; i < OTHERS; i++)
		mock_close(&others[i]);
}

/* Chunks of that transfer which b has claimed; of one that is over more than it has. */
static uint32_t claimed_from(int i)
{
	struct pshm_coop_copy *slot = &at(&others[i])->pair->coop_copies[PSHM_ACCEPTOR][0];

	return slot->len ? (uint32_t)atomic_load(&slot->word) : 0;
}

/* However many transfers there are, a poll copies few chunks. */
static void poll_copies_few_chunks(void **state)
{
	uint32_t begun = 0;

	read_from_others();
	b.wire->ops->poll(b.wire);
	for (int i = 0; i < OTHERS; i++)
		begun += at(&others[i])->pair->coop_copies[PSHM_ACCEPTOR][0].len != 0;
	assert_in_range(begun, 1, 2);
	others_end();
}

/* But none has to wait until others are over. */
static void transfers_of_all_peers_go_on(void **state)
{
	int over = 0;

	read_from_others();
	while (!over) {
		b.wire->ops->poll(b.wire);
		for (int i = 0; i < OTHERS; i++)
			over += reads[i].done;
	}
	for (int i = 0; i < OTHERS; i++)
		assert_true(claimed_from(i) > 10);
	others_end();
}

static void all_slots_may_be_held(void **state)
{
	struct iovec iov = { to, LEN };
	struct mock_op ops[PSHM_COOP_COPIES + 1];
	uint32_t chunk;

	for (uint32_t i = 0; i < PSHM_COOP_COPIES; i++) {
		mock_op_init(&ops[i]);
		assert_int_equal(mock_get(b.conn, ID, from, &iov, 1, &ops[i]), 0);
		mock_until(&b, NULL, at(&b)->coop_slots & 1u << i);
		assert_int_equal(pshm_coop_copy_claim(slot_at(i), 1, 20, &chunk), PSHM_CLAIMED);
	}
	/* one more is read alone */
	assert_int_equal(mock_get(b.conn, ID, from, &iov, 1, &ops[PSHM_COOP_COPIES]), 0);
	mock_until(&b, NULL, ops[PSHM_COOP_COPIES].done);
	for (uint32_t i = 0; i < PSHM_COOP_COPIES; i++) {
		assert_int_equal(ops[i].done, 0);
		pshm_coop_copy_set_written(slot_at(i), 1, chunk + 1);
		mock_until(&b, NULL, ops[i].done);
		assert_int_equal(ops[i].status, 0);
	}
	op = ops[PSHM_COOP_COPIES];
	ended_well();
}

#define RELEASE_NS 1000000000u /* the end of a connection waits at most so long */

static _Atomic bool released;

/* The peer, by its own mapping: ours ends with the connection. */
static void *release_later(void *arg)
{
	struct pshm_coop_copy *slot = arg;

	/* until b has withdrawn it */
	while ((uint32_t)atomic_load(&slot->word) != UINT32_MAX)
		platform_yield();
	memset(to, 0xaa, PSHM_CHUNK_LEN);
	/* ThreadSanitizer does not detect memory that is mapped twice */
	atomic_store(&released, true);
	pshm_coop_copy_set_written(slot, 1, 0);
	return NULL;
}

static void end_by_disconnect(void)
{
	b.wire->ops->disconnect(b.conn);
	b.conn = NULL;
}

/* Our own want of memory is no fault of the peer's, which may be writing. */
static void end_by_want(void)
{
	b.packet_err = -FI_ENOMEM;
	assert_true(mock_put(a.conn, 0, 8));
	mock_until(&b, NULL, b.downs);
	assert_int_equal(b.down_err, -FI_ENOMEM);
	b.packet_err = 0;
}

/*
 * Ends a connection while the peer holds a chunk, which it returns once b has withdrawn it. Returns true if the end has
 * waited for that, false if that has taken longer than it may wait.
 */
static bool end_waits(void (*end)(void))
{
	uint64_t begun;
	pthread_t thread;
	uint32_t chunk;
	bool waited;

	begin_whole();
	assert_int_equal(pshm_coop_copy_claim(slot_at(0), 1, 20, &chunk), PSHM_CLAIMED);
	atomic_store(&released, false);
	assert_int_equal(pthread_create(&thread, NULL, release_later, slot_at(0)), 0);
	begun = platform_now_ns();
	end();
	waited = atomic_load(&released);
	assert_true(waited || platform_now_ns() - begun >= RELEASE_NS);
	if (waited) /* returned to the receiver */
		assert_int_equal(to[0], 0xaa);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(op.done, 0);
	return waited;
}

/* Once more where the thread that is the peer had no core for as long as the end waits. */
static void end_waits_at_last(void **state, void (*end)(void))
{
	for (int tries = 0; !end_waits(end); tries++) {
		assert_true(tries < 20);
		teardown(state);
		setup(state);
	}
}

static void end_waits_for_a_chunk_that_is_held(void **state)
{
	end_waits_at_last(state, end_by_disconnect);
}

static void end_for_want_of_memory_waits_too(void **state)
{
	end_waits_at_last(state, end_by_want);
}

/* One that breaks the rules is not waited for, whatever it says that it holds. */
static void peer_that_lies_is_not_waited_for(void **state)
{
	uint64_t begun;
	uint32_t chunk;

	begin_whole();
	assert_int_equal(pshm_coop_copy_claim(slot_at(0), 1, 20, &chunk), PSHM_CLAIMED);
	b.packet_err = -FI_EINVAL;
	assert_true(mock_put(a.conn, 0, 8));
	begun = mock_worked_ns();
	mock_until(&b, NULL, b.downs);
	assert_true(mock_worked_ns() - begun < 900000000u);
	b.packet_err = 0;
}

static void peer_that_does_not_let_go_is_shut_out(void **state)
{
	struct iovec local = { from, 10 }, remote = { to, 10 };
	uint64_t begun;
	uint32_t chunk;
	void *write_guard;

	begin_whole();
	write_guard = ((struct pshm_wire *)b.wire)->write_guard;
	assert_int_equal(
		sys_process_vm_write_guarded(getpid(), write_guard, &local, 1, &remote, 1), 10);
	assert_int_equal(pshm_coop_copy_claim(slot_at(0), 1, 20, &chunk), PSHM_CLAIMED);
	begun = mock_worked_ns();
	b.wire->ops->disconnect(b.conn);
	b.conn = NULL;
	assert_true(mock_worked_ns() - begun < 5000000000u);
	/* it continues now */
	assert_int_equal(
		sys_process_vm_write_guarded(getpid(), write_guard, &local, 1, &remote, 1),
		-FI_EFAULT);
}

static void line_that_no_peer_sends_ends_the_connection(void **state)
{
	struct pshm_coop_invite invite = { .slot = PSHM_COOP_COPIES };
	struct ring_line *line = ring_claim(&at(&b)->tx);

	assert_non_null(line);
	if (!line)
		return;
	memset(line->header, 0, sizeof(line->header));
	memcpy(line->header, &invite, sizeof(invite));
	ring_publish(&at(&b)->tx, line, PSHM_COOP_COPY);
	mock_until(&a, NULL, a.downs);
	assert_int_equal(a.down_err, -FI_EPROTO);
}

/* What a hostile sender or receiver may write there, with some values that nearly fit. */
static void slot_scribble(struct pshm_coop_copy *s, uint64_t *seed)
{
	uint64_t *words = (uint64_t *)s;
	uint32_t which = seeded_random(seed) % (sizeof(*s) / 8);
	uint64_t value = (uint64_t)seeded_random(seed) << 33 ^ seeded_random(seed);

	switch (seeded_random(seed) % 4) {
	case 0:
		words[which] = value >> seeded_random(seed) % 64;
		break;
	case 1:
		words[which] ^= 1ull << value % 64;
		break;
	case 2:
		atomic_store(&s->word, (atomic_load(&s->word) >> 32 << 32) + value % 40);
		break;
	case 3:
		atomic_store(&s->written, (value % 30) << 32 | value % 25);
		break;
	}
}

/*
 * A receiver that reads anything gets nothing that was not offered to it, and harms no other peer.
 */
static void scribbled_slots_do_no_harm(void **state)
{
	uint64_t seed = 0x5eed2003;

	print_message("seed %#llx\n", (unsigned long long)seed);
	for (int round = 0; round < 2000 && a.conn && b.conn; round++) {
		struct iovec iov = { to, LEN };

		if (!at(&b)->coop_slots && !list_empty(&at(&b)->gets))
			mock_poll(&b, NULL);
		if (list_empty(&at(&b)->gets)) {
			assert_int_equal(mock_get(b.conn, ID, from, &iov, 1, &op), 0);
			mock_until(&b, NULL, at(&b)->coop_slots || op.done);
		}
		for (uint32_t i = seeded_random(&seed) % 4; i; i--)
			slot_scribble(slot_at(seeded_random(&seed) % 2), &seed);
		mock_poll(seeded_random(&seed) % 2 ? &a : NULL,
			  seeded_random(&seed) % 2 ? &b : NULL);
		if (op.done && !op.status)
			assert_int_equal(to[LEN], 0);
		/* an honest peer would end what it holds: one that lies may hold it for good */
		if (round % 50 == 49 && !op.done)
			for (uint32_t i = 0; i < PSHM_COOP_COPIES; i++)
				atomic_store(&slot_at(i)->written, UINT32_MAX);
		assert_true(mock_put(a.conn, b.next_tag, 8));
		mock_until(&b, NULL, b.packets % 256 == (uint32_t)(round + 1) % 256);
	}
	assert_int_equal(a.downs + b.downs, 0);
	assert_false(b.garbled);
	for (uint32_t i = 0; i < PSHM_COOP_COPIES; i++)
		atomic_store(&slot_at(i)->written, UINT32_MAX);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(peer_that_comes_by_writes_chunks),
		TEST(peer_that_keeps_pace_is_asked_for_the_rest),
		TEST(peer_with_a_small_ring_is_not_asked),
		TEST(peer_alone_does_not_end_it),
		TEST(peer_that_comes_too_late_writes_nothing_at_all),
		TEST(pieces_and_parts_of_a_send_are_shared),
		TEST(short_payload_is_not_shared),
		TEST(peer_that_may_not_write_says_so_once),
		TEST(right_to_write_may_be_lost),
		TEST(chunk_that_failed_is_read),
		TEST(bytes_that_were_not_offered_are_not_written),
		TEST(read_of_a_peer_that_ended_is_no_success),
		TEST(shared_read_of_a_peer_that_ended_is_no_success),
		TEST(failed_read_ends_once_the_peer_holds_nothing),
		TEST(held_chunk_delays_its_transfer_alone),
		TEST(poll_copies_few_chunks),
		TEST(transfers_of_all_peers_go_on),
		TEST(all_slots_may_be_held),
		TEST(end_waits_for_a_chunk_that_is_held),
		TEST(peer_that_lies_is_not_waited_for),
		TEST(end_for_want_of_memory_waits_too),
		TEST(peer_that_does_not_let_go_is_shut_out),
		TEST(line_that_no_peer_sends_ends_the_connection),
		TEST(scribbled_slots_do_no_harm),
	};

	alarm(600);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
