/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What the engine does with a wire that accesses a peer's memory without the peer: when it uses
 * that, what waits behind it, and what goes by packet after all. Over the fake wires, whose
 * direct() does what a test says.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include "fake_conn.h"
#include "fake_ends.h"
#include "mr.h"
#include <cmocka.h>

#define ROUNDS 20000 /* polls in which anything must happen, or nothing does */
#define KEY    7
#define REGION (256u << 10)
#define LARGE  100000u
#define MIDDLE 12000u /* small enough for stores, too */
#define OPS    (&fake_ops[FAKE_B])

static struct fake_end a, b;
static fi_addr_t to_b, to_a;
static struct fid_mr *mr; /* of b */
static char region[REGION], buf[REGION];
static struct fi_context2 contexts[8];
static struct fi_cq_tagged_entry entry;
static struct fi_cq_err_entry error;

/* What direct() does, and was asked. */
static struct {
	int answer;
	bool busy; /* not taken yet */
	uint32_t calls;
	struct wire_op *op; /* under way */
	bool write;
	uint64_t addr, len;
	bool ends; /* in the next poll, with: */
	int status;
	bool reaches;	  /* the region is mapped here */
	bool reaching;	  /* between reach() and reached() */
	uint32_t reached; /* accesses by loads and stores */
} script;

static bool used; /* what share_used() says */
static uint32_t shares;
static int (*real_poll)(struct wire *wire);

static void move(void)
{
	if (script.write)
		memcpy(region + script.addr, buf, script.len);
	else
		memcpy(buf, region + script.addr, script.len);
}

static int direct(struct wire_conn *conn, const struct wire_access *access, struct wire_op *op)
{
	script.calls++;
	assert_true(conn->up && access->target_cnt == 1 && access->iov_cnt == 1);
	assert_ptr_equal(access->iov[0].iov_base, buf);
	assert_int_equal(access->targets[0].key, KEY);
	script.write = access->write;
	script.addr = access->targets[0].addr;
	script.len = access->targets[0].len;
	if (script.answer == 1)
		move();
	if (script.answer)
		return script.answer;
	assert_null(script.op);
	script.op = op;
	return 0;
}

static void *reach(struct wire_conn *conn, const struct packet_target *target, uint64_t kind)
{
	script.reaching = script.reaches;
	return script.reaches ? region + target->addr : NULL;
}

static bool reached(struct wire_conn *conn, uint64_t kind)
{
	script.reached++;
	script.reaching = false;
	return true;
}

static bool taken(struct wire_conn *conn)
{
	/* a call of the wire: the target may have taken its memory back since it was reached */
	assert_false(script.reaching);
	return !script.busy;
}

static int poll_scripted(struct wire *wire)
{
	struct wire_op *op = script.op;

	if (op && script.ends && wire->ep == fake_end_engine(&a)) {
		script.op = NULL;
		script.ends = false;
		if (!script.status)
			move();
		op->done(op, script.status);
	}
	return real_poll(wire);
}

static void *slab_alloc(void *arg, uint32_t slab)
{
	return platform_alloc(mr_slab_len(slab));
}

static void slab_free(void *arg, uint32_t slab, void *memory)
{
	platform_free(memory);
}

static int share_open(struct wire_share **share, struct mr_memory *memory,
		      const _Atomic uint32_t *regions)
{
	*memory = (struct mr_memory){ .alloc = slab_alloc, .free = slab_free };
	*share = (struct wire_share *)(void *)&shares;
	shares++;
	return 0;
}

static void share_close(struct wire_share *share)
{
	assert_ptr_equal(share, &shares);
	shares--;
}

static bool share_used(struct wire_share *share, uint32_t index)
{
	return used && index;
}

static ssize_t next(struct fid_cq *cq, uint32_t rounds)
{
	ssize_t ret;

	while ((ret = fi_cq_read(cq, &entry, 1)) == -FI_EAGAIN && rounds--) {
		fake_end_progress(&a);
		if (b.ep)
			fake_end_progress(&b);
	}
	if (ret == -FI_EAVAIL) {
		error = (struct fi_cq_err_entry){ 0 };
		assert_int_equal(fi_cq_readerr(cq, &error, 0), 1);
	}
	return ret;
}

static void ends(struct fid_cq *cq, const void *context)
{
	assert_int_equal(next(cq, ROUNDS), 1);
	assert_ptr_equal(entry.op_context, context);
}

static void stop(bool stopped)
{
	fake_stop(fake_end_engine(&a), fake_end_engine(&b), stopped);
}

