/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Packets of one-sided operations that no peer of this version sends, one lie at a time, to a
 * target and to an initiator: the engine refuses each, the connection ends, nothing outside of
 * what was granted is touched, and what was under way ends once. What is merely not allowed
 * (a key, a range, an access) is answered.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include "access.h"
#include "fake_ends.h"
#include <cmocka.h>

#define KEY	  7
#define KEY_READ  8 /* of the same memory: may be read only */
#define REGION	  16384
#define ALL_LEN	  (64u << 10)
#define FIRST_ID  (1ull << 32) /* of the first object of a pool */

static struct fake_end victim;
static struct fake_raw *liar;
static struct hello lie, reply;
static fi_addr_t to_liar;
static struct fi_context2 contexts[8];
static struct fi_cq_tagged_entry entry;
static struct fi_cq_err_entry error;
static struct fid_mr *mr, *read_only;
static char guarded[3 * REGION], *region = guarded + REGION;
static char out[ALL_LEN], bytes[ALL_LEN];

static const struct fake_end_attr plain = {
	.family = FAKE_FAMILY_B,
	.threading = FI_THREAD_DOMAIN,
	.format = FI_CQ_FORMAT_TAGGED,
	.budget = 64u << 10,
};

static void meet_liar(void)
{
	assert_int_equal(fake_raw_open(fake_end_engine(&victim), &lie, &liar, &reply), 0);
}

static int setup(void **state)
{
	uint64_t both = FI_REMOTE_READ | FI_REMOTE_WRITE;

	fake_ends_begin(1);
	memset(guarded, 'g', sizeof(guarded));
	memset(out, 'o', sizeof(out));
	memset(bytes, 'l', sizeof(bytes));
	fake_end_open(&victim, &plain, NULL);
	assert_int_equal(fi_mr_reg(victim.domain, region, REGION, both, 0, KEY, 0, &mr, NULL), 0);
	assert_int_equal(fi_mr_reg(victim.domain, region, REGION, FI_REMOTE_READ, 0, KEY_READ, 0,
				   &read_only, NULL),
			 0);
	lie = (struct hello){ .magic = HELLO_MAGIC,
			      .version = HELLO_VERSION,
			      .epoch = 0x1234567890,
			      .window = 20000,
			      .seq = 77,
			      .addr = victim.name };
	memset(lie.addr.nonce, 0x66, sizeof(lie.addr.nonce));
	lie.addr.port = 6666;
	to_liar = fake_end_insert(&victim, &lie.addr);
	meet_liar();
	return 0;
}

static void go(uint32_t rounds)
{
	while (rounds--)
		fake_end_progress(&victim);
}

static ssize_t next(struct fid_cq *cq)
{
	ssize_t ret = -FI_EAGAIN;

	for (int i = 0; i < 1000 && ret == -FI_EAGAIN; i++) {
		ret = fi_cq_read(cq, &entry, 1);
		go(1);
	}
	if (ret == -FI_EAVAIL) {
		error = (struct fi_cq_err_entry){ 0 };
		assert_int_equal(fi_cq_readerr(cq, &error, 0), 1);
	}
	return ret;
}

/* Whatever the liar did: nothing is kept of it, and nothing was written outside. */
static int teardown(void **state)
{
	struct engine_ep *ep = fake_end_engine(&victim);

	fake_raw_close(liar, -FI_ECONNRESET);
	go(10);
	while (next(victim.tx_cq) != -FI_EAGAIN)
		;
	assert_int_equal(ep->tx_pool.used, 0);
	assert_int_equal(ep->reply_pool.used, 0);
	assert_int_equal(ep->landing_pool.used, 0);
	assert_int_equal(ep->held_pool.used, 0);
	assert_int_equal(ep->ctl_pool.used, 0);
	assert_int_equal(ep->domain->rx_pool.used, 0);
	for (size_t i = 0; i < REGION; i++)
		assert_true(guarded[i] == 'g' && guarded[2 * REGION + i] == 'g');
	assert_int_equal(fi_close(&mr->fid), 0);
	assert_int_equal(fi_close(&read_only->fid), 0);
	fake_end_close(&victim);
	return 0;
}

static struct packet a_packet(enum packet_op op, uint32_t len)
{
	return (struct packet){ .op = (uint8_t)op,
				.epoch = (uint16_t)lie.epoch,
				.len = len,
				.seq = lie.seq };
}

/* A request in its turn. */
static struct packet a_request(enum packet_op op, uint32_t len)
{
	struct packet p = a_packet(op, len);

	p.data = KEY;
	return p;
}

static int say(const struct packet *p, const void *payload, size_t avail)
{
	int ret = fake_raw_send(liar, p, payload, avail, NULL);

	lie.seq += !ret && engine_is_request(p) && p->seq == lie.seq;
	return ret;
}

static void accepted(const struct packet *p, const void *payload)
{
	assert_int_equal(say(p, payload, p->len), 0);
	assert_true(fake_raw_alive(liar));
}

