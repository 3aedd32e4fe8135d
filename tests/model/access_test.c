/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * One-sided operations over a real provider, between two threads and between two processes: what is
 * written and read, which events tell of it, and what is refused.
 *
 * usage: access_test PROVIDER
 */
#include <rdma/fi_atomic.h>
#include <weft/routes.h>
#include "access_area.h"

/* Reading and writing */

static void writer(struct pair_side *s)
{
	struct area a;

	area_open(s, &a);
	for (size_t i = 0; i < SIZES; i++) {
		fill(a.buf, sizes[i], i);
		POST(s, fi_write(s->rma, a.buf, sizes[i], NULL, s->peer, 3 * i, KEY,
				 &contexts[0]));
		pair_done(s, &contexts[0]);
		PAIR_CHECK(s, s->entry.flags == (FI_RMA | FI_WRITE));
		read_back(s, &a, 3 * i, sizes[i]);
	}
	/* Many at once, to places of their own; then all of it. */
	fill(a.buf, REGION, 99);
	for (size_t at = 0, n = 0; at < REGION; n++) {
		size_t len = sizes[n % (SIZES - 3)];

		len = len < REGION - at ? len : REGION - at;
		POST(s, fi_write(s->rma, a.buf + at, len, NULL, s->peer, at, KEY, &contexts[2]));
		at += len;
		if (at < REGION)
			continue;
		for (size_t k = 0; k <= n; k++)
			pair_done(s, &contexts[2]);
	}
	read_back(s, &a, 0, REGION);
	area_close(s, &a);
}

static void scattered(struct pair_side *s)
{
	struct fi_rma_iov targets[3] = { { 5, 10, KEY },
					 { 1000, 300, KEY },
					 { 70000, 90000, KEY } };
	struct iovec iov[2];
	struct fi_msg_rma msg = { .msg_iov = iov,
				  .iov_count = 2,
				  .rma_iov = targets,
				  .rma_iov_count = 3,
				  .context = &contexts[0] };
	struct area a;
	size_t len = 0;

	area_open(s, &a);
	msg.addr = s->peer;
	for (size_t cnt = 1; cnt <= 3; cnt++) {
		len += targets[cnt - 1].len;
		fill(a.buf, len, cnt);
		iov[0] = (struct iovec){ a.buf, 3 };
		iov[1] = (struct iovec){ a.buf + 3, len - 3 };
		msg.rma_iov_count = cnt;
		POST(s, fi_writemsg(s->ep, &msg, FI_COMPLETION | FI_DELIVERY_COMPLETE));
		pair_done(s, &contexts[0]);
		iov[0].iov_base = a.copy;
		iov[1].iov_base = a.copy + 3;
		memset(a.copy, 0, len);
		POST(s, fi_readmsg(s->ep, &msg, FI_COMPLETION));
		pair_done(s, &contexts[0]);
		PAIR_CHECK(s, !memcmp(a.copy, a.buf, len));
	}
	area_close(s, &a);
}

/* Remote CQ data, of a small, an injected and a large write. */

static void data_writer(struct pair_side *s)
{
	struct area a;

	area_open(s, &a);
	fill(a.buf, 100000, 5);
	POST(s, fi_writedata(s->rma, a.buf, 8, NULL, 1111, s->peer, 0, KEY, &contexts[0]));
	POST(s, fi_inject_writedata(s->rma, a.buf, 200, 2222, s->peer, 8, KEY));
	POST(s,
	     fi_writedata(s->rma, a.buf, 100000, NULL, 3333, s->peer, 1000, KEY, &contexts[1]));
	for (int i = 0; i < 2; i++) /* in whatever order */
		PAIR_CHECK(s, pair_next(s) == 1);
	POST(s, fi_inject_write(s->rma, a.buf, 16, s->peer, 500000, KEY));
	read_back(s, &a, 500000, 16);
	area_close(s, &a);
}

