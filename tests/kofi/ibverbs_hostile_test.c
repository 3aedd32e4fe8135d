/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * kofi_ibverbs and a peer that speaks by links of its own: what no peer sends ends its conn, and nothing else. Over
 * mock_link.c.
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
#include "conn.h"
#include "wire.h"

#define WAIT_S	20.0
#define LEN	(64u << 10)
#define RANDOMS 400u

/* The peer. */
struct raw {
	struct kib_port *port;
	struct kib_link *link;
	/* Answers that have come, by their op, and the last one's error */
	uint32_t got[16];
	uint32_t err;
	/* Id of the last packet that says where a payload is */
	uint64_t rts_id;
	bool ended;
	/* KIB_ENDED: why */
	int why;
};

static struct loop_end end;
static uint8_t memory[LEN];

static void wake(void *arg)
{
}

static struct kib_greeting greeting(void)
{
	return (struct kib_greeting){ .magic = KIB_MAGIC,
				      .version = KIB_VERSION,
				      .depth = KIB_DEPTH,
				      .message_max = KIB_MESSAGE_MAX,
				      .window_max = KIB_WINDOW_MAX,
				      .name = KIB_NAME };
}

static struct kib_address address_of(const struct loop_end *e)
{
	struct kib_address at = { .family = ADDR_FAMILY_INET, .ip = { 127, 0, 0, 1 } };
	const uint8_t *name = (const uint8_t *)e->name;

	at.port = (uint16_t)(name[2] << 8 | name[3]);
	return at;
}

static void raw_dial(struct raw *raw, const struct kib_greeting *says)
{
	struct kib_address here = { .family = ADDR_FAMILY_INET }, to = address_of(&end);

	memset(raw, 0, sizeof(*raw));
	assert_int_equal(kib_port_open(&here, false, wake, NULL, &raw->port, &here), 0);
	assert_int_equal(kib_link_dial(raw->port, &to, says, sizeof(*says), &raw->link), 0);
}

static void raw_close(struct raw *raw)
{
	kib_link_free(raw->link);
	kib_port_close(raw->port);
}

static void packet_see(struct raw *raw, const uint8_t *bytes)
{
	struct packet packet;
	struct packet_rts rts;

	memcpy(&packet, bytes, sizeof(packet));
	if (packet.op != PACKET_RTS)
		return;
	memcpy(&rts, bytes + sizeof(packet), sizeof(rts));
	raw->rts_id = rts.id;
}

static void raw_take(struct raw *raw, const struct kib_done *done)
{
	struct kib_answer answer;
	struct kib_head head;

	if (done->what != KIB_RECEIVED) {
		raw->ended |= done->what == KIB_BROKEN;
		return;
	}
	memcpy(&head, done->bytes, sizeof(head));
	raw->got[head.op % 16]++;
	if (head.op == KIB_DONE) {
		memcpy(&answer, done->bytes + sizeof(head), sizeof(answer));
		raw->err = answer.err;
	}
	if (head.op == KIB_PACKET)
		packet_see(raw, done->bytes + sizeof(head));
	kib_link_repost(raw->link, done->buffer);
}

/* One round of both. */
static void turn(struct raw *raw)
{
	struct kib_event event;
	struct kib_done done[4];
	int n;

	fi_cq_read(end.cq, NULL, 0);
	while (kib_port_next(raw->port, &event)) {
		const struct kib_greeting says = greeting();

		raw->ended |= event.step == KIB_ENDED;
		raw->why = event.err;
		if (event.step != KIB_REQUEST)
			continue;
		raw->link = event.link;
		assert_int_equal(kib_link_accept(raw->link, &says, sizeof(says)), 0);
	}
	n = raw->link ? kib_link_poll(raw->link, done, 4) : 0;
	for (int i = 0; i < n; i++)
		raw_take(raw, &done[i]);
}

#define UNTIL(raw, holds)                                  \
	do {                                               \
		double until = loop_now_s() + WAIT_S;      \
		while (!(holds)) {                         \
			assert_true(loop_now_s() < until); \
			turn(raw);                         \
		}                                          \
	} while (0)