/* Refused; then the liar comes again. */
static void refused(const struct packet *p, const void *payload, size_t avail)
{
	assert_int_equal(say(p, payload, avail), -FI_EINVAL);
	assert_false(fake_raw_alive(liar));
	fake_raw_close(liar, 0);
	lie.life++;
	meet_liar();
}

/* The next packet that the victim says of that kind. */
static struct packet heard(enum packet_op op, void *payload, size_t len)
{
	struct packet p = { 0 };

	for (int i = 0; i < 1000 && PACKET_OP(p.op) != op; i++) {
		go(1);
		fake_raw_read(liar, &p, payload, len);
	}
	assert_int_equal(PACKET_OP(p.op), op);
	return p;
}

static void expect_nak(uint64_t which, int err)
{
	struct packet p = heard(PACKET_NAK, NULL, 0);

	assert_int_equal(p.tag, which);
	assert_int_equal(p.data, err);
	assert_true(fake_raw_alive(liar));
}

/* A request with a list of targets: what stands before, the list, what stands behind. */
static struct packet with_targets(enum packet_op op, const void *own, size_t own_len,
				  const struct packet_targets *targets, size_t carried)
{
	size_t list = packet_targets_len(targets->cnt <= PACKET_TARGET_MAX ? targets->cnt : 0);
	struct packet p = a_packet(op, (uint32_t)(own_len + list + carried));

	p.flags = PACKET_TARGETS;
	if (own_len)
		memcpy(bytes, own, own_len);
	memcpy(bytes + own_len, targets, list);
	return p;
}

/* Requests: at the target */

static void honest_requests_are_carried_out(void **state)
{
	struct packet_read read = { .id = FIRST_ID, .len = 100 };
	struct packet p = a_request(PACKET_WRITE, 100);

	accepted(&p, bytes);
	assert_memory_equal(region, bytes, 100);
	assert_int_equal(heard(PACKET_ACK, NULL, 0).data, lie.seq);
	p = a_request(PACKET_READ, sizeof(read));
	accepted(&p, &read);
	p = heard(PACKET_RESPONSE, out, 100);
	assert_int_equal(p.tag, FIRST_ID);
	assert_memory_equal(out, region, 100);
}

static void range_that_is_not_granted_is_answered(void **state)
{
	static const uint64_t at[] = { REGION - 7, REGION, REGION + 1, UINT64_MAX,
				       UINT64_MAX - 7, 1ull << 63, -(uint64_t)REGION };

	for (size_t i = 0; i < sizeof(at) / sizeof(at[0]); i++) {
		struct packet_read read = { .id = FIRST_ID, .len = 8 };
		struct packet_atomic sum = { .cnt = 1, .datatype = FI_UINT64, .op = FI_SUM };
		struct packet p = a_request(PACKET_WRITE, 8);

		p.tag = at[i];
		accepted(&p, bytes);
		expect_nak(p.seq, FI_EACCES);
		p = a_request(PACKET_READ, sizeof(read));
		p.tag = at[i];
		accepted(&p, &read);
		expect_nak(FIRST_ID, FI_EACCES);
		memcpy(bytes, &sum, sizeof(sum));
		p = a_request(PACKET_ATOMIC, sizeof(sum) + 8);
		p.tag = at[i];
		accepted(&p, bytes);
		expect_nak(p.seq, FI_EACCES);
	}
	for (size_t i = 0; i < REGION; i++)
		assert_int_equal(region[i], 'g');
}

static void length_beyond_all_memory_is_answered(void **state)
{
	static const uint64_t lens[] = { REGION + 1, UINT32_MAX, 1ull << 63, UINT64_MAX - 1 };

	for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		struct packet_read read = { .id = FIRST_ID, .len = lens[i] };
		struct packet_rts rts = { .id = FIRST_ID, .len = lens[i] };
		struct packet_targets to = { 1, 0, { { 8, lens[i], KEY } } };
		struct packet p = a_request(PACKET_READ, sizeof(read));

		accepted(&p, &read);
		expect_nak(FIRST_ID, FI_EACCES);
		p = with_targets(PACKET_RTS, &rts, sizeof(rts), &to, 0);
		accepted(&p, bytes);
		expect_nak(FIRST_ID, FI_EACCES);
	}
}

static void key_that_was_not_given_is_answered(void **state)
{
	static const uint64_t keys[] = { 0, 9, UINT64_MAX, 1ull << 32 | KEY, UINT32_MAX };

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		struct packet p = a_request(PACKET_WRITE, 8);

		p.data = keys[i];
		accepted(&p, bytes);
		expect_nak(p.seq, FI_EKEYREJECTED);
	}
}

static void write_where_only_reading_is_allowed_is_answered(void **state)
{
	struct packet_atomic sum = { .id = FIRST_ID, .cnt = 1, .kind = 1, .datatype = FI_UINT64,
				     .op = FI_SUM };
	struct packet_rts rts = { .id = FIRST_ID, .len = 8 };
	struct packet_targets to = { 1, 0, { { 0, 8, KEY_READ } } };
	struct packet p = a_request(PACKET_WRITE, 8);

	p.data = KEY_READ;
	accepted(&p, bytes);
	expect_nak(p.seq, FI_EACCES);
	memcpy(bytes, &sum, sizeof(sum));
	p = a_request(PACKET_ATOMIC, sizeof(sum) + 8);
	p.data = KEY_READ;
	accepted(&p, bytes);
	expect_nak(FIRST_ID, FI_EACCES);
	p = with_targets(PACKET_RTS, &rts, sizeof(rts), &to, 0);
	accepted(&p, bytes);
	expect_nak(FIRST_ID, FI_EACCES);
}

