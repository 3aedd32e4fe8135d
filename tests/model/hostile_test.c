/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Packets that no peer of this version sends, one wrong field at a time: the engine refuses each,
 * the connection ends, and nothing else happens. tests/fuzz sends random ones.
 */
#include "victim.h"

static fi_addr_t to_victim; /* of the honest peer */
static char bytes[100000];

static int setup(void **state)
{
	victim_open();
	fake_end_open(&honest, &victim_attr, NULL);
	to_victim = fake_end_insert(&honest, &victim.name);
	return 0;
}

/* Whatever the liar did: messages of others arrive. */
static int teardown(void **state)
{
	char buf[8] = "";

	entry = (struct fi_cq_tagged_entry){ 0 };
	assert_int_equal(fi_trecv(victim.ep, buf, 8, NULL, FI_ADDR_UNSPEC, 99, 0, &contexts[7]),
			 0);
	FAKE_UNTIL_TAKEN(fi_tinject(honest.ep, "honest", 7, to_victim, 99));
	do
		assert_int_not_equal(next(victim.rx_cq), -FI_EAGAIN);
	while (entry.op_context != &contexts[7]);
	assert_string_equal(buf, "honest");
	fake_raw_close(liar, -FI_ECONNRESET);
	fake_end_close(&victim);
	fake_end_close(&honest);
	return 0;
}

static struct packet honest_packet(enum packet_op op, uint32_t len)
{
	return (struct packet){ .op = (uint8_t)op,
				.flags = PACKET_TAGGED,
				.epoch = PACKET_EPOCH(lie.epoch),
				.len = len,
				.seq = lie.seq++,
				.tag = 5 };
}

static void accepted(const struct packet *p, const void *payload, size_t avail)
{
	assert_int_equal(fake_raw_send(liar, p, payload, avail, avail < p->len ? bytes : NULL),
			 0);
	assert_true(fake_raw_alive(liar));
}

static void refused(const struct packet *p, const void *payload, size_t avail)
{
	assert_int_equal(fake_raw_send(liar, p, payload, avail, NULL), -FI_EINVAL);
	assert_false(fake_raw_alive(liar));
}

static void post(uint64_t tag, size_t len, void *context)
{
	assert_int_equal(fi_trecv(victim.ep, bytes, len, NULL, FI_ADDR_UNSPEC, tag, 0, context),
			 0);
}

/* The victim sends something large, and the liar learns what it is called. */
static uint64_t learn_send(size_t len)
{
	struct packet p = { 0 };
	struct packet_rts rts = { 0 };

	assert_int_equal(fi_tsend(victim.ep, bytes, len, NULL, to_liar, 5, &contexts[0]), 0);
	while (p.op != PACKET_RTS) {
		go(1);
		fake_raw_read(liar, &p, &rts, sizeof(rts));
	}
	assert_int_equal(rts.len, len);
	return rts.id;
}

/* The liar has sent something large, and learns what the victim calls its receive. */
static uint64_t learn_receive(struct packet_rts rts)
{
	struct packet p = honest_packet(PACKET_RTS, sizeof(rts));

	accepted(&p, &rts, sizeof(rts));
	p.op = 0;
	while (p.op != PACKET_CTS) {
		go(1);
		fake_raw_read(liar, &p, NULL, 0);
	}
	assert_int_equal(p.tag, rts.id);
	return p.data;
}

static void honest_packets_are_taken(void **state)
{
	struct packet p = honest_packet(PACKET_EAGER, 4);

	post(5, 100, &contexts[0]);
	accepted(&p, "abc", 4);
	assert_int_equal(next(victim.rx_cq), 1);
	assert_ptr_equal(entry.op_context, &contexts[0]);
	assert_string_equal(bytes, "abc");
	p = honest_packet(PACKET_CREDIT, 0);
	accepted(&p, NULL, 0);
}

static void other_epochs_are_refused(void **state)
{
	struct packet p = honest_packet(PACKET_EAGER, 0);

	p.epoch ^= PACKET_EPOCH(1);
	refused(&p, NULL, 0);
}