static void say(struct raw *raw, const void *bytes, uint32_t len)
{
	struct kib_message *message;

	UNTIL(raw, kib_link_spare(raw->link));
	message = kib_link_claim(raw->link);
	memcpy(message->bytes, bytes, len);
	kib_link_send(raw->link, message, len);
}

/* A message whose head is right. */
static void say_op(struct raw *raw, uint8_t op, const void *body, uint32_t len)
{
	uint8_t bytes[KIB_MESSAGE_MAX];
	struct kib_head head = { .op = op, .len = len };

	memcpy(bytes, &head, sizeof(head));
	memcpy(bytes + sizeof(head), body, len);
	say(raw, bytes, (uint32_t)sizeof(head) + len);
}

static struct hello hello(void)
{
	static uint8_t number;
	struct hello h = { .magic = HELLO_MAGIC,
			   .version = HELLO_VERSION,
			   .kind = HELLO_RDM,
			   .epoch = 77,
			   .window = 65536,
			   .seq = 5 };

	h.addr = (struct weft_addr){ .version = ADDR_VERSION,
				     .kind = ADDR_NONCE,
				     .nonce = { 1, 2, 3, ++number, 9 },
				     .family = ADDR_FAMILY_INET,
				     .port = 9,
				     .ip = { 127, 0, 0, 1 } };
	h.addr.nonce[5] = (uint8_t)(number >> 4);
	return h;
}

/* A peer that is up. */
static void raw_up(struct raw *raw)
{
	const struct kib_greeting says = greeting();
	struct hello h = hello();

	raw_dial(raw, &says);
	say_op(raw, KIB_HELLO, &h, sizeof(h));
	UNTIL(raw, raw->got[KIB_HELLO] || raw->ended);
	assert_false(raw->ended);
}

/* A peer that the endpoint knows, and connects to. */
static fi_addr_t raw_listen(struct raw *raw)
{
	struct kib_address here = { .family = ADDR_FAMILY_INET, .ip = { 127, 0, 0, 1 } };
	uint8_t name[NAME_MAX_LEN];
	fi_addr_t addr;

	memset(raw, 0, sizeof(*raw));
	assert_int_equal(kib_port_open(&here, true, wake, NULL, &raw->port, &here), 0);
	memcpy(name, end.name, sizeof(name));
	name[2] = (uint8_t)(here.port >> 8);
	name[3] = (uint8_t)here.port;
	assert_int_equal(fi_av_insert(end.av, name, 1, &addr, 0, NULL), 1);
	return addr;
}

/* That message ends the conn of a peer that is up. */
static void ends_by(const void *bytes, uint32_t len)
{
	struct raw raw;

	raw_up(&raw);
	say(&raw, bytes, len);
	UNTIL(&raw, raw.ended);
	raw_close(&raw);
}

static void ends_by_op(uint8_t op, const void *body, uint32_t len)
{
	struct raw raw;

	raw_up(&raw);
	say_op(&raw, op, body, len);
	UNTIL(&raw, raw.ended);
	raw_close(&raw);
}

static void heads_that_are_wrong(void **state)
{
	struct kib_head head = { .op = KIB_REPOSTED, .len = 1 };
	const uint8_t op_none = 0, op_other = 99;

	ends_by(&head, 4);
	ends_by(&head, sizeof(head));
	head.len = 0;
	head.reserved = 1;
	ends_by(&head, sizeof(head));
	head.reserved = 0;
	head.reposted = KIB_DEPTH + 1;
	ends_by(&head, sizeof(head));
	ends_by_op(op_none, "", 0);
	ends_by_op(op_other, "", 0);
	ends_by_op(KIB_REPOSTED, "x", 1);
	ends_by_op(KIB_BYE, "x", 1);
}

