/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * One-sided operations over a real provider among themselves and with messages: their order, the
 * levels at which messages complete, and all kinds at once.
 *
 * usage: access_order_test PROVIDER
 */
#include <rdma/fi_atomic.h>
#include "access_area.h"

#define STORM_OPS 4000

/* Order: each write before the message behind it, each read between the writes around it. */

static void orderly(struct pair_side *s)
{
	static const size_t lens[] = { 8, 200, 3000 }, msgs[] = { 0, 8, 20000, 60000, 200000 };
	struct area a;

	area_open(s, &a);
	for (int i = 0; i < 300; i++) {
		size_t len = lens[i % 3];

		memset(a.buf, i, len);
		POST(s, fi_write(s->rma, a.buf, len, NULL, s->peer, 0, KEY, &contexts[0]));
		POST(s, fi_read(s->ep, a.copy, len, NULL, s->peer, 0, KEY, &contexts[1]));
		memset(a.buf + 4096, i + 1, len);
		POST(s,
		     fi_write(s->rma, a.buf + 4096, len, NULL, s->peer, 0, KEY, &contexts[2]));
		POST(s, fi_tsend(s->ep, a.buf + 8192, msgs[i % 5], NULL, s->peer, 1,
				 &contexts[3]));
		for (int k = 0; k < 4; k++)
			PAIR_CHECK(s, pair_next(s) == 1);
		for (size_t k = 0; k < len; k++)
			PAIR_CHECK(s, a.copy[k] == (uint8_t)i);
		pair_hear(s, 'n', true);
	}
	area_close(s, &a);
}

static void ordered(struct pair_side *s)
{
	static const size_t lens[] = { 8, 200, 3000 };
	struct area a;

	area_open(s, &a);
	for (int i = 0; i < 300; i++) {
		POST(s, fi_trecv(s->ep, a.buf, REGION, NULL, s->peer, 1, 0, &contexts[0]));
		pair_done(s, &contexts[0]);
		for (size_t k = 0; k < lens[i % 3]; k++)
			PAIR_CHECK(s, a.region[k] == (uint8_t)(i + 1));
		pair_say(s, 'n');
	}
	area_close(s, &a);
}

/* Messages fill the wire, so that some wait for room in it; requests follow at once. */

static void crowding(struct pair_side *s)
{
	enum { MSGS = 6, LEN = 60000, WORDS = 40 };
	struct area a;

	area_open(s, &a);
	fill(a.buf, 1000, 4);
	for (int i = 0; i < MSGS; i++)
		PAIR_CHECK(s, !fi_tsend(s->ep, a.buf, LEN, NULL, s->peer, 1, &contexts[0]));
	PAIR_CHECK(s, !fi_write(s->rma, a.buf, 1000, NULL, s->peer, 0, KEY, &contexts[1]));
	PAIR_CHECK(s, !fi_atomic(s->rma, a.buf, WORDS, NULL, s->peer, 1000, KEY, FI_UINT64,
				 FI_SUM, &contexts[2]));
	for (int i = 0; i < MSGS + 2; i++)
		PAIR_CHECK(s, pair_next(s) == 1);
	read_back(s, &a, 0, 1000);
	read_back(s, &a, 1000, 8 * WORDS);
	area_close(s, &a);
}

/* Completion levels, and a fence. */

static void waits_for_a_receive(struct pair_side *s)
{
	static const size_t lens[] = { 8, 10000, 50000, 1u << 20 };
	struct area a;

	area_open(s, &a);
	for (size_t i = 0; i < 4; i++) {
		struct iovec iov = { a.buf, lens[i] };
		struct fi_msg_tagged msg = { .msg_iov = &iov,
					     .iov_count = 1,
					     .addr = s->peer,
					     .tag = 5,
					     .context = &contexts[i] };

		POST(s, fi_tsendmsg(s->ep, &msg, FI_COMPLETION | FI_MATCH_COMPLETE));
		PAIR_CHECK(s, pair_none(s));
		pair_say(s, 'g');
		pair_done(s, &contexts[i]);
		POST(s, fi_tsendmsg(s->ep, &msg, FI_COMPLETION | FI_TRANSMIT_COMPLETE));
		pair_hear(s, 'h', true);
		pair_done(s, &contexts[i]);
		POST(s, fi_tsendmsg(s->ep, &msg, FI_COMPLETION | FI_FENCE));
		pair_done(s, &contexts[i]);
	}
	area_close(s, &a);
}

/* What the peer has whole is delivered. Source: fi_cq(3), FI_DELIVERY_COMPLETE. */
static const size_t delivered_lens[] = { 8, 1000, 10000, 50000 };

static void is_told_of_delivery(struct pair_side *s)
{
	struct area a;

	area_open(s, &a);
	for (size_t i = 0; i < 4; i++) {
		struct iovec iov = { a.buf, delivered_lens[i] };
		struct fi_msg_tagged msg = { .msg_iov = &iov,
					     .iov_count = 1,
					     .addr = s->peer,
					     .tag = 5,
					     .context = &contexts[i] };

		fill(a.buf, delivered_lens[i], i);
		POST(s, fi_tsendmsg(s->ep, &msg, FI_COMPLETION | FI_DELIVERY_COMPLETE));
		pair_done(s, &contexts[i]);
	}
	pair_say(s, 'g');
	PAIR_CHECK(s, pair_none(s));
	pair_hear(s, 'h', true);
	area_close(s, &a);
}

