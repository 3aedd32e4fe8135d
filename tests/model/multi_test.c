/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Buffers that take several messages (FI_MULTI_RECV), over the fake wires: one case at a time,
 * and a long run against the arithmetic of a reader of fi_msg(3).
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <rdma/fi_errno.h>
#include "fake_ends.h"
#include <cmocka.h>

#define ROUNDS_MAX 200000 /* polls in which anything must happen */
#define BIG	   100000u

static struct fake_end a, b;
static fi_addr_t to_b, to_a;
static struct fi_cq_tagged_entry entry;
static struct fi_cq_err_entry error;
static struct fi_context2 contexts[8];
static char from[BIG], buf[4 * BIG];

static const struct fake_end_attr plain = {
	.family = FAKE_FAMILY_AB,
	.threading = FI_THREAD_DOMAIN,
	.format = FI_CQ_FORMAT_TAGGED,
	.budget = 64u << 20,
};

static void knobs(bool has_get)
{
	struct fake_knobs k;

	fake_knobs_default(&k);
	k.claim_max = 1024;
	k.eager_max = 8192;
	k.has_get = has_get;
	fake_knobs_set(FAKE_A, &k);
	fake_knobs_set(FAKE_B, &k);
}

static void open_both(const struct fake_end_attr *attr)
{
	fake_end_open(&a, &plain, NULL);
	fake_end_open(&b, attr, NULL);
	to_b = fake_end_insert(&a, &b.name);
	to_a = fake_end_insert(&b, &a.name);
}

static int setup(void **state)
{
	fake_ends_begin(1);
	knobs(true);
	for (size_t i = 0; i < BIG; i++)
		from[i] = (char)(i * 7 + i / 256);
	memset(buf, 0, sizeof(buf));
	return 0;
}

static int teardown(void **state)
{
	fake_ends_close();
	return 0;
}

static ssize_t next(struct fid_cq *cq, uint32_t rounds)
{
	return fake_ends_next(cq, rounds, &entry, NULL, &error);
}

/* The next receive: bytes [at, at + len) of the buffer have what was sent. */
static void expect_part(void *context, size_t at, size_t len, uint64_t flags)
{
	assert_int_equal(next(b.rx_cq, ROUNDS_MAX), 1);
	assert_ptr_equal(entry.op_context, context);
	assert_int_equal(entry.flags, flags);
	assert_int_equal(entry.len, len);
	assert_ptr_equal(entry.buf, buf + at);
	assert_memory_equal(buf + at, from, len);
}

static void expect_released(void *context)
{
	assert_int_equal(next(b.rx_cq, ROUNDS_MAX), 1);
	assert_ptr_equal(entry.op_context, context);
	assert_int_equal(entry.flags, FI_MULTI_RECV);
}

static void expect_error(void *context, int err, uint64_t flags)
{
	assert_int_equal(next(b.rx_cq, ROUNDS_MAX), -FI_EAVAIL);
	assert_ptr_equal(error.op_context, context);
	assert_int_equal(error.err, err);
	assert_int_equal(error.flags, flags);
}

static void expect_nothing(void)
{
	assert_int_equal(next(b.rx_cq, 2000), -FI_EAGAIN);
}

static void min_is(size_t min)
{
	size_t got = 0, len = sizeof(got);

	assert_int_equal(fi_setopt(&b.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &min,
				   sizeof(min)),
			 0);
	assert_int_equal(
		fi_getopt(&b.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &got, &len), 0);
	assert_int_equal(got, min);
}

static ssize_t post(size_t len, fi_addr_t src, void *context)
{
	struct iovec iov = { buf, len };
	struct fi_msg msg = { .msg_iov = &iov, .iov_count = 1, .addr = src, .context = context };

	return fi_recvmsg(b.ep, &msg, FI_MULTI_RECV);
}

