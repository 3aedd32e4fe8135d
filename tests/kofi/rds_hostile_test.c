/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * kofi_rds and a peer that speaks by a socket of its own: what no peer sends ends its conn, what a stranger sends is
 * dropped, and others notice nothing. Over mock_datagram.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "loop_end.h"
#include "rds_raw.h"
#include "wire.h"

#define WAIT_S	20.0
#define LEN	(200u << 10)
#define RANDOMS 400u

/* The body of a RDS_END */
union last {
	struct rds_end end;
	uint8_t bytes[RDS_END_LEN];
};

static struct loop_end end;
static uint8_t memory[LEN];

static void raw_begin(struct raw *raw)
{
	assert_int_equal(raw_open(raw, end.name), 0);
}

/* One round of both. */
static void turn(struct raw *raw)
{
	fi_cq_read(end.cq, NULL, 0);
	raw_hear(raw);
}

#define UNTIL(raw, holds)                                  \
	do {                                               \
		double until = loop_now_s() + WAIT_S;      \
		while (!(holds)) {                         \
			assert_true(loop_now_s() < until); \
			turn(raw);                         \
		}                                          \
	} while (0)

static void say(struct raw *raw, const struct rds_head *head, const void *body, size_t len)
{
	int ret;

	do {
		turn(raw);
		ret = raw_say(raw, head, body, len);
	} while (ret == -FI_EAGAIN);
	assert_int_equal(ret, 0);
}

/* One whose head is right. */
static void say_op(struct raw *raw, uint8_t op, const void *body, size_t len)
{
	struct rds_head head = raw_head(raw, op, len);

	raw->number += op != RDS_HELLO && op != RDS_ALIVE;
	say(raw, &head, body, len);
}

/* A peer that is up. */
static void raw_up(struct raw *raw)
{
	struct rds_greeting g;

	raw_begin(raw);
	g = raw_greeting(raw);
	say_op(raw, RDS_HELLO, &g, sizeof(g));
	UNTIL(raw, raw->to_id);
	say_op(raw, RDS_ALIVE, "", 0);
}

/* That datagram ends the conn of a peer that is up. */
static void ends_by(const struct rds_head *change, uint8_t op, const void *body, size_t len,
		    uint32_t err)
{
	struct rds_head head;
	struct raw raw;

	raw_up(&raw);
	head = raw_head(&raw, op, len);
	if (change)
		head.number = change->number;
	say(&raw, &head, body, len);
	UNTIL(&raw, raw.got[RDS_END]);
	assert_int_equal(raw.err, err);
	raw_close(&raw);
}

static void bodies_that_are_wrong(void **state)
{
	struct packet packet = { .op = PACKET_EAGER, .len = 9 };
	union last over = { .end = { .reserved = 1 } };
	struct rds_refusal refusal = { .err = 1 };
	struct rds_greeting again = { .id = 1 };
	static uint8_t first[RDS_DATAGRAM_MAX - sizeof(struct rds_head)];

	ends_by(NULL, 0, "", 0, FI_EINVAL);
	ends_by(NULL, 99, "", 0, FI_EINVAL);
	ends_by(NULL, RDS_ALIVE, "x", 1, FI_EINVAL);
	ends_by(NULL, RDS_PACKET, &packet, 8, FI_EINVAL);
	ends_by(NULL, RDS_PACKET, &packet, sizeof(packet), FI_EINVAL);
	ends_by(NULL, RDS_FIRST, &packet, 8, FI_EINVAL);
	ends_by(NULL, RDS_FIRST, &packet, sizeof(packet), FI_EINVAL);
	packet.len = RDS_PAYLOAD_MAX;
	memcpy(first, &packet, sizeof(packet));
	ends_by(NULL, RDS_FIRST, first, sizeof(first), FI_EINVAL);
	ends_by(NULL, RDS_MORE, "x", 1, FI_EINVAL);
	ends_by(NULL, RDS_MORE, "", 0, FI_EINVAL);
	ends_by(NULL, RDS_END, &over, sizeof(over), FI_EINVAL);
	ends_by(NULL, RDS_END, &over, sizeof(over) - 1, FI_EINVAL);
	over.end = (struct rds_end){ .err = UINT32_MAX };
	ends_by(NULL, RDS_END, &over, sizeof(over), FI_EINVAL);
	ends_by(NULL, RDS_REFUSE, &refusal, sizeof(refusal), FI_EINVAL);
	ends_by(NULL, RDS_ANSWER, &again, sizeof(again), FI_EINVAL);
}

static void a_number_that_is_missing(void **state)
{
	struct packet packet = { .op = PACKET_CREDIT };

	ends_by(&(struct rds_head){ .number = 1 }, RDS_PACKET, &packet, sizeof(packet),
		FI_ECONNRESET);
	ends_by(&(struct rds_head){ .number = UINT32_MAX }, RDS_PACKET, &packet, sizeof(packet),
		FI_ECONNRESET);
}

