/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Memory that runs out: an allocation of the engine fails, each in its turn, and some after it,
 * while two endpoints over the fake wires exchange whatever there is. A call may be refused and an
 * operation may fail, but each operation that has begun ends once, nothing is kept of it, and
 * afterwards the endpoints communicate as before.
 *
 * NO_MEMORY_SEED=SEED runs the one sequence of that number, and NO_MEMORY_AT=N with it fails the
 * N-th allocation alone. NO_MEMORY_SEEDS is how many sequences there are otherwise.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_errno.h>
#include "fake_ends.h"
#include <cmocka.h>

#define OPS_MAX	   96u
#define ROUNDS_MAX 20000
#define KEY	   7
#define REGION	   (128u << 10)
#define PIECES	   4u
#define PIECE	   4000u
#define SEEDS	   60

void *__wrap_platform_alloc(size_t len);
void *__real_platform_alloc(size_t len);

/* Allocations that succeed before the one that fails; UINT32_MAX: all */
static uint32_t left = UINT32_MAX;
/* Allocations that fail then */
static uint32_t burst;
static bool failed;
/* A completion was lost, as the queue says */
static bool overrun;

void *__wrap_platform_alloc(size_t len)
{
	if (left == UINT32_MAX || left--)
		return __real_platform_alloc(len);
	left = --burst ? 0 : UINT32_MAX;
	failed = true;
	return NULL;
}

struct op {
	struct fi_context2 context; /* first: completions point here */
	bool begun, recv, multi;
	int ends, err;
};

static struct op ops[OPS_MAX];
static uint32_t op_cnt;
static struct fake_end a, b;
static fi_addr_t to_b, to_a, a_to_a;
static struct fid_mr *mr, *pieces; /* of b; of a, in more pieces than a wire reads at once */
static char region[REGION], from[REGION], to[OPS_MAX][REGION];
static uint64_t seed;
static uint32_t at;

static const struct fake_end_attr attr = {
	.family = FAKE_FAMILY_AB,
	.threading = FI_THREAD_DOMAIN,
	.format = FI_CQ_FORMAT_TAGGED,
	.budget = 64u << 10,
};

static void ended(void *context, int err)
{
	struct op *op = context;

	if (op < ops || op >= ops + op_cnt) /* a quiet write has failed */
		return;
	op->ends++;
	op->err = err;
}

/* Multi-receive buffers end with FI_MULTI_RECV. */
static void drain(struct fid_cq *cq)
{
	struct fi_cq_tagged_entry e[4];
	struct fi_cq_err_entry error;
	ssize_t ret;

	do {
		ret = fi_cq_read(cq, e, 4);
		for (ssize_t i = 0; i < ret; i++)
			ended(e[i].op_context, 0);
		if (ret != -FI_EAVAIL)
			continue;
		error = (struct fi_cq_err_entry){ 0 };
		if (fi_cq_readerr(cq, &error, 0) == 1)
			ended(error.op_context, error.err);
	} while (ret > 0 || ret == -FI_EAVAIL);
	overrun |= ret == -FI_EOVERRUN;
}

static void drain_all(void)
{
	drain(a.tx_cq);
	drain(a.rx_cq);
	drain(b.tx_cq);
	drain(b.rx_cq);
}

static void rounds(uint32_t cnt)
{
	while (cnt--) {
		fake_ends_go(1);
		drain_all();
	}
}

static struct op *op_new(bool recv)
{
	assert_true(op_cnt < OPS_MAX);
	ops[op_cnt] = (struct op){ .recv = recv };
	return &ops[op_cnt++];
}

/* The call has returned @ret, and is made again while there is no room. Returns true if it is over. */
static bool took(struct op *op, ssize_t ret)
{
	if (ret == -FI_EAGAIN || ret == -FI_ENOMEM) {
		rounds(1);
		return false;
	}
	assert_int_equal(ret, 0);
	op->begun = true;
	return true;
}