static void data_target(struct pair_side *s)
{
	static const size_t at[] = { 0, 8, 1000 }, len[] = { 8, 200, 100000 };
	struct area a;

	area_open(s, &a);
	fill(a.buf, 100000, 5);
	for (int i = 0; i < 3; i++) {
		PAIR_CHECK(s, pair_next(s) == 1);
		PAIR_CHECK(s, s->entry.flags == (FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA));
		PAIR_CHECK(s, s->entry.data == 1111ull * (i + 1));
		PAIR_CHECK(s, s->source == s->peer);
		PAIR_CHECK(s, !memcmp(a.region + at[i], a.buf, len[i]));
	}
	area_close(s, &a);
}

/* A target that does nothing but wait for a counter of its region. */

static void counted_writer(struct pair_side *s)
{
	uint64_t one = 1;
	struct area a;

	area_open(s, &a);
	pair_hear(s, 'c', true);
	fill(a.buf, 200000, 6);
	POST(s, fi_write(s->rma, a.buf, 200000, NULL, s->peer, 64, KEY, &contexts[0]));
	POST(s, fi_inject_write(s->rma, a.buf, 8, s->peer, 0, KEY));
	POST(s, fi_atomic(s->rma, &one, 1, NULL, s->peer, 8, KEY, FI_UINT64, FI_SUM,
			  &contexts[1]));
	POST(s, fi_read(s->ep, a.copy, 100, NULL, s->peer, 64, KEY, &contexts[2]));
	for (int i = 0; i < 3; i++)
		PAIR_CHECK(s, pair_next(s) == 1);
	area_close(s, &a);
}

static void counted_target(struct pair_side *s)
{
	struct fi_cntr_attr attr = { .events = FI_CNTR_EVENTS_COMP, .wait_obj = FI_WAIT_UNSPEC };
	struct fid_cntr *writes, *reads;
	struct area a;

	area_open(s, &a);
	PAIR_CHECK(s, !fi_cntr_open(s->domain, &attr, &writes, NULL));
	PAIR_CHECK(s, !fi_cntr_open(s->domain, &attr, &reads, NULL));
	PAIR_CHECK(s, !fi_mr_bind(a.mr, &writes->fid, FI_REMOTE_WRITE));
	PAIR_CHECK(s, !fi_mr_bind(a.mr, &reads->fid, FI_REMOTE_READ));
	PAIR_CHECK(s, !fi_mr_bind(a.mr, &writes->fid, FI_REMOTE_WRITE)); /* again */
	PAIR_CHECK(s, fi_mr_bind(a.mr, &reads->fid, FI_REMOTE_WRITE) == -FI_EINVAL);
	pair_say(s, 'c');
	PAIR_CHECK(s, !fi_cntr_wait(writes, 3, 20000));
	PAIR_CHECK(s, !fi_cntr_wait(reads, 1, 20000));
	fill(a.buf, 200000, 6);
	PAIR_CHECK(s, !memcmp(a.region + 64, a.buf, 200000) && !memcmp(a.region, a.buf, 8));
	PAIR_CHECK(s, fi_cntr_read(writes) == 3 && fi_cntr_read(reads) == 1);
	area_close(s, &a);
	PAIR_CHECK(s, !fi_close(&writes->fid));
	PAIR_CHECK(s, !fi_close(&reads->fid));
}

/* Atomics */

static void adder(struct pair_side *s)
{
	uint64_t one = 1, was, want, with = 77, zero = 0;
	struct area a;

	area_open(s, &a);
	for (uint64_t i = 0; i < 100; i++)
		POST(s, fi_inject_atomic(s->rma, &one, 1, s->peer, 64, KEY, FI_UINT64, FI_SUM));
	POST(s, fi_fetch_atomic(s->ep, &one, 1, NULL, &was, NULL, s->peer, 64, KEY, FI_UINT64,
				FI_SUM, &contexts[0]));
	pair_done(s, &contexts[0]);
	PAIR_CHECK(s, s->entry.flags == (FI_ATOMIC | FI_READ));
	PAIR_CHECK(s, was == 100);
	want = 101;
	POST(s, fi_compare_atomic(s->ep, &with, 1, NULL, &want, NULL, &was, NULL, s->peer, 64,
				  KEY, FI_UINT64, FI_CSWAP, &contexts[1]));
	pair_done(s, &contexts[1]);
	PAIR_CHECK(s, was == 101);
	POST(s, fi_fetch_atomic(s->ep, NULL, 1, NULL, &was, NULL, s->peer, 64, KEY_READ,
				FI_UINT64, FI_ATOMIC_READ, &contexts[1]));
	pair_done(s, &contexts[1]);
	PAIR_CHECK(s, was == 77);
	POST(s, fi_atomic(s->rma, &zero, 1, NULL, s->peer, 64, KEY, FI_UINT64, FI_ATOMIC_WRITE,
			  &contexts[2]));
	pair_done(s, &contexts[2]);
	PAIR_CHECK(s, s->entry.flags == (FI_ATOMIC | FI_WRITE));
	area_close(s, &a);
}

