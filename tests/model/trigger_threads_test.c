/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Calls with FI_TRIGGER of several threads on one endpoint, over the real library and each provider: a
 * domain with a lock keeps each kind of call whole, with the flag and without.
 *
 * usage: trigger_threads_test PROVIDER
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include "trigger_ends.h"

#define CALLERS 2
#define ROUNDS	200
#define ECHOES	8 /* receives that are posted at b */

enum kind { SEND, TSEND, RECV, TRECV, READ, WRITE, SUM, FETCH, SWAP, KINDS };

struct op {
	struct fi_triggered_context2 context; /* first: completions point here */
	_Atomic bool done;
};

/* What a caller uses at b: written, read, added to, compared with. */
struct words {
	uint64_t put, got, sum, swap;
};

struct caller {
	pthread_t thread;
	struct op ops[KINDS];
	struct fid_cntr *cntr; /* what its calls wait for */
	uint64_t id, n;
	uint64_t sent, received[2], put, got, one, old[2], compare;
	const char *wrong; /* what went wrong first */
	_Atomic bool over;
};

#define CALLER_CHECK(c, cond)               \
	do {                                \
		if (!(cond)) {              \
			(c)->wrong = #cond; \
			return;             \
		}                           \
	} while (0)

#define AT(c, word) ((c)->id * sizeof(struct words) + offsetof(struct words, word))

static struct caller callers[CALLERS];

static ssize_t call_message(struct caller *c, enum kind kind, uint64_t flags)
{
	bool tagged = kind == TSEND || kind == TRECV, recv = kind == RECV || kind == TRECV;
	struct iovec iov = { recv ? &c->received[tagged] : &c->sent, sizeof(c->sent) };
	struct fi_msg msg = { .msg_iov = &iov,
			      .iov_count = 1,
			      .addr = recv ? FI_ADDR_UNSPEC : to_b,
			      .context = &c->ops[kind].context };
	struct fi_msg_tagged tmsg = { .msg_iov = &iov,
				      .iov_count = 1,
				      .addr = msg.addr,
				      .tag = c->id,
				      .context = msg.context };

	if (tagged)
		return recv ? fi_trecvmsg(a.ep, &tmsg, flags) : fi_tsendmsg(a.ep, &tmsg, flags);
	return recv ? fi_recvmsg(a.ep, &msg, flags) : fi_sendmsg(a.ep, &msg, flags);
}

static ssize_t call_rma(struct caller *c, enum kind kind, uint64_t flags)
{
	struct iovec iov = { kind == READ ? &c->got : &c->put, sizeof(c->put) };
	struct fi_rma_iov target = { kind == READ ? AT(c, got) : AT(c, put), sizeof(c->put),
				     KEY };
	struct fi_msg_rma msg = { .msg_iov = &iov,
				  .iov_count = 1,
				  .addr = to_b,
				  .rma_iov = &target,
				  .rma_iov_count = 1,
				  .context = &c->ops[kind].context };

	return kind == READ ? fi_readmsg(a.ep, &msg, flags) : fi_writemsg(a.ep, &msg, flags);
}

/* Two sums a round; the swap counts the rounds. */
static ssize_t call_atomic(struct caller *c, enum kind kind, uint64_t flags)
{
	uint64_t next = c->n + 1;
	struct fi_ioc operand = { kind == SWAP ? &next : &c->one, 1 },
		      compare = { &c->compare, 1 }, old = { &c->old[kind == SWAP], 1 };
	struct fi_rma_ioc target = { kind == SWAP ? AT(c, swap) : AT(c, sum), 1, KEY };
	struct fi_msg_atomic msg = { .msg_iov = &operand,
				     .iov_count = 1,
				     .addr = to_b,
				     .rma_iov = &target,
				     .rma_iov_count = 1,
				     .datatype = FI_UINT64,
				     .op = kind == SWAP ? FI_CSWAP : FI_SUM,
				     .context = &c->ops[kind].context };

	flags |= FI_INJECT; /* the operands are this function's */
	if (kind == SUM)
		return fi_atomicmsg(a.ep, &msg, flags);
	if (kind == FETCH)
		return fi_fetch_atomicmsg(a.ep, &msg, &old, NULL, 1, flags);
	return fi_compare_atomicmsg(a.ep, &msg, &compare, NULL, 1, &old, NULL, 1, flags);
}

static ssize_t call(struct caller *c, enum kind kind, uint64_t flags)
{
	struct op *op = &c->ops[kind];

	atomic_store(&op->done, false);
	op->context = (struct fi_triggered_context2){ .event_type = FI_TRIGGER_THRESHOLD };
	op->context.trigger.threshold.cntr = c->cntr;
	op->context.trigger.threshold.threshold = c->n + 1;
	if (kind <= TRECV)
		return call_message(c, kind, flags);
	return kind <= WRITE ? call_rma(c, kind, flags) : call_atomic(c, kind, flags);
}