/* Make a call until it is over. @begin: makes the operation, which is @now in the call */
#define TRY(begin, call)                                             \
	do {                                                         \
		struct op *now = (begin);                            \
                                                                     \
		for (int i_ = 0; i_ < 100 && !took(now, call); i_++) \
			;                                            \
	} while (0)

static void receive(fi_addr_t src, uint64_t tag, size_t len)
{
	TRY(op_new(true), fi_trecv(b.ep, to[op_cnt - 1], len, NULL, src, tag, 0, now));
}

static void send(uint64_t tag, size_t len)
{
	TRY(op_new(false), fi_tsend(a.ep, from, len, NULL, to_b, tag, now));
}

static void inject(uint64_t tag, size_t len)
{
	for (int i = 0; i < 100 && fi_tinject(a.ep, from, len, to_b, tag); i++)
		rounds(1);
}

static void send_pieces(uint64_t tag, uint64_t flags)
{
	struct iovec iov[3] = { { from, 10 }, { from + 100, 20000 }, { from + 50, 7 } };
	struct fi_msg_tagged msg = {
		.msg_iov = iov, .iov_count = 3, .addr = to_b, .tag = tag, .data = 5
	};

	TRY(op_new(false), (msg.context = now, fi_tsendmsg(a.ep, &msg, flags)));
}

static void receive_multi(void)
{
	struct iovec iov = { to[op_cnt], 20000 };
	struct fi_msg msg = { .msg_iov = &iov, .iov_count = 1, .addr = FI_ADDR_UNSPEC };

	TRY(op_new(true), (msg.context = now, fi_recvmsg(b.ep, &msg, FI_MULTI_RECV)));
	ops[op_cnt - 1].multi = true; /* ends as often as there are messages */
}

static void receive_any(void)
{
	TRY(op_new(true),
	    fi_trecv(b.ep, to[op_cnt - 1], 100, NULL, FI_ADDR_UNSPEC, 0, UINT64_MAX, now));
}

/* What the endpoints exchange: each kind of message, expected and not. */
static void messages(void)
{
	static const size_t lens[] = { 8, 300, 5000, 60000 };

	for (uint64_t i = 0; i < 4; i++)
		receive(i % 2 ? to_a : FI_ADDR_UNSPEC, i, lens[i]);
	for (uint64_t i = 0; i < 4; i++)
		send(i, lens[i]);
	inject(9, 4000);
	inject(10, 0);
	send_pieces(11, FI_DELIVERY_COMPLETE);
	send_pieces(12, FI_MATCH_COMPLETE | FI_REMOTE_CQ_DATA);
	rounds(50);
	for (uint64_t i = 9; i < 13; i++)
		receive(to_a, i, 30000);
	for (uint64_t i = 20; i < 24; i++)
		send(i, lens[i % 4]);
	rounds(50);
	for (uint64_t i = 20; i < 24; i++)
		receive(FI_ADDR_UNSPEC, i, lens[i % 4] / 2);
	receive_multi();
	for (int i = 0; i < 3; i++)
		TRY(op_new(false), fi_send(a.ep, from, 3000, NULL, to_b, now));
}

static void to_itself(void)
{
	TRY(op_new(true), fi_trecv(a.ep, to[op_cnt - 1], 5000, NULL, a_to_a, 1, 0, now));
	TRY(op_new(false), fi_tsend(a.ep, from, 5000, NULL, a_to_a, 1, now));
	TRY(op_new(false), fi_tsend(a.ep, from, 60000, NULL, a_to_a, 2, now));
	rounds(5);
	TRY(op_new(true), fi_trecv(a.ep, to[op_cnt - 1], 60000, NULL, a_to_a, 2, 0, now));
}

