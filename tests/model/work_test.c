/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Deferred work of a domain, over the real library and each provider: operations that are queued
 * until a counter has reached a value, alone and in chains, from several threads, and with
 * automatic progress.
 *
 * usage: work_test PROVIDER
 */
#include <pthread.h>
#include "trigger_ends.h"

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
		.work = { .threshold = threshold,
			  .triggering_cntr = when,
			  .completion_cntr = done,
			  .op_type = FI_OP_TSEND,
			  .op.tagged = &s->op },
		.op = { .ep = a.ep,
			.msg = { .msg_iov = &s->iov,
				 .iov_count = 1,
				 .addr = to_b,
				 .tag = 100 + (uint64_t)i,
				 .context = s } },
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
	/* Nothing else is reported. */
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
	struct fi_op_msg recv = {
		.ep = a.ep, .msg = { .msg_iov = &iov, .iov_count = 1, .addr = FI_ADDR_UNSPEC }
	};
	struct fi_deferred_work work = { .triggering_cntr = when,
					 .completion_cntr = done,
					 .op_type = FI_OP_RECV,
					 .op.msg = &recv };

	send_work_init(&send, 0, 0);
	send.iov.iov_len = LARGE;
	send.op.flags = FI_MATCH_COMPLETE;
	assert_int_equal(work_do(FI_QUEUE_WORK, &send.work), 0);
	assert_int_equal(work_do(FI_QUEUE_WORK, &work), 0);
	nothing(&b);
	assert_int_equal(fi_cntr_read(done), 0);
	assert_int_equal(fi_trecv(b.ep, region, LARGE, NULL, FI_ADDR_UNSPEC, 100, 0, &region),
			 0);
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
	struct iovec iov = { buf, 64 }, from = { got, 64 }, in = { got + 64, 64 },
		     tin = { got + 128, 64 };
	struct fi_rma_iov target = { 0, 64, KEY };
	uint64_t operand = 3, fetched = 0, compared = 0, compare = 0;
	struct fi_ioc ioc = { &operand, 1 }, fioc = { &fetched, 1 }, cioc = { &compare, 1 },
		      rioc = { &compared, 1 };
	struct fi_rma_ioc word = { 64, 1, KEY };
	struct fi_op_msg recv = {
		.ep = a.ep, .msg = { .msg_iov = &in, .iov_count = 1, .addr = FI_ADDR_UNSPEC }
	};
	struct fi_op_msg send = { .ep = a.ep, .msg = { .msg_iov = &iov, .iov_count = 1 } };
	struct fi_op_tagged trecv = {
		.ep = a.ep,
		.msg = { .msg_iov = &tin, .iov_count = 1, .addr = FI_ADDR_UNSPEC, .tag = 1 }
	};
	struct fi_op_tagged tsend = { .ep = a.ep,
				      .msg = { .msg_iov = &iov, .iov_count = 1, .tag = 1 } };
	struct fi_op_rma write = { .ep = a.ep,
				   .msg = { .msg_iov = &iov,
					    .iov_count = 1,
					    .addr = to_b,
					    .rma_iov = &target,
					    .rma_iov_count = 1 } };
	struct fi_op_rma read = { .ep = a.ep, .msg = write.msg };
	struct fi_msg_atomic sum = { .msg_iov = &ioc,
				     .iov_count = 1,
				     .addr = to_b,
				     .rma_iov = &word,
				     .rma_iov_count = 1,
				     .datatype = FI_UINT64,
				     .op = FI_SUM };
	struct fi_op_atomic add = { .ep = a.ep, .msg = sum };
	struct fi_op_fetch_atomic fetch = { .ep = a.ep,
					    .msg = sum,
					    .fetch = { .msg_iov = &fioc, .iov_count = 1 } };
	struct fi_op_compare_atomic swap = { .ep = a.ep,
					     .msg = sum,
					     .fetch = { .msg_iov = &rioc, .iov_count = 1 },
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
		{ .op_type = FI_OP_RECV,
		  .op.msg = &recv,
		  .triggering_cntr = when,
		  .completion_cntr = done },
		{ .op_type = FI_OP_TRECV,
		  .op.tagged = &trecv,
		  .triggering_cntr = when,
		  .completion_cntr = done },
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
	struct fi_op_rma write = { .ep = a.ep,
				   .msg = { .msg_iov = &iov,
					    .iov_count = 1,
					    .addr = to_b,
					    .rma_iov = &target,
					    .rma_iov_count = 1,
					    .context = &write },
				   .flags = FI_DELIVERY_COMPLETE };
	struct fi_deferred_work work = { .triggering_cntr = when,
					 .completion_cntr = done,
					 .op_type = FI_OP_WRITE,
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
	assert_int_equal(work_do(FI_QUEUE_WORK, &s.work),
			 -FI_EINVAL); /* with a completion_cntr */
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
		works[i].op.msg.tag = i / 7 % 2 * (uint64_t)MANY +
				      (uint64_t)i; /* ascends as they go */
		works[i].iov.iov_len = 1000;
		assert_int_equal(work_do(FI_QUEUE_WORK, &works[i].work), 0);
	}
	/* The first message finds no connection: they fill the queue at once. */
	assert_int_equal(fi_cntr_add(when, 2), 0);
	for (int i = 0; i < MANY; i++) {
		assert_int_equal(
			fi_trecv(b.ep, got, 1000, NULL, FI_ADDR_UNSPEC, 0, UINT64_MAX, &got), 0);
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
	struct fi_op_msg recv = {
		.ep = a.ep, .msg = { .msg_iov = &iov, .iov_count = 1, .addr = FI_ADDR_UNSPEC }
	};
	struct fi_deferred_work posted = { .triggering_cntr = when,
					   .completion_cntr = done,
					   .op_type = FI_OP_RECV,
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
	works[1].iov.iov_len = LARGE; /* begun: no receive is posted */
	assert_int_equal(work_do(FI_QUEUE_WORK, &works[1].work), 0);
	turns(20);
	assert_int_equal(fi_close(&a.rma->fid), 0);
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
	struct end_attr attr = trigger_attr();
	struct send_work *works = calloc(MANY, sizeof(*works));
	pthread_t queuer, counter;

	attr.threading = FI_THREAD_SAFE;
	trigger_open(&attr);
	for (int i = 0; i < MANY; i++)
		send_work_init(&works[i], i, (uint64_t)i);
	assert_int_equal(pthread_create(&queuer, NULL, queue_works, works), 0);
	assert_int_equal(pthread_create(&counter, NULL, count_up, NULL), 0);
	for (int i = 0; i < MANY; i++) {
		assert_int_equal(fi_trecv(b.ep, got, 8, NULL, FI_ADDR_UNSPEC, 100 + (uint64_t)i,
					  0, &got),
				 0);
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
	struct end_attr attr = trigger_attr();
	struct send_work works[3];
	uint64_t word = 0;
	struct iovec iov = { &word, sizeof(word) };
	struct fi_rma_iov target = { 0, 8, KEY };
	struct fi_op_rma write = {
		.msg = { .msg_iov = &iov, .iov_count = 1, .rma_iov = &target, .rma_iov_count = 1 }
	};
	struct fi_deferred_work last = { .threshold = 3,
					 .triggering_cntr = NULL,
					 .op_type = FI_OP_WRITE,
					 .op.rma = &write };
	struct timespec nap = { 0, 1000000 };

	attr.progress = FI_PROGRESS_AUTO;
	attr.threading = FI_THREAD_SAFE;
	if (!trigger_offered(&attr)) {
		print_message("%s does not offer automatic progress\n", provider);
		skip();
	}
	trigger_open(&attr);
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
	END_UNTIL(__atomic_load_n((uint64_t *)region, __ATOMIC_ACQUIRE) == word,
		  nanosleep(&nap, NULL));
	for (int i = 0; i < 3; i++)
		receives(i);
}

int main(int argc, char **argv)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, trigger_setup, trigger_teardown)
	const struct CMUnitTest tests[] = {
		TEST(works_go_by_threshold_then_in_order),
		TEST(their_ends_can_be_told_as_well),
		TEST(the_end_of_a_large_one_is_counted_when_it_is_there),
		TEST(works_make_a_chain),
		TEST(works_are_cancelled_and_flushed),
		TEST(failed_work_counts_as_an_error),
		TEST(wrong_works_are_refused),
		TEST(what_finds_no_room_goes_later),
		TEST(objects_that_works_need_stay),
		cmocka_unit_test_teardown(threads_share_a_work_queue, trigger_teardown),
#ifndef __SANITIZE_THREAD__ /* it looks at memory that a peer writes */
		cmocka_unit_test_teardown(chains_run_by_themselves, trigger_teardown),
#endif
	};

	if (argc != 2)
		return 2;
	provider = argv[1];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