static int setup(void **state)
{
	struct fake_end_attr attr = { .family = FAKE_FAMILY_B,
				      .threading = FI_THREAD_DOMAIN,
				      .format = FI_CQ_FORMAT_TAGGED,
				      .budget = 64u << 20,
				      .count = true };

	memset(&script, 0, sizeof(script));
	used = false;
	OPS->share_open = share_open;
	OPS->share_close = share_close;
	OPS->share_used = share_used;
	OPS->taken = taken;
	OPS->direct = direct;
	OPS->direct_min = 10000;
	real_poll = OPS->poll;
	OPS->poll = poll_scripted;
	fake_ends_begin(1);
	fake_end_open(&a, &attr, NULL);
	fake_end_open(&b, &attr, NULL);
	assert_int_equal(shares, 2);
	to_b = fake_end_insert(&a, &b.name);
	to_a = fake_end_insert(&b, &a.name);
	assert_int_equal(fi_mr_reg(b.domain, region, REGION, FI_REMOTE_READ | FI_REMOTE_WRITE,
				   0, KEY, 0, &mr, NULL),
			 0);
	memset(region, 'r', REGION);
	memset(buf, 'b', REGION);
	/* connected, and everything acknowledged */
	assert_int_equal(fi_write(a.rma, buf, 8, NULL, to_b, 0, KEY, &contexts[0]), 0);
	ends(a.tx_cq, &contexts[0]);
	return 0;
}

static int teardown(void **state)
{
	used = false;
	if (a.ep)
		fake_end_rests(&a);
	if (mr)
		assert_int_equal(fi_close(&mr->fid), 0);
	mr = NULL;
	fake_end_close(&b);
	fake_end_close(&a);
	assert_int_equal(shares, 0);
	OPS->poll = real_poll;
	OPS->share_open = NULL;
	OPS->share_close = NULL;
	OPS->share_used = NULL;
	OPS->taken = NULL;
	OPS->direct = NULL;
	OPS->reach = NULL;
	OPS->reached = NULL;
	return 0;
}

static void post(bool write, size_t len, int i)
{
	if (write)
		assert_int_equal(fi_write(a.rma, buf, len, NULL, to_b, 0, KEY, &contexts[i]), 0);
	else
		assert_int_equal(fi_read(a.ep, buf, len, NULL, to_b, 0, KEY, &contexts[i]), 0);
}

static void what_is_done_at_once_ends_in_the_call(void **state)
{
	uint64_t writes = fi_cntr_read(a.cntrs[FAKE_CNTR_WRITE]);

	script.answer = 1;
	stop(true); /* b gets no event */
	post(true, LARGE, 1);
	assert_int_equal(fi_cq_read(a.tx_cq, &entry, 1), 1);
	assert_ptr_equal(entry.op_context, &contexts[1]);
	assert_int_equal(entry.flags, FI_RMA | FI_WRITE);
	assert_int_equal(fi_cntr_read(a.cntrs[FAKE_CNTR_WRITE]), writes + 1);
	assert_memory_equal(region, buf, LARGE);
	memset(buf, 0, LARGE);
	post(false, LARGE, 2);
	assert_int_equal(fi_cq_read(a.tx_cq, &entry, 1), 1);
	assert_int_equal(entry.flags, FI_RMA | FI_READ);
	assert_int_equal(fi_cntr_read(a.cntrs[FAKE_CNTR_READ]), 1);
	assert_memory_equal(region, buf, LARGE);
	assert_int_equal(script.calls, 2);
}

static void what_is_posted_behind_one_waits_for_it(void **state)
{
	char got[8];

	assert_int_equal(fi_recv(b.ep, got, 8, NULL, to_a, &contexts[7]), 0);
	post(true, LARGE, 1);
	assert_int_equal(fi_send(a.ep, buf, 8, NULL, to_b, &contexts[2]), 0);
	post(true, 8, 3);
	post(true, LARGE, 4);
	assert_int_equal(next(a.tx_cq, ROUNDS), -FI_EAGAIN);
	assert_int_equal(next(b.rx_cq, ROUNDS), -FI_EAGAIN);
	script.ends = true;
	ends(a.tx_cq, &contexts[1]);
	ends(a.tx_cq, &contexts[2]);
	ends(b.rx_cq, &contexts[7]);
	ends(a.tx_cq, &contexts[3]);
	assert_int_equal(script.calls, 2);
	script.ends = true;
	ends(a.tx_cq, &contexts[4]);
}

