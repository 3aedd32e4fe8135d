/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What injects before its peer is connected, over the fake wires. With manual progress the program
 * need not call anything after a success: what was taken arrives by the progress of the target.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include "fake_ends.h"
#include "peer.h"
#include <cmocka.h>

#define KEY	   7
#define ROUNDS_MAX 200000u /* in which anything must happen */

static struct fake_end a, b;
static fi_addr_t to_b;
static struct fid_mr *mr; /* of b */
static uint64_t region[2], out = 5, in;
static struct fi_context2 contexts[2];

static void open_both(void)
{
	const struct fake_end_attr attr = {
		.family = FAKE_FAMILY_AB,
		.threading = FI_THREAD_SAFE,
		.format = FI_CQ_FORMAT_TAGGED,
		.budget = 64u << 20,
		.count = true,
	};

	fake_end_open(&a, &attr, NULL);
	fake_end_open(&b, &attr, NULL);
	to_b = fake_end_insert(&a, &b.name);
	region[0] = region[1] = in = 0;
	assert_int_equal(fi_mr_reg(b.domain, region, sizeof(region), FI_REMOTE_WRITE, 0, KEY, 0,
				   &mr, NULL),
			 0);
	assert_int_equal(fi_recv(b.ep, &in, 8, NULL, FI_ADDR_UNSPEC, &contexts[0]), 0);
	assert_int_equal(fi_trecv(b.ep, &in, 8, NULL, FI_ADDR_UNSPEC, 1, 0, &contexts[1]), 0);
}

static int setup(void **state)
{
	fake_ends_begin(1);
	return 0;
}

static int teardown(void **state)
{
	if (mr)
		assert_int_equal(fi_close(&mr->fid), 0);
	mr = NULL;
	fake_ends_close();
	return 0;
}

/* The calls that inject, by number */

static ssize_t send_flags(bool tagged)
{
	struct iovec iov = { &out, 8 };
	struct fi_msg msg = { .msg_iov = &iov, .iov_count = 1, .addr = to_b, .context = &out };
	struct fi_msg_tagged tmsg = {
		.msg_iov = &iov, .iov_count = 1, .addr = to_b, .tag = 1, .context = &out
	};

	return tagged ? fi_tsendmsg(a.ep, &tmsg, FI_INJECT) : fi_sendmsg(a.ep, &msg, FI_INJECT);
}

static ssize_t access_flags(bool atomic)
{
	struct iovec iov = { &out, 8 };
	struct fi_rma_iov there = { .addr = 0, .len = 8, .key = KEY };
	struct fi_ioc ioc = { &out, 1 };
	struct fi_rma_ioc locations = { .addr = 0, .count = 1, .key = KEY };
	struct fi_msg_rma rma = { .msg_iov = &iov,
				  .iov_count = 1,
				  .addr = to_b,
				  .rma_iov = &there,
				  .rma_iov_count = 1,
				  .context = &out };
	struct fi_msg_atomic add = { .msg_iov = &ioc,
				     .iov_count = 1,
				     .addr = to_b,
				     .rma_iov = &locations,
				     .rma_iov_count = 1,
				     .context = &out,
				     .datatype = FI_UINT64,
				     .op = FI_SUM };

	return atomic ? fi_atomicmsg(a.ep, &add, FI_INJECT) : fi_writemsg(a.ep, &rma, FI_INJECT);
}

#define CALLS 11

static ssize_t call(int which)
{
	switch (which) {
	case 0:
		return fi_inject(a.ep, &out, 8, to_b);
	case 1:
		return fi_injectdata(a.ep, &out, 8, 3, to_b);
	case 2:
		return fi_tinject(a.ep, &out, 8, to_b, 1);
	case 3:
		return fi_tinjectdata(a.ep, &out, 8, 3, to_b, 1);
	case 4:
	case 5:
		return send_flags(which == 5);
	case 6:
		return fi_inject_write(a.ep, &out, 8, to_b, 0, KEY);
	case 7:
		return fi_inject_writedata(a.ep, &out, 8, 3, to_b, 0, KEY);
	case 8:
		return fi_inject_atomic(a.ep, &out, 1, to_b, 0, KEY, FI_UINT64, FI_SUM);
	default:
		return access_flags(which == 10);
	}
}

/* Nothing is begun that a would have to go on with. */
static void nothing_is_under_way_at_a(void)
{
	struct engine_ep *ep = fake_end_engine(&a);

	assert_int_equal(ep->queued_cnt, 0);
	assert_int_equal(ep->access_cnt, 0);
	assert_int_equal(ep->tx_pool.used, 0);
}