static void receives_late(struct pair_side *s)
{
	struct area a;

	area_open(s, &a);
	pair_hear(s, 'g', true);
	for (size_t i = 0; i < 4; i++) {
		POST(s, fi_trecv(s->ep, a.buf, REGION, NULL, s->peer, 5, 0, &contexts[0]));
		pair_done(s, &contexts[0]);
		fill(a.copy, delivered_lens[i], i);
		PAIR_CHECK(s, !memcmp(a.buf, a.copy, delivered_lens[i]));
	}
	pair_say(s, 'h');
	area_close(s, &a);
}

static void receives_each(struct pair_side *s)
{
	struct area a;

	area_open(s, &a);
	for (size_t i = 0; i < 4; i++) {
		pair_hear(s, 'g', true);
		for (int k = 0; k < 3; k++) {
			POST(s,
			     fi_trecv(s->ep, a.buf, REGION, NULL, s->peer, 5, 0, &contexts[0]));
			pair_done(s, &contexts[0]);
			if (k == 1)
				pair_say(s, 'h');
		}
	}
	area_close(s, &a);
}

/* Both at once, all kinds, against a copy that is kept here. */

struct storm {
	uint8_t *mine; /* what the other's region has to be */
	uint64_t seed;
	size_t under_way;
	uint64_t sent, received, expected; /* messages; expected: from the other side */
	bool told;
};

static void storm_one(struct pair_side *s, struct area *a, struct storm *st)
{
	size_t len = sizes[next_random(&st->seed) % 12],
	       at = next_random(&st->seed) % (REGION / 2 - len);
	uint8_t *from = a->buf + next_random(&st->seed) % (REGION / 2);
	int64_t add = next_random(&st->seed);

	switch (next_random(&st->seed) % 4) {
	case 0:
		len = len > 4096 ? 4096 : len;
		POST(s, fi_write(s->rma, from, len, NULL, s->peer, at, KEY, &contexts[0]));
		memcpy(st->mine + at, from, len);
		st->under_way++;
		break;
	case 1:
		len = len > 256 ? 256 : len;
		POST(s, fi_inject_write(s->rma, from, len, s->peer, at, KEY));
		memcpy(st->mine + at, from, len);
		break;
	case 2:
		at &= ~7ull;
		POST(s, fi_inject_atomic(s->rma, &add, 1, s->peer, at, KEY, FI_INT64, FI_BXOR));
		*(int64_t *)(st->mine + at) ^= add;
		break;
	default:
		POST(s, fi_tsend(s->ep, from, len, NULL, s->peer, 9, &contexts[0]));
		st->under_way++;
		st->sent++;
		break;
	}
}

/* Count a completion; a message that was received makes room for another. */
static void storm_took(struct pair_side *s, struct area *a, struct storm *st)
{
	if (s->entry.op_context == &contexts[1]) {
		st->received++;
		POST(s, fi_trecv(s->ep, a->copy, REGION / 2, NULL, FI_ADDR_UNSPEC, 9, 0,
				 &contexts[1]));
	} else if (s->entry.op_context == &contexts[2]) {
		st->told = true;
	} else {
		st->under_way--;
	}
}

static void storm(struct pair_side *s)
{
	struct storm st = { .seed = s->name[0] };
	struct area a;

	area_open(s, &a);
	st.mine = calloc(1, REGION);
	PAIR_CHECK(s, st.mine);
	fill(a.buf, REGION, st.seed);
	POST(s, fi_trecv(s->ep, a.copy, REGION / 2, NULL, FI_ADDR_UNSPEC, 9, 0, &contexts[1]));
	POST(s, fi_trecv(s->ep, &st.expected, sizeof(st.expected), NULL, FI_ADDR_UNSPEC, 10, 0,
			 &contexts[2]));
	for (size_t i = 0; i < STORM_OPS; i++) {
		storm_one(s, &a, &st);
		while (fi_cq_read(s->cq, &s->entry, 1) == 1)
			storm_took(s, &a, &st);
	}
	/* Large messages are sent when they are received: neither side leaves before all are. */
	POST(s, fi_tinject(s->ep, &st.sent, sizeof(st.sent), s->peer, 10));
	while (st.under_way || !st.told || st.received < st.expected) {
		PAIR_CHECK(s, pair_next(s) == 1);
		storm_took(s, &a, &st);
	}
	/* What was written before the read is there. */
	for (size_t at = 0; at < REGION / 2; at += REGION / 8) {
		POST(s, fi_read(s->ep, a.copy + REGION / 2, REGION / 8, NULL, s->peer, at, KEY,
				&contexts[3]));
		pair_done(s, &contexts[3]);
		PAIR_CHECK(s, !memcmp(a.copy + REGION / 2, st.mine + at, REGION / 8));
	}
	free(st.mine);
	area_close(s, &a);
}

static void writes_reads_and_messages_keep_their_order(void **state)
{
	both(orderly, ordered, FI_ORDER_RAW | FI_ORDER_WAR | FI_ORDER_WAW | FI_ORDER_SAW);
}

static void requests_behind_crowded_messages_are_taken(void **state)
{
	both(crowding, passive, 0);
}

static void a_match_is_waited_for(void **state)
{
	both(waits_for_a_receive, receives_each, 0);
}

static void delivery_waits_for_no_receive(void **state)
{
	both(is_told_of_delivery, receives_late, 0);
}

static void all_at_once(void **state)
{
	both(storm, storm, FI_ORDER_WAW | FI_ORDER_RAW);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(writes_reads_and_messages_keep_their_order),
		cmocka_unit_test(requests_behind_crowded_messages_are_taken),
		cmocka_unit_test(a_match_is_waited_for),
		cmocka_unit_test(delivery_waits_for_no_receive),
		cmocka_unit_test(all_at_once),
	};

	int status = access_begin(argc, argv);

	return status ? status : cmocka_run_group_tests(tests, NULL, NULL);
}
