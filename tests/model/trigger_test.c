/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Operations that begin when a counter has reached a value, over the real library and each
 * provider: calls with FI_TRIGGER, and deferred work of a domain. One process with two endpoints,
 * whose domains its main thread turns unless a test says otherwise.
 *
 * usage: trigger_test PROVIDER
 */
#include <pthread.h>
#include <rdma/fi_trigger.h>
#include "ends.h"

#define REGION 65536
#define KEY    5
#define LARGE  20000 /* bytes: a rendezvous */
#define MANY   3000  /* more than a transmit queue holds */

static const char *provider;

/* Two ends, and memory of the second that the first may use. */
static struct end a, b;
static struct fid_mr *mr;
static struct fid_cntr *when, *done; /* of the first end's domain */
static fi_addr_t to_b, to_a;
static uint8_t region[REGION], buf[REGION], got[REGION];
static struct fi_triggered_context2 contexts[16];
static struct fi_cq_tagged_entry entry;

static struct end_attr attributes(void)
{
	return (struct end_attr){ .provider = provider, .caps = FI_RMA | FI_ATOMIC | FI_TRIGGER,
				  .threading = FI_THREAD_DOMAIN };
}

static void open_all(const struct end_attr *attr)
{
	end_open(&a, attr);
	end_open(&b, attr);
	to_b = end_knows(&a, &b);
	to_a = end_knows(&b, &a);
	assert_int_equal(fi_cntr_open(a.domain, NULL, &when, NULL), 0);
	assert_int_equal(fi_cntr_open(a.domain, NULL, &done, NULL), 0);
	assert_int_equal(fi_mr_reg(b.domain, region, REGION,
				   FI_REMOTE_READ | FI_REMOTE_WRITE, 0, KEY, 0, &mr, NULL), 0);
	memset(region, 0, sizeof(region));
	memset(got, 0, sizeof(got));
	for (size_t i = 0; i < REGION; i++)
		buf[i] = (uint8_t)(i * 7 + 1);
}

static bool offered(const struct end_attr *attr)
{
	struct fi_info *info = end_info(attr);

	fi_freeinfo(info);
	return info != NULL;
}

static int setup(void **state)
{
	struct end_attr attr = attributes();

	open_all(&attr);
	return 0;
}

static int teardown(void **state)
{
	if (!mr) /* it was skipped */
		return 0;
	assert_int_equal(fi_close(&mr->fid), 0);
	if (a.ep) {
		assert_int_equal(fi_close(&when->fid), 0);
		assert_int_equal(fi_close(&done->fid), 0);
		end_close(&a);
	}
	end_close(&b);
	mr = NULL;
	return 0;
}

/* A round of progress of both. */
static void turn(void)
{
	fi_cq_read(a.cq, NULL, 0);
	fi_cq_read(b.cq, NULL, 0);
}

static void turns(int cnt)
{
	while (cnt--)
		turn();
}

static bool reads(struct end *e)
{
	ssize_t ret = fi_cq_read(e->cq, &entry, 1);

	assert_true(ret == 1 || ret == -FI_EAGAIN);
	return ret == 1;
}

/* The next completion of an end. */
static void completes(struct end *e, void *context, uint64_t flags)
{
	END_UNTIL(reads(e), turn());
	assert_ptr_equal(entry.op_context, context);
	assert_int_equal(entry.flags & ~FI_REMOTE_CQ_DATA, flags);
}

static void fails(struct end *e, void *context, int err)
{
	struct fi_cq_err_entry error = { 0 };

	END_UNTIL(fi_cq_readerr(e->cq, &error, 0) == 1, turn());
	assert_ptr_equal(error.op_context, context);
	assert_int_equal(error.err, err);
}

static void nothing(struct end *e)
{
	turns(20);
	assert_false(reads(e));
}

static void *trigger(int i, uint64_t threshold)
{
	contexts[i] = (struct fi_triggered_context2){ .event_type = FI_TRIGGER_THRESHOLD };
	contexts[i].trigger.threshold.cntr = when;
	contexts[i].trigger.threshold.threshold = threshold;
	return &contexts[i];
}

/* Calls with FI_TRIGGER */

static ssize_t tsend_when(int i, uint64_t threshold, uint64_t flags)
{
	struct iovec iov = { &buf[i], 8 };
	struct fi_msg_tagged msg = { .msg_iov = &iov, .iov_count = 1, .addr = to_b, .tag = 100 + (uint64_t)i,
				     .context = trigger(i, threshold) };

	return fi_tsendmsg(a.ep, &msg, FI_TRIGGER | flags);
}

static void receives(int i)
{
	memset(got, 0, 8);
	assert_int_equal(fi_trecv(b.ep, got, 8, NULL, FI_ADDR_UNSPEC, 0, UINT64_MAX, &got), 0);
	completes(&b, &got, FI_TAGGED | FI_RECV);
	assert_int_equal(entry.tag, 100 + i);
	assert_memory_equal(got, &buf[i], 8);
}

static void they_wait_and_go_by_threshold_then_in_order(void **state)
{
	static const uint64_t thresholds[] = { 4, 2, 4, 1, 2, 9 };

	for (int i = 0; i < 6; i++)
		assert_int_equal(tsend_when(i, thresholds[i], FI_COMPLETION), 0);
	nothing(&a);
	assert_int_equal(fi_cntr_add(when, 1), 0);
	receives(3);
	completes(&a, &contexts[3], FI_TAGGED | FI_SEND);
	nothing(&a);
	assert_int_equal(fi_cntr_add(when, 4), 0);
	receives(1);
	receives(4);
	receives(0);
	receives(2);
	for (int i = 0; i < 4; i++)
		completes(&a, &contexts[(int[]){ 1, 4, 0, 2 }[i]], FI_TAGGED | FI_SEND);
	nothing(&a);
	/* Errors end operations too; one that is due already does not wait. */
	assert_int_equal(fi_cntr_adderr(when, 4), 0);
	receives(5);
	assert_int_equal(tsend_when(6, 9, FI_COMPLETION), 0);
	receives(6);
	assert_int_equal(fi_cntr_read(a.tx), 7);
}