static void unknown_operations_are_refused(void **state)
{
	static const uint8_t ops[] = { 0, 7, 8, 127, 128, 255 };

	for (size_t i = 0; i < sizeof(ops); i++) {
		struct packet p = honest_packet((enum packet_op)ops[i], 0);

		refused(&p, NULL, 0);
		fake_raw_close(liar, 0);
		assert_int_equal(fake_raw_open(fake_end_engine(&victim), &lie, &liar, &reply),
				 0);
	}
}

/* While packets wait for those before them, no packet takes the short path. */
static void operation_zero_is_refused_while_packets_wait(void **state)
{
	struct packet p = honest_packet(PACKET_EAGER, 0), zero = { .seq = p.seq };

	p.seq++;
	accepted(&p, NULL, 0);
	zero.flags = PACKET_TAGGED;
	refused(&zero, NULL, 0);
}

/* Whoever sends packets before their turn chooses their order. The time is the victim's. */
static void no_order_of_packets_takes_the_victims_time(void **state)
{
	struct packet p = honest_packet(PACKET_EAGER, 0);
	const uint32_t first = p.seq + 1, cnt = 50000;
	clock_t begin = clock();

	lie.seq = first + cnt;
	for (uint32_t i = cnt; i--;) {
		struct packet early = p;

		early.seq = first + i;
		assert_int_equal(fake_raw_send(liar, &early, NULL, 0, NULL), 0);
	}
	accepted(&p, NULL, 0); /* now all of them have their turn */
	assert_int_equal(fake_end_peer(&victim, &lie.addr)->reorder_cnt, 0);
	assert_true(clock() - begin < 10 * CLOCKS_PER_SEC);
}

static void unknown_flags_are_refused(void **state)
{
	struct packet p = honest_packet(PACKET_EAGER, 0);

	p.flags |= 0x80;
	refused(&p, NULL, 0);
}

/* A sender that waits for a receive waits for delivery. */
static void match_without_delivery_is_refused(void **state)
{
	struct packet p = honest_packet(PACKET_EAGER, 0);

	p.flags |= PACKET_MATCH | PACKET_DELIVERY;
	accepted(&p, NULL, 0);
	p = honest_packet(PACKET_EAGER, 0);
	p.flags |= PACKET_MATCH;
	refused(&p, NULL, 0);
}

static void message_that_comes_twice_is_refused(void **state)
{
	struct packet p = honest_packet(PACKET_EAGER, 0);

	accepted(&p, NULL, 0);
	refused(&p, NULL, 0);
}

static void message_that_comes_twice_before_its_turn_is_refused(void **state)
{
	struct packet p = honest_packet(PACKET_EAGER, 0);

	p.seq += 5;
	accepted(&p, NULL, 0);
	p.seq++;
	accepted(&p, NULL, 0);
	p.seq--;
	refused(&p, NULL, 0);
}

static void message_of_the_past_is_refused(void **state)
{
	struct packet p = honest_packet(PACKET_EAGER, 0);

	p.seq += 1u << 31; /* sequence numbers count as later up to half way round */
	refused(&p, NULL, 0);
}

/* As in the kernel, where memory for what nobody receives has an end. */
static void messages_without_receives_have_an_end(void **state)
{
	struct engine_ep *ep = fake_end_engine(&victim);
	struct packet p;

	ep->held_max = 6;
	for (uint32_t i = 0; i < ep->held_max; i++) {
		p = honest_packet(PACKET_EAGER, 4);
		accepted(&p, "abc", 4);
	}
	assert_int_equal(ep->held_cnt, ep->held_max);
	/* The other one has his part all the same. */
	FAKE_UNTIL_TAKEN(fi_tinject(honest.ep, "honest", 7, to_victim, 98));
	while (ep->held_cnt == ep->held_max)
		go(1);
	assert_true(fake_raw_alive(liar));
	p = honest_packet(PACKET_EAGER, 4);
	assert_int_equal(fake_raw_send(liar, &p, "abc", 4, NULL), -FI_ENOMEM);
	assert_false(fake_raw_alive(liar));
	/* What has come whole can still be received, and makes room. */
	post(5, 100, &contexts[0]);
	assert_int_equal(next(victim.rx_cq), 1);
	assert_string_equal(bytes, "abc");
	assert_int_equal(ep->held_cnt, ep->held_max);
}