static ssize_t tpost(size_t len, uint64_t tag, uint64_t ignore, uint64_t flags, void *context)
{
	struct iovec iov = { buf, len };
	struct fi_msg_tagged msg = { .msg_iov = &iov,
				     .iov_count = 1,
				     .addr = FI_ADDR_UNSPEC,
				     .tag = tag,
				     .ignore = ignore,
				     .context = context };

	return fi_trecvmsg(b.ep, &msg, FI_MULTI_RECV | flags);
}

static void send_len(size_t len)
{
	while (fi_send(a.ep, from, len, NULL, to_b, NULL) == -FI_EAGAIN)
		fake_ends_go(1);
}

static void buffer_takes_messages_until_too_little_is_free(void **state)
{
	open_both(&plain);
	min_is(100);
	assert_int_equal(post(1000, FI_ADDR_UNSPEC, &contexts[0]), 0);
	send_len(300);
	send_len(0);
	send_len(500);
	send_len(101);
	expect_part(&contexts[0], 0, 300, FI_RECV | FI_MSG);
	expect_part(&contexts[0], 300, 0, FI_RECV | FI_MSG);
	expect_part(&contexts[0], 300, 500, FI_RECV | FI_MSG);
	expect_part(&contexts[0], 800, 101, FI_RECV | FI_MSG | FI_MULTI_RECV);
	/* One that finds nothing waits for the next buffer. */
	send_len(10);
	expect_nothing();
	assert_int_equal(post(10, FI_ADDR_UNSPEC, &contexts[1]), 0);
	expect_part(&contexts[1], 0, 10, FI_RECV | FI_MSG | FI_MULTI_RECV);
}

static void messages_that_are_here_already_go_into_the_buffer_first(void **state)
{
	open_both(&plain);
	min_is(1000);
	send_len(300);
	send_len(BIG); /* stays with its sender */
	send_len(5000);
	send_len(200);
	fake_ends_go(200);
	assert_int_equal(post(BIG + 6300, FI_ADDR_UNSPEC, &contexts[0]), 0);
	/* the large one takes its time, and what is behind it does not wait */
	for (int parts = 0, last = 0; parts < 4; parts++) {
		assert_int_equal(next(b.rx_cq, ROUNDS_MAX), 1);
		assert_false(last);
		last = !!(entry.flags & FI_MULTI_RECV);
		assert_int_equal(last, parts == 3);
		assert_memory_equal(entry.buf, from, entry.len);
	}
	assert_memory_equal(buf + 300, from, BIG);
	assert_memory_equal(buf + BIG + 300, from, 5000);
	assert_memory_equal(buf + BIG + 5300, from, 200);
	expect_nothing();
}

static void rendezvous_of_every_kind_lands_in_the_buffer(void **state)
{
	for (int has_get = 0; has_get < 2; has_get++) {
		knobs(has_get);
		open_both(&plain);
		min_is(1);
		assert_int_equal(post(3 * BIG, to_a, &contexts[0]), 0);
		for (int i = 0; i < 3; i++)
			send_len(BIG);
		for (int i = 0; i < 3; i++) {
			assert_int_equal(next(b.rx_cq, ROUNDS_MAX), 1);
			assert_int_equal(entry.len, BIG);
			assert_memory_equal(entry.buf, from, BIG);
			assert_int_equal(!!(entry.flags & FI_MULTI_RECV), i == 2);
		}
		teardown(state);
	}
}