/* A receive sets off a send: that is what it is for. */
static void a_message_answers_another(void **state)
{
	struct iovec iov = { buf, LARGE };
	struct fi_msg msg = { .msg_iov = &iov, .iov_count = 1, .addr = to_b, .context = &contexts[0] };

	trigger(0, 1);
	contexts[0].trigger.threshold.cntr = a.rx;
	assert_int_equal(fi_sendmsg(a.ep, &msg, FI_TRIGGER | FI_COMPLETION), 0);
	assert_int_equal(fi_recv(a.ep, got, 1, NULL, FI_ADDR_UNSPEC, &got), 0);
	assert_int_equal(fi_recv(b.ep, region, LARGE, NULL, FI_ADDR_UNSPEC, &region), 0);
	nothing(&b);
	END_UNTIL(!fi_inject(b.ep, "!", 1, to_a), turn());
	completes(&b, &region, FI_MSG | FI_RECV);
	assert_memory_equal(region, buf, LARGE);
	completes(&a, &got, FI_MSG | FI_RECV);
	completes(&a, &contexts[0], FI_MSG | FI_SEND);
}

static void triggered_receives(void)
{
	struct iovec iov = { got, 64 };
	struct fi_msg msg = { .msg_iov = &iov, .iov_count = 1, .addr = FI_ADDR_UNSPEC, .context = trigger(0, 1) };
	struct fi_msg_tagged tagged = { .msg_iov = &iov, .iov_count = 1, .addr = FI_ADDR_UNSPEC, .tag = 9,
					.context = trigger(1, 1) };

	/* The message is there before its receive. */
	END_UNTIL(!fi_inject(b.ep, buf, 64, to_a), turn());
	assert_int_equal(fi_recvmsg(a.ep, &msg, FI_TRIGGER | FI_COMPLETION), 0);
	iov.iov_base = got + 64;
	assert_int_equal(fi_trecvmsg(a.ep, &tagged, FI_TRIGGER | FI_COMPLETION), 0);
	iov = (struct iovec){ 0 };
	nothing(&a);
	assert_int_equal(fi_cntr_add(when, 1), 0);
	completes(&a, &contexts[0], FI_MSG | FI_RECV);
	END_UNTIL(!fi_tinject(b.ep, buf + 64, 64, to_a, 9), turn());
	completes(&a, &contexts[1], FI_TAGGED | FI_RECV);
	assert_memory_equal(got, buf, 128);
}

static void triggered_rma(void)
{
	struct iovec iov[2] = { { buf, 100 }, { buf + 100, LARGE - 100 } };
	struct fi_rma_iov targets[2] = { { 0, 50, KEY }, { 50, LARGE - 50, KEY } };
	struct fi_msg_rma msg = { .msg_iov = iov, .iov_count = 2, .addr = to_b, .rma_iov = targets,
				  .rma_iov_count = 2, .context = trigger(2, 2) };

	assert_int_equal(fi_writemsg(a.ep, &msg, FI_TRIGGER | FI_COMPLETION), 0);
	iov[0].iov_base = got;
	iov[1].iov_base = got + 100;
	msg.context = trigger(3, 3);
	assert_int_equal(fi_readmsg(a.ep, &msg, FI_TRIGGER | FI_COMPLETION), 0);
	memset(iov, 0, sizeof(iov));
	memset(targets, 0, sizeof(targets));
	nothing(&a);
	assert_int_equal(region[0], 0);
	assert_int_equal(fi_cntr_add(when, 1), 0);
	completes(&a, &contexts[2], FI_RMA | FI_WRITE);
	assert_memory_equal(region, buf, LARGE);
	assert_int_equal(fi_cntr_add(when, 1), 0);
	completes(&a, &contexts[3], FI_RMA | FI_READ);
	assert_memory_equal(got, buf, LARGE);
}

static void triggered_atomics(void)
{
	uint64_t operand = 5, result[2] = { 0 }, compare = 15, *word = (uint64_t *)region;
	struct fi_ioc ioc = { &operand, 1 }, results = { &result[0], 1 }, compares = { &compare, 1 };
	struct fi_rma_ioc target = { 0, 1, KEY };
	struct fi_msg_atomic msg = { .msg_iov = &ioc, .iov_count = 1, .addr = to_b, .rma_iov = &target,
				     .rma_iov_count = 1, .datatype = FI_UINT64, .op = FI_SUM };

	*word = 5;
	msg.context = trigger(4, 4);
	assert_int_equal(fi_atomicmsg(a.ep, &msg, FI_TRIGGER | FI_COMPLETION), 0);
	msg.context = trigger(5, 5);
	assert_int_equal(fi_fetch_atomicmsg(a.ep, &msg, &results, NULL, 1, FI_TRIGGER | FI_COMPLETION), 0);
	results.addr = &result[1];
	msg.context = trigger(6, 6);
	msg.op = FI_CSWAP;
	/* Its operands are taken at once. */
	assert_int_equal(fi_compare_atomicmsg(a.ep, &msg, &compares, NULL, 1, &results, NULL, 1,
					      FI_TRIGGER | FI_COMPLETION | FI_INJECT), 0);
	compare = 0;
	nothing(&a);
	assert_int_equal(*word, 5);
	for (int i = 4; i < 7; i++) {
		assert_int_equal(fi_cntr_set(when, (uint64_t)i), 0);
		completes(&a, &contexts[i], FI_ATOMIC | (i == 4 ? FI_WRITE : FI_READ));
	}
	assert_int_equal(result[0], 10);
	assert_int_equal(result[1], 15);
	assert_int_equal(*word, 5);
}