static void second_of_several_targets_is_checked_before_the_first_is_written(void **state)
{
	struct packet_targets to = { 2, 0, { { 0, 8, KEY }, { REGION - 4, 8, KEY } } };
	struct packet p = with_targets(PACKET_WRITE, NULL, 0, &to, 16);

	accepted(&p, bytes);
	expect_nak(p.seq, FI_EACCES);
	assert_int_equal(region[0], 'g');
}

static void lists_of_targets_that_are_none_are_refused(void **state)
{
	static const struct packet_targets lists[] = {
		{ .cnt = 0 },
		{ .cnt = PACKET_TARGET_MAX + 1 },
		{ .cnt = UINT32_MAX },
		{ .cnt = 1, .reserved = 1, .target = { { 0, 16, KEY } } },
		{ .cnt = 1, .target = { { 0, 15, KEY } } },
		{ .cnt = 1, .target = { { 0, 17, KEY } } },
		{ .cnt = 2, .target = { { 0, UINT64_MAX, KEY }, { 0, 17, KEY } } },
		{ .cnt = 3, .target = { { 0, 1ull << 63, KEY }, { 0, 1ull << 63, KEY }, { 0, 16, KEY } } },
	};

	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
		struct packet_read read = { .id = FIRST_ID, .len = 16 };
		struct packet_rts rts = { .id = FIRST_ID, .len = 16 };
		struct packet p;

		memset(bytes, 0, 256);
		p = with_targets(PACKET_WRITE, NULL, 0, &lists[i], 16);
		refused(&p, bytes, p.len);
		p = with_targets(PACKET_READ, &read, sizeof(read), &lists[i], 0);
		refused(&p, bytes, p.len);
		p = with_targets(PACKET_RTS, &rts, sizeof(rts), &lists[i], 0);
		refused(&p, bytes, p.len);
	}
	for (size_t i = 0; i < REGION; i++)
		assert_int_equal(region[i], 'g');
}

static void requests_that_are_cut_short_are_refused(void **state)
{
	struct packet_targets to = { 2, 0, { { 0, 8, KEY }, { 8, 8, KEY } } };
	struct packet_read read = { .id = FIRST_ID, .len = 16 };
	struct packet_rts rts = { .id = FIRST_ID, .len = 16 };
	struct packet p;

	for (uint32_t len = 0; len < sizeof(read) + packet_targets_len(2); len++) {
		if (len != sizeof(read)) {
			p = a_request(PACKET_READ, len);
			refused(&p, &read, len < sizeof(read) ? len : sizeof(read));
		}
		p = with_targets(PACKET_READ, &read, sizeof(read), &to, 0);
		p.len = len;
		refused(&p, bytes, len);
		p = with_targets(PACKET_RTS, &rts, sizeof(rts), &to, 0);
		p.len = len;
		refused(&p, bytes, len);
	}
	/* The wire has not brought all of it: a request comes whole. */
	p = a_request(PACKET_WRITE, 100);
	refused(&p, bytes, 99);
}

static void flags_that_a_request_does_not_have_are_refused(void **state)
{
	struct packet_read read = { .id = FIRST_ID, .len = 8 };
	static const uint8_t flags[] = { PACKET_TAGGED, PACKET_PULL, PACKET_DELIVERY, PACKET_ACKED,
					 PACKET_CQ_DATA };

	for (size_t i = 0; i < sizeof(flags); i++) {
		struct packet p = a_request(PACKET_WRITE, 8);

		p.flags = flags[i];
		refused(&p, bytes, 8);
		p = a_request(PACKET_READ, sizeof(read));
		p.flags = flags[i];
		refused(&p, &read, sizeof(read));
	}
	for (uint32_t i = 1; i < 16; i++) {
		struct packet p = a_request(PACKET_WRITE, 8);

		p.op |= (uint8_t)(i << 4); /* a receive context that is not there */
		refused(&p, bytes, 8);
	}
}

static void ids_that_nothing_can_have_are_refused(void **state)
{
	struct packet_read read = { .id = UINT32_MAX, .len = 8 };
	struct packet_rts rts = { .id = 1, .len = 8 };
	struct packet_targets to = { 1, 0, { { 0, 8, KEY } } };
	struct packet_atomic fetch = { .id = 5, .cnt = 1, .kind = 1, .datatype = FI_UINT64 };
	struct packet p = a_request(PACKET_READ, sizeof(read));

	refused(&p, &read, sizeof(read));
	p = with_targets(PACKET_RTS, &rts, sizeof(rts), &to, 0);
	refused(&p, bytes, p.len);
	memcpy(bytes, &fetch, sizeof(fetch));
	p = a_request(PACKET_ATOMIC, sizeof(fetch) + 8);
	refused(&p, bytes, p.len);
}