/* A second payload before the first one has come, and more of one than was said */
static void payload_that_does_not_add_up(void **state)
{
	static uint8_t body[RDS_DATAGRAM_MAX - sizeof(struct rds_head)];
	struct packet packet = { .op = PACKET_EAGER, .len = RDS_PAYLOAD_MAX + 8 };
	struct raw raw;

	for (int i = 0; i < 2; i++) {
		raw_up(&raw);
		packet.seq = 5;
		packet.epoch = PACKET_EPOCH(77);
		memcpy(body, &packet, sizeof(packet));
		say_op(&raw, RDS_FIRST, body, sizeof(body));
		say_op(&raw, i ? RDS_FIRST : RDS_MORE, body, i ? sizeof(body) : 9);
		UNTIL(&raw, raw.got[RDS_END]);
		raw_close(&raw);
	}
}

/* The endpoint asks a peer, whose answer is wrong: it is refused, and what was to be sent fails. */
static void answers_that_are_wrong(void **state)
{
	struct fi_cq_tagged_entry entry;
	struct rds_refusal refusal;
	struct rds_greeting g;
	struct raw raw;
	fi_addr_t peer;

	for (int i = 0; i < 8; i++) {
		raw_begin(&raw);
		assert_int_equal(fi_av_insert(end.av, &raw.where, 1, &peer, 0, NULL), 1);
		assert_int_equal(fi_tsend(end.ep, memory, 8, NULL, peer, 1, NULL), 0);
		UNTIL(&raw, raw.to_id);
		g = raw_greeting(&raw);
		g.hello.magic += i == 0;
		g.hello.version += i == 1;
		g.id = i == 2 ? 0 : g.id;
		refusal = (struct rds_refusal){ .err = i == 5	? 0
						       : i == 6 ? UINT32_MAX
								: 5,
						.reserved = i == 7 };
		if (i < 4)
			say_op(&raw, RDS_ANSWER, &g, sizeof(g) - (i == 3));
		else
			say_op(&raw, RDS_REFUSE, &refusal, sizeof(refusal) - (i == 4));
		assert_true(loop_end_completion(&end, NULL, &entry) < 0);
		assert_int_equal(fi_av_remove(end.av, &peer, 1, 0), 0);
		raw_close(&raw);
	}
}

static void hellos_that_are_wrong(void **state)
{
	struct rds_greeting g[5];
	struct raw raw;

	for (int i = 0; i < 5; i++) {
		raw_begin(&raw);
		g[i] = raw_greeting(&raw);
		g[i].hello.magic += i == 0;
		g[i].hello.version += i == 1;
		g[i].hello.addr.ip[3] += i == 2;
		g[i].hello.data.len = i == 3 ? HELLO_DATA_MAX + 1 : 0;
		g[i].hello.addr.family = i == 4 ? 77 : ADDR_FAMILY_INET;
		say_op(&raw, RDS_HELLO, &g[i], sizeof(g[i]));
		UNTIL(&raw, raw.got[RDS_REFUSE]);
		assert_int_equal(raw.got[RDS_ANSWER], 0);
		assert_int_equal(raw.err, i == 1 ? FI_ENOPROTOOPT : FI_EINVAL);
		raw_close(&raw);
	}
}

/* Nothing is said of what is not a datagram of a conn's peer, and nothing becomes of it. */
static void strangers_are_not_heard(void **state)
{
	static const uint8_t room[RDS_DATAGRAM_MAX - sizeof(struct rds_head)];
	struct packet packet = { .op = PACKET_EAGER, .len = 0 };
	union last over = { .end = { .err = 0 } };
	struct raw raw, other;
	struct rds_head head;

	raw_up(&raw);
	raw_begin(&other);
	other.to = raw.to;
	other.to_id = raw.to_id;
	say_op(&other, RDS_END, &over, sizeof(over));
	say_op(&other, RDS_PACKET, &packet, sizeof(packet));
	for (int i = 0; i < 6; i++) {
		head = raw_head(&raw, RDS_END, sizeof(over));
		head.magic += i == 0;
		head.version += i == 1;
		head.reserved += i == 2;
		head.to += i == 3;
		head.len += i == 4;
		say(&raw, &head, &over, i == 5 ? 4 : sizeof(over));
	}
	say(&raw, &head, room, sizeof(room));
	for (int i = 0; i < 50; i++)
		turn(&raw);
	/* A beat may have come: it is no answer. */
	assert_int_equal(raw.got[RDS_END], 0);
	raw_hear(&other);
	for (size_t op = 0; op < sizeof(other.got) / sizeof(other.got[0]); op++)
		assert_int_equal(other.got[op], 0);
	/* It is up: its own end is heard. */
	say_op(&raw, RDS_PACKET, &packet, 8);
	UNTIL(&raw, raw.got[RDS_END]);
	raw_close(&raw);
	raw_close(&other);
}