static void every_kind_of_call_can_be_triggered(void **state)
{
	triggered_receives();
	triggered_rma();
	triggered_atomics();
}

static void injected_data_are_taken_at_once(void **state)
{
	uint8_t was[2][8];
	struct iovec iov[2] = { { was[0], 8 }, { was[1], 8 } };
	struct fi_msg msg = { .msg_iov = iov, .iov_count = 2, .addr = to_b, .context = trigger(0, 1) };
	struct fi_rma_iov target = { 0, 16, KEY };
	struct fi_msg_rma rma = { .msg_iov = iov, .iov_count = 2, .addr = to_b, .rma_iov = &target,
				  .rma_iov_count = 1, .context = trigger(1, 1) };

	memcpy(was, buf, 16);
	assert_int_equal(fi_sendmsg(a.ep, &msg, FI_TRIGGER | FI_INJECT | FI_COMPLETION), 0);
	assert_int_equal(fi_writemsg(a.ep, &rma, FI_TRIGGER | FI_INJECT | FI_COMPLETION), 0);
	memset(was, 0, sizeof(was));
	assert_int_equal(fi_cntr_add(when, 1), 0);
	assert_int_equal(fi_recv(b.ep, got, 16, NULL, FI_ADDR_UNSPEC, &got), 0);
	completes(&b, &got, FI_MSG | FI_RECV);
	END_UNTIL(fi_cntr_read(a.tx) == 1 && region[15], turn());
	assert_memory_equal(got, buf, 16);
	assert_memory_equal(region, buf, 16);
	iov[0] = (struct iovec){ buf, 4096 };
	assert_int_equal(fi_sendmsg(a.ep, &msg, FI_TRIGGER | FI_INJECT), -FI_EMSGSIZE);
}

/* Calls of an alias need no flags of their own. */
static void calls_of_an_alias_can_be_triggered(void **state)
{
	uint64_t operand = 7, result = 0;
	struct fid_ep *alias = NULL;

	assert_int_equal(fi_ep_alias(a.ep, &alias, FI_TRANSMIT | FI_TRIGGER | FI_COMPLETION), 0);
	assert_int_equal(fi_write(alias, buf, 64, NULL, to_b, 0, KEY, trigger(0, 1)), 0);
	assert_int_equal(fi_read(alias, got, 64, NULL, to_b, 0, KEY, trigger(1, 2)), 0);
	assert_int_equal(fi_fetch_atomic(alias, &operand, 1, NULL, &result, NULL, to_b, 64, KEY, FI_UINT64, FI_SUM,
					 trigger(2, 3)), 0);
	assert_int_equal(fi_tsend(alias, buf + 3, 8, NULL, to_b, 103, trigger(3, 4)), 0);
	assert_int_equal(fi_inject(alias, buf, 8, to_b), -FI_ENOSYS);
	assert_int_equal(fi_send(alias, buf, 8, NULL, to_b, NULL), -FI_EINVAL);
	nothing(&a);
	assert_int_equal(fi_close(&a.ep->fid), -FI_EBUSY);
	for (int i = 0; i < 4; i++) {
		static const uint64_t flags[] = { FI_RMA | FI_WRITE, FI_RMA | FI_READ, FI_ATOMIC | FI_READ,
						  FI_TAGGED | FI_SEND };

		assert_int_equal(fi_cntr_add(when, 1), 0);
		completes(&a, &contexts[i], flags[i]);
	}
	receives(3);
	assert_memory_equal(got + 8, buf + 8, 56);
	assert_int_equal(*(uint64_t *)(region + 64), 7);
	/* It takes what waits along; the endpoint itself was never one that triggers. */
	assert_int_equal(fi_tsend(alias, buf, 8, NULL, to_b, 100, trigger(4, 9)), 0);
	assert_int_equal(fi_close(&alias->fid), 0);
	assert_int_equal(fi_cntr_add(when, 9), 0);
	assert_int_equal(fi_tsend(a.ep, buf + 5, 8, NULL, to_b, 105, NULL), 0);
	receives(5);
}

static void what_waits_can_be_cancelled(void **state)
{
	assert_int_equal(tsend_when(0, 1, FI_COMPLETION), 0);
	assert_int_equal(tsend_when(1, 1, FI_COMPLETION), 0);
	assert_int_equal(fi_cancel(&a.ep->fid, &contexts[2]), -FI_ENOENT);
	assert_int_equal(fi_cancel(&a.ep->fid, &contexts[0]), 0);
	fails(&a, &contexts[0], FI_ECANCELED);
	assert_int_equal(fi_cntr_readerr(a.tx), 1);
	assert_int_equal(fi_cntr_add(when, 1), 0);
	receives(1);
	completes(&a, &contexts[1], FI_TAGGED | FI_SEND);
}