static void large_write_of_nothing_is_refused(void **state)
{
	struct packet_rts rts = { .id = FIRST_ID };
	struct packet_targets to = { 1, 0, { { 0, 0, KEY } } };
	struct packet p = with_targets(PACKET_RTS, &rts, sizeof(rts), &to, 0);

	refused(&p, bytes, p.len);
}

static void atomics_that_do_not_agree_are_refused(void **state)
{
	static const struct packet_atomic wrong[] = {
		{ .cnt = 0, .datatype = FI_UINT64, .op = FI_SUM },
		{ .cnt = 2, .datatype = FI_UINT64, .op = FI_SUM },
		{ .cnt = UINT32_MAX, .datatype = FI_UINT64, .op = FI_SUM },
		{ .cnt = 0x20000001, .datatype = FI_UINT64, .op = FI_SUM },
		{ .cnt = 1, .datatype = FI_UINT32, .op = FI_SUM },
		{ .cnt = 1, .datatype = FI_UINT64, .op = FI_SUM, .reserved = 1 },
		{ .cnt = 1, .datatype = FI_UINT64, .op = FI_SUM, .kind = 1 },
		{ .id = FIRST_ID, .cnt = 1, .datatype = FI_UINT64, .op = FI_SUM, .kind = 0 },
		{ .id = FIRST_ID, .cnt = 1, .datatype = FI_UINT64, .op = FI_CSWAP, .kind = 2 },
		{ .id = FIRST_ID, .cnt = 1, .datatype = FI_UINT64, .op = FI_ATOMIC_READ, .kind = 1 },
		{ .cnt = ENGINE_ATOMIC_MAX / 8 + 1, .datatype = FI_UINT64, .op = FI_SUM },
	};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct packet p = a_request(PACKET_ATOMIC, sizeof(wrong[i]) + 8);

		memcpy(bytes, &wrong[i], sizeof(wrong[i]));
		refused(&p, bytes, p.len);
	}
	for (size_t i = 0; i < REGION; i++)
		assert_int_equal(region[i], 'g');
}

static void atomics_that_there_are_not_are_answered(void **state)
{
	for (uint32_t i = 0; i < 256; i++) {
		struct packet_atomic odd = { .cnt = 1, .datatype = (uint8_t)i, .op = 255 };
		struct packet p = a_request(PACKET_ATOMIC, sizeof(odd) + 8);

		memcpy(bytes, &odd, sizeof(odd));
		accepted(&p, bytes);
		expect_nak(p.seq, FI_EOPNOTSUPP);
		odd = (struct packet_atomic){ .id = FIRST_ID, .cnt = 1, .kind = (uint8_t)(3 + i % 253),
					      .datatype = FI_UINT64, .op = (uint8_t)i };
		memcpy(bytes, &odd, sizeof(odd));
		p = a_request(PACKET_ATOMIC, sizeof(odd) + 8);
		accepted(&p, bytes);
		expect_nak(FIRST_ID, FI_EOPNOTSUPP);
	}
}

static void atomic_between_elements_is_answered(void **state)
{
	struct packet_atomic sum = { .cnt = 1, .datatype = FI_UINT64, .op = FI_SUM };
	struct packet_targets to = { 2, 0, { { 0, 4, KEY }, { 8, 4, KEY } } };
	struct packet p = a_request(PACKET_ATOMIC, sizeof(sum) + 8);

	memcpy(bytes, &sum, sizeof(sum));
	p.tag = 4;
	accepted(&p, bytes);
	expect_nak(p.seq, FI_EINVAL);
	p = with_targets(PACKET_ATOMIC, &sum, sizeof(sum), &to, 8);
	accepted(&p, bytes);
	expect_nak(p.seq, FI_EINVAL);
	assert_int_equal(region[4], 'g');
}

static void requests_of_the_past_and_large_ones_of_the_future_are_refused(void **state)
{
	struct packet p = a_request(PACKET_WRITE, 8);

	accepted(&p, bytes);
	refused(&p, bytes, 8);
	p = a_request(PACKET_WRITE, ENGINE_EARLY_MAX + 1);
	p.seq++;
	refused(&p, bytes, p.len);
	p = a_request(PACKET_WRITE, ENGINE_EARLY_MAX);
	p.seq++;
	accepted(&p, bytes);
	refused(&p, bytes, p.len);
	p = a_request(PACKET_WRITE, 8);
	p.seq += 1u << 31;
	refused(&p, bytes, 8);
}

/* It was whole when it came, and is wrong when it has its turn. */
static void wrong_request_that_came_early_is_refused_in_its_turn(void **state)
{
	struct packet_read read = { .id = 1, .len = 8 };
	struct packet p = a_request(PACKET_READ, sizeof(read));

	p.seq++;
	accepted(&p, &read);
	p = a_request(PACKET_WRITE, 8);
	refused(&p, bytes, 8);
}

