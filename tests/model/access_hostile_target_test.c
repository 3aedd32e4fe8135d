/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * One-sided requests that no peer of this version sends, one lie at a time, to their target: the
 * engine refuses each, the connection ends, and nothing outside of what was granted is touched.
 * What is merely not allowed (a key, a range, an access) is answered.
 */
#include <rdma/fi_atomic.h>
#include "access_victim.h"

/* A request in its turn. */
static struct packet a_request(enum packet_op op, uint32_t len)
{
	struct packet p = a_packet(op, len);

	p.data = KEY;
	return p;
}

static void expect_nak(uint64_t which, int err)
{
	struct packet p = heard(PACKET_NAK, NULL, 0);

	assert_int_equal(p.tag, which);
	assert_int_equal(p.data, err);
	assert_true(fake_raw_alive(liar));
}

/* A request with a list of targets: the bytes before it, the list, the bytes behind it. */
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

static void question_is_answered(void **state)
{
	struct packet p = a_request(PACKET_WRITE, 100), none;

	accepted(&p, bytes);
	go(2);
	assert_int_equal(fake_raw_read(liar, &none, NULL, 0), 0); /* no operation waits */
	p = a_packet(PACKET_CREDIT, 0);
	p.flags = PACKET_ACKED;
	accepted(&p, NULL);
	go(2);
	assert_int_equal(fake_raw_read(liar, &p, NULL, 0), 1);
	assert_int_equal(p.op, PACKET_ACK);
	assert_int_equal(p.data, lie.seq);
	/* without requests there is no ACK */
	p = a_packet(PACKET_CREDIT, 0);
	p.flags = PACKET_ACKED;
	accepted(&p, NULL);
	go(1000);
	assert_int_equal(fake_raw_read(liar, &none, NULL, 0), 0);
}

static void answer_and_acknowledgement_are_not_asked_for_at_once(void **state)
{
	struct packet_atomic fetch = {
		.id = FIRST_ID, .cnt = 1, .kind = 1, .datatype = FI_UINT64, .op = FI_SUM
	};
	struct packet p = a_request(PACKET_ATOMIC, sizeof(fetch) + 8);

	p.flags = PACKET_ACKED;
	memcpy(bytes, &fetch, sizeof(fetch));
	refused(&p, bytes, p.len);
}