static void more_eager_payload_than_was_granted_is_refused(void **state)
{
	struct packet p = honest_packet(PACKET_EAGER, reply.window - 5000);

	accepted(&p, bytes, 0);
	p = honest_packet(PACKET_EAGER, 5001);
	refused(&p, bytes, 0);
}

static void eager_payload_without_end_is_refused(void **state)
{
	struct packet p = honest_packet(PACKET_EAGER, UINT32_MAX);

	refused(&p, bytes, 100);
}

static void credit_beyond_the_window_is_refused(void **state)
{
	struct packet p = honest_packet(PACKET_CREDIT, 0);

	p.credits = 1;
	refused(&p, NULL, 0);
}

static void credit_for_what_was_sent_is_taken_once(void **state)
{
	struct packet p = honest_packet(PACKET_CREDIT, 0);

	assert_int_equal(fi_tsend(victim.ep, bytes, 2048, NULL, to_liar, 5, &contexts[0]), 0);
	assert_int_equal(next(victim.tx_cq), 1);
	p.credits = 2048 / CREDIT_UNIT;
	accepted(&p, NULL, 0);
	refused(&p, NULL, 0);
}

static void credit_with_payload_is_refused(void **state)
{
	struct packet p = honest_packet(PACKET_CREDIT, 8);

	refused(&p, bytes, 8);
}

static void rendezvous_of_another_length_is_refused(void **state)
{
	struct packet p = honest_packet(PACKET_RTS, sizeof(struct packet_rts) - 1);

	refused(&p, bytes, p.len);
}

static void half_a_rendezvous_is_refused(void **state)
{
	struct packet p = honest_packet(PACKET_RTS, sizeof(struct packet_rts));

	refused(&p, bytes, 3);
}

static void answer_to_a_send_that_never_was_is_refused(void **state)
{
	struct packet_cts cts = { .len = 8 };
	struct packet p = honest_packet(PACKET_CTS, sizeof(cts));

	p.tag = 1ull << 32;
	refused(&p, &cts, sizeof(cts));
}

static void answer_that_wants_more_than_there_is_is_refused(void **state)
{
	struct packet_cts cts = { .len = 60001 };
	struct packet p;
	uint64_t id = learn_send(60000);

	p = honest_packet(PACKET_CTS, sizeof(cts));
	p.tag = id;
	refused(&p, &cts, sizeof(cts));
	assert_int_equal(next(victim.tx_cq), -FI_EAVAIL);
	assert_ptr_equal(error.op_context, &contexts[0]);
}

static void answer_that_has_had_all_is_refused(void **state)
{
	struct packet_cts cts = { .len = 1000, .from = 1000 };
	struct packet p;
	uint64_t id = learn_send(60000);

	p = honest_packet(PACKET_CTS, sizeof(cts));
	p.tag = id;
	refused(&p, &cts, sizeof(cts));
}

static void second_answer_to_a_send_is_refused(void **state)
{
	struct packet_cts cts = { .len = 60000 };
	struct packet p;
	uint64_t id = learn_send(60000);

	p = honest_packet(PACKET_CTS, sizeof(cts));
	p.tag = id;
	accepted(&p, &cts, sizeof(cts));
	refused(&p, &cts, sizeof(cts));
}

static void send_that_is_finished_twice_is_refused(void **state)
{
	struct packet p;
	uint64_t id = learn_send(60000);

	p = honest_packet(PACKET_FIN, 0);
	p.tag = id;
	p.data = 0;
	accepted(&p, NULL, 0);
	assert_int_equal(next(victim.tx_cq), 1);
	refused(&p, NULL, 0);
}

static void finish_with_an_error_that_is_none_is_refused(void **state)
{
	struct packet p;
	uint64_t id = learn_send(60000);

	p = honest_packet(PACKET_FIN, 0);
	p.tag = id;
	p.data = 1ull << 31;
	refused(&p, NULL, 0);
}