/* What went over all wires of an endpoint so far, itself included. */
static struct weft_route route_sum(struct pair_side *s)
{
	struct weft_route routes[WEFT_ROUTES_MAX], sum = { .tx_msgs = 0 };
	size_t cnt = WEFT_ROUTES_MAX;
	struct weft_routes_ops *ops;

	PAIR_CHECK(s, !fi_open_ops(&s->ep->fid, WEFT_ROUTES_OPS, 0, (void **)&ops, NULL));
	PAIR_CHECK(s, !ops->list(&s->ep->fid, routes, &cnt));
	for (size_t i = 0; i < cnt; i++) {
		sum.tx_msgs += routes[i].tx_msgs;
		sum.tx_bytes += routes[i].tx_bytes;
		sum.rx_msgs += routes[i].rx_msgs;
		sum.rx_bytes += routes[i].rx_bytes;
	}
	return sum;
}

/* A write and a read of each size, and three atomics that bring four words and fetch two. */
#define ROUTED_MSGS (2 * SIZES + 3)

static uint64_t routed_bytes(uint64_t words)
{
	uint64_t bytes = words * sizeof(words);

	for (size_t i = 0; i < SIZES; i++)
		bytes += sizes[i];
	return bytes;
}

static void routed(struct pair_side *s)
{
	uint64_t one = 1, was, want = 2;
	struct weft_route sum;
	struct area a;

	area_open(s, &a);
	for (size_t i = 0; i < SIZES; i++) {
		POST(s, fi_write(s->rma, a.buf, sizes[i], NULL, s->peer, 0, KEY, &contexts[0]));
		pair_done(s, &contexts[0]);
		POST(s, fi_read(s->ep, a.copy, sizes[i], NULL, s->peer, 0, KEY, &contexts[0]));
		pair_done(s, &contexts[0]);
	}
	POST(s, fi_atomic(s->rma, &one, 1, NULL, s->peer, 64, KEY, FI_UINT64, FI_SUM,
			  &contexts[0]));
	pair_done(s, &contexts[0]);
	POST(s, fi_fetch_atomic(s->ep, &one, 1, NULL, &was, NULL, s->peer, 64, KEY, FI_UINT64,
				FI_SUM, &contexts[0]));
	pair_done(s, &contexts[0]);
	POST(s, fi_compare_atomic(s->ep, &one, 1, NULL, &want, NULL, &was, NULL, s->peer, 64,
				  KEY, FI_UINT64, FI_CSWAP, &contexts[0]));
	pair_done(s, &contexts[0]);
	sum = route_sum(s);
	PAIR_CHECK(s, sum.tx_msgs == ROUTED_MSGS && sum.tx_bytes == routed_bytes(4));
	PAIR_CHECK(s, sum.rx_msgs == 0 && sum.rx_bytes == routed_bytes(2));
	area_close(s, &a);
}

static void routed_target(struct pair_side *s)
{
	struct weft_route sum;
	uint64_t small = 0;
	struct area a;

	area_open(s, &a);
	area_close(s, &a);
	sum = route_sum(s);
	PAIR_CHECK(s, sum.tx_msgs == 0);
	if (strcmp(provider, "tcp") == 0) {
		PAIR_CHECK(s, sum.rx_msgs == ROUTED_MSGS && sum.rx_bytes == routed_bytes(4) &&
				      sum.tx_bytes == routed_bytes(2));
		return;
	}
	/* Large ones may have been done without it, while it did not poll. */
	PAIR_CHECK(s, sum.rx_msgs <= ROUTED_MSGS && sum.rx_bytes <= routed_bytes(4) &&
			      sum.tx_bytes <= routed_bytes(2));
	for (size_t i = 0; i < SIZES; i++)
		small += sizes[i] <= 8192;
	PAIR_CHECK(s, in_arena || sum.rx_msgs >= 2 * small + 3);
}