static void post_order_holds_while_a_buffer_takes_several(void **state)
{
	char other[64];

	open_both(&plain);
	min_is(1);
	assert_int_equal(fi_trecv(b.ep, other, 64, NULL, FI_ADDR_UNSPEC, 1, 0, &contexts[1]), 0);
	assert_int_equal(tpost(1000, 0, UINT64_MAX, 0, &contexts[0]), 0);
	assert_int_equal(fi_trecv(b.ep, other, 64, NULL, FI_ADDR_UNSPEC, 2, 0, &contexts[2]), 0);
	for (int i = 0; i < 2; i++)
		FAKE_UNTIL_TAKEN(fi_tinject(a.ep, from, 10, to_b, 1));
	assert_int_equal(fi_tinject(a.ep, from, 20, to_b, 2), 0);
	assert_int_equal(next(b.rx_cq, ROUNDS_MAX), 1);
	assert_ptr_equal(entry.op_context, &contexts[1]);
	expect_part(&contexts[0], 0, 10, FI_RECV | FI_TAGGED);
	assert_int_equal(entry.tag, 1);
	expect_part(&contexts[0], 10, 20, FI_RECV | FI_TAGGED);
	assert_int_equal(entry.tag, 2);
	expect_nothing();
}

static void claimed_message_is_the_first_in_its_buffer(void **state)
{
	struct fi_msg_tagged peek = { .addr = FI_ADDR_UNSPEC, .tag = 5, .context = &contexts[0] };

	open_both(&plain);
	min_is(50);
	for (int i = 0; i < 3; i++)
		FAKE_UNTIL_TAKEN(fi_tinject(a.ep, from, 100 + i, to_b, 5));
	fake_ends_go(200);
	assert_int_equal(fi_trecvmsg(b.ep, &peek, FI_PEEK | FI_CLAIM), 0);
	assert_int_equal(next(b.rx_cq, ROUNDS_MAX), 1);
	assert_int_equal(tpost(500, 5, 0, FI_PEEK, &contexts[0]), -FI_EBADFLAGS);
	assert_int_equal(tpost(500, 5, 0, FI_CLAIM | FI_DISCARD, &contexts[0]), -FI_EBADFLAGS);
	assert_int_equal(tpost(500, 5, 0, FI_CLAIM, &contexts[0]), 0);
	expect_part(&contexts[0], 0, 100, FI_RECV | FI_TAGGED);
	expect_part(&contexts[0], 100, 101, FI_RECV | FI_TAGGED);
	expect_part(&contexts[0], 201, 102, FI_RECV | FI_TAGGED);
	assert_int_equal(fi_tinject(a.ep, from, 160, to_b, 5), 0);
	expect_part(&contexts[0], 303, 160, FI_RECV | FI_TAGGED | FI_MULTI_RECV);
}

static void message_that_does_not_fit_is_cut_and_releases_the_buffer(void **state)
{
	open_both(&plain);
	min_is(10);
	assert_int_equal(post(100, FI_ADDR_UNSPEC, &contexts[0]), 0);
	send_len(50);
	send_len(60);
	expect_part(&contexts[0], 0, 50, FI_RECV | FI_MSG);
	expect_error(&contexts[0], FI_ETRUNC, FI_RECV | FI_MSG | FI_MULTI_RECV);
	assert_int_equal(error.len, 50);
	assert_int_equal(error.olen, 10);
	assert_ptr_equal(error.buf, buf + 50);
	assert_memory_equal(buf + 50, from, 50);
}

static void buffer_is_released_by_an_entry_that_nobody_can_suppress(void **state)
{
	struct fake_end_attr quiet = plain;

	quiet.bind_flags = FI_SELECTIVE_COMPLETION;
	open_both(&quiet);
	min_is(10);
	assert_int_equal(post(100, FI_ADDR_UNSPEC, &contexts[0]), 0);
	send_len(50);
	send_len(45);
	expect_released(&contexts[0]);
	assert_memory_equal(buf + 50, from, 45);
	expect_nothing();
}