static void payload_for_a_receive_that_never_was_is_refused(void **state)
{
	struct packet p = honest_packet(PACKET_DATA, 8);

	post(5, 100, &contexts[0]);
	p.tag = 1ull << 32; /* the first object of a pool, which is the posted receive */
	refused(&p, bytes, 8);
}

static void payload_beyond_what_was_wanted_is_refused(void **state)
{
	struct packet p;
	uint64_t id;

	post(5, 50000, &contexts[0]);
	id = learn_receive((struct packet_rts){ .len = 60000, .id = 1 });
	p = honest_packet(PACKET_DATA, 50001);
	p.tag = id;
	refused(&p, bytes, 0);
	assert_int_equal(next(victim.rx_cq), -FI_EAVAIL);
	assert_int_equal(error.err, FI_EINVAL);
	assert_int_equal(error.src_addr, to_liar);
}

static void payload_at_another_place_is_refused(void **state)
{
	struct packet p;
	uint64_t id;

	post(5, 50000, &contexts[0]);
	id = learn_receive((struct packet_rts){ .len = 50000, .id = 1 });
	p = honest_packet(PACKET_DATA, 100);
	p.tag = id;
	accepted(&p, bytes, 100);
	p.data = 99;
	refused(&p, bytes, 100);
}

static void payload_that_overtakes_payload_is_refused(void **state)
{
	struct packet p;
	uint64_t id;

	post(5, 50000, &contexts[0]);
	id = learn_receive((struct packet_rts){ .len = 50000, .id = 1 });
	p = honest_packet(PACKET_DATA, 30000);
	p.tag = id;
	assert_int_equal(fake_raw_send(liar, &p, bytes, 0, NULL), 0);
	refused(&p, bytes, 0);
}

/* The victim's wire reads, and not at once. @k: out: its knobs, to be set once more */
static void knobs_get_later(struct fake_knobs *k)
{
	fake_knobs_default(k);
	k->get_now = 0;
	k->get_later = 256;
}

/*
 * The receiver reads by itself; payload that is sent as well would end the receive under the wire.
 */
static void payload_for_a_receive_that_reads_by_itself_is_refused(void **state)
{
	struct packet_rts rts = { .len = 1000, .id = 1, .addr = 4096 };
	struct packet p = honest_packet(PACKET_RTS, sizeof(rts));
	struct fake_knobs k;

	knobs_get_later(&k);
	k.move = 0;
	fake_knobs_set(FAKE_B, &k);
	post(5, 1000, &contexts[0]);
	p.flags |= PACKET_PULL;
	accepted(&p, &rts, sizeof(rts));
	p = honest_packet(PACKET_DATA, 1000);
	p.tag = 1ull << 32;
	refused(&p, bytes, 1000);
	k.move = 256;
	fake_knobs_set(FAKE_B, &k);
	assert_int_equal(next(victim.rx_cq), -FI_EAVAIL);
	assert_ptr_equal(error.op_context, &contexts[0]);
}

/* Where the pieces of a send stand is read before them. */
static void list_of_pieces_that_cannot_be_is_asked_for_instead(void **state)
{
	struct packet_rts rts = { .len = 1000, .id = 1ull << 32, .addr = 4096 };
	struct packet p = honest_packet(PACKET_RTS, sizeof(rts));
	struct fake_knobs k;

	knobs_get_later(&k);
	k.get_fails = 0;
	fake_knobs_set(FAKE_B, &k);
	post(5, 1000, &contexts[0]);
	p.flags |= PACKET_PULL | PACKET_PIECES;
	/* the liar has no memory: what is read is a list of nothing */
	accepted(&p, &rts, sizeof(rts));
	p.op = 0;
	while (p.op != PACKET_CTS) {
		go(1);
		fake_raw_read(liar, &p, NULL, 0);
	}
	assert_int_equal(p.tag, rts.id);
}