static void conditions_that_are_none_are_refused(void **state)
{
	struct end_attr attr = attributes();
	struct iovec iov[5] = { { buf, 8 } };
	struct fi_msg msg = { .msg_iov = iov, .iov_count = 1, .addr = to_b };
	struct fi_rma_iov target = { 0, 8, KEY };
	struct fi_msg_rma rma = { .msg_iov = iov, .iov_count = 1, .addr = to_b, .rma_iov = &target,
				  .rma_iov_count = 1 };
	struct fi_info *info = end_info(&attr);
	struct fid_cntr *foreign;
	struct fid_ep *plain;

	assert_true(info->caps & FI_TRIGGER && info->tx_attr->caps & FI_TRIGGER && info->rx_attr->caps & FI_TRIGGER);
	assert_int_equal(fi_sendmsg(a.ep, &msg, FI_TRIGGER), -FI_EINVAL); /* no context */
	msg.context = rma.context = trigger(0, 1);
	contexts[0].event_type = FI_TRIGGER_XPU;
	assert_int_equal(fi_sendmsg(a.ep, &msg, FI_TRIGGER), -FI_ENOSYS);
	assert_int_equal(fi_writemsg(a.ep, &rma, FI_TRIGGER), -FI_ENOSYS);
	contexts[0].event_type = (enum fi_trigger_event)7;
	assert_int_equal(fi_sendmsg(a.ep, &msg, FI_TRIGGER), -FI_EINVAL);
	trigger(0, 1);
	contexts[0].trigger.threshold.cntr = NULL;
	assert_int_equal(fi_sendmsg(a.ep, &msg, FI_TRIGGER), -FI_EINVAL);
	assert_int_equal(fi_cntr_open(b.domain, NULL, &foreign, NULL), 0);
	contexts[0].trigger.threshold.cntr = foreign;
	assert_int_equal(fi_sendmsg(a.ep, &msg, FI_TRIGGER), -FI_EINVAL);
	assert_int_equal(fi_close(&foreign->fid), 0);
	trigger(0, 1);
	msg.iov_count = 5;
	assert_int_equal(fi_sendmsg(a.ep, &msg, FI_TRIGGER), -FI_EINVAL);
	msg.iov_count = 1;
	assert_int_equal(fi_sendmsg(a.ep, &msg, FI_TRIGGER | FI_PEEK), -FI_EBADFLAGS);
	assert_int_equal(fi_recvmsg(a.ep, &msg, FI_TRIGGER | FI_PEEK), -FI_ENOSYS);
	rma.iov_count = 5;
	assert_int_equal(fi_writemsg(a.ep, &rma, FI_TRIGGER), -FI_EINVAL);
	rma.iov_count = 1;
	target.len = 9;
	assert_int_equal(fi_writemsg(a.ep, &rma, FI_TRIGGER), -FI_EINVAL);
	/* Nothing of all that waits. */
	assert_int_equal(fi_cntr_add(when, 1), 0);
	nothing(&b);

	info->caps &= ~FI_TRIGGER;
	assert_int_equal(fi_endpoint(a.domain, info, &plain, NULL), 0);
	assert_int_equal(fi_ep_bind(plain, &a.av->fid, 0), 0);
	assert_int_equal(fi_ep_bind(plain, &a.cq->fid, FI_TRANSMIT | FI_RECV), 0);
	assert_int_equal(fi_enable(plain), 0);
	assert_int_equal(fi_sendmsg(plain, &msg, FI_TRIGGER), -FI_EBADFLAGS);
	assert_int_equal(fi_close(&plain->fid), 0);
	fi_freeinfo(info);
}

/* Deferred work */

static int work_do(int command, void *arg)
{
	return fi_control(&a.domain->fid, command, arg);
}

/* Work that sends 8 bytes at buf + i with the tag 100 + i. */
struct send_work {
	struct fi_deferred_work work;
	struct fi_op_tagged op;
	struct iovec iov;
};

static void send_work_init(struct send_work *s, int i, uint64_t threshold)
{
	*s = (struct send_work){
		.work = { .threshold = threshold, .triggering_cntr = when, .completion_cntr = done,
			  .op_type = FI_OP_TSEND, .op.tagged = &s->op },
		.op = { .ep = a.ep, .msg = { .msg_iov = &s->iov, .iov_count = 1, .addr = to_b,
					     .tag = 100 + (uint64_t)i, .context = s } },
		.iov = { &buf[i], 8 },
	};
}

static void works_go_by_threshold_then_in_order(void **state)
{
	static const uint64_t thresholds[] = { 3, 1, 3, 1, 2 };
	static const int order[] = { 1, 3, 4, 0, 2 };
	struct send_work works[5];

	for (int i = 0; i < 5; i++) {
		send_work_init(&works[i], i, thresholds[i]);
		assert_int_equal(work_do(FI_QUEUE_WORK, &works[i].work), 0);
	}
	nothing(&b);
	assert_int_equal(fi_cntr_add(when, 7), 0);
	for (int i = 0; i < 5; i++)
		receives(order[i]);
	END_UNTIL(fi_cntr_read(done) == 5, turn());
	/* Nobody else is told. */
	assert_int_equal(fi_cntr_read(a.tx), 0);
	nothing(&a);
}

static void their_ends_can_be_told_as_well(void **state)
{
	struct send_work works[2];

	send_work_init(&works[0], 0, 0);
	works[0].op.flags = FI_COMPLETION;
	assert_int_equal(work_do(FI_QUEUE_WORK, &works[0].work), 0);
	completes(&a, &works[0], FI_TAGGED | FI_SEND);
	assert_int_equal(fi_cntr_read(a.tx), 1);
	assert_int_equal(fi_cntr_read(done), 1);
	/* The endpoint's own counter can be the work's: it counts once. */
	send_work_init(&works[1], 1, 0);
	works[1].op.flags = FI_COMPLETION;
	works[1].work.completion_cntr = a.tx;
	assert_int_equal(work_do(FI_QUEUE_WORK, &works[1].work), 0);
	completes(&a, &works[1], FI_TAGGED | FI_SEND);
	assert_int_equal(fi_cntr_read(a.tx), 2);
	works[1].op.flags = 0;
	assert_int_equal(work_do(FI_QUEUE_WORK, &works[1].work), 0);
	END_UNTIL(fi_cntr_read(a.tx) == 3, turn());
	for (int i = 0; i < 3; i++)
		receives(i > 0);
	nothing(&a);
}