static void bodies_that_are_wrong(void **state)
{
	struct packet packet = { .op = PACKET_EAGER, .len = 9 };
	struct kib_offer_say offer = { .packet = { .op = PACKET_EAGER } };
	struct kib_answer answer = { .token = 3 };
	struct kib_refusal refusal = { .err = 1 };
	struct hello again = hello();

	ends_by_op(KIB_PACKET, &packet, 8);
	ends_by_op(KIB_PACKET, &packet, sizeof(packet));
	ends_by_op(KIB_OFFER, &offer, sizeof(offer) - 8);
	ends_by_op(KIB_OFFER, &offer, sizeof(offer));
	offer.packet.len = 9000;
	offer.reserved = 1;
	ends_by_op(KIB_OFFER, &offer, sizeof(offer));
	ends_by_op(KIB_DONE, &answer, sizeof(answer));
	answer.token = UINT32_MAX;
	ends_by_op(KIB_DONE, &answer, sizeof(answer));
	ends_by_op(KIB_TAKEN, &answer, sizeof(answer));
	ends_by_op(KIB_REFUSE, &refusal, sizeof(refusal));
	ends_by_op(KIB_HELLO, &again, sizeof(again));
	again.magic = 0;
	ends_by_op(KIB_HELLO, &again, sizeof(again));
}

static void what_is_asked_for_is_checked(void **state)
{
	struct kib_ask ask = { .id = 1, .len = 0 };
	struct raw raw;

	ends_by_op(KIB_ASK, &ask, sizeof(ask));
	ask.len = KIB_WINDOW_MAX + 1;
	ends_by_op(KIB_ASK, &ask, sizeof(ask));
	ask.len = 8;
	ask.flags = 4;
	ends_by_op(KIB_ASK, &ask, sizeof(ask));
	ask.flags = KIB_ASK_OFFER;
	ends_by_op(KIB_ASK, &ask, sizeof(ask));
	ask.flags = 0;
	ask.reserved = 1;
	ends_by_op(KIB_ASK, &ask, sizeof(ask));
	/* A send that is over is no mistake of a peer's. */
	ask.reserved = 0;
	raw_up(&raw);
	say_op(&raw, KIB_ASK, &ask, sizeof(ask));
	UNTIL(&raw, raw.got[KIB_DONE]);
	assert_false(raw.ended);
	assert_int_not_equal(raw.err, 0);
	raw_close(&raw);
}

/* Each costs memory until it is answered, which this peer does not do. */
static void offers_that_are_not_answered_are_few(void **state)
{
	struct kib_offer_say offer = {
		.packet = { .op = PACKET_EAGER, .len = 1, .epoch = PACKET_EPOCH(77) }
	};
	struct raw raw;

	raw_up(&raw);
	for (uint32_t i = 0; i < KIB_OFFERED_MAX; i++) {
		offer.packet.seq = 5 + i;
		offer.id = i;
		say_op(&raw, KIB_OFFER, &offer, sizeof(offer));
	}
	UNTIL(&raw, raw.got[KIB_ASK] == KIB_WINDOWS);
	assert_false(raw.ended);
	offer.packet.seq++;
	say_op(&raw, KIB_OFFER, &offer, sizeof(offer));
	UNTIL(&raw, raw.ended);
	raw_close(&raw);
}

/* The device reads the payload until its write has ended, whatever the peer says of the operation meanwhile. */
static void memory_that_is_read_is_not_given_back(void **state)
{
	struct packet nak = { .op = PACKET_NAK, .epoch = PACKET_EPOCH(77), .data = FI_EACCES };
	struct kib_range range = { memory, LEN / 2 };
	static uint8_t payload[LEN / 2];
	struct fi_cq_tagged_entry entry;
	struct kib_ask ask = { .len = sizeof(payload) };
	struct kib_window *window;
	struct hello h = hello();
	struct raw raw;
	fi_addr_t addr = raw_listen(&raw);

	assert_int_equal(fi_write(end.ep, payload, sizeof(payload), NULL, addr, 0, 1, NULL), 0);
	UNTIL(&raw, raw.got[KIB_HELLO]);
	say_op(&raw, KIB_HELLO, &h, sizeof(h));
	UNTIL(&raw, raw.rts_id);
	assert_int_equal(kib_window_open(raw.link, &range, NULL, &window, &ask.key, &ask.at), 0);
	ask.id = nak.tag = raw.rts_id;
	mock_holds_writes = true;
	say_op(&raw, KIB_ASK, &ask, sizeof(ask));
	say_op(&raw, KIB_PACKET, &nak, sizeof(nak));
	UNTIL(&raw, raw.got[KIB_DONE]);
	for (int i = 0; i < 100; i++)
		turn(&raw);
	assert_int_equal(fi_cq_read(end.cq, &entry, 1), -FI_EAGAIN);
	mock_writes_end();
	assert_int_equal(loop_end_completion(&end, NULL, &entry), -FI_EACCES);
	assert_false(raw.ended);
	raw_close(&raw);
}