static void pieces_of_a_send_are_named(void **state)
{
	struct iovec iov[3] = { { bytes, 30000 },
				{ bytes + 30000, 1 },
				{ bytes + 30001, sizeof(bytes) - 30001 } };
	struct packet p = { 0 };
	struct packet_rts rts = { 0 };
	const struct packet_piece *pieces;
	struct fake_knobs k;

	fake_knobs_default(&k);
	k.eager_max = 20000;
	fake_knobs_set(FAKE_B, &k);
	assert_int_equal(fi_tsendv(victim.ep, iov, NULL, 3, to_liar, 5, &contexts[0]), 0);
	while (p.op != PACKET_RTS) {
		go(1);
		fake_raw_read(liar, &p, &rts, sizeof(rts));
	}
	assert_int_equal(p.flags & (PACKET_PULL | PACKET_PIECES), PACKET_PULL | PACKET_PIECES);
	pieces = (const struct packet_piece *)(uintptr_t)rts.addr;
	for (int i = 0; i < 3; i++) {
		assert_int_equal(pieces[i].addr, (uintptr_t)iov[i].iov_base);
		assert_int_equal(pieces[i].len, iov[i].iov_len);
	}
}

static void hello_of_another_version_is_refused(void **state)
{
	struct fake_raw *other;

	lie.version++;
	assert_int_equal(fake_raw_open(fake_end_engine(&victim), &lie, &other, &reply),
			 -FI_ENOPROTOOPT);
	lie.version--;
	lie.proof = 1; /* the victim has no key */
	assert_int_equal(fake_raw_open(fake_end_engine(&victim), &lie, &other, &reply),
			 -FI_EKEYREJECTED);
	lie.proof = 0;
	lie.epoch = 0;
	assert_int_equal(fake_raw_open(fake_end_engine(&victim), &lie, &other, &reply),
			 -FI_EINVAL);
	lie.epoch = 1;
	lie.addr.kind = 9;
	assert_int_equal(fake_raw_open(fake_end_engine(&victim), &lie, &other, &reply),
			 -FI_EINVAL);
}

static void hello_that_says_it_is_ourselves_is_refused(void **state)
{
	struct fake_raw *other;

	lie.addr = victim.name;
	assert_true(fake_raw_open(fake_end_engine(&victim), &lie, &other, &reply) < 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		TEST(honest_packets_are_taken),
		TEST(other_epochs_are_refused),
		TEST(unknown_operations_are_refused),
		TEST(operation_zero_is_refused_while_packets_wait),
		TEST(no_order_of_packets_takes_the_victims_time),
		TEST(unknown_flags_are_refused),
		TEST(match_without_delivery_is_refused),
		TEST(message_that_comes_twice_is_refused),
		TEST(message_that_comes_twice_before_its_turn_is_refused),
		TEST(message_of_the_past_is_refused),
		TEST(messages_without_receives_have_an_end),
		TEST(more_eager_payload_than_was_granted_is_refused),
		TEST(eager_payload_without_end_is_refused),
		TEST(credit_beyond_the_window_is_refused),
		TEST(credit_for_what_was_sent_is_taken_once),
		TEST(credit_with_payload_is_refused),
		TEST(rendezvous_of_another_length_is_refused),
		TEST(half_a_rendezvous_is_refused),
		TEST(answer_to_a_send_that_never_was_is_refused),
		TEST(answer_that_wants_more_than_there_is_is_refused),
		TEST(answer_that_has_had_all_is_refused),
		TEST(second_answer_to_a_send_is_refused),
		TEST(send_that_is_finished_twice_is_refused),
		TEST(finish_with_an_error_that_is_none_is_refused),
		TEST(payload_for_a_receive_that_never_was_is_refused),
		TEST(payload_beyond_what_was_wanted_is_refused),
		TEST(payload_at_another_place_is_refused),
		TEST(payload_that_overtakes_payload_is_refused),
		TEST(payload_for_a_receive_that_reads_by_itself_is_refused),
		TEST(list_of_pieces_that_cannot_be_is_asked_for_instead),
		TEST(pieces_of_a_send_are_named),
		TEST(hello_of_another_version_is_refused),
		TEST(hello_that_says_it_is_ourselves_is_refused),
#undef TEST
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