/* The counter counts the end, not the beginning. */
static void the_end_of_a_large_one_is_counted_when_it_is_there(void **state)
{
	struct send_work send;
	struct iovec iov = { got, LARGE };
	struct fi_op_msg recv = { .ep = a.ep, .msg = { .msg_iov = &iov, .iov_count = 1, .addr = FI_ADDR_UNSPEC } };
	struct fi_deferred_work work = { .triggering_cntr = when, .completion_cntr = done, .op_type = FI_OP_RECV,
					 .op.msg = &recv };

	send_work_init(&send, 0, 0);
	send.iov.iov_len = LARGE;
	send.op.flags = FI_DELIVERY_COMPLETE;
	assert_int_equal(work_do(FI_QUEUE_WORK, &send.work), 0);
	assert_int_equal(work_do(FI_QUEUE_WORK, &work), 0);
	nothing(&b);
	assert_int_equal(fi_cntr_read(done), 0);
	assert_int_equal(fi_trecv(b.ep, region, LARGE, NULL, FI_ADDR_UNSPEC, 100, 0, &region), 0);
	completes(&b, &region, FI_TAGGED | FI_RECV);
	END_UNTIL(fi_cntr_read(done) == 1, turn());
	assert_memory_equal(region, buf, LARGE);
	END_UNTIL(!fi_send(b.ep, buf, LARGE, NULL, to_a, &buf), turn());
	completes(&b, &buf, FI_MSG | FI_SEND);
	END_UNTIL(fi_cntr_read(done) == 2, turn());
	assert_memory_equal(got, buf, LARGE);
	assert_int_equal(fi_cntr_read(a.tx) + fi_cntr_read(a.rx), 0);
	nothing(&a);
}

/* Everything that one end does of another's accord: counter to work to counter, through all kinds. */
static void works_make_a_chain(void **state)
{
	struct fid_cntr *step[10];
	struct iovec iov = { buf, 64 }, from = { got, 64 }, in = { got + 64, 64 }, tin = { got + 128, 64 };
	struct fi_rma_iov target = { 0, 64, KEY };
	uint64_t operand = 3, fetched = 0, compared = 0, compare = 0;
	struct fi_ioc ioc = { &operand, 1 }, fioc = { &fetched, 1 }, cioc = { &compare, 1 }, rioc = { &compared, 1 };
	struct fi_rma_ioc word = { 64, 1, KEY };
	struct fi_op_msg recv = { .ep = a.ep, .msg = { .msg_iov = &in, .iov_count = 1, .addr = FI_ADDR_UNSPEC } };
	struct fi_op_msg send = { .ep = a.ep, .msg = { .msg_iov = &iov, .iov_count = 1 } };
	struct fi_op_tagged trecv = { .ep = a.ep, .msg = { .msg_iov = &tin, .iov_count = 1, .addr = FI_ADDR_UNSPEC,
							   .tag = 1 } };
	struct fi_op_tagged tsend = { .ep = a.ep, .msg = { .msg_iov = &iov, .iov_count = 1, .tag = 1 } };
	struct fi_op_rma write = { .ep = a.ep, .msg = { .msg_iov = &iov, .iov_count = 1, .addr = to_b,
							.rma_iov = &target, .rma_iov_count = 1 } };
	struct fi_op_rma read = { .ep = a.ep, .msg = write.msg };
	struct fi_msg_atomic sum = { .msg_iov = &ioc, .iov_count = 1, .addr = to_b, .rma_iov = &word,
				     .rma_iov_count = 1, .datatype = FI_UINT64, .op = FI_SUM };
	struct fi_op_atomic add = { .ep = a.ep, .msg = sum };
	struct fi_op_fetch_atomic fetch = { .ep = a.ep, .msg = sum, .fetch = { .msg_iov = &fioc, .iov_count = 1 } };
	struct fi_op_compare_atomic swap = { .ep = a.ep, .msg = sum, .fetch = { .msg_iov = &rioc, .iov_count = 1 },
					     .compare = { .msg_iov = &cioc, .iov_count = 1 } };
	struct fi_op_cntr set = { .value = 40 }, more = { .value = 2 };
	struct fi_deferred_work works[] = {
		{ .op_type = FI_OP_WRITE, .op.rma = &write },
		{ .op_type = FI_OP_READ, .op.rma = &read },
		{ .op_type = FI_OP_ATOMIC, .op.atomic = &add },
		{ .op_type = FI_OP_FETCH_ATOMIC, .op.fetch_atomic = &fetch },
		{ .op_type = FI_OP_COMPARE_ATOMIC, .op.compare_atomic = &swap },
		{ .op_type = FI_OP_SEND, .op.msg = &send },
		{ .op_type = FI_OP_TSEND, .op.tagged = &tsend },
		{ .op_type = FI_OP_CNTR_SET, .op.cntr = &set },
		{ .op_type = FI_OP_CNTR_ADD, .op.cntr = &more },
	};
	struct fi_deferred_work receives[] = {
		{ .op_type = FI_OP_RECV, .op.msg = &recv, .triggering_cntr = when, .completion_cntr = done },
		{ .op_type = FI_OP_TRECV, .op.tagged = &trecv, .triggering_cntr = when, .completion_cntr = done },
	};
	fi_addr_t self = end_knows(&a, &a);

	send.msg.addr = tsend.msg.addr = self;
	read.msg.msg_iov = &from;
	swap.msg.op = FI_CSWAP_NE;
	for (int i = 0; i < 10; i++)
		assert_int_equal(fi_cntr_open(a.domain, NULL, &step[i], NULL), 0);
	set.cntr = step[8];
	more.cntr = step[9];
	/* Last ones first: what waits does so in any order. */
	for (int i = 8; i >= 0; i--) {
		works[i].triggering_cntr = step[i];
		works[i].threshold = i == 8 ? 40 : 1;
		works[i].completion_cntr = i < 7 ? step[i + 1] : NULL;
		assert_int_equal(work_do(FI_QUEUE_WORK, &works[i]), 0);
	}
	for (int i = 0; i < 2; i++)
		assert_int_equal(work_do(FI_QUEUE_WORK, &receives[i]), 0);
	nothing(&a);
	assert_int_equal(fi_cntr_add(step[0], 1), 0);
	END_UNTIL(fi_cntr_read(step[9]) == 2 && fi_cntr_read(done) == 2, turn());
	for (int i = 1; i < 8; i++)
		assert_int_equal(fi_cntr_read(step[i]), 1);
	assert_int_equal(fi_cntr_read(step[8]), 40);
	assert_memory_equal(region, buf, 64);
	assert_memory_equal(got, buf, 64);
	assert_memory_equal(got + 64, buf, 64);
	assert_memory_equal(got + 128, buf, 64);
	assert_int_equal(fetched, 3);
	assert_int_equal(compared, 6);
	assert_int_equal(*(uint64_t *)(region + 64), 3);
	nothing(&a);
	for (int i = 0; i < 10; i++)
		assert_int_equal(fi_close(&step[i]->fid), 0);
}