static void more_reads_than_anyone_has_under_way_are_refused(void **state)
{
	struct packet_read read = { .id = FIRST_ID, .len = REGION };
	struct fake_knobs k;
	int ret = 0, cnt;

	fake_knobs_default(&k);
	k.refuse = 256;
	fake_knobs_set(FAKE_B, &k);
	for (cnt = 0; !ret && cnt < 100000; cnt++) {
		struct packet p = a_request(PACKET_READ, sizeof(read));

		ret = say(&p, &read, sizeof(read));
	}
	assert_int_equal(ret, -FI_EINVAL);
	assert_in_range(cnt, ENGINE_TX_SIZE, 3 * ENGINE_TX_SIZE);
}

/* Payload of a large write */

static uint64_t begin_large_write(size_t len)
{
	struct packet_rts rts = { .id = FIRST_ID, .len = len };
	struct packet_targets to = { 1, 0, { { 0, len, KEY } } };
	struct packet p = with_targets(PACKET_RTS, &rts, sizeof(rts), &to, 0);

	accepted(&p, bytes);
	p = heard(PACKET_CTS, NULL, 0);
	assert_int_equal(p.tag, FIRST_ID);
	return p.data;
}

static struct packet data_at(uint64_t id, uint64_t at, uint32_t len)
{
	struct packet p = a_packet(PACKET_DATA, len);

	p.tag = id;
	p.data = at;
	return p;
}

static void payload_of_a_large_write_stays_inside(void **state)
{
	struct packet p = data_at(begin_large_write(REGION), 0, REGION + 1);

	refused(&p, bytes, 100);
	p = data_at(begin_large_write(REGION), 1, REGION);
	refused(&p, bytes, 100);
	p = data_at(begin_large_write(REGION), UINT64_MAX, 1);
	refused(&p, bytes, 1);
	p = data_at(begin_large_write(REGION), 0, 0);
	refused(&p, bytes, 0);
	p = data_at(begin_large_write(1000), 0, 1000);
	accepted(&p, bytes);
	assert_int_equal(heard(PACKET_FIN, NULL, 0).tag, FIRST_ID);
	refused(&p, bytes, 1000); /* it has ended */
	for (size_t i = 1000; i < REGION; i++)
		assert_int_equal(region[i], 'g');
}

/* The wire is still writing into the region when the liar goes on. */
static void large_write_ends_when_all_its_pieces_are_there(void **state)
{
	uint64_t id = begin_large_write(3000);
	struct packet p = data_at(id, 0, 2000);

	assert_int_equal(say(&p, bytes, 10), 0);
	p = data_at(id, 2000, 1000);
	accepted(&p, bytes);
	assert_int_equal(fake_end_engine(&victim)->landing_pool.used, 1);
	p = data_at(id, 3000, 1);
	assert_int_equal(say(&p, bytes, 1), -FI_EINVAL);
	assert_int_equal(fake_end_engine(&victim)->landing_pool.used, 0);
	assert_int_equal(fake_raw_finish(liar), 0);
}

static void large_write_is_not_received(void **state)
{
	struct packet_rts rts = { .id = FIRST_ID, .len = 3000 };
	struct packet_targets to = { 1, 0, { { 0, 3000, KEY } } };
	struct packet p;

	assert_int_equal(fi_recv(victim.ep, out, 100, NULL, FI_ADDR_UNSPEC, &contexts[0]), 0);
	p = with_targets(PACKET_RTS, &rts, sizeof(rts), &to, 0);
	accepted(&p, bytes);
	p = data_at(FIRST_ID, 0, 100); /* the receive, or the write itself */
	p.tag = heard(PACKET_CTS, NULL, 0).data ^ 1;
	refused(&p, bytes, 100);
	assert_int_equal(fi_cancel(&victim.ep->fid, &contexts[0]), 0);
	assert_int_equal(next(victim.rx_cq), -FI_EAVAIL);
}

/* Answers: at the initiator */

static uint64_t learn_read(size_t len)
{
	struct packet_read read;

	assert_int_equal(fi_read(victim.ep, out, len, NULL, to_liar, 0, KEY, &contexts[0]), 0);
	heard(PACKET_READ, &read, sizeof(read));
	assert_int_equal(read.len, len);
	return read.id;
}

static uint32_t learn_write(size_t len)
{
	assert_int_equal(fi_write(victim.ep, out, len, NULL, to_liar, 0, KEY, &contexts[0]), 0);
	return heard(PACKET_WRITE, NULL, 0).seq;
}

static uint64_t learn_large_write(void)
{
	struct packet_rts rts;

	assert_int_equal(fi_write(victim.ep, out, sizeof(out), NULL, to_liar, 0, KEY, &contexts[0]),
			 0);
	heard(PACKET_RTS, &rts, sizeof(rts));
	return rts.id;
}

static uint64_t learn_fetch(void)
{
	uint64_t *words = (uint64_t *)(void *)out;
	struct packet_atomic atomic;

	assert_int_equal(fi_fetch_atomic(victim.ep, words, 2, NULL, words + 2, NULL, to_liar, 0, KEY,
					 FI_UINT64, FI_SUM, &contexts[0]),
			 0);
	heard(PACKET_ATOMIC, &atomic, sizeof(atomic));
	return atomic.id;
}

