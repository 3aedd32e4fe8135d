/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The proof of a secret, and TLS, against whoever is between two sides or in the place of one:
 * messages that are cut, bent, replayed, reflected, reordered, or stop half-way.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>
#include "mock_core.h"
#include "mock_secret.h"
#include "raw_peer.h"
#include "tcp_conn.h"
#include "tcp_greet.h"
#include "tcp_prove.h"
#include "tcp_secret.h"

#define SECRET "a secret of more than sixteen bytes"
#define OUT_LEN \
	(sizeof(struct tcp_offer) + sizeof(struct tcp_evidence) + sizeof(struct tcp_preamble))
#define BACK_LEN (sizeof(struct tcp_counter) + TCP_KEY_LEN + sizeof(struct tcp_answer))

static struct side *one, *other;

static void sides_open(bool tls)
{
	one = secret_side(SECRET, tls);
	other = secret_side(SECRET, tls);
}

static void sides_close(void)
{
	side_close(one);
	side_close(other);
}

/* A length that lies makes a side wait for more: the relay gives up when nothing has passed for so long. */
#define IDLE_ROUNDS 20000

/* Cuts a relay through which nothing has passed for a long time, if it bends what passes. */
static void give_up(struct relay *relay)
{
	static size_t last, idle;
	size_t now = relay->out.len + relay->back.len;

	idle = now == last ? idle + 1 : 0;
	last = now;
	if (idle > IDLE_ROUNDS && relay->out.bend != SIZE_MAX)
		relay->out.cut = relay->out.len;
}

/*
 * Connects @one to @other through the relay, until the connection is up at @one or has failed there.
 * Returns the conn if it is up.
 */
static struct wire_conn *through(struct relay *relay)
{
	int downs = one->downs;
	struct wire_conn *conn = side_connect(one, relay->at);

	start_clock();
	while (one->downs == downs && !conn->up && !expired()) {
		side_poll(one);
		relay_pump(relay);
		give_up(relay);
		side_poll(other);
	}
	assert_false(expired());
	return one->downs == downs ? conn : NULL;
}

/* Nothing of the relayed connection is left at @other. */
static void gone(struct relay *relay, int conn_cnt)
{
	relay_close(relay);
	DRIVE(one, other,
	      !tcp_wire_from(other->wire)->port->guest_cnt &&
		      other->downs == other->conn_cnt - conn_cnt);
}

/* The lengths of what passes until the connection is up, each way. */
static void lengths(size_t *out, size_t *back)
{
	struct relay *relay = relay_open(other);
	struct wire_conn *conn = through(relay);
	int downs = other->downs;

	assert_non_null(conn);
	*out = relay->out.len;
	*back = relay->back.len;
	tcp_disconnect(conn);
	relay_close(relay);
	DRIVE(one, other, other->downs == downs + 1);
	other->conn_cnt = other->downs = 0;
}

/* ---- in between ---- */

static void proofs_that_are_bent_are_rejected(void **state)
{
	size_t out, back, at;
	struct relay *relay;

	sides_open(false);
	lengths(&out, &back);
	assert_int_equal(out, OUT_LEN);
	assert_int_equal(back, BACK_LEN);
	for (at = 0; at < out + back; at++) {
		relay = relay_open(other);
		(at < out ? &relay->out : &relay->back)->bend = at < out ? at : at - out;
		(at < out ? &relay->out : &relay->back)->mask = (uint8_t)(1u << at % 8);
		assert_null(through(relay));
		assert_true(one->last_err < 0);
		if (at < out) /* the preamble was not looked at */
			assert_int_equal(other->conn_cnt, 0);
		gone(relay, 0);
		other->conn_cnt = other->downs = 0;
	}
	assert_int_equal(one->conn_cnt, 1);
	sides_close();
}

static void greetings_that_are_cut_come_to_nothing(bool tls)
{
	size_t out, back, at;
	struct relay *relay;

	sides_open(tls);
	lengths(&out, &back);
	for (at = 0; at < out + back; at++) {
		relay = relay_open(other);
		(at < out ? &relay->out : &relay->back)->cut = at < out ? at : at - out;
		assert_null(through(relay));
		assert_true(one->last_err < 0);
		/* all but the answer has arrived */
		if (at < out)
			assert_int_equal(other->conn_cnt, 0);
		gone(relay, 0);
		other->conn_cnt = other->downs = 0;
	}
	assert_int_equal(one->conn_cnt, 1);
	sides_close();
}

