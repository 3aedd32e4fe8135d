/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Answers that no peer of this version sends, one wrong field at a time, to the initiator of
 * one-sided operations and of messages that end with an answer: the engine refuses each, the
 * connection ends, and each operation under way ends once.
 */
#include <rdma/fi_atomic.h>
#include "access_victim.h"

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
	assert_int_equal(fi_write(victim.rma, out, len, NULL, to_liar, 0, KEY, &contexts[0]), 0);
	return heard(PACKET_WRITE, NULL, 0).seq;
}

static uint64_t learn_large_write(void)
{
	struct packet_rts rts;

	assert_int_equal(
		fi_write(victim.rma, out, sizeof(out), NULL, to_liar, 0, KEY, &contexts[0]), 0);
	heard(PACKET_RTS, &rts, sizeof(rts));
	return rts.id;
}

static uint64_t learn_fetch(void)
{
	uint64_t *words = (uint64_t *)(void *)out;
	struct packet_atomic atomic;

	assert_int_equal(fi_fetch_atomic(victim.ep, words, 2, NULL, words + 2, NULL, to_liar, 0,
					 KEY, FI_UINT64, FI_SUM, &contexts[0]),
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

/* Messages end with ACK too, and are never refused by NAK. */
static void refusal_of_a_message_is_refused(void **state)
{
	struct iovec iov = { out, 8 };
	struct fi_msg_tagged msg = {
		.msg_iov = &iov, .iov_count = 1, .addr = to_liar, .context = &contexts[0]
	};
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
	/* The wire still has its payload: the end waits for that, and is reported once. */
	p = a_packet(PACKET_FIN, 0);
	p.tag = id;
	accepted(&p, NULL);
	refused(&p, NULL, 0);
	assert_int_equal(next(victim.tx_cq), -FI_EAVAIL);
}

static uint32_t send_delivery(size_t len, void *context)
{
	struct iovec iov = { out, len };
	struct fi_msg_tagged msg = {
		.msg_iov = &iov, .iov_count = 1, .addr = to_liar, .context = context
	};

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

/* A sender that connects again has had its earlier messages reported as failed. */
static void delivery_of_an_earlier_connection_is_not_told_to_a_later_one(void **state)
{
	struct packet p = a_packet(PACKET_EAGER, 8);

	p.flags = PACKET_TAGGED | PACKET_DELIVERY | PACKET_MATCH;
	lie.seq++;
	accepted(&p, bytes);
	p = a_packet(PACKET_EAGER, 8);
	p.flags = PACKET_TAGGED | PACKET_DELIVERY | PACKET_MATCH;
	lie.seq++;
	accepted(&p, bytes);
	fake_raw_close(liar, -FI_ECONNRESET);
	lie.incarnation++;
	meet_liar();
	assert_int_equal(
		fi_trecv(victim.ep, out, 100, NULL, FI_ADDR_UNSPEC, 0, 0, &contexts[0]), 0);
	assert_int_equal(next(victim.rx_cq), 1);
	go(10);
	while (fake_raw_read(liar, &p, NULL, 0))
		assert_int_not_equal(p.op, PACKET_FIN);
	assert_int_equal(
		fi_trecv(victim.ep, out, 100, NULL, FI_ADDR_UNSPEC, 0, 0, &contexts[0]), 0);
	assert_int_equal(next(victim.rx_cq), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) \
	cmocka_unit_test_setup_teardown(name, access_victim_setup, access_victim_teardown)
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