/* An array of the largest size, of two types, against what it has to be. */
static void arrays(struct pair_side *s)
{
	struct fi_atomic_attr attr;
	struct area a;
	int32_t *ints, *old;
	double *doubles;

	area_open(s, &a);
	PAIR_CHECK(s, !fi_query_atomic(s->domain, FI_INT32, FI_SUM, &attr, FI_FETCH_ATOMIC));
	PAIR_CHECK(s, attr.size == 4 && attr.count >= 512);
	ints = (int32_t *)a.buf;
	old = (int32_t *)a.copy;
	for (int round = 0; round < 3; round++) {
		for (size_t i = 0; i < attr.count; i++)
			ints[i] = (int32_t)i + 1;
		POST(s, fi_fetch_atomic(s->ep, ints, attr.count, NULL, old, NULL, s->peer, 4096,
					KEY, FI_INT32, FI_SUM, &contexts[0]));
		pair_done(s, &contexts[0]);
		for (size_t i = 0; i < attr.count; i++)
			PAIR_CHECK(s, old[i] == round * ((int32_t)i + 1));
	}
	PAIR_CHECK(s, !fi_query_atomic(s->domain, FI_DOUBLE, FI_MAX, &attr, 0));
	doubles = (double *)a.buf;
	for (size_t i = 0; i < attr.count; i++)
		doubles[i] = (double)i / 3;
	POST(s, fi_atomic(s->rma, doubles, attr.count, NULL, s->peer, 1u << 16, KEY, FI_DOUBLE,
			  FI_MAX, &contexts[1]));
	pair_done(s, &contexts[1]);
	read_back(s, &a, 1u << 16, attr.count * sizeof(double));
	PAIR_CHECK(s, fi_query_atomic(s->domain, FI_FLOAT, FI_BOR, &attr, 0) == -FI_EOPNOTSUPP);
	PAIR_CHECK(s, fi_atomic(s->rma, doubles, 1, NULL, s->peer, 0, KEY, FI_FLOAT, FI_BOR,
				NULL) == -FI_EOPNOTSUPP);
	PAIR_CHECK(s, fi_atomic(s->rma, doubles, attr.count + 1, NULL, s->peer, 0, KEY,
				FI_DOUBLE, FI_MAX, NULL) == -FI_EINVAL);
	area_close(s, &a);
}

/* Refused by the target */

static void refused(struct pair_side *s)
{
	uint64_t value = 1, was = 5;
	struct area a;

	area_open(s, &a);
	for (int large = 0; large < 2; large++) {
		size_t len = large ? 1u << 20 : 8;

		POST(s, fi_write(s->rma, a.buf, len, NULL, s->peer, 0, 4711, &contexts[0]));
		pair_failed(s, &contexts[0], FI_EKEYREJECTED);
		PAIR_CHECK(s, s->error.flags == (FI_RMA | FI_WRITE));
		POST(s, fi_read(s->ep, a.copy, len, NULL, s->peer, 0, 4711, &contexts[1]));
		pair_failed(s, &contexts[1], FI_EKEYREJECTED);
		POST(s, fi_write(s->rma, a.buf, len, NULL, s->peer, REGION - len + 1, KEY,
				 &contexts[2]));
		pair_failed(s, &contexts[2], FI_EACCES);
		POST(s, fi_read(s->ep, a.copy, len, NULL, s->peer, UINT64_MAX - 3, KEY,
				&contexts[2]));
		pair_failed(s, &contexts[2], FI_EACCES);
		POST(s, fi_write(s->rma, a.buf, len, NULL, s->peer, 0, KEY_READ, &contexts[3]));
		pair_failed(s, &contexts[3], FI_EACCES);
	}
	/* All memory may be named; unmapped addresses fail without harm. */
	POST(s, fi_write(s->rma, a.buf, 8, NULL, s->peer, 64, KEY_ALL, &contexts[5]));
	pair_failed(s, &contexts[5], FI_EACCES);
	POST(s, fi_read(s->ep, a.buf, 1u << 20, NULL, s->peer, UINT64_MAX / 2, KEY_ALL,
			&contexts[5]));
	pair_failed(s, &contexts[5], FI_EACCES);
	POST(s, fi_atomic(s->rma, &value, 1, NULL, s->peer, 3, KEY, FI_UINT64, FI_SUM,
			  &contexts[4]));
	pair_failed(s, &contexts[4], FI_EINVAL);
	POST(s, fi_fetch_atomic(s->ep, &value, 1, NULL, &was, NULL, s->peer, 0, KEY_READ,
				FI_UINT64, FI_SUM, &contexts[5]));
	pair_failed(s, &contexts[5], FI_EACCES);
	PAIR_CHECK(s, s->error.flags == (FI_ATOMIC | FI_READ));
	/* And everything continues. */
	fill(a.buf, 64, 3);
	POST(s, fi_write(s->rma, a.buf, 64, NULL, s->peer, 0, KEY, &contexts[0]));
	pair_done(s, &contexts[0]);
	read_back(s, &a, 0, 64);
	area_close(s, &a);
}