static void proofs_that_are_cut_come_to_nothing(void **state)
{
	greetings_that_are_cut_come_to_nothing(false);
}

static void handshakes_that_are_cut_come_to_nothing(void **state)
{
	greetings_that_are_cut_come_to_nothing(true);
}

/*
 * Sends packets through the relay, until all have arrived or the connection has ended. Those that
 * have arrived are right.
 */
static void packets(struct relay *relay, struct wire_conn *conn)
{
	int cnt = 0, i;

	start_clock();
	while (!one->downs && !other->downs && other->got_cnt < 20 && !expired()) {
		cnt += cnt < 20 && publish(conn, (uint32_t)cnt, 3000, false);
		side_poll(one);
		relay_pump(relay);
		give_up(relay);
		side_poll(other);
	}
	assert_false(expired());
	for (i = 0; i < other->got_cnt; i++) {
		assert_int_equal(other->got[i].packet.seq, i);
		assert_true(payload_right(&other->got[i]));
	}
}

/*
 * What is bent under TLS ends the connection, with the packets before it; but for the few bytes
 * that TLS itself ignores, as the version in front of a record.
 */
static void bytes_that_are_bent_under_tls_are_not_taken(void **state)
{
	static const size_t steps[] = { 1, 977 };
	size_t out, back, at, up = 0;
	struct wire_conn *conn;
	struct relay *relay;

	sides_open(true);
	lengths(&out, &back);
	sides_close();
	for (at = 0; at < out + 50000; at += steps[at >= out]) {
		sides_open(true);
		relay = relay_open(other);
		relay->out.bend = at;
		relay->out.mask = (uint8_t)(1u << at % 8);
		conn = through(relay);
		if (conn) {
			up += at < out;
			packets(relay, conn);
			if (at >= out)
				assert_true(other->got_cnt < 20);
		}
		relay_close(relay);
		sides_close();
	}
	assert_true(up < 16);
}

static bool seen(const struct relayed *way, const void *bytes, size_t len)
{
	size_t kept = way->len < RELAY_MAX ? way->len : RELAY_MAX;

	return memmem(way->bytes, kept, bytes, len) != NULL;
}

/* What is in between reads the packets of sides without TLS, and nothing of others. */
static void tls_hides_what_is_sent(void **state)
{
	uint8_t payload[3000];
	struct wire_conn *conn;
	struct relay *relay;

	pattern(payload, sizeof(payload), 0);
	for (int tls = 0; tls < 2; tls++) {
		sides_open(tls);
		relay = relay_open(other);
		conn = through(relay);
		assert_non_null(conn);
		packets(relay, conn);
		assert_int_equal(other->got_cnt, 20);
		assert_int_equal(seen(&relay->out, payload, 16), !tls);
		assert_int_equal(seen(&relay->out, &one->hello.addr, sizeof(one->hello.addr)),
				 !tls);
		assert_false(seen(&relay->out, SECRET, strlen(SECRET)));
		relay_close(relay);
		sides_close();
	}
}

/* ---- in the place of the side that connects ---- */

/* @other gets these bytes and makes no conn of them. */
static void not_let_in(const void *bytes, size_t len)
{
	uint8_t answer[512];
	int fd = raw_connect(other);

	raw_send(fd, bytes, len);
	shutdown(fd, SHUT_WR);
	raw_recv(fd, other, answer, sizeof(answer));
	close(fd);
	DRIVE(other, NULL, !tcp_wire_from(other->wire)->port->guest_cnt);
	assert_int_equal(other->conn_cnt, 1);
}

static void greetings_that_are_replayed_are_rejected(void **state)
{
	uint8_t swapped[OUT_LEN];
	struct relay *relay;
	size_t len;

	for (int tls = 0; tls < 2; tls++) {
		sides_open(tls);
		relay = relay_open(other);
		assert_non_null(through(relay));
		len = relay->out.len;
		not_let_in(relay->out.bytes, len);
		if (!tls) {
			/* the second message first */
			memcpy(swapped, relay->out.bytes + sizeof(struct tcp_offer),
			       len - sizeof(struct tcp_offer));
			memcpy(swapped + len - sizeof(struct tcp_offer), relay->out.bytes,
			       sizeof(struct tcp_offer));
			not_let_in(swapped, len);
			/* without the first, and without the proof */
			not_let_in(swapped, len - sizeof(struct tcp_offer));
			not_let_in(relay->out.bytes + len - sizeof(struct tcp_preamble),
				   sizeof(struct tcp_preamble));
		}
		/* what the other side has said */
		not_let_in(relay->back.bytes, relay->back.len);
		relay_close(relay);
		sides_close();
	}
}