static void works_are_cancelled_and_flushed(void **state)
{
	struct send_work works[6];

	for (int i = 0; i < 6; i++) {
		send_work_init(&works[i], i, 1);
		if (i == 4)
			works[i].work.triggering_cntr = done;
		assert_int_equal(work_do(FI_QUEUE_WORK, &works[i].work), 0);
	}
	assert_int_equal(work_do(FI_CANCEL_WORK, &works[1].work), 0);
	assert_int_equal(work_do(FI_CANCEL_WORK, &works[1].work), -FI_ENOENT);
	assert_int_equal(work_do(FI_CANCEL_WORK, NULL), -FI_EINVAL);
	assert_int_equal(fi_cntr_add(when, 1), 0);
	receives(0);
	receives(2);
	receives(3);
	receives(5);
	END_UNTIL(fi_cntr_read(done) >= 1, turn());
	receives(4); /* it waited for the ends of the others */
	assert_int_equal(work_do(FI_CANCEL_WORK, &works[0].work), -FI_ENOENT);
	END_UNTIL(fi_cntr_read(done) == 5, turn());

	for (int i = 0; i < 6; i++) {
		works[i].work.threshold = i < 2 ? 6 : 7;
		works[i].work.triggering_cntr = i % 2 ? when : done;
		assert_int_equal(work_do(FI_QUEUE_WORK, &works[i].work), 0);
	}
	assert_int_equal(tsend_when(7, 7, FI_COMPLETION), 0); /* is none of them */
	assert_int_equal(work_do(FI_FLUSH_WORK, &works[0].work), 0);
	assert_int_equal(fi_cntr_set(done, 9), 0);
	nothing(&b);
	assert_int_equal(fi_cntr_set(when, 6), 0);
	receives(1);
	assert_int_equal(work_do(FI_FLUSH_WORK, NULL), 0);
	assert_int_equal(work_do(FI_CANCEL_WORK, &works[3].work), -FI_ENOENT);
	assert_int_equal(fi_cntr_set(when, 9), 0);
	receives(7);
	nothing(&b);
	completes(&a, &contexts[7], FI_TAGGED | FI_SEND);
	nothing(&a);
}

static void failed_work_counts_as_an_error(void **state)
{
	struct send_work lost, next;
	struct iovec iov = { buf, 8 };
	struct fi_rma_iov target = { REGION - 4, 8, KEY };
	struct fi_op_rma write = { .ep = a.ep, .msg = { .msg_iov = &iov, .iov_count = 1, .addr = to_b,
							.rma_iov = &target, .rma_iov_count = 1, .context = &write } };
	struct fi_deferred_work work = { .triggering_cntr = when, .completion_cntr = done, .op_type = FI_OP_WRITE,
					 .op.rma = &write };

	send_work_init(&next, 2, 2);
	next.work.triggering_cntr = done;
	next.work.completion_cntr = NULL;
	assert_int_equal(work_do(FI_QUEUE_WORK, &next.work), 0);
	/* One that can't begin, and one that is refused where it arrives. */
	send_work_init(&lost, 0, 1);
	lost.op.msg.addr = 77;
	assert_int_equal(work_do(FI_QUEUE_WORK, &lost.work), 0);
	assert_int_equal(work_do(FI_QUEUE_WORK, &work), 0);
	END_UNTIL(fi_cntr_readerr(done) == 1, turn());
	assert_int_equal(fi_cq_read(a.cq, &entry, 1), -FI_EAVAIL);
	fails(&a, &write, FI_EACCES);
	assert_int_equal(fi_cntr_add(when, 1), 0);
	assert_int_equal(fi_cntr_readerr(done), 2);
	fails(&a, &lost, FI_EINVAL);
	assert_int_equal(fi_cntr_read(done), 0);
	assert_int_equal(fi_cntr_readerr(a.tx) + fi_cntr_read(a.tx), 0);
	/* Two ends are what that one waited for. */
	receives(2);
	nothing(&a);
}