/* One call of each kind: of every second round they wait for the counter. */
static void caller_round(struct caller *c, double end)
{
	bool waits = c->n % 2 == 0;
	uint64_t flags = FI_COMPLETION | FI_DELIVERY_COMPLETE;
	ssize_t ret;

	c->sent = c->put = c->id << 32 | c->n;
	c->compare = c->n;
	for (enum kind kind = 0; kind < KINDS; kind++) {
		uint64_t of = kind == RECV || kind == TRECV ? FI_COMPLETION : flags;

		do
			ret = call(c, kind, waits ? of | FI_TRIGGER : of);
		while (ret == -FI_EAGAIN && end_now() < end);
		CALLER_CHECK(c, !ret);
	}
	sched_yield();
	for (int i = 0; i < KINDS; i++)
		CALLER_CHECK(c, !waits || !atomic_load(&c->ops[i].done));
	CALLER_CHECK(c, !fi_cntr_add(c->cntr, 1));
	for (int i = 0; i < KINDS; i++)
		while (!atomic_load(&c->ops[i].done)) {
			CALLER_CHECK(c, end_now() < end);
			sched_yield();
		}
	CALLER_CHECK(c, c->received[1] == (c->id << 32 | c->n));
	CALLER_CHECK(c, c->got == c->id + 7);
	CALLER_CHECK(c, c->old[0] == 2 * c->n || c->old[0] == 2 * c->n + 1);
	CALLER_CHECK(c, c->old[1] == c->n);
}

static void *caller_run(void *arg)
{
	struct caller *c = arg;
	double end = end_now() + 60;

	for (; c->n < ROUNDS && !c->wrong; c->n++)
		caller_round(c, end);
	atomic_store(&c->over, true);
	return NULL;
}

/* b sends back what it receives; completions of a are handed to the threads that wait for them. */
static uint64_t echoes[2][ECHOES];

static void echo_post(bool tagged, uint64_t *to)
{
	if (tagged)
		assert_int_equal(fi_trecv(b.ep, to, 8, NULL, FI_ADDR_UNSPEC, 0, UINT64_MAX, to),
				 0);
	else
		assert_int_equal(fi_recv(b.ep, to, 8, NULL, FI_ADDR_UNSPEC, to), 0);
}

static void serve(void)
{
	uint64_t *at;

	if (fi_cq_read(a.cq, &entry, 1) == 1)
		atomic_store(&((struct op *)entry.op_context)->done, true);
	if (fi_cq_read(b.cq, &entry, 1) != 1)
		return;
	at = entry.op_context;
	if (entry.flags & FI_TAGGED)
		END_UNTIL(!fi_tinject(b.ep, at, 8, to_a, entry.tag), turn());
	else
		END_UNTIL(!fi_inject(b.ep, at, 8, to_a), turn());
	echo_post(entry.flags & FI_TAGGED, at);
}

static bool all_over(void)
{
	for (int i = 0; i < CALLERS; i++)
		if (!atomic_load(&callers[i].over))
			return false;
	return true;
}

static void two_threads_trigger_every_kind_of_call(void **state)
{
	struct end_attr attr = trigger_attr();
	struct words *words = (struct words *)region;
	double end = end_now() + 90;

	attr.threading = FI_THREAD_SAFE;
	trigger_open(&attr);
	for (int i = 0; i < 2 * ECHOES; i++)
		echo_post(i % 2, &echoes[i % 2][i / 2]);
	for (int i = 0; i < CALLERS; i++) {
		callers[i] =
			(struct caller){ .cntr = i ? done : when, .id = (uint64_t)i, .one = 1 };
		words[i].got = (uint64_t)i + 7;
	}
	for (int i = 0; i < CALLERS; i++)
		assert_int_equal(
			pthread_create(&callers[i].thread, NULL, caller_run, &callers[i]), 0);
	while (!all_over() && end_now() < end)
		serve();
	for (int i = 0; i < CALLERS; i++) {
		assert_int_equal(pthread_join(callers[i].thread, NULL), 0);
		if (callers[i].wrong)
			print_error("thread %d, round %d: %s\n", i, (int)callers[i].n,
				    callers[i].wrong);
		assert_null(callers[i].wrong);
		assert_int_equal(words[i].put, (uint64_t)i << 32 | (ROUNDS - 1));
		assert_int_equal(words[i].sum, 2 * ROUNDS);
		assert_int_equal(words[i].swap, ROUNDS);
	}
	nothing(&a);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(two_threads_trigger_every_kind_of_call,
					  trigger_teardown),
	};

	if (argc != 2)
		return 2;
	provider = argv[1];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