static void cancelled_buffer_waits_for_what_is_under_way_in_it(void **state)
{
	open_both(&plain);
	min_is(10);
	assert_int_equal(post(2 * BIG, FI_ADDR_UNSPEC, &contexts[0]), 0);
	send_len(50);
	expect_part(&contexts[0], 0, 50, FI_RECV | FI_MSG);
	knobs(false);
	fake_stop(fake_end_engine(&b), fake_end_engine(&a), true);
	send_len(BIG);
	fake_ends_go(100);
	assert_int_equal(fi_cancel(&b.ep->fid, &contexts[0]), 0);
	assert_int_equal(fi_cancel(&b.ep->fid, &contexts[0]), 0);
	fake_stop(fake_end_engine(&b), fake_end_engine(&a), false);
	expect_part(&contexts[0], 50, BIG, FI_RECV | FI_MSG);
	expect_error(&contexts[0], FI_ECANCELED, FI_RECV | FI_MSG | FI_MULTI_RECV);
	send_len(1);
	expect_nothing();
}

static void unused_buffer_is_cancelled_at_once(void **state)
{
	open_both(&plain);
	assert_int_equal(post(100, FI_ADDR_UNSPEC, &contexts[0]), 0);
	assert_int_equal(fi_cancel(&b.ep->fid, &contexts[0]), 0);
	expect_error(&contexts[0], FI_ECANCELED, FI_RECV | FI_MSG | FI_MULTI_RECV);
}

/* @src: source that the buffer is for. */
static void break_in_the_middle(fi_addr_t src)
{
	assert_int_equal(post(2 * BIG, src, &contexts[0]), 0);
	send_len(50);
	expect_part(&contexts[0], 0, 50, FI_RECV | FI_MSG);
	fake_stop(fake_end_engine(&b), fake_end_engine(&a), true);
	send_len(BIG);
	fake_ends_go(100);
	fake_stop(fake_end_engine(&b), fake_end_engine(&a), false);
	fake_break(fake_end_engine(&a), fake_end_engine(&b), -FI_ECONNRESET);
}

static void broken_peer_fails_its_parts_and_wildcards_go_on(void **state)
{
	knobs(false);
	open_both(&plain);
	min_is(10);
	break_in_the_middle(FI_ADDR_UNSPEC);
	expect_error(&contexts[0], FI_ECONNRESET, FI_RECV | FI_MSG);
	assert_int_equal(error.src_addr, to_a);
	fake_ends_go(10); /* the other side learns of it too */
	send_len(40);
	expect_part(&contexts[0], 50 + BIG, 40, FI_RECV | FI_MSG);
}

static void broken_peer_releases_a_buffer_that_was_for_it_alone(void **state)
{
	knobs(false);
	open_both(&plain);
	min_is(10);
	break_in_the_middle(to_a);
	expect_error(&contexts[0], FI_ECONNRESET, FI_RECV | FI_MSG);
	expect_error(&contexts[0], FI_ECONNRESET, FI_RECV | FI_MSG | FI_MULTI_RECV);
	assert_int_equal(error.src_addr, to_a);
	expect_nothing();
}

static void flag_by_default_counts_for_calls_without_flags(void **state)
{
	struct fake_end_attr multi = plain;
	char other[64];
	struct iovec two[2] = { { buf, 10 }, { buf + 10, 10 } };

	multi.rx_op_flags = FI_MULTI_RECV;
	multi.caps = FI_MSG | FI_TAGGED | FI_MULTI_RECV; /* and not for tagged ones */
	open_both(&multi);
	min_is(60);
	assert_int_equal(fi_recv(b.ep, buf, 100, NULL, FI_ADDR_UNSPEC, &contexts[0]), 0);
	assert_int_equal(fi_trecv(b.ep, other, 64, NULL, FI_ADDR_UNSPEC, 1, 0, &contexts[1]), 0);
	send_len(30);
	send_len(30);
	FAKE_UNTIL_TAKEN(fi_tinject(a.ep, from, 10, to_b, 1));
	expect_part(&contexts[0], 0, 30, FI_RECV | FI_MSG);
	expect_part(&contexts[0], 30, 30, FI_RECV | FI_MSG | FI_MULTI_RECV);
	assert_int_equal(next(b.rx_cq, ROUNDS_MAX), 1);
	assert_ptr_equal(entry.op_context, &contexts[1]);
	assert_int_equal(entry.flags, FI_RECV | FI_TAGGED);
	assert_int_equal(fi_recvv(b.ep, two, NULL, 2, FI_ADDR_UNSPEC, &contexts[2]), -FI_EINVAL);
}