static struct packet response(uint64_t id, uint64_t at, uint32_t len)
{
	struct packet p = a_packet(PACKET_RESPONSE, len);

	p.tag = id;
	p.data = at;
	return p;
}

static struct packet ack(uint64_t seq)
{
	struct packet p = a_packet(PACKET_ACK, 0);

	p.data = seq;
	return p;
}

static struct packet nak(uint64_t which, uint64_t err)
{
	struct packet p = a_packet(PACKET_NAK, 0);

	p.tag = which;
	p.data = err;
	return p;
}

/* The lie is refused, and the operation has failed with the connection. */
static void ends_it(const struct packet *p, size_t avail)
{
	refused(p, bytes, avail);
	assert_int_equal(next(victim.tx_cq), -FI_EAVAIL);
	assert_ptr_equal(error.op_context, &contexts[0]);
	assert_int_equal(error.err, FI_EINVAL);
	assert_int_equal(error.src_addr, to_liar);
}

static void responses_that_do_not_fit_are_refused(void **state)
{
	struct packet p = response(learn_read(1000), 0, 1001);

	ends_it(&p, 100);
	p = response(learn_read(1000), 1, 999);
	ends_it(&p, 999);
	p = response(learn_read(1000), UINT64_MAX, 1);
	ends_it(&p, 1);
	p = response(learn_read(1000), 0, UINT32_MAX);
	ends_it(&p, 100);
	p = response(learn_read(1000), 0, 0);
	ends_it(&p, 0);
	p = response(learn_fetch(), 0, 17);
	ends_it(&p, 17);
	p = response(learn_read(0), 0, 1);
	ends_it(&p, 1);
	for (size_t i = 0; i < sizeof(out); i++)
		assert_int_equal(out[i], 'o');
}

static void responses_to_what_is_no_read_are_refused(void **state)
{
	struct packet p;

	learn_write(100);
	p = response(FIRST_ID, 0, 100);
	ends_it(&p, 100);
	p = response(learn_large_write(), 0, 100);
	ends_it(&p, 100);
	p = response(UINT64_MAX, 0, 100);
	refused(&p, bytes, 100);
	p = response(0, 0, 0);
	refused(&p, bytes, 0);
}

static void second_response_is_refused(void **state)
{
	struct packet p = response(learn_read(100), 0, 100);

	accepted(&p, bytes);
	assert_int_equal(next(victim.tx_cq), 1);
	memset(out, 'o', sizeof(out));
	refused(&p, bytes, 100);
	assert_int_equal(out[0], 'o');
}

/* The wire still writes into the program's buffer. */
static void answers_during_a_response_are_refused(void **state)
{
	uint64_t id = learn_read(1000);
	struct packet p = response(id, 0, 500);

	assert_int_equal(say(&p, bytes, 10), 0);
	p = nak(id, FI_EACCES);
	ends_it(&p, 0);
	id = learn_read(1000);
	p = response(id, 0, 500);
	assert_int_equal(say(&p, bytes, 10), 0);
	ends_it(&p, 500);
	id = learn_read(1000);
	p = response(id, 0, 1000);
	assert_int_equal(say(&p, bytes, 10), 0);
	p = response(id, 1000, 1);
	ends_it(&p, 1);
	id = learn_read(1000);
	p = response(id, 0, 1000);
	assert_int_equal(say(&p, bytes, 10), 0);
	p = response(id, 1000, 0);
	ends_it(&p, 0);
	for (size_t i = 0; i < sizeof(out); i++)
		assert_int_equal(out[i], 'o');
}

static void pieces_of_a_response_may_overlap_in_time(void **state)
{
	uint64_t id = learn_read(1000);
	struct packet p = response(id, 0, 500);

	assert_int_equal(say(&p, bytes, 10), 0);
	p = response(id, 500, 500);
	accepted(&p, bytes);
	assert_int_equal(fi_cq_read(victim.tx_cq, &entry, 1), -FI_EAGAIN);
	assert_int_equal(fake_raw_finish(liar), 1);
	assert_int_equal(next(victim.tx_cq), 1);
	assert_int_equal(out[9], 'l');
	assert_int_equal(out[999], 'l');
	assert_int_equal(out[1000], 'o');
}

static void acknowledgements_of_what_was_not_sent_are_refused(void **state)
{
	uint32_t seq = learn_write(8);
	struct packet p = ack(seq + 2);

	ends_it(&p, 0);
	seq = learn_write(8);
	p = ack(1ull << 32 | (seq + 1));
	ends_it(&p, 0);
	learn_write(8);
	p = ack(seq + 2);
	p.len = 8;
	ends_it(&p, 8);
	seq = learn_write(8);
	p = ack((uint32_t)(seq - 1)); /* an old one says nothing */
	accepted(&p, NULL);
	p = ack(seq + 1);
	accepted(&p, NULL);
	assert_int_equal(next(victim.tx_cq), 1);
	accepted(&p, NULL); /* and once more says nothing */
	p = ack(seq + 2);
	refused(&p, NULL, 0);
}