static void wrong_works_are_refused(void **state)
{
	struct fi_op_cntr count = { .cntr = done, .value = 1 };
	struct send_work s;
	struct fid_cntr *foreign;

	assert_int_equal(fi_cntr_open(b.domain, NULL, &foreign, NULL), 0);
	assert_int_equal(work_do(FI_QUEUE_WORK, NULL), -FI_EINVAL);
	send_work_init(&s, 0, 0);
	s.work.triggering_cntr = NULL;
	assert_int_equal(work_do(FI_QUEUE_WORK, &s.work), -FI_EINVAL);
	s.work.triggering_cntr = foreign;
	assert_int_equal(work_do(FI_QUEUE_WORK, &s.work), -FI_EINVAL);
	s.work.triggering_cntr = when;
	s.work.completion_cntr = foreign;
	assert_int_equal(work_do(FI_QUEUE_WORK, &s.work), -FI_EINVAL);
	s.work.completion_cntr = done;
	s.work.op_type = (enum fi_op_type)99;
	assert_int_equal(work_do(FI_QUEUE_WORK, &s.work), -FI_ENOSYS);
	s.work.op_type = FI_OP_TSEND;
	s.op.ep = b.ep;
	assert_int_equal(work_do(FI_QUEUE_WORK, &s.work), -FI_EINVAL);
	s.op.ep = (struct fid_ep *)a.av;
	assert_int_equal(work_do(FI_QUEUE_WORK, &s.work), -FI_EINVAL);
	s.op.ep = NULL;
	assert_int_equal(work_do(FI_QUEUE_WORK, &s.work), -FI_EINVAL);
	s.op.ep = a.ep;
	s.op.flags = FI_PEEK;
	assert_int_equal(work_do(FI_QUEUE_WORK, &s.work), -FI_EBADFLAGS);
	s.work.op_type = FI_OP_TRECV;
	assert_int_equal(work_do(FI_QUEUE_WORK, &s.work), -FI_ENOSYS);
	s.op.flags = FI_MULTI_RECV;
	assert_int_equal(work_do(FI_QUEUE_WORK, &s.work), -FI_ENOSYS);
	s.work.op.tagged = NULL;
	assert_int_equal(work_do(FI_QUEUE_WORK, &s.work), -FI_EINVAL);
	s.work.op_type = FI_OP_CNTR_ADD;
	s.work.op.cntr = &count;
	assert_int_equal(work_do(FI_QUEUE_WORK, &s.work), -FI_EINVAL); /* with a completion_cntr */
	s.work.completion_cntr = NULL;
	count.cntr = foreign;
	assert_int_equal(work_do(FI_QUEUE_WORK, &s.work), -FI_EINVAL);
	count.cntr = NULL;
	assert_int_equal(work_do(FI_QUEUE_WORK, &s.work), -FI_EINVAL);
	assert_int_equal(fi_close(&foreign->fid), 0);
	assert_int_equal(fi_cntr_read(done), 0);
}

static void what_finds_no_room_goes_later(void **state)
{
	struct send_work *works = calloc(MANY, sizeof(*works));
	uint64_t tag = 0;

	assert_non_null(works);
	for (int i = 0; i < MANY; i++) {
		send_work_init(&works[i], i, i / 7 % 2 + 1);
		works[i].op.msg.tag = i / 7 % 2 * (uint64_t)MANY + (uint64_t)i; /* ascends as they go */
		works[i].iov.iov_len = 1000;
		assert_int_equal(work_do(FI_QUEUE_WORK, &works[i].work), 0);
	}
	/* The first message finds no connection: they fill the queue at once. */
	assert_int_equal(fi_cntr_add(when, 2), 0);
	for (int i = 0; i < MANY; i++) {
		assert_int_equal(fi_trecv(b.ep, got, 1000, NULL, FI_ADDR_UNSPEC, 0, UINT64_MAX, &got), 0);
		completes(&b, &got, FI_TAGGED | FI_RECV);
		assert_true(entry.tag >= tag);
		tag = entry.tag;
		assert_memory_equal(got, &buf[tag % MANY], 1000);
	}
	END_UNTIL(fi_cntr_read(done) == MANY, turn());
	nothing(&a);
	free(works);
}

static void objects_that_works_need_stay(void **state)
{
	struct send_work works[3];
	struct iovec iov = { got, 8 };
	struct fi_op_msg recv = { .ep = a.ep, .msg = { .msg_iov = &iov, .iov_count = 1, .addr = FI_ADDR_UNSPEC } };
	struct fi_deferred_work posted = { .triggering_cntr = when, .completion_cntr = done, .op_type = FI_OP_RECV,
					   .op.msg = &recv };

	send_work_init(&works[0], 0, 1);
	assert_int_equal(work_do(FI_QUEUE_WORK, &works[0].work), 0);
	assert_int_equal(fi_close(&when->fid), -FI_EBUSY);
	assert_int_equal(fi_close(&done->fid), -FI_EBUSY);
	assert_int_equal(fi_close(&a.domain->fid), -FI_EBUSY);
	assert_int_equal(work_do(FI_CANCEL_WORK, &works[0].work), 0);
	/* A receive that is posted needs its counter until it ends. */
	assert_int_equal(work_do(FI_QUEUE_WORK, &posted), 0);
	assert_int_equal(fi_close(&done->fid), -FI_EBUSY);
	/* An endpoint takes what would use it along. */
	assert_int_equal(work_do(FI_QUEUE_WORK, &works[0].work), 0);
	assert_int_equal(tsend_when(3, 1, 0), 0);
	send_work_init(&works[1], 1, 0);
	works[1].iov.iov_len = LARGE; /* begun: nobody receives it */
	assert_int_equal(work_do(FI_QUEUE_WORK, &works[1].work), 0);
	turns(20);
	assert_int_equal(fi_close(&a.ep->fid), 0);
	assert_int_equal(fi_cntr_add(when, 1), 0);
	assert_int_equal(fi_close(&when->fid), 0);
	assert_int_equal(fi_close(&done->fid), 0);
	assert_int_equal(fi_close(&a.cq->fid), 0);
	assert_int_equal(fi_close(&a.tx->fid), 0);
	assert_int_equal(fi_close(&a.rx->fid), 0);
	assert_int_equal(fi_close(&a.av->fid), 0);
	assert_int_equal(fi_close(&a.domain->fid), 0);
	assert_int_equal(fi_close(&a.fabric->fid), 0);
	fi_freeinfo(a.info);
	a.ep = NULL;
}