static void endpoint_closes_with_buffers_in_use(void **state)
{
	knobs(false);
	open_both(&plain);
	min_is(10);
	assert_int_equal(post(BIG, FI_ADDR_UNSPEC, &contexts[0]), 0);
	assert_int_equal(post(2 * BIG, FI_ADDR_UNSPEC, &contexts[1]), 0);
	fake_stop(fake_end_engine(&b), fake_end_engine(&a), true);
	send_len(BIG);
	send_len(BIG);
	fake_ends_go(100);
}

/*
 * Many buffers, many messages of one sender: whatever the wires do, each message is at its computed
 * place, and a buffer is released once, with the last of its messages.
 */
#define BUFFERS	 8u
#define MESSAGES 4000u

struct place {
	uint32_t buffer;
	size_t at, len, room;
	bool done;
};

static struct place places[MESSAGES];
static struct multi_buffer {
	char *mem;
	size_t len;
	uint32_t first, parts, done; /* of its messages; parts: in all, once it is full */
	bool released;
} multi[MESSAGES + BUFFERS + 1];
static uint32_t posted_cnt, released_cnt, done_cnt, min_free;

static void post_next(void)
{
	struct multi_buffer *m = &multi[posted_cnt];
	struct iovec iov;
	struct fi_msg msg = {
		.msg_iov = &iov, .iov_count = 1, .addr = FI_ADDR_UNSPEC, .context = m
	};

	m->len = fake_random(4) ? 1 + fake_random(20000) : 1 + fake_random(2 * BIG);
	m->mem = malloc(m->len);
	assert_non_null(m->mem);
	iov = (struct iovec){ m->mem, m->len };
	assert_int_equal(fi_recvmsg(b.ep, &msg, FI_MULTI_RECV), 0);
	posted_cnt++;
}

/* Where message @i will stand: after those before it. */
static void place(uint32_t i, size_t len)
{
	static uint32_t buffer;
	static size_t used;

	if (!i)
		buffer = 0, used = 0;
	while (buffer >= posted_cnt)
		post_next();
	places[i] = (struct place){ .buffer = buffer, .at = used, .len = len };
	places[i].room = multi[buffer].len - used < len ? multi[buffer].len - used : len;
	used += places[i].room;
	if (!multi[buffer].parts++)
		multi[buffer].first = i;
	if (multi[buffer].len - used < min_free) {
		buffer++;
		used = 0;
	}
}

/* A part has come: which, and is it the last of its buffer. */
static void part_came(struct multi_buffer *m, const void *at, size_t len, size_t cut, bool last)
{
	uint32_t i = m->first;

	for (; i < m->first + m->parts; i++)
		if (!places[i].done && m->mem + places[i].at == at && places[i].len == len + cut)
			break;
	assert_true(i < m->first + m->parts);
	assert_int_equal(places[i].room, len);
	assert_memory_equal(at, from, len);
	places[i].done = true;
	m->done++;
	done_cnt++;
	assert_false(m->released);
	m->released = last;
	if (!last)
		return;
	assert_int_equal(m->done, m->parts);
	free(m->mem);
	released_cnt++;
}

static bool read_one(void)
{
	ssize_t ret = next(b.rx_cq, 0);

	if (ret == 1) {
		part_came(entry.op_context, entry.buf, entry.len, 0,
			  entry.flags & FI_MULTI_RECV);
		return true;
	}
	if (ret != -FI_EAVAIL)
		return false;
	assert_int_equal(error.err, FI_ETRUNC);
	part_came(error.op_context, error.buf, error.len, error.olen,
		  error.flags & FI_MULTI_RECV);
	return true;
}