/* The proof as a side with the secret makes it, by other code than the wire's. */
struct raw_proof {
	struct tcp_offer offer;
	struct tcp_counter counter;
	struct tcp_evidence evidence;
	struct tcp_preamble preamble;
};

static struct tcp_secret *known;

static void raw_mac(struct raw_proof *p, const char label[16], uint8_t mac[TCP_KEY_LEN])
{
	struct iovec iov[] = { { (void *)(uintptr_t)label, 16 },
			       { &p->offer, 40 },
			       { &p->counter, 40 },
			       { &p->preamble, sizeof(p->preamble) } };

	known->crypto->mac(known->key, iov, 4, mac);
}

/* Says the offer and reads the counter. Returns the socket. */
static int raw_offer(struct raw_proof *p)
{
	int fd = raw_connect(other);

	*p = (struct raw_proof){
		.offer.intro = { TCP_PROVE_MAGIC, TCP_PROVE_VERSION, TCP_PROVE_SECRET, 0 },
		.offer.nonce = { 1, 2, 3 },
		.evidence.intro = { TCP_PROVE_MAGIC, TCP_PROVE_VERSION, TCP_PROVE_SECRET, 0 },
		.preamble = { .magic = TCP_MAGIC,
			      .version = TCP_VERSION,
			      .lane = TCP_LANE_CONTROL,
			      .fresh = 1,
			      .cookie = { 1 },
			      .hello = one->hello },
	};
	raw_send(fd, &p->offer, sizeof(p->offer));
	assert_int_equal(raw_recv(fd, other, &p->counter, sizeof(p->counter)),
			 sizeof(p->counter));
	return fd;
}

/* Says the evidence and the preamble. Returns what the answer says, or -1 without an answer. */
static int raw_claim(int fd, struct raw_proof *p)
{
	struct {
		uint8_t seal[TCP_KEY_LEN];
		struct tcp_answer answer;
	} got;
	size_t len;

	raw_send(fd, &p->evidence, 40);
	raw_send(fd, &p->preamble, sizeof(p->preamble));
	len = raw_recv(fd, other, &got, sizeof(got));
	close(fd);
	DRIVE(other, NULL, !tcp_wire_from(other->wire)->port->guest_cnt);
	return len == sizeof(got) ? got.answer.err : -1;
}

static void proof_is_what_is_written(void **state)
{
	struct raw_proof p, q;
	int fd;

	sides_open(false);
	known = tcp_wire_from(other->wire)->hub->secret;
	fd = raw_offer(&p);
	raw_mac(&p, "connect\0\0\0\0\0\0\0\0", p.evidence.mac);
	assert_int_equal(raw_claim(fd, &p), 0);
	assert_int_equal(other->conn_cnt, 1);
	/* fresh nonces: what was right for one is wrong for the next */
	fd = raw_offer(&q);
	assert_memory_not_equal(p.counter.nonce, q.counter.nonce, TCP_KEY_LEN);
	q.evidence = p.evidence;
	assert_int_equal(raw_claim(fd, &q), -1);
	/* its own proof sent back to it */
	fd = raw_offer(&p);
	memcpy(p.evidence.mac, p.counter.mac, TCP_KEY_LEN);
	assert_int_equal(raw_claim(fd, &p), -1);
	/* the role of the side that accepts */
	fd = raw_offer(&p);
	raw_mac(&p, "accept\0\0\0\0\0\0\0\0\0", p.evidence.mac);
	assert_int_equal(raw_claim(fd, &p), -1);
	/* for another preamble */
	fd = raw_offer(&p);
	raw_mac(&p, "connect\0\0\0\0\0\0\0\0", p.evidence.mac);
	p.preamble.hello.epoch++;
	assert_int_equal(raw_claim(fd, &p), -1);
	/* who has proved the secret is checked as anyone else */
	fd = raw_offer(&p);
	p.preamble.hello.magic++;
	raw_mac(&p, "connect\0\0\0\0\0\0\0\0", p.evidence.mac);
	assert_int_equal(raw_claim(fd, &p), FI_EINVAL);
	assert_int_equal(other->conn_cnt, 1);
	sides_close();
}