/* A large write of @a to itself, whose payload the receiver has to ask for. */
static void write_to_itself(void)
{
	struct iovec iov = { from, 3 * PIECES * PIECE };
	struct fi_rma_iov targets[3];
	struct fi_msg_rma msg = { .msg_iov = &iov,
				  .iov_count = 1,
				  .addr = a_to_a,
				  .rma_iov = targets,
				  .rma_iov_count = 3 };

	for (int i = 0; i < 3; i++)
		targets[i] = (struct fi_rma_iov){ .len = PIECES * PIECE, .key = KEY };
	TRY(op_new(false), (msg.context = now, fi_writemsg(a.ep, &msg, FI_DELIVERY_COMPLETE)));
}

static void accesses(void)
{
	static const size_t lens[] = { 8, 4000, 60000 };
	static uint64_t one = 1;

	for (int i = 0; i < 3; i++)
		TRY(op_new(false), fi_write(a.ep, from, lens[i], NULL, to_b, 0, KEY, now));
	for (int i = 0; i < 3; i++)
		TRY(op_new(false), fi_write(a.rma, from, lens[i], NULL, to_b, 0, KEY, now));
	for (int i = 0; i < 3; i++)
		TRY(op_new(false),
		    fi_read(a.ep, to[op_cnt - 1], lens[i], NULL, to_b, 0, KEY, now));
	TRY(op_new(false), fi_atomic(a.ep, &one, 1, NULL, to_b, 0, KEY, FI_UINT64, FI_SUM, now));
	TRY(op_new(false), fi_fetch_atomic(a.ep, &one, 1, NULL, to[op_cnt - 1], NULL, to_b, 0,
					   KEY, FI_UINT64, FI_SUM, now));
	for (int i = 0; i < 100 && fi_inject_write(a.ep, from, 100, to_b, 0, KEY); i++)
		rounds(1);
	TRY(op_new(false), fi_write(a.ep, from, 8, NULL, to_b, 0, KEY + 1, now)); /* refused */
}

static void peek_and_claim(void)
{
	struct iovec iov = { to[op_cnt], 100 };
	struct fi_msg_tagged msg = {
		.msg_iov = &iov, .iov_count = 1, .addr = FI_ADDR_UNSPEC, .tag = 40
	};
	struct op *op;

	send(40, 100);
	rounds(30);
	op = op_new(true);
	msg.context = op;
	if (fi_trecvmsg(b.ep, &msg, FI_PEEK | FI_CLAIM))
		return;
	rounds(2);
	if (op->ends != 1 || op->err)
		return;
	op->ends = 0;
	for (int i = 0; i < 100 && !took(op, fi_trecvmsg(b.ep, &msg, FI_CLAIM)); i++)
		;
}

/* Masks of several kinds, so that the matcher has classes. */
static void masks(void)
{
	for (uint64_t i = 0; i < 4; i++)
		TRY(op_new(true),
		    fi_trecv(b.ep, to[op_cnt - 1], 8, NULL, i % 2 ? to_a : FI_ADDR_UNSPEC,
			     0x100 + i, i << 12, now));
	for (uint64_t i = 4; i-- > 0;)
		send(0x100 + i, 8);
}

/* All sends and accesses have ended. */
static bool over(void)
{
	return !fake_end_engine(&a)->tx_pool.used && !fake_end_engine(&b)->tx_pool.used;
}

/* What has not found its message ends when it is cancelled; what has, by itself. */
static void end_receives(void)
{
	rounds(300);
	for (uint32_t i = 0; i < op_cnt; i++) {
		if (!ops[i].recv || (ops[i].ends && !ops[i].multi))
			continue;
		assert_int_equal(fi_cancel(&a.ep->fid, &ops[i].context), 0);
		assert_int_equal(fi_cancel(&b.ep->fid, &ops[i].context), 0);
	}
	for (int i = 0; i < 1000; i++)
		rounds(1);
}