/* Threads */

static void *queue_works(void *arg)
{
	struct send_work *works = arg;

	for (int i = 0; i < MANY; i++)
		while (work_do(FI_QUEUE_WORK, &works[i].work))
			;
	return NULL;
}

static void *count_up(void *arg)
{
	for (int i = 0; i < MANY; i++) {
		fi_cntr_add(when, 1);
		fi_cntr_read(done);
	}
	return NULL;
}

static void threads_share_a_work_queue(void **state)
{
	struct end_attr attr = attributes();
	struct send_work *works = calloc(MANY, sizeof(*works));
	pthread_t queuer, counter;

	attr.threading = FI_THREAD_SAFE;
	open_all(&attr);
	for (int i = 0; i < MANY; i++)
		send_work_init(&works[i], i, (uint64_t)i);
	assert_int_equal(pthread_create(&queuer, NULL, queue_works, works), 0);
	assert_int_equal(pthread_create(&counter, NULL, count_up, NULL), 0);
	for (int i = 0; i < MANY; i++) {
		assert_int_equal(fi_trecv(b.ep, got, 8, NULL, FI_ADDR_UNSPEC, 100 + (uint64_t)i, 0, &got), 0);
		completes(&b, &got, FI_TAGGED | FI_RECV);
		assert_memory_equal(got, &buf[i], 8);
	}
	pthread_join(queuer, NULL);
	pthread_join(counter, NULL);
	END_UNTIL(fi_cntr_read(done) == MANY, turn());
	nothing(&a);
	free(works);
}

/* With automatic progress a chain runs while the program does nothing. */
__attribute__((unused)) static void chains_run_by_themselves(void **state)
{
	struct end_attr attr = attributes();
	struct send_work works[3];
	uint64_t word = 0;
	struct iovec iov = { &word, sizeof(word) };
	struct fi_rma_iov target = { 0, 8, KEY };
	struct fi_op_rma write = { .msg = { .msg_iov = &iov, .iov_count = 1, .rma_iov = &target,
					    .rma_iov_count = 1 } };
	struct fi_deferred_work last = { .threshold = 3, .triggering_cntr = NULL, .op_type = FI_OP_WRITE,
					 .op.rma = &write };
	struct timespec nap = { 0, 1000000 };

	attr.progress = FI_PROGRESS_AUTO;
	attr.threading = FI_THREAD_SAFE;
	if (!offered(&attr)) {
		print_message("%s does not offer automatic progress\n", provider);
		skip();
	}
	open_all(&attr);
	word = 0x1122334455667788;
	write.ep = a.ep;
	write.msg.addr = to_b;
	last.triggering_cntr = done;
	assert_int_equal(work_do(FI_QUEUE_WORK, &last), 0);
	for (int i = 0; i < 3; i++) {
		send_work_init(&works[i], i, (uint64_t)i);
		works[i].work.triggering_cntr = i ? done : when;
		works[i].work.threshold = i ? (uint64_t)i : 1;
		assert_int_equal(work_do(FI_QUEUE_WORK, &works[i].work), 0);
	}
	assert_int_equal(fi_cntr_add(when, 1), 0);
	END_UNTIL(__atomic_load_n((uint64_t *)region, __ATOMIC_ACQUIRE) == word, nanosleep(&nap, NULL));
	for (int i = 0; i < 3; i++)
		receives(i);
}

int main(int argc, char **argv)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(they_wait_and_go_by_threshold_then_in_order),
		TEST(a_message_answers_another),
		TEST(every_kind_of_call_can_be_triggered),
		TEST(injected_data_are_taken_at_once),
		TEST(calls_of_an_alias_can_be_triggered),
		TEST(what_waits_can_be_cancelled),
		TEST(conditions_that_are_none_are_refused),
		TEST(works_go_by_threshold_then_in_order),
		TEST(their_ends_can_be_told_as_well),
		TEST(the_end_of_a_large_one_is_counted_when_it_is_there),
		TEST(works_make_a_chain),
		TEST(works_are_cancelled_and_flushed),
		TEST(failed_work_counts_as_an_error),
		TEST(wrong_works_are_refused),
		TEST(what_finds_no_room_goes_later),
		TEST(objects_that_works_need_stay),
		cmocka_unit_test_teardown(threads_share_a_work_queue, teardown),
#ifndef __SANITIZE_THREAD__ /* it looks at memory that a peer writes */
		cmocka_unit_test_teardown(chains_run_by_themselves, teardown),
#endif
	};

	if (argc != 2)
		return 2;
	provider = argv[1];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