static void greetings_that_do_not_fit(void **state)
{
	struct kib_greeting wrong[5] = { greeting(), greeting(), greeting(), greeting(),
					 greeting() };
	struct raw raw;

	wrong[0].magic = 1;
	wrong[1].version++;
	wrong[2].depth = 1;
	wrong[3].message_max--;
	wrong[4].name[0] = 'x';
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		raw_dial(&raw, &wrong[i]);
		UNTIL(&raw, raw.ended);
		assert_int_equal(raw.why, -FI_ENOPROTOOPT);
		raw_close(&raw);
	}
}

static void nothing_comes_before_the_hello(void **state)
{
	const struct kib_greeting says = greeting();
	struct packet packet = { .op = PACKET_EAGER };
	struct raw raw;

	raw_dial(&raw, &says);
	say_op(&raw, KIB_PACKET, &packet, sizeof(packet));
	UNTIL(&raw, raw.ended);
	raw_close(&raw);
}

static void peers_that_say_nothing_are_few(void **state)
{
	const struct kib_greeting says = greeting();
	const uint32_t cnt = KIB_GREETED_MAX + 3;
	struct raw *raw = calloc(cnt, sizeof(*raw));
	uint32_t refused = 0;

	assert_non_null(raw);
	for (uint32_t i = 0; i < cnt; i++)
		raw_dial(&raw[i], &says);
	UNTIL(&raw[cnt - 1], raw[cnt - 1].ended);
	for (uint32_t i = 0; i < cnt; i++) {
		turn(&raw[i]);
		refused += raw[i].ended;
	}
	assert_true(refused >= 3);
	for (uint32_t i = 0; i < cnt; i++)
		raw_close(&raw[i]);
	free(raw);
}

static void random_message(struct raw *raw)
{
	uint8_t body[512];
	uint32_t len = loop_chance(sizeof(body));

	for (uint32_t i = 0; i < len; i++)
		body[i] = (uint8_t)loop_chance(i % 4 ? 3 : 256);
	say_op(raw, (uint8_t)(1 + loop_chance(9)), body, len);
}

static void random_messages_do_no_harm(void **state)
{
	struct raw raw;

	loop_chance_begin();
	for (uint32_t i = 0; i < RANDOMS; i++) {
		raw_up(&raw);
		for (uint32_t j = 0; j < 8 && !raw.ended; j++) {
			random_message(&raw);
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
	kofi_ibverbs_begin();
	return wire_register(&kofi_ibverbs_wire) || loop_end_open(&end, memory, sizeof(memory));
}

static int finish(void **state)
{
	loop_end_close(&end);
	wire_unregister(&kofi_ibverbs_wire);
	kofi_ibverbs_end();
	return 0;
}

#define TEST(name) cmocka_unit_test_teardown(name, others_are_served)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(heads_that_are_wrong),
		TEST(bodies_that_are_wrong),
		TEST(what_is_asked_for_is_checked),
		TEST(greetings_that_do_not_fit),
		TEST(nothing_comes_before_the_hello),
		TEST(peers_that_say_nothing_are_few),
		TEST(random_messages_do_no_harm),
		TEST(offers_that_are_not_answered_are_few),
		TEST(memory_that_is_read_is_not_given_back),
	};

	return cmocka_run_group_tests(tests, begin, finish);
}