/* To oneself: every operation that works towards others. */
static void alone(struct pair_side *s)
{
	uint64_t one = 1, was;
	char name[128];
	size_t len = sizeof(name);
	fi_addr_t other = s->peer;
	struct area a;

	area_open(s, &a);
	PAIR_CHECK(s, !fi_getname(&s->ep->fid, name, &len));
	PAIR_CHECK(s, fi_av_insert(s->av, name, 1, &s->peer, 0, NULL) == 1);
	for (size_t i = 0; i < SIZES; i++) {
		fill(a.buf, sizes[i], i);
		POST(s, fi_write(s->rma, a.buf, sizes[i], NULL, s->peer, 8 * i, KEY,
				 &contexts[0]));
		pair_done(s, &contexts[0]);
		PAIR_CHECK(s, !memcmp(a.region + 8 * i, a.buf, sizes[i]));
		read_back(s, &a, 8 * i, sizes[i]);
	}
	memset(a.region, 0, 8);
	for (uint64_t i = 0; i < 10; i++) {
		POST(s, fi_fetch_atomic(s->ep, &one, 1, NULL, &was, NULL, s->peer, 0, KEY,
					FI_UINT64, FI_SUM, &contexts[1]));
		pair_done(s, &contexts[1]);
		PAIR_CHECK(s, was == i);
	}
	POST(s, fi_write(s->rma, a.buf, 8, NULL, s->peer, 0, 4711, &contexts[2]));
	pair_failed(s, &contexts[2], FI_EKEYREJECTED);
	s->peer = other;
	area_close(s, &a);
}

static void what_is_written_is_read_back(void **state)
{
	both(writer, passive, 0);
}

static void lists_of_targets_are_one_place(void **state)
{
	both(scattered, passive, 0);
}

static void remote_data_tell_of_writes(void **state)
{
	both(data_writer, data_target, 0);
}

static void regions_count_what_peers_do(void **state)
{
	both(counted_writer, counted_target, 0);
}

static void atomics_return_what_was_there(void **state)
{
	both(adder, passive, 0);
}

static void atomics_take_arrays(void **state)
{
	both(arrays, passive, 0);
}

static void every_byte_counts_once_on_either_side(void **state)
{
	both(routed, routed_target, 0);
}

static void what_is_not_allowed_is_refused(void **state)
{
	both(refused, passive, 0);
}

static void oneself_is_a_peer(void **state)
{
	both(alone, alone, 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_written_is_read_back),
		cmocka_unit_test(lists_of_targets_are_one_place),
		cmocka_unit_test(remote_data_tell_of_writes),
		cmocka_unit_test(regions_count_what_peers_do),
		cmocka_unit_test(atomics_return_what_was_there),
		cmocka_unit_test(atomics_take_arrays),
		cmocka_unit_test(every_byte_counts_once_on_either_side),
		cmocka_unit_test(what_is_not_allowed_is_refused),
		cmocka_unit_test(oneself_is_a_peer),
	};

	int status = access_begin(argc, argv);

	return status ? status : cmocka_run_group_tests(tests, NULL, NULL);
}