static void what_the_wire_gives_up_goes_by_packet_in_its_turn(void **state)
{
	char got[8];

	assert_int_equal(fi_recv(b.ep, got, 8, NULL, to_a, &contexts[7]), 0);
	post(true, LARGE, 1);
	assert_int_equal(fi_send(a.ep, buf, 8, NULL, to_b, &contexts[2]), 0);
	script.status = -FI_EBUSY;
	script.ends = true;
	ends(b.rx_cq, &contexts[7]);
	assert_int_equal(next(a.tx_cq, ROUNDS), 1);
	assert_int_equal(next(a.tx_cq, ROUNDS), 1);
	assert_int_equal(script.calls, 1);
	assert_memory_equal(region, buf, LARGE);
}

static void what_the_wire_declines_goes_by_packet(void **state)
{
	static const int why[] = { -FI_EBUSY, -FI_EPERM, -FI_EOPNOTSUPP, -FI_EKEYREJECTED };

	for (size_t i = 0; i < sizeof(why) / sizeof(why[0]); i++) {
		memset(region, 0, REGION);
		script.answer = why[i];
		post(true, LARGE, 1);
		ends(a.tx_cq, &contexts[1]);
		assert_memory_equal(region, buf, LARGE);
		assert_int_equal(script.calls, i + 1);
	}
}

static void messages_that_were_not_taken_come_first(void **state)
{
	script.answer = 1;
	script.busy = true;
	post(true, LARGE, 1); /* nothing was sent but what is acknowledged */
	ends(a.tx_cq, &contexts[1]);
	assert_int_equal(script.calls, 1);
	stop(true);
	assert_int_equal(fi_inject(a.ep, buf, 8, to_b), 0);
	post(true, LARGE, 2);
	assert_int_equal(script.calls, 1);
	script.busy = false;
	post(true, LARGE, 3);
	assert_int_equal(script.calls, 2);
	script.busy = true; /* by requests, among which no order is promised */
	post(true, LARGE, 4);
	assert_int_equal(script.calls, 3);
	stop(false);
	ends(a.tx_cq, &contexts[3]);
	ends(a.tx_cq, &contexts[4]);
	ends(a.tx_cq, &contexts[2]);
}

static void what_the_target_must_know_goes_by_packet(void **state)
{
	script.answer = 1;
	assert_int_equal(fi_writedata(a.rma, buf, LARGE, NULL, 1, to_b, 0, KEY, &contexts[1]),
			 0);
	ends(a.tx_cq, &contexts[1]);
	post(true, 8000, 2);
	ends(a.tx_cq, &contexts[2]);
	assert_int_equal(
		fi_atomic(a.rma, buf, 400, NULL, to_b, 0, KEY, FI_UINT64, FI_SUM, &contexts[3]),
		0);
	ends(a.tx_cq, &contexts[3]);
	assert_int_equal(script.calls, 0);
	assert_int_equal(next(b.rx_cq, ROUNDS), 1);
}

static void a_fence_waits_as_before(void **state)
{
	struct iovec iov = { buf, LARGE };
	struct fi_rma_iov target = { 0, LARGE, KEY };
	struct fi_msg_rma msg = { .msg_iov = &iov,
				  .iov_count = 1,
				  .rma_iov = &target,
				  .rma_iov_count = 1,
				  .addr = to_b,
				  .context = &contexts[2] };

	script.answer = 1;
	stop(true);
	post(true, 8, 1);
	assert_int_equal(
		fi_writemsg(a.ep, &msg, FI_COMPLETION | FI_DELIVERY_COMPLETE | FI_FENCE), 0);
	assert_int_equal(next(a.tx_cq, ROUNDS), -FI_EAGAIN);
	assert_int_equal(script.calls, 0);
	stop(false);
	ends(a.tx_cq, &contexts[1]);
	ends(a.tx_cq, &contexts[2]);
	assert_int_equal(script.calls, 1);
}

static void one_under_way_can_not_be_cancelled(void **state)
{
	post(true, LARGE, 1);
	assert_int_equal(fi_cancel(&a.ep->fid, &contexts[1]), 0);
	assert_int_equal(fi_send(a.ep, buf, 8, NULL, to_b, &contexts[2]), 0);
	assert_int_equal(fi_cancel(&a.ep->fid, &contexts[2]), 0);
	assert_int_equal(next(a.tx_cq, ROUNDS), -FI_EAVAIL);
	assert_ptr_equal(error.op_context, &contexts[2]);
	assert_int_equal(error.err, FI_ECANCELED);
	script.ends = true;
	ends(a.tx_cq, &contexts[1]);
}

