/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Unit tests of the connection to the lender of another host: what of its messages reaches the library, what is sent again,
 * and when it is given up. The lender is an endpoint of the test's, of the provider tcp.
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <unistd.h>

#include "client.h"
#include "door.h"
#include "fake_pace.h"
#include "fake_use.h"
#include "port.h"

#define PACE 10

#define RECEIVES 4u

/* Longer than a lender's messages are. */
#define LETTER_MAX (LEASE_LETTER_MAX + 512)

/*
 * struct rig - a lender, and the library's end of a connection to it
 * @letters: RECEIVES that it listens with, and one that it sends; @sending: the provider has that one
 * @arrived: letters that have, the first one first
 * @envelope: of the last request; @peer: to whom answers go
 * @answer:  what has come to the library; @answer_len: -ETIMEDOUT: nothing yet
 */
struct rig {
	struct port port;
	struct fid_ep *ep;
	struct fid_mr *mr;
	uint8_t *letters;
	struct fi_context2 contexts[RECEIVES + 1];
	bool sending;
	uint32_t arrived[RECEIVES], arrived_cnt;
	struct lease_envelope envelope;
	fi_addr_t peer;
	bool knows_peer;
	struct doors doors;
	int fd;
	struct lease_message answer;
	ssize_t answer_len;
	unsigned open_before;
};

static uint8_t *letter(struct rig *r, uint32_t idx)
{
	return r->letters + idx * LETTER_MAX;
}

static void listen_with(struct rig *r, uint32_t idx)
{
	assert_int_equal(fi_recv(r->ep, letter(r, idx), LETTER_MAX, port_desc(r->mr),
				 FI_ADDR_UNSPEC, &r->contexts[idx]),
			 0);
}

/* Where the lender is, as weft_lender_open() has it */
static void name_of(struct rig *r, char *name, size_t room)
{
	struct sockaddr_in in;
	size_t len = sizeof(in);

	assert_int_equal(port_ep_name(r->ep, &in, &len), 0);
	snprintf(name, room, "127.0.0.1:%u", ntohs(in.sin_port));
}

static int setup(void **state)
{
	struct port_request request = { .provider = "tcp",
					.host = "127.0.0.1",
					.own = true,
					.len_max = LETTER_MAX,
					.cq_len = 64 };
	struct rig *r = calloc(1, sizeof(*r));
	struct iovec all = { NULL, (RECEIVES + 1) * LETTER_MAX };
	char name[64];
	uint32_t i;

	if (!r)
		return -1;
	*state = r;
	r->open_before = descriptors_open();
	all.iov_base = r->letters = calloc(1, all.iov_len);
	unsetenv("WEFT_FABRIC");
	if (!r->letters || port_open(&request, &r->port) || port_ep_open(&r->port, &r->ep))
		return -1;
	if (r->port.mr_mode & FI_MR_LOCAL &&
	    port_mr_open(&r->port, r->ep, &all, FI_SEND | FI_RECV, &r->mr))
		return -1;
	for (i = 0; i < RECEIVES; i++)
		listen_with(r, i);
	name_of(r, name, sizeof(name));
	doors_init(&r->doors);
	r->fd = door_connect(&r->doors, name, "");
	return r->fd < 0 ? -1 : 0;
}

static int teardown(void **state)
{
	struct rig *r = *state;

	close(r->fd);
	doors_wait(&r->doors);
	fi_close(&r->ep->fid);
	if (r->mr)
		fi_close(&r->mr->fid);
	port_close(&r->port);
	FAKE_USE_UNTIL(descriptors_open() == r->open_before);
	free(r->letters);
	free(r);
	return 0;
}

/* Have what is under way go on. */
static void progress(struct rig *r)
{
	struct fi_cq_data_entry entry;
	uintptr_t at;
	uint32_t idx;

	if (fi_cq_read(r->port.cq, &entry, 1) != 1)
		return;
	at = (uintptr_t)entry.op_context - (uintptr_t)r->contexts;
	idx = (uint32_t)(at / sizeof(r->contexts[0]));
	if (idx == RECEIVES)
		r->sending = false;
	else
		r->arrived[r->arrived_cnt++] = idx;
}

static bool has_letter(struct rig *r)
{
	progress(r);
	return r->arrived_cnt;
}

static bool has_sent(struct rig *r)
{
	progress(r);
	return !r->sending;
}