static void range_that_is_not_granted_is_answered(void **state)
{
	static const uint64_t at[] = { REGION - 7,     REGION,	   REGION + 1,	     UINT64_MAX,
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

/* As of a write of some bytes, by its header and by a list, which remote CQ data have. */
static void write_of_no_bytes_needs_a_key_too(void **state)
{
	static const struct {
		struct packet_target at;
		int err;
	} wrong[] = {
		{ { 8, 0, 9 }, FI_EKEYREJECTED },	   { { 8, 0, 0 }, FI_EKEYREJECTED },
		{ { 0, 0, UINT64_MAX }, FI_EKEYREJECTED }, { { 8, 0, KEY_READ }, FI_EACCES },
		{ { REGION + 1, 0, KEY }, FI_EACCES },
	};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct packet_targets to = { 1, 0, { wrong[i].at } };
		struct packet_targets second = { 2, 0, { { 0, 0, KEY }, wrong[i].at } };
		struct packet p = a_request(PACKET_WRITE, 0);

		p.tag = wrong[i].at.addr;
		p.data = wrong[i].at.key;
		accepted(&p, NULL);
		expect_nak(p.seq, wrong[i].err);
		p = with_targets(PACKET_WRITE, NULL, 0, &to, 0);
		p.flags |= PACKET_CQ_DATA;
		accepted(&p, bytes);
		expect_nak(p.seq, wrong[i].err);
		p = with_targets(PACKET_WRITE, NULL, 0, &second, 0);
		accepted(&p, bytes);
		expect_nak(p.seq, wrong[i].err);
	}
}

static void write_where_only_reading_is_allowed_is_answered(void **state)
{
	struct packet_atomic sum = {
		.id = FIRST_ID, .cnt = 1, .kind = 1, .datatype = FI_UINT64, .op = FI_SUM
	};
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
		{ .cnt = 3,
		  .target = { { 0, 1ull << 63, KEY }, { 0, 1ull << 63, KEY }, { 0, 16, KEY } } },
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
	/* The wire has delivered only a part: requests have to be whole. */
	p = a_request(PACKET_WRITE, 100);
	refused(&p, bytes, 99);
}

static void flags_that_a_request_does_not_have_are_refused(void **state)
{
	struct packet_read read = { .id = FIRST_ID, .len = 8 };
	static const uint8_t flags[] = { PACKET_TAGGED, PACKET_PULL, PACKET_DELIVERY,
					 PACKET_ACKED, PACKET_CQ_DATA };

	for (size_t i = 0; i < sizeof(flags); i++) {
		struct packet p = a_request(PACKET_WRITE, 8);

		p.flags = flags[i];
		if (flags[i] != PACKET_ACKED)
			refused(&p, bytes, 8);
		p = a_request(PACKET_READ, sizeof(read));
		p.flags = flags[i];
		refused(&p, &read, sizeof(read));
	}
	for (uint32_t i = 1; i < PACKET_RX_MAX; i++) {
		struct packet p = a_request(PACKET_WRITE, 8);

		p.epoch |= (uint16_t)i; /* a receive context that is not there */
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
		{ .id = FIRST_ID,
		  .cnt = 1,
		  .datatype = FI_UINT64,
		  .op = FI_ATOMIC_READ,
		  .kind = 1 },
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
		odd = (struct packet_atomic){ .id = FIRST_ID,
					      .cnt = 1,
					      .kind = (uint8_t)(3 + i % 253),
					      .datatype = FI_UINT64,
					      .op = (uint8_t)i };
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
	p = a_request(PACKET_WRITE, ENGINE_REORDER_MAX + 1);
	p.seq++;
	refused(&p, bytes, p.len);
	p = a_request(PACKET_WRITE, ENGINE_REORDER_MAX);
	p.seq++;
	accepted(&p, bytes);
	refused(&p, bytes, p.len);
	p = a_request(PACKET_WRITE, 8);
	p.seq += 1u << 31;
	refused(&p, bytes, 8);
}

/* It was valid when it arrived, and is wrong in its turn. */
static void wrong_request_that_came_early_is_refused_in_its_turn(void **state)
{
	struct packet_read read = { .id = 1, .len = 8 };
	struct packet p = a_request(PACKET_READ, sizeof(read));

	p.seq++;
	accepted(&p, &read);
	p = a_request(PACKET_WRITE, 8);
	refused(&p, bytes, 8);
}

/*
 * Of requests whose answers find no room, only as many are accepted as a peer may have under way.
 */
static void bounded(uint64_t key)
{
	struct packet_read read = { .id = FIRST_ID, .len = REGION };
	struct fake_knobs k;
	int ret = 0, cnt;

	fake_knobs_default(&k);
	k.refuse = 256;
	fake_knobs_set(FAKE_B, &k);
	for (cnt = 0; !ret && cnt < 100000; cnt++) {
		struct packet p = a_request(PACKET_READ, sizeof(read));

		p.data = key;
		ret = say(&p, &read, sizeof(read));
	}
	assert_int_equal(ret, -FI_EINVAL);
	assert_in_range(cnt, ENGINE_REQUESTS_MAX, 3 * ENGINE_REQUESTS_MAX);
}

static void more_reads_than_anyone_has_under_way_are_refused(void **state)
{
	bounded(KEY);
}

static void more_refusals_than_anyone_has_to_hear_end_the_conn(void **state)
{
	bounded(4711);
}

/* So are large writes whose payload never comes: each holds its region, and memory. */
static void more_large_writes_than_anyone_has_under_way_are_refused(void **state)
{
	struct packet_rts rts = { .id = FIRST_ID, .len = REGION };
	struct packet_targets to = { 1, 0, { { 0, REGION, KEY } } };
	struct packet p;
	int ret = 0, cnt;

	for (cnt = 0; !ret && cnt < 100000; cnt++) {
		p = with_targets(PACKET_RTS, &rts, sizeof(rts), &to, 0);
		ret = say(&p, bytes, p.len);
		go(1);
		while (fake_raw_read(liar, &p, NULL, 0)) /* it is asked for each of them */
			;
	}
	assert_int_equal(ret, -FI_EINVAL);
	assert_in_range(cnt, ENGINE_REQUESTS_MAX, 3 * ENGINE_REQUESTS_MAX);
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

/* The wire is still writing into the region when the raw peer sends more. */
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

/* Writes that have credit */

static struct packet a_stream(uint32_t len)
{
	struct packet p = a_request(PACKET_WRITE, len);

	p.flags = PACKET_COUNTED;
	return p;
}

static void stream_goes_where_it_may_or_nowhere(void **state)
{
	struct packet p = a_stream(3000);

	assert_int_equal(fake_raw_send(liar, &p, NULL, 0, bytes), 0);
	lie.seq++;
	assert_memory_equal(region, bytes, 3000);
	assert_int_equal(heard(PACKET_ACK, NULL, 0).data, lie.seq);
	p = a_stream(3000);
	p.tag = REGION - 2999;
	assert_int_equal(fake_raw_send(liar, &p, NULL, 0, bytes), 0);
	lie.seq++;
	expect_nak(p.seq, FI_EACCES);
	p = a_stream(3000);
	p.data = KEY_READ;
	assert_int_equal(fake_raw_send(liar, &p, bytes, 17, bytes), 0);
	lie.seq++;
	expect_nak(p.seq, FI_EACCES);
	for (size_t i = 3000; i < REGION; i++)
		assert_int_equal(region[i], 'g');
}

/* Its payload has not arrived in its turn, and the packet after it has. */
static void stream_before_its_turn_is_carried_out_in_it(void **state)
{
	struct packet p = a_stream(3000);

	p.seq++;
	assert_int_equal(say(&p, bytes, 1000), 0);
	p = a_stream(2000);
	p.seq += 2;
	p.tag = 4000;
	assert_int_equal(say(&p, bytes, 2000), 0);
	assert_int_equal(region[0], 'g');
	assert_int_equal(region[4000], 'g');
	p = a_request(PACKET_WRITE, 8);
	p.tag = 8000;
	accepted(&p, bytes);
	assert_int_equal(region[0], 'g');
	assert_memory_equal(region + 4000, bytes, 2000);
	assert_int_equal(fake_raw_finish(liar), 1);
	assert_memory_equal(region, bytes, 1000);
	for (size_t i = 1000; i < 3000; i++)
		assert_int_equal(region[i], 0); /* what the wire has brought later */
	lie.seq += 2;
	assert_int_equal(heard(PACKET_ACK, NULL, 0).data, lie.seq);
}

static void stream_without_credit_or_with_anything_else_is_refused(void **state)
{
	static const enum packet_op ops[] = { PACKET_EAGER,  PACKET_RTS,      PACKET_READ,
					      PACKET_ATOMIC, PACKET_RESPONSE, PACKET_ACK };
	struct packet p = a_stream(reply.window + 1);

	refused(&p, bytes, 0);
	for (int i = 0; i < 8; i++) {
		p = a_stream(16);
		p.flags |= (uint8_t)(1u << i);
		if (p.flags & ~(PACKET_COUNTED | PACKET_ACKED))
			refused(&p, bytes, 16);
	}
	for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
		p = a_stream(24);
		p.op = (uint8_t)ops[i];
		refused(&p, bytes, 24);
	}
	p = a_request(PACKET_WRITE, 3000); /* not counted: it has to be whole */
	refused(&p, bytes, 1000);
	assert_int_equal(region[0], 'g');
}

static void waiting_wire(void)
{
	struct fake_knobs k;

	fake_knobs_default(&k);
	k.waits_min = 10000;
	fake_knobs_set(FAKE_B, &k);
}

/* Nothing of it is held, and nothing that arrived with it is counted, until then. */
static void write_without_credit_waits_on_the_wire_for_its_turn(void **state)
{
	struct packet p = a_request(PACKET_WRITE, 10000);

	waiting_wire();
	p.seq++;
	for (int i = 0; i < 3; i++) {
		assert_int_equal(say(&p, bytes, i * 5000), -FI_EAGAIN);
		assert_true(fake_raw_alive(liar));
	}
	assert_int_equal(fake_end_engine(&victim)->landing_pool.used, 0);
	p = a_request(PACKET_WRITE, 8);
	p.tag = 12000;
	accepted(&p, bytes);
	assert_int_equal(region[0], 'g');
	p = a_request(PACKET_WRITE, 10000);
	assert_int_equal(fake_raw_send(liar, &p, bytes, 1000, bytes + 1000), 0);
	lie.seq++;
	assert_memory_equal(region, bytes, 10000);
	while (heard(PACKET_ACK, NULL, 0).data != lie.seq)
		;
}

static void write_without_credit_before_its_turn_is_refused_where_nothing_waits(void **state)
{
	struct packet p = a_request(PACKET_WRITE, 10000);

	p.seq++;
	refused(&p, bytes, 1000);
	/* nor does one that has been */
	waiting_wire();
	p = a_request(PACKET_WRITE, 10000);
	p.seq--;
	refused(&p, bytes, 1000);
	/* nor one of another life, nor a smaller one, nor one that says more */
	p = a_request(PACKET_WRITE, 10000);
	p.seq++;
	p.epoch ^= 0x8000; /* the high half names the life */
	refused(&p, bytes, 1000);
	p = a_request(PACKET_WRITE, 9999);
	p.seq++;
	refused(&p, bytes, 1000);
	for (int i = 0; i < 8; i++) {
		p = a_request(PACKET_WRITE, 10000);
		p.flags = (uint8_t)(1u << i);
		if (p.flags & ~(PACKET_COUNTED | PACKET_ACKED))
			refused(&p, bytes, 1000);
	}
	assert_int_equal(region[0], 'g');
}

static void what_has_arrived_is_told_while_more_is_on_its_way(void **state)
{
	struct packet p = a_stream(3000), none;
	uint32_t first = lie.seq;
	struct fake_knobs k;

	assert_int_equal(fake_raw_send(liar, &p, NULL, 0, bytes), 0);
	p.seq = ++lie.seq;
	assert_int_equal(say(&p, NULL, 0), 0);
	p = a_request(PACKET_WRITE, 8);
	accepted(&p, bytes);
	fake_knobs_default(&k);
	k.move = 0;
	fake_knobs_set(FAKE_B, &k);
	assert_int_equal(heard(PACKET_ACK, NULL, 0).data, first + 1);
	go(10);
	assert_int_equal(fake_raw_read(liar, &none, NULL, 0), 0);
	assert_int_equal(fake_raw_finish(liar), 1);
	assert_int_equal(heard(PACKET_ACK, NULL, 0).data, first + 3);
}

/* What a peer may send is granted again as it is carried out. */
static void streams_give_their_credit_back(void **state)
{
	size_t all = 0;
	uint64_t granted = 0;

	while (all < 3 * (size_t)reply.window) {
		struct packet p = a_stream(200 + (uint32_t)all % 3000), answer;

		assert_true(p.len <= reply.window + granted * CREDIT_UNIT - all);
		p.tag = all % 2 ? 0 : REGION; /* every other one is not allowed */
		assert_int_equal(fake_raw_send(liar, &p, bytes, all % 3 ? p.len : 0, bytes), 0);
		lie.seq++;
		all += p.len;
		go(3);
		while (fake_raw_read(liar, &answer, NULL, 0))
			granted += answer.credits;
	}
}

/* Every refusal of one is an answer that waits. */
static void streams_that_are_refused_are_bounded_too(void **state)
{
	struct fake_knobs k;
	int ret = 0, cnt;

	fake_knobs_default(&k);
	k.refuse = 256;
	fake_knobs_set(FAKE_B, &k);
	for (cnt = 0; !ret && cnt < 100000; cnt++) {
		struct packet p = a_stream(1);

		p.data = 4711;
		ret = say(&p, bytes, 0);
	}
	assert_int_equal(ret, -FI_EINVAL);
	assert_in_range(cnt, ENGINE_REQUESTS_MAX, 3 * ENGINE_REQUESTS_MAX);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) \
	cmocka_unit_test_setup_teardown(name, access_victim_setup, access_victim_teardown)
		TEST(honest_requests_are_carried_out),
		TEST(question_is_answered),
		TEST(answer_and_acknowledgement_are_not_asked_for_at_once),
		TEST(range_that_is_not_granted_is_answered),
		TEST(length_beyond_all_memory_is_answered),
		TEST(key_that_was_not_given_is_answered),
		TEST(write_of_no_bytes_needs_a_key_too),
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
		TEST(more_refusals_than_anyone_has_to_hear_end_the_conn),
		TEST(more_large_writes_than_anyone_has_under_way_are_refused),
		TEST(payload_of_a_large_write_stays_inside),
		TEST(large_write_ends_when_all_its_pieces_are_there),
		TEST(stream_goes_where_it_may_or_nowhere),
		TEST(stream_before_its_turn_is_carried_out_in_it),
		TEST(stream_without_credit_or_with_anything_else_is_refused),
		TEST(write_without_credit_waits_on_the_wire_for_its_turn),
		TEST(write_without_credit_before_its_turn_is_refused_where_nothing_waits),
		TEST(what_has_arrived_is_told_while_more_is_on_its_way),
		TEST(streams_give_their_credit_back),
		TEST(streams_that_are_refused_are_bounded_too),
		TEST(large_write_is_not_received),
#undef TEST
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