/* Each has one conn: a new one is in the place of the last. */
static void a_socket_that_says_many_hellos(void **state)
{
	struct raw raw;

	raw_begin(&raw);
	for (uint32_t i = 1; i <= 3 * RDS_UNPROVEN_MAX; i++) {
		struct rds_greeting g = raw_greeting(&raw);
		union ip_sockaddr to = raw.to;

		g.id = i;
		say_op(&raw, RDS_HELLO, &g, sizeof(g));
		raw.number = 0;
		raw.to_id = 0;
		UNTIL(&raw, raw.got[RDS_ANSWER] == i);
		raw.to = to;
		raw.to_id = 0;
	}
	raw_close(&raw);
}

/* Those that never show that they have the answer are bounded, and others are served once they are dead. */
static void many_sockets_that_say_hello_alone(void **state)
{
	const uint32_t cnt = RDS_UNPROVEN_MAX + 20;
	struct raw *raw = calloc(cnt, sizeof(*raw));
	uint32_t answered = 0;

	assert_non_null(raw);
	for (uint32_t i = 0; i < cnt; i++) {
		struct rds_greeting g;

		raw_begin(&raw[i]);
		g = raw_greeting(&raw[i]);
		/* Endpoints of their own */
		g.hello.addr.nonce[6] = (uint8_t)i;
		g.hello.addr.nonce[7] = (uint8_t)(i >> 8) + 1;
		say_op(&raw[i], RDS_HELLO, &g, sizeof(g));
		turn(&raw[i]);
	}
	for (uint32_t i = 0; i < cnt; i++) {
		turn(&raw[i]);
		answered += raw[i].got[RDS_ANSWER];
		raw_close(&raw[i]);
	}
	assert_true(answered > RDS_UNPROVEN_MAX / 2 && answered <= RDS_UNPROVEN_MAX);
	free(raw);
}

/* Who is not heard, because there are as many as may be, says hello again. */
static void nobody_is_heard_while_there_are_enough(void **state)
{
	struct rds_greeting g;
	struct raw raw;

	raw_begin(&raw);
	g = raw_greeting(&raw);
	mock_is_full = true;
	for (int i = 0; i < 50; i++)
		say_op(&raw, RDS_HELLO, &g, sizeof(g));
	assert_int_equal(raw.got[RDS_ANSWER] + raw.got[RDS_REFUSE], 0);
	mock_is_full = false;
	say_op(&raw, RDS_HELLO, &g, sizeof(g));
	UNTIL(&raw, raw.got[RDS_ANSWER]);
	raw_close(&raw);
}

static void random_datagram(struct raw *raw)
{
	uint8_t body[512];
	uint32_t len = loop_chance(sizeof(body));

	for (uint32_t i = 0; i < len; i++)
		body[i] = (uint8_t)loop_chance(i % 4 ? 3 : 256);
	say_op(raw, (uint8_t)(1 + loop_chance(9)), body, len);
}

static void random_datagrams_do_no_harm(void **state)
{
	struct raw raw;

	loop_chance_begin();
	for (uint32_t i = 0; i < RANDOMS; i++) {
		raw_up(&raw);
		for (uint32_t j = 0; j < 8 && !raw.got[RDS_END]; j++) {
			random_datagram(&raw);
			turn(&raw);
		}
		raw_close(&raw);
	}
}

/* After each test: the endpoint is of use to others. */
static int others_are_served(void **state)
{
	return loop_end_serves(&end, LEN) ? 0 : -1;
}

static int begin(void **state)
{
	/* longer than the peers of this test, which say nothing by themselves, are kept from running */
	rds_settings.dead_ms = 5000;
	kofi_rds_begin();
	return wire_register(&kofi_rds_wire) || loop_end_open(&end, memory, sizeof(memory));
}

static int finish(void **state)
{
	loop_end_close(&end);
	wire_unregister(&kofi_rds_wire);
	kofi_rds_end();
	return 0;
}

#define TEST(name) cmocka_unit_test_teardown(name, others_are_served)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(bodies_that_are_wrong),
		TEST(a_number_that_is_missing),
		TEST(payload_that_does_not_add_up),
		TEST(answers_that_are_wrong),
		TEST(hellos_that_are_wrong),
		TEST(strangers_are_not_heard),
		TEST(a_socket_that_says_many_hellos),
		TEST(many_sockets_that_say_hello_alone),
		TEST(random_datagrams_do_no_harm),
		TEST(nobody_is_heard_while_there_are_enough),
	};

	return cmocka_run_group_tests(tests, begin, finish);
}