static size_t some_len(void)
{
	switch (fake_random(8)) {
	case 0:
		return fake_random(BIG);
	case 1:
	case 2:
		return fake_random(9000);
	case 3:
		return 0;
	default:
		return fake_random(600);
	}
}

static void run_with(uint64_t seed)
{
	struct fake_knobs k;
	size_t len;

	fake_ends_begin(seed);
	for (int i = 0; i < FAKE_KINDS; i++) {
		fake_knobs_random(&k);
		fake_knobs_set(i, &k);
	}
	open_both(&plain);
	memset(multi, 0, sizeof(multi));
	posted_cnt = released_cnt = done_cnt = 0;
	min_free = 1 + fake_random(3000);
	min_is(min_free);
	for (uint32_t i = 0; i < MESSAGES; i++) {
		len = some_len();
		while (fi_send(a.ep, from, len, NULL, to_b, NULL) == -FI_EAGAIN)
			read_one();
		/* sometimes the buffer is there before, sometimes it is late */
		place(i, len);
		if (!fake_random(3) && posted_cnt < MESSAGES)
			post_next();
		while (fake_random(4))
			read_one();
		while (fi_cq_read(a.tx_cq, &entry, 1) == 1)
			;
	}
	for (uint32_t idle = 0; idle < ROUNDS_MAX && done_cnt < MESSAGES;)
		idle = read_one() ? 0 : idle + 1;
	for (uint32_t i = 0; i < MESSAGES; i++)
		assert_true(places[i].done);
	for (uint32_t i = 0; i < posted_cnt; i++)
		if (!multi[i].released)
			break;
		else if (i + 1 == posted_cnt)
			assert_int_equal(released_cnt, posted_cnt);
	fake_end_close(&b);
	fake_end_close(&a);
	for (uint32_t i = 0; i < posted_cnt; i++)
		if (!multi[i].released)
			free(multi[i].mem);
}

static void messages_stand_where_arithmetic_says(void **state)
{
	const char *env = getenv("MODEL_SEED");
	uint64_t seed = env ? strtoull(env, NULL, 0) : 1;

	for (int i = 0; i < 12; i++, seed++) {
		printf("seed %llu\n", (unsigned long long)seed);
		run_with(seed);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(buffer_takes_messages_until_too_little_is_free,
						setup, teardown),
		cmocka_unit_test_setup_teardown(
			messages_that_are_here_already_go_into_the_buffer_first, setup,
			teardown),
		cmocka_unit_test_setup_teardown(rendezvous_of_every_kind_lands_in_the_buffer,
						setup, teardown),
		cmocka_unit_test_setup_teardown(post_order_holds_while_a_buffer_takes_several,
						setup, teardown),
		cmocka_unit_test_setup_teardown(claimed_message_is_the_first_in_its_buffer,
						setup, teardown),
		cmocka_unit_test_setup_teardown(
			message_that_does_not_fit_is_cut_and_releases_the_buffer, setup,
			teardown),
		cmocka_unit_test_setup_teardown(
			buffer_is_released_by_an_entry_that_nobody_can_suppress, setup,
			teardown),
		cmocka_unit_test_setup_teardown(
			cancelled_buffer_waits_for_what_is_under_way_in_it, setup, teardown),
		cmocka_unit_test_setup_teardown(unused_buffer_is_cancelled_at_once, setup,
						teardown),
		cmocka_unit_test_setup_teardown(broken_peer_fails_its_parts_and_wildcards_go_on,
						setup, teardown),
		cmocka_unit_test_setup_teardown(
			broken_peer_releases_a_buffer_that_was_for_it_alone, setup, teardown),
		cmocka_unit_test_setup_teardown(flag_by_default_counts_for_calls_without_flags,
						setup, teardown),
		cmocka_unit_test_setup_teardown(endpoint_closes_with_buffers_in_use, setup,
						teardown),
		cmocka_unit_test_setup_teardown(messages_stand_where_arithmetic_says, setup,
						teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