static bool has_answer(struct rig *r)
{
	struct iovec iov = { &r->answer, sizeof(r->answer) };
	int fds[PACKET_FDS_MAX];
	uint32_t cnt;

	progress(r);
	if (r->answer_len == -ETIMEDOUT)
		r->answer_len = packet_recv(r->fd, &iov, 1, fds, &cnt, 0);
	return r->answer_len != -ETIMEDOUT;
}

static void ask(struct rig *r, uint16_t kind, uint32_t seq)
{
	struct lease_message msg = { .version = LEASE_VERSION, .kind = kind, .seq = seq };
	struct iovec iov = { &msg, sizeof(msg) };

	assert_int_equal(packet_send(r->fd, &iov, 1, NULL, 0), 0);
}

/* The next request that comes to the lender */
static struct lease_message take_request(struct rig *r)
{
	struct lease_message msg;
	uint32_t idx;

	FAKE_USE_UNTIL(has_letter(r));
	idx = r->arrived[0];
	memmove(r->arrived, r->arrived + 1, --r->arrived_cnt * sizeof(r->arrived[0]));
	memcpy(&r->envelope, letter(r, idx), sizeof(r->envelope));
	memcpy(&msg, letter(r, idx) + sizeof(r->envelope), sizeof(msg));
	listen_with(r, idx);
	assert_int_equal(r->envelope.version, LEASE_VERSION);
	if (!r->knows_peer)
		assert_int_equal(
			port_peer(&r->port, r->envelope.name, r->envelope.name_len, &r->peer),
			0);
	r->knows_peer = true;
	return msg;
}

/* A letter as a lender sends it, with @more bytes behind the message */
static void send_letter(struct rig *r, struct lease_envelope envelope, struct lease_message msg,
			size_t more)
{
	uint8_t *to = letter(r, RECEIVES);
	size_t len = sizeof(envelope) + sizeof(msg) + more;

	memcpy(to, &envelope, sizeof(envelope));
	memcpy(to + sizeof(envelope), &msg, sizeof(msg));
	r->sending = true;
	assert_int_equal(
		fi_send(r->ep, to, len, port_desc(r->mr), r->peer, &r->contexts[RECEIVES]), 0);
	FAKE_USE_UNTIL(has_sent(r));
}

static void answer(struct rig *r, struct lease_message msg)
{
	struct lease_envelope envelope = { .version = LEASE_VERSION, .life = r->envelope.life };

	send_letter(r, envelope, msg, 0);
}

/* What has come to the library. Returns the bytes of it, 0: the connection has ended */
static ssize_t take_answer(struct rig *r, struct lease_message *msg)
{
	r->answer_len = -ETIMEDOUT;
	FAKE_USE_UNTIL(has_answer(r));
	*msg = r->answer;
	return r->answer_len;
}

static void names_are_split(void **state)
{
	static const struct {
		const char *name, *host, *service; /* @host NULL: it is refused */
	} names[] = {
		{ "host", "host", LEASE_PORT },
		{ "host:17", "host", "17" },
		{ "[::1]:17", "::1", "17" },
		{ "[::1]", "::1", LEASE_PORT },
		{ "fe80::1", "fe80::1", LEASE_PORT },
		{ "", NULL, NULL },
		{ ":17", NULL, NULL },
		{ "[::1", NULL, NULL },
		{ "[::1]17", NULL, NULL },
		{ "[]", NULL, NULL },
		{ "longer-than-there-is-room-for", NULL, NULL },
	};
	const char *service;
	char host[16];
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		int err = door_split(names[i].name, host, sizeof(host), &service);

		assert_int_equal(err, names[i].host ? 0 : -EINVAL);
		if (err)
			continue;
		assert_string_equal(host, names[i].host);
		assert_string_equal(service, names[i].service);
	}
}

static void who_is_not_there_is_said(void **state)
{
	struct doors doors;

	doors_init(&doors);
	assert_int_equal(door_connect(&doors, "", ""), -EINVAL);
	setenv("WEFT_FABRIC", "no-such-provider", 1);
	assert_int_equal(door_connect(&doors, "127.0.0.1", ""), -EHOSTUNREACH);
	unsetenv("WEFT_FABRIC");
	doors_wait(&doors);
}