static void what_was_taken_needs_no_more_progress_of_its_sender(void **state)
{
	for (int which = 0; which < CALLS; which++) {
		uint32_t left = ROUNDS_MAX;
		ssize_t ret;

		open_both();
		assert_int_equal(call(which), -FI_EAGAIN);
		nothing_is_under_way_at_a();
		while ((ret = call(which)) == -FI_EAGAIN && left--) {
			nothing_is_under_way_at_a();
			fake_end_progress(&b);
		}
		assert_int_equal(ret, 0);
		for (left = ROUNDS_MAX; in + region[0] != 5 && left; left--)
			fake_end_progress(&b);
		assert_int_equal(in + region[0], 5);
		teardown(state);
		setup(state);
	}
}

static void peer_is_connected_by_progress_between_two_calls(void **state)
{
	open_both();
	assert_int_equal(fi_tinject(a.ep, &out, 8, to_b, 1), -FI_EAGAIN);
	fake_ends_go(1000);
	assert_int_equal(fi_tinject(a.ep, &out, 8, to_b, 1), 0);
	for (uint32_t left = ROUNDS_MAX; !in && left; left--)
		fake_end_progress(&b);
	assert_int_equal(in, 5);
}

/* Returns the flags of the error that is the next completion of a. */
static uint64_t next_error(const void *context)
{
	struct fi_cq_err_entry error;
	struct fi_cq_tagged_entry entry;

	assert_int_equal(fake_ends_next(a.tx_cq, ROUNDS_MAX, &entry, NULL, &error), -FI_EAVAIL);
	assert_ptr_equal(error.op_context, context);
	assert_int_equal(error.err, FI_ECONNREFUSED);
	return error.flags;
}

/* A program that calls until it succeeds does not do so for ever. Calls without a context have the endpoint's. */
static void peer_that_is_gone_takes_what_is_injected_and_reports_an_error(void **state)
{
	struct weft_addr gone;
	uint32_t left;
	ssize_t ret;

	for (int which = 0; which < CALLS; which++) {
		uint64_t flags = which < 6 ? FI_SEND : FI_WRITE;
		bool has_flags = which == 4 || which == 5 || which >= 9;

		open_both();
		a.ep->fid.context = &a;
		gone = b.name;
		memset(gone.nonce, 0x77, sizeof(gone.nonce));
		gone.port = 9999;
		to_b = fake_end_insert(&a, &gone);
		assert_int_equal(call(which), -FI_EAGAIN);
		for (left = ROUNDS_MAX; (ret = call(which)) == -FI_EAGAIN && left; left--)
			;
		assert_int_equal(ret, 0);
		assert_int_equal(
			next_error(has_flags ? (void *)&out : &a) & (FI_SEND | FI_WRITE), flags);
		assert_int_equal(fi_cntr_readerr(a.cntrs[FAKE_CNTR_WRITE]), which >= 6);
		teardown(state);
		setup(state);
	}
}

static void wrong_arguments_are_refused_all_the_same(void **state)
{
	static char large[ENGINE_INJECT_MAX + 1];

	open_both();
	assert_int_equal(fi_inject_write(a.ep, large, sizeof(large), to_b, 0, KEY),
			 -FI_EMSGSIZE);
	assert_int_equal(fi_tinject(a.ep, large, sizeof(large), to_b, 1), -FI_EINVAL);
	assert_int_equal(fi_tinject(a.ep, NULL, 8, to_b, 1), -FI_EINVAL);
	assert_int_equal(fi_tinject(a.ep, &out, 8, 1000, 1), -FI_EINVAL);
}

static void endpoint_injects_to_itself(void **state)
{
	fi_addr_t self;

	open_both();
	self = fake_end_insert(&b, &b.name);
	FAKE_UNTIL_TAKEN(fi_tinject(b.ep, &out, 8, self, 1));
	for (uint32_t left = ROUNDS_MAX; !in && left; left--)
		fake_end_progress(&b);
	assert_int_equal(in, 5);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_was_taken_needs_no_more_progress_of_its_sender),
		TEST(peer_is_connected_by_progress_between_two_calls),
		TEST(peer_that_is_gone_takes_what_is_injected_and_reports_an_error),
		TEST(wrong_arguments_are_refused_all_the_same),
		TEST(endpoint_injects_to_itself),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