static void refusals_of_what_was_not_asked_are_refused(void **state)
{
	uint32_t seq = learn_write(8);
	struct packet p = nak(seq + 1, FI_EACCES);

	ends_it(&p, 0);
	p = nak(learn_write(8), 0);
	ends_it(&p, 0);
	p = nak(learn_write(8), FI_ECANCELED);
	ends_it(&p, 0);
	p = nak(learn_write(8), UINT64_MAX);
	ends_it(&p, 0);
	p = nak(learn_write(8), FI_EACCES);
	p.len = 1;
	ends_it(&p, 1);
	learn_write(8);
	p = nak(FIRST_ID, FI_EACCES); /* it has no name */
	ends_it(&p, 0);
	p = nak(0, FI_EACCES);
	refused(&p, NULL, 0);
}

static void second_refusal_is_refused(void **state)
{
	struct packet p = nak(learn_write(8), FI_EACCES);

	accepted(&p, NULL);
	assert_int_equal(fi_cq_read(victim.tx_cq, &entry, 1), -FI_EAGAIN);
	refused(&p, NULL, 0);
	assert_int_equal(next(victim.tx_cq), -FI_EAVAIL);
	p = nak(learn_read(8), FI_EKEYREJECTED);
	accepted(&p, NULL);
	assert_int_equal(next(victim.tx_cq), -FI_EAVAIL);
	assert_int_equal(error.err, FI_EKEYREJECTED);
	refused(&p, NULL, 0);
}

/* Over two routes a refusal may come after the word that everything is done. */
static void refusal_that_comes_after_its_acknowledgement_counts(void **state)
{
	uint32_t seq = learn_write(8);
	struct packet p = ack(seq + 1);

	p.tag = 1;
	accepted(&p, NULL);
	assert_int_equal(next(victim.tx_cq), -FI_EAGAIN);
	p = nak(seq, FI_EACCES);
	accepted(&p, NULL);
	assert_int_equal(next(victim.tx_cq), -FI_EAVAIL);
	assert_int_equal(error.err, FI_EACCES);
}

/* Messages end with ACK too, and nobody refuses one. */
static void refusal_of_a_message_is_refused(void **state)
{
	struct iovec iov = { out, 8 };
	struct fi_msg_tagged msg = { .msg_iov = &iov, .iov_count = 1, .addr = to_liar,
				     .context = &contexts[0] };
	struct packet_rts rts;
	struct packet p;

	assert_int_equal(fi_tsendmsg(victim.ep, &msg, FI_COMPLETION | FI_TRANSMIT_COMPLETE), 0);
	p = nak(heard(PACKET_EAGER, NULL, 0).seq, FI_EACCES);
	ends_it(&p, 0);
	iov.iov_len = sizeof(out);
	assert_int_equal(fi_tsendmsg(victim.ep, &msg, FI_COMPLETION), 0);
	heard(PACKET_RTS, &rts, sizeof(rts));
	p = nak(rts.id, FI_EACCES);
	ends_it(&p, 0);
}

static void refusal_after_the_payload_was_asked_for_is_refused(void **state)
{
	struct packet_cts cts = { .len = sizeof(out) };
	uint64_t id = learn_large_write();
	struct packet p = a_packet(PACKET_CTS, sizeof(cts));

	p.tag = id;
	p.data = FIRST_ID;
	accepted(&p, &cts);
	p = nak(id, FI_EACCES);
	ends_it(&p, 0);
}

static void large_write_ends_once(void **state)
{
	struct packet_cts cts = { .len = sizeof(out) };
	uint64_t id = learn_large_write();
	struct packet p = a_packet(PACKET_CTS, sizeof(cts));

	p.tag = id;
	p.data = FIRST_ID;
	accepted(&p, &cts);
	/* The wire has its payload still: the end waits for that, and comes once. */
	p = a_packet(PACKET_FIN, 0);
	p.tag = id;
	accepted(&p, NULL);
	refused(&p, NULL, 0);
	assert_int_equal(next(victim.tx_cq), -FI_EAVAIL);
}

static uint32_t send_delivery(size_t len, void *context)
{
	struct iovec iov = { out, len };
	struct fi_msg_tagged msg = { .msg_iov = &iov, .iov_count = 1, .addr = to_liar,
				     .context = context };

	assert_int_equal(fi_tsendmsg(victim.ep, &msg, FI_COMPLETION | FI_DELIVERY_COMPLETE), 0);
	return heard(len > 8192 ? PACKET_RTS : PACKET_EAGER, bytes, sizeof(struct packet_rts)).seq;
}

static void delivery_that_is_told_twice_is_refused(void **state)
{
	struct packet p = a_packet(PACKET_FIN, 0);
	struct fake_knobs k;

	p.tag = send_delivery(8, &contexts[0]);
	accepted(&p, NULL);
	assert_int_equal(next(victim.tx_cq), 1);
	refused(&p, NULL, 0);
	fake_knobs_default(&k);
	k.move = 0; /* the wire does not say that it has sent it */
	fake_knobs_set(FAKE_B, &k);
	p.tag = send_delivery(5000, &contexts[0]);
	accepted(&p, NULL);
	refused(&p, NULL, 0);
	assert_int_equal(next(victim.tx_cq), -FI_EAVAIL);
	p.tag = 1;
	refused(&p, NULL, 0);
}