static void rests(const struct fake_end *end)
{
	const struct engine_ep *ep = fake_end_engine(end);

	fake_end_rests(end);
	assert_int_equal(ep->reply_pool.used, 0);
	assert_int_equal(ep->landing_pool.used, 0);
	assert_int_equal(ep->ctl_pool.used, 0);
	assert_int_equal(ep->domain->rx_pool.used, 0);
}

static void check(void)
{
	for (uint32_t i = 0; i < op_cnt; i++) {
		if (!ops[i].begun || ops[i].multi || ops[i].ends == 1 ||
		    (overrun && !ops[i].ends))
			continue;
		print_error("operation %u of seed %llu, allocation %u: ended %d times (%s)\n", i,
			    (unsigned long long)seed, at, ops[i].ends, fi_strerror(ops[i].err));
		fail();
	}
	rests(&a);
	rests(&b);
}

/* Messages of before may be stored: the tag is new. */
static void works_again(void)
{
	op_cnt = 0;
	receive(to_a, 0x9999, 8);
	send(0x9999, 8);
	for (int i = 0; i < ROUNDS_MAX && ops[0].ends + ops[1].ends < 2; i++)
		rounds(1);
	assert_int_equal(ops[0].ends + ops[1].ends, 2);
	assert_int_equal(ops[0].err, 0);
	assert_int_equal(ops[1].err, 0);
}

static void open_ends(void)
{
	struct iovec iov[PIECES];
	struct fake_knobs knobs;

	fake_ends_begin(seed);
	for (int kind = 0; seed && kind < FAKE_KINDS; kind++) {
		fake_knobs_random(&knobs);
		fake_knobs_set((enum fake_kind)kind, &knobs);
	}
	fake_end_open(&a, &attr, NULL);
	fake_end_open(&b, &attr, NULL);
	to_b = fake_end_insert(&a, &b.name);
	a_to_a = fake_end_insert(&a, &a.name);
	to_a = fake_end_insert(&b, &a.name);
	assert_int_equal(fi_mr_reg(b.domain, region, REGION, FI_REMOTE_READ | FI_REMOTE_WRITE,
				   0, KEY, 0, &mr, NULL),
			 0);
	for (uint32_t i = 0; i < PIECES; i++)
		iov[i] = (struct iovec){ region + 2 * i * PIECE, PIECE };
	assert_int_equal(
		fi_mr_regv(a.domain, iov, PIECES, FI_REMOTE_WRITE, 0, KEY, 0, &pieces, NULL), 0);
	op_cnt = 0;
}

/* One sequence. Returns false if it has fewer than @n allocations. */
static bool run(uint32_t n)
{
	open_ends();
	at = n;
	failed = overrun = false;
	left = n;
	burst = 1 + seed % 3 * 4;
	messages();
	to_itself();
	write_to_itself();
	accesses();
	peek_and_claim();
	masks();
	for (int i = 0; i < ROUNDS_MAX && !over(); i++) {
		rounds(1);
		if (!(i % 1000)) /* for a message that was not there when it was peeked for */
			receive_any();
	}
	left = UINT32_MAX;
	end_receives();
	check();
	works_again();
	assert_int_equal(fi_close(&mr->fid), 0);
	assert_int_equal(fi_close(&pieces->fid), 0);
	fake_ends_close();
	return failed;
}

static uint64_t setting(const char *name, uint64_t otherwise)
{
	const char *text = getenv(name);

	return text ? strtoull(text, NULL, 0) : otherwise;
}

static void each_allocation_may_fail(void **state)
{
	uint64_t first = setting("NO_MEMORY_SEED", 0), end = setting("NO_MEMORY_SEEDS", SEEDS);
	uint32_t n = (uint32_t)setting("NO_MEMORY_AT", 0);

	if (getenv("NO_MEMORY_SEED"))
		end = first + 1;
	for (seed = first; seed < end; seed++) {
		if (getenv("NO_MEMORY_AT"))
			run(n);
		for (n = 0; !getenv("NO_MEMORY_AT") && run(n); n++)
			;
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(each_allocation_may_fail) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