static void a_broken_connection_ends_it(void **state)
{
	post(true, LARGE, 1);
	assert_int_equal(fi_send(a.ep, buf, 8, NULL, to_b, &contexts[2]), 0);
	fake_break(fake_end_engine(&a), fake_end_engine(&b), -FI_ECONNRESET);
	for (int i = 1; i <= 2; i++) {
		assert_int_equal(next(a.tx_cq, ROUNDS), -FI_EAVAIL);
		assert_ptr_equal(error.op_context, &contexts[i]);
		assert_int_equal(error.err, FI_ECONNRESET);
	}
	script.op = NULL; /* as a wire forgets it */
}

static void an_endpoint_may_end_before_it(void **state)
{
	post(true, LARGE, 1);
	post(true, LARGE, 2);
	fake_end_stop(&a);
	script.op = NULL;
}

/* The memory is mapped while the wire accesses it otherwise. */
static void what_is_under_way_is_not_done_by_stores_too(void **state)
{
	OPS->reach = reach;
	OPS->reached = reached;
	post(true, MIDDLE, 1);
	assert_int_equal(script.calls, 1);
	script.reaches = true;
	post(true, MIDDLE, 2);
	assert_int_equal(next(a.tx_cq, ROUNDS), -FI_EAGAIN);
	assert_int_equal(script.reached, 0);
	script.ends = true;
	ends(a.tx_cq, &contexts[1]);
	ends(a.tx_cq, &contexts[2]);
	assert_int_equal(script.reached, 1);
	assert_int_equal(script.calls, 1);
}

/*
 * The wire says that the target lets us load there: what was sent before that was carried out there. Else a target could
 * fork in between, and carry it out where peers do not look.
 */
static void what_was_sent_is_settled_before_memory_is_reached(void **state)
{
	char got[8];

	OPS->reach = reach;
	OPS->reached = reached;
	assert_int_equal(fi_recv(b.ep, got, 8, NULL, to_a, &contexts[7]), 0);
	/* it has left, and is neither acknowledged nor taken */
	stop(true);
	assert_int_equal(fi_inject(a.ep, buf, 8, to_b), 0);
	script.busy = true;
	script.reaches = true;
	post(false, MIDDLE, 1);
	assert_int_equal(script.reached, 0);
	stop(false);
	ends(b.rx_cq, &contexts[7]);
	ends(a.tx_cq, &contexts[1]);
	assert_memory_equal(region, buf, MIDDLE);
}

static void what_was_sent_and_taken_does_not_keep_memory_from_being_reached(void **state)
{
	OPS->reach = reach;
	OPS->reached = reached;
	script.reaches = true;
	stop(true);
	assert_int_equal(fi_inject(a.ep, buf, 8, to_b), 0);
	post(false, MIDDLE, 1);
	assert_int_equal(fi_cq_read(a.tx_cq, &entry, 1), 1);
	assert_ptr_equal(entry.op_context, &contexts[1]);
	assert_int_equal(script.reached, 1);
	assert_memory_equal(region, buf, MIDDLE);
}

static void a_region_is_closed_when_nobody_is_inside(void **state)
{
	used = true;
	assert_int_equal(fi_close(&mr->fid), -FI_EBUSY);
	post(true, 8, 1); /* it is there as before */
	ends(a.tx_cq, &contexts[1]);
	used = false;
	assert_int_equal(fi_close(&mr->fid), 0);
	mr = NULL;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_is_done_at_once_ends_in_the_call),
		TEST(what_is_posted_behind_one_waits_for_it),
		TEST(what_the_wire_gives_up_goes_by_packet_in_its_turn),
		TEST(what_the_wire_declines_goes_by_packet),
		TEST(messages_that_were_not_taken_come_first),
		TEST(what_the_target_must_know_goes_by_packet),
		TEST(a_fence_waits_as_before),
		TEST(one_under_way_can_not_be_cancelled),
		TEST(a_broken_connection_ends_it),
		TEST(an_endpoint_may_end_before_it),
		TEST(what_is_under_way_is_not_done_by_stores_too),
		TEST(what_was_sent_is_settled_before_memory_is_reached),
		TEST(what_was_sent_and_taken_does_not_keep_memory_from_being_reached),
		TEST(a_region_is_closed_when_nobody_is_inside),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