static void request_and_answer_are_carried(void **state)
{
	struct rig *r = *state;
	struct lease_message msg;

	ask(r, LEASE_HELLO, 7);
	msg = take_request(r);
	assert_int_equal(msg.kind, LEASE_HELLO);
	assert_int_equal(msg.seq, 7);
	msg.device = 99;
	answer(r, msg);
	assert_int_equal(take_answer(r, &msg), sizeof(msg));
	assert_int_equal(msg.device, 99);
	/* An event needs no request. */
	answer(r, (struct lease_message){ .version = LEASE_VERSION, .kind = LEASE_EVENT });
	assert_int_equal(take_answer(r, &msg), sizeof(msg));
	assert_int_equal(msg.kind, LEASE_EVENT);
}

static void request_that_is_not_answered_is_sent_again(void **state)
{
	struct rig *r = *state;
	struct lease_message msg;
	uint64_t life;

	ask(r, LEASE_HELLO, 3);
	assert_int_equal(take_request(r).seq, 3);
	life = r->envelope.life;
	msg = take_request(r);
	assert_int_equal(msg.seq, 3);
	assert_true(r->envelope.life == life);
	answer(r, msg);
	answer(r, msg);
	assert_int_equal(take_answer(r, &msg), sizeof(msg));
	/* The second answer to it is nobody's. */
	ask(r, LEASE_LIST, 4);
	do
		msg = take_request(r);
	while (msg.seq == 3);
	answer(r, msg);
	assert_int_equal(take_answer(r, &msg), sizeof(msg));
	assert_int_equal(msg.seq, 4);
}

static void descriptors_are_not_carried(void **state)
{
	struct lease_message msg = { .version = LEASE_VERSION, .kind = LEASE_WINDOW, .seq = 1 };
	struct iovec iov = { &msg, sizeof(msg) };
	struct rig *r = *state;

	msg.fd_cnt = 1;
	assert_int_equal(packet_send(r->fd, &iov, 1, &r->fd, 1), 0);
	msg = take_request(r);
	assert_int_equal(msg.kind, LEASE_WINDOW);
	assert_int_equal(msg.fd_cnt, 0);
}

static void what_is_not_the_lenders_is_dropped(void **state)
{
	struct rig *r = *state;
	struct lease_message msg, other, got;
	struct lease_envelope envelope, stranger;

	ask(r, LEASE_HELLO, 5);
	msg = take_request(r);
	envelope = (struct lease_envelope){ .version = LEASE_VERSION, .life = r->envelope.life };
	stranger = envelope;
	stranger.life++;
	send_letter(r, stranger, msg, 0);
	stranger = envelope;
	stranger.version++;
	send_letter(r, stranger, msg, 0);
	other = msg;
	other.seq--;
	send_letter(r, envelope, other, 0);
	other = msg;
	other.fd_cnt = 1;
	send_letter(r, envelope, other, 0);
	other = msg;
	other.data_len = 8;
	send_letter(r, envelope, other, 0);
	send_letter(r, envelope, msg, 8);
	/* One that is longer than any, for which there is no room. */
	send_letter(r, envelope, msg, LETTER_MAX - sizeof(envelope) - sizeof(msg));
	msg.device = 1;
	answer(r, msg);
	assert_int_equal(take_answer(r, &got), sizeof(got));
	assert_int_equal(got.device, 1);
	assert_int_equal(got.seq, 5);
}

/* Who waits for events asks whether the lender is there, and is told when it is not. */
static void lender_that_says_nothing_more_is_lost(void **state)
{
	struct rig *r = *state;
	struct lease_message msg;

	ask(r, LEASE_WATCH, 1);
	answer(r, take_request(r));
	assert_int_equal(take_answer(r, &msg), sizeof(msg));
	do
		msg = take_request(r);
	while (msg.seq == 1);
	assert_int_equal(msg.kind, LEASE_WATCH);
	/* That it is there the library is not told. */
	answer(r, msg);
	r->answer_len = -ETIMEDOUT;
	fake_pace(PACE);
	while (!has_answer(r))
		poll(NULL, 0, 1);
	fake_pace(1);
	assert_int_equal(r->answer_len, 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_are_split),
		cmocka_unit_test(who_is_not_there_is_said),
		TEST(request_and_answer_are_carried),
		TEST(request_that_is_not_answered_is_sent_again),
		TEST(descriptors_are_not_carried),
		TEST(what_is_not_the_lenders_is_dropped),
		TEST(lender_that_says_nothing_more_is_lost),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