/* Versions and lengths that lie, and other protocols, with a secret and without. */
static void offers_that_are_wrong_are_refused(void **state)
{
	struct tcp_intro wrong[] = {
		{ TCP_PROVE_MAGIC, TCP_PROVE_VERSION + 1, TCP_PROVE_SECRET, 0 },
		{ TCP_PROVE_MAGIC, TCP_PROVE_VERSION, TCP_PROVE_TLS, 0 },
		{ TCP_PROVE_MAGIC, TCP_PROVE_VERSION, 77, 0 },
		{ TCP_PROVE_MAGIC, TCP_PROVE_VERSION, TCP_PROVE_SECRET, 77 },
		{ TCP_PROVE_ANSWER_MAGIC, TCP_PROVE_VERSION, TCP_PROVE_SECRET, 0 },
		{ TCP_MAGIC, TCP_VERSION, TCP_LANE_CONTROL, 0 },
		{ 0x50545448, 0, 0, 0 }, /* HTTP */
	};
	uint8_t bytes[600] = { 0 };

	/* not_let_in() counts one */
	for (int with = 0; with < 2; with++) {
		one = secret_side(with ? SECRET : NULL, false);
		other = secret_side(with ? SECRET : NULL, false);
		for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
			memcpy(bytes, &wrong[i], sizeof(wrong[i]));
			other->conn_cnt = 1;
			not_let_in(bytes, sizeof(bytes));
		}
		sides_close();
	}
}

/* Guests that stop half-way take nothing from others. */
static void stalled_guests_hinder_no_one(void **state)
{
	struct wire_conn *ab, *ba;
	struct raw_proof p;
	int fd[24], i;
	size_t len;

	for (int tls = 0; tls < 2; tls++) {
		sides_open(tls);
		p.offer = (struct tcp_offer){ .intro = { TCP_PROVE_MAGIC, TCP_PROVE_VERSION,
							 tls ? TCP_PROVE_TLS : TCP_PROVE_SECRET,
							 0 } };
		for (i = 0; i < 24; i++) {
			fd[i] = raw_connect(other);
			/* of TLS, what comes before the handshake */
			len = (size_t)i % (sizeof(struct tcp_intro) + 1) + (tls ? 0 : 15);
			raw_send(fd[i], &p.offer, len);
		}
		DRIVE(other, NULL, tcp_wire_from(other->wire)->port->guest_cnt == 24);
		pair_up(one, other, &ab, &ba);
		assert_true(publish(ab, 1, 100, false));
		DRIVE(one, other, other->got_cnt == 1);
		assert_int_equal(tcp_wire_from(other->wire)->port->guest_cnt, 24);
		for (i = 0; i < 24; i++)
			close(fd[i]);
		DRIVE(other, NULL, !tcp_wire_from(other->wire)->port->guest_cnt);
		sides_close();
	}
}

/* ---- in the place of the side that accepts ---- */

/* Who holds the address without the secret is found out, and learns nothing of the endpoint. */
static void addresses_are_not_claimed_without_the_secret(void **state)
{
	struct side *thief;
	struct relay *relay;

	for (int tls = 0; tls < 2; tls++) {
		sides_open(tls);
		thief = secret_side("another secret, sixteen bytes or more", tls);
		thief->addr.port = tcp_wire_from(thief->wire)->port->number;
		relay = relay_open(thief);
		side_connect(one, relay->at);
		start_clock();
		while (!one->downs && !expired()) {
			side_poll(one);
			relay_pump(relay);
			side_poll(thief);
		}
		assert_int_equal(one->last_err, -FI_EKEYREJECTED);
		assert_int_equal(thief->conn_cnt, 0);
		assert_false(seen(&relay->out, &one->hello.addr, sizeof(one->hello.addr)));
		relay_close(relay);
		side_close(thief);
		sides_close();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(proofs_that_are_bent_are_rejected),
		cmocka_unit_test(proofs_that_are_cut_come_to_nothing),
		cmocka_unit_test(handshakes_that_are_cut_come_to_nothing),
		cmocka_unit_test(bytes_that_are_bent_under_tls_are_not_taken),
		cmocka_unit_test(tls_hides_what_is_sent),
		cmocka_unit_test(greetings_that_are_replayed_are_rejected),
		cmocka_unit_test(proof_is_what_is_written),
		cmocka_unit_test(offers_that_are_wrong_are_refused),
		cmocka_unit_test(stalled_guests_hinder_no_one),
		cmocka_unit_test(addresses_are_not_claimed_without_the_secret),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