/* What an operation was called in an earlier life must not lead to the one in its place. */
static void delivered_message_is_not_taken_for_a_large_one(void **state)
{
	struct engine_ep *ep = fake_end_engine(&victim);
	struct packet p = a_packet(PACKET_CTS, sizeof(struct packet_cts));
	struct packet_cts cts = { .len = 20000 };
	struct packet_rts rts;
	struct engine_tx *tx = pool_get(&ep->tx_pool);
	uint32_t seq;

	assert_non_null(tx);
	seq = (uint32_t)fake_end_peer(&victim, &lie.addr)->tx_seq + 1;
	tx->seq = seq;
	pool_put(&ep->tx_pool, tx);
	send_delivery(20000, &contexts[0]);
	memcpy(&rts, bytes, sizeof(rts));
	p.tag = rts.id;
	p.data = FIRST_ID;
	accepted(&p, &cts);
	heard(PACKET_DATA, NULL, 0);
	go(10);
	assert_int_equal(send_delivery(8, &contexts[1]), seq);
	p = a_packet(PACKET_FIN, 0);
	p.tag = seq;
	accepted(&p, NULL);
	assert_int_equal(next(victim.tx_cq), 1);
	assert_ptr_equal(entry.op_context, &contexts[1]);
	p.tag = rts.id;
	accepted(&p, NULL);
	assert_int_equal(next(victim.tx_cq), 1);
	assert_ptr_equal(entry.op_context, &contexts[0]);
}

/* A sender that comes again has been told that what it had sent failed. */
static void delivery_of_an_earlier_connection_is_not_told_to_a_later_one(void **state)
{
	struct packet p = a_packet(PACKET_EAGER, 8);

	p.flags = PACKET_TAGGED | PACKET_DELIVERY;
	lie.seq++;
	accepted(&p, bytes);
	p = a_packet(PACKET_EAGER, 8);
	p.flags = PACKET_TAGGED | PACKET_DELIVERY;
	lie.seq++;
	accepted(&p, bytes);
	fake_raw_close(liar, -FI_ECONNRESET);
	lie.life++;
	meet_liar();
	assert_int_equal(fi_trecv(victim.ep, out, 100, NULL, FI_ADDR_UNSPEC, 0, 0, &contexts[0]), 0);
	assert_int_equal(next(victim.rx_cq), 1);
	go(10);
	while (fake_raw_read(liar, &p, NULL, 0))
		assert_int_not_equal(PACKET_OP(p.op), PACKET_FIN);
	assert_int_equal(fi_trecv(victim.ep, out, 100, NULL, FI_ADDR_UNSPEC, 0, 0, &contexts[0]), 0);
	assert_int_equal(next(victim.rx_cq), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		TEST(honest_requests_are_carried_out),
		TEST(range_that_is_not_granted_is_answered),
		TEST(length_beyond_all_memory_is_answered),
		TEST(key_that_was_not_given_is_answered),
		TEST(write_where_only_reading_is_allowed_is_answered),
		TEST(second_of_several_targets_is_checked_before_the_first_is_written),
		TEST(lists_of_targets_that_are_none_are_refused),
		TEST(requests_that_are_cut_short_are_refused),
		TEST(flags_that_a_request_does_not_have_are_refused),
		TEST(ids_that_nothing_can_have_are_refused),
		TEST(large_write_of_nothing_is_refused),
		TEST(atomics_that_do_not_agree_are_refused),
		TEST(atomics_that_there_are_not_are_answered),
		TEST(atomic_between_elements_is_answered),
		TEST(requests_of_the_past_and_large_ones_of_the_future_are_refused),
		TEST(wrong_request_that_came_early_is_refused_in_its_turn),
		TEST(more_reads_than_anyone_has_under_way_are_refused),
		TEST(payload_of_a_large_write_stays_inside),
		TEST(large_write_ends_when_all_its_pieces_are_there),
		TEST(large_write_is_not_received),
		TEST(responses_that_do_not_fit_are_refused),
		TEST(responses_to_what_is_no_read_are_refused),
		TEST(second_response_is_refused),
		TEST(answers_during_a_response_are_refused),
		TEST(pieces_of_a_response_may_overlap_in_time),
		TEST(acknowledgements_of_what_was_not_sent_are_refused),
		TEST(refusals_of_what_was_not_asked_are_refused),
		TEST(second_refusal_is_refused),
		TEST(refusal_that_comes_after_its_acknowledgement_counts),
		TEST(refusal_of_a_message_is_refused),
		TEST(refusal_after_the_payload_was_asked_for_is_refused),
		TEST(large_write_ends_once),
		TEST(delivery_that_is_told_twice_is_refused),
		TEST(delivered_message_is_not_taken_for_a_large_one),
		TEST(delivery_of_an_earlier_connection_is_not_told_to_a_later_one),
#undef TEST
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
