/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Orders of calls that programs use and other libraries allow, over the real library: late_test
 * PROVIDER. An object that is bound to an enabled endpoint reports operations that begin from then
 * on; an object that is closed before its users is unbound from them. Two ends of one thread, and
 * another one that binds and closes.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>
#include "ends.h"

#define BIG   (1u << 20)
#define ROUND 64
#define STXS  1024

static struct end_attr attr = { .no_cntr = true,
				.caps = FI_RMA | FI_ATOMIC | FI_RMA_EVENT | FI_DIRECTED_RECV };
static struct end a, b;
static fi_addr_t to_b, to_a;
static struct fi_context2 contexts[ROUND];

static void ends_open(void)
{
	end_open(&a, &attr);
	end_open(&b, &attr);
	to_b = end_knows(&a, &b);
	to_a = end_knows(&b, &a);
}

static void ends_close(void)
{
	end_close(&a);
	end_close(&b);
}

/* Another endpoint in place of the one that things are bound to. */
static void renew(struct end *e)
{
	if (e->rma)
		assert_int_equal(fi_close(&e->rma->fid), 0);
	e->rma = NULL;
	assert_int_equal(fi_close(&e->ep->fid), 0);
	assert_int_equal(fi_endpoint(e->domain, e->info, &e->ep, NULL), 0);
}

static struct fid_cntr *counter(struct end *e)
{
	struct fid_cntr *cntr;

	assert_int_equal(fi_cntr_open(e->domain, NULL, &cntr, NULL), 0);
	return cntr;
}

/* Both make progress, and their completions are counted. */
static uint64_t told[2];

static void step(void)
{
	struct fi_cq_tagged_entry entry;

	told[0] += a.cq && fi_cq_read(a.cq, &entry, 1) == 1;
	told[1] += b.cq && fi_cq_read(b.cq, &entry, 1) == 1;
}

#define TRY(call) END_UNTIL(!(call), step())

/* One tagged message from a to b, reported on both sides. */
static void message(uint64_t tag)
{
	uint64_t out = tag * 3, in = 0, sent = told[0] + 1, came = told[1] + 1;

	TRY(fi_trecv(b.ep, &in, sizeof(in), NULL, FI_ADDR_UNSPEC, tag, 0, &contexts[0]));
	TRY(fi_tsend(a.ep, &out, sizeof(out), NULL, to_b, tag, &contexts[1]));
	END_UNTIL(told[0] == sent && told[1] == came, step());
	assert_int_equal(in, out);
}

static void counters_bound_under_traffic_count_from_then_on(void **state)
{
	struct fid_cntr *sends, *receives;
	uint64_t in[ROUND], out[ROUND];

	ends_open();
	sends = counter(&a);
	receives = counter(&b);
	for (uint64_t i = 0; i < ROUND; i++)
		TRY(fi_trecv(b.ep, &in[i], 8, NULL, FI_ADDR_UNSPEC, i, 0, &contexts[i]));
	told[0] = told[1] = 0;
	for (uint64_t i = 0; i < ROUND; i++) {
		out[i] = i;
		TRY(fi_tsend(a.ep, &out[i], 8, NULL, to_b, i, &contexts[i]));
		if (i == ROUND / 2) {
			END_UNTIL(told[0] == i + 1 && told[1] == i + 1, step());
			assert_int_equal(fi_ep_bind(a.ep, &sends->fid, FI_SEND), 0);
			assert_int_equal(fi_ep_bind(b.ep, &receives->fid, FI_RECV), 0);
		}
	}
	END_UNTIL(told[0] == ROUND && told[1] == ROUND, step());
	assert_int_equal(fi_cntr_read(sends), ROUND / 2 - 1);
	assert_int_equal(fi_cntr_read(receives), ROUND / 2 - 1);
	for (uint64_t i = 0; i < ROUND; i++)
		assert_int_equal(in[i], i);
	assert_int_equal(fi_close(&sends->fid), -FI_EBUSY);
	renew(&a);
	renew(&b);
	assert_int_equal(fi_close(&sends->fid), 0);
	assert_int_equal(fi_close(&receives->fid), 0);
	ends_close();
}

/* In place of the one before, also for what is under way. */
static void the_queue_and_counter_bound_last_are_told(void **state)
{
	uint64_t in[ROUND], out[ROUND], counts = 0;
	struct fi_cq_tagged_entry entry;
	struct fid_cntr *first, *second;
	struct fid_cq *cq, *old;

	ends_open();
	first = counter(&b);
	second = counter(&b);
	old = b.cq;
	told[0] = told[1] = 0;
	assert_int_equal(fi_ep_bind(b.ep, &first->fid, FI_RECV), 0);
	for (uint64_t i = 0; i < ROUND; i++)
		TRY(fi_trecv(b.ep, &in[i], 8, NULL, FI_ADDR_UNSPEC, i, 0, &contexts[i]));
	for (uint64_t i = 0; i < ROUND; i++) {
		out[i] = i;
		TRY(fi_tsend(a.ep, &out[i], 8, NULL, to_b, i, &contexts[i]));
		if (i != ROUND / 2)
			continue;
		END_UNTIL(told[1] == i + 1, step());
		assert_int_equal(fi_cq_open(b.domain, NULL, &cq, NULL), 0);
		assert_int_equal(fi_ep_bind(b.ep, &cq->fid, FI_TRANSMIT | FI_RECV), 0);
		assert_int_equal(fi_ep_bind(b.ep, &second->fid, FI_RECV), 0);
		assert_int_equal(fi_cq_read(old, &entry, 1), -FI_EAGAIN);
		assert_int_equal(fi_close(&old->fid), 0);
		counts = fi_cntr_read(first);
		assert_int_equal(fi_close(&first->fid), 0);
		b.cq = cq;
	}
	END_UNTIL(told[1] == ROUND, step());
	assert_int_equal(counts + fi_cntr_read(second), ROUND);
	renew(&b);
	assert_int_equal(fi_close(&second->fid), 0);
	ends_close();
}

/* An endpoint without a queue reports nothing. */
static void an_endpoint_needs_no_queue_to_be_enabled(void **state)
{
	uint64_t in = 0, word = 7;
	char name[128];
	size_t len = sizeof(name);

	ends_open();
	told[0] = told[1] = 0;
	renew(&b);
	assert_int_equal(fi_ep_bind(b.ep, &b.av->fid, 0), 0);
	assert_int_equal(fi_enable(b.ep), 0);
	assert_int_equal(fi_getname(&b.ep->fid, name, &len), 0);
	assert_int_equal(fi_av_insert(a.av, name, 1, &to_b, 0, NULL), 1);
	TRY(fi_trecv(b.ep, &in, sizeof(in), NULL, FI_ADDR_UNSPEC, 1, 0, &contexts[0]));
	TRY(fi_tsend(a.ep, &word, sizeof(word), NULL, to_b, 1, &contexts[1]));
	END_UNTIL(in == word, step());
	in = 0;
	TRY(fi_trecv(a.ep, &in, sizeof(in), NULL, FI_ADDR_UNSPEC, 2, 0, &contexts[0]));
	TRY(fi_tsend(b.ep, &word, sizeof(word), NULL, to_a, 2, &contexts[1]));
	END_UNTIL(in == word, step());
	assert_int_equal(in, word);
	assert_int_equal(told[1], 0);
	assert_int_equal(fi_ep_bind(b.ep, &b.cq->fid, FI_TRANSMIT | FI_RECV), 0);
	message(3);
	ends_close();
}

/* The initiator alone: over shared memory it does large accesses without a target that does not come by. */
static void leave_target_alone(uint64_t until)
{
	struct fi_cq_tagged_entry entry;

	for (double end = end_now() + 0.1; told[0] < until && end_now() < end;)
		told[0] += fi_cq_read(a.cq, &entry, 1) == 1;
}

/* Also accesses of peers that were made before any counter was bound. */
static void a_late_counter_tells_of_every_write_of_peers(void **state)
{
	char *from = calloc(1, BIG), *into = calloc(1, BIG);
	struct fid_cntr *writes, *reads;
	struct fid_mr *mr, *later;
	uint64_t base[2];

	ends_open();
	assert_int_equal(fi_mr_reg(b.domain, into, BIG, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 1,
				   0, &mr, NULL),
			 0);
	base[0] = b.info->domain_attr->mr_mode & FI_MR_VIRT_ADDR ? (uintptr_t)into : 0;
	message(1);
	told[0] = 0;
	for (uint64_t i = 0; i < 4; i++) {
		TRY(fi_write(a.rma, from, BIG, NULL, to_b, base[0], fi_mr_key(mr),
			     &contexts[i]));
		leave_target_alone(i + 1);
	}
	END_UNTIL(told[0] == 4, step());
	writes = counter(&b);
	reads = counter(&b);
	assert_int_equal(fi_ep_bind(b.ep, &writes->fid, FI_REMOTE_WRITE), 0);
	assert_int_equal(fi_ep_bind(b.ep, &reads->fid, FI_REMOTE_READ), 0);
	assert_int_equal(fi_mr_reg(b.domain, from, BIG, FI_REMOTE_READ, 0, 2, 0, &later, NULL),
			 0);
	base[1] = b.info->domain_attr->mr_mode & FI_MR_VIRT_ADDR ? (uintptr_t)from : 0;
	for (uint64_t i = 0; i < 4; i++) {
		TRY(fi_write(a.rma, from, BIG, NULL, to_b, base[0], fi_mr_key(mr),
			     &contexts[i]));
		TRY(fi_read(a.ep, into, BIG, NULL, to_b, base[1], fi_mr_key(later),
			    &contexts[i]));
		leave_target_alone(6 + 2 * i);
	}
	END_UNTIL(told[0] == 12, step());
	END_UNTIL(fi_cntr_read(writes) == 4 && fi_cntr_read(reads) == 4, step());
	assert_int_equal(fi_close(&mr->fid), 0);
	assert_int_equal(fi_close(&later->fid), 0);
	renew(&b);
	assert_int_equal(fi_close(&writes->fid), 0);
	assert_int_equal(fi_close(&reads->fid), 0);
	ends_close();
	free(from);
	free(into);
}

static _Atomic bool busy;
static _Atomic uint64_t rounds;

/* Messages of many sizes, and writes, until the other thread has bound and closed what it had to. */
static void *traffic(void *arg)
{
	static char out[40000], in[40000];
	struct fid_mr *mr;
	uint64_t addr;

	assert_int_equal(
		fi_mr_reg(b.domain, in, sizeof(in), FI_REMOTE_WRITE, 0, 1, 0, &mr, NULL), 0);
	addr = b.info->domain_attr->mr_mode & FI_MR_VIRT_ADDR ? (uintptr_t)in : 0;
	for (uint64_t i = 0; atomic_load(&busy) || i < 200; i++) {
		size_t len = i * 997 % sizeof(out);
		uint64_t sent = told[0] + 2, came = told[1] + 1;

		TRY(fi_trecv(b.ep, in, sizeof(in), NULL, FI_ADDR_UNSPEC, i, 0, &contexts[0]));
		TRY(fi_tsend(a.ep, out, len, NULL, to_b, i, &contexts[1]));
		TRY(fi_write(a.rma, out, len, NULL, to_b, addr, fi_mr_key(mr), &contexts[2]));
		END_UNTIL(told[0] == sent && told[1] == came, step());
		atomic_fetch_add(&rounds, 1);
	}
	assert_int_equal(fi_close(&mr->fid), 0);
	return NULL;
}

static void beside_traffic(enum fi_threading threading)
{
	static const uint64_t flags[] = { FI_SEND, FI_WRITE, FI_RECV, FI_REMOTE_WRITE };
	struct fid_cntr *cntrs[4];
	struct fid_stx *stx;
	pthread_t thread;
	struct fid_eq *eq;
	uint64_t bound;

	attr.threading = threading;
	ends_open();
	told[0] = told[1] = 0;
	atomic_store(&busy, true);
	assert_int_equal(pthread_create(&thread, NULL, traffic, NULL), 0);
	for (int i = 0; i < 4; i++) {
		cntrs[i] = counter(i < 2 ? &a : &b);
		assert_int_equal(fi_ep_bind((i < 2 ? &a : &b)->ep, &cntrs[i]->fid, flags[i]), 0);
		bound = atomic_load(&rounds);
		for (int k = 0; k < 50; k++) {
			assert_int_equal(fi_stx_context(a.domain, NULL, &stx, NULL), 0);
			assert_int_equal(fi_ep_bind(a.ep, &stx->fid, 0), 0);
			assert_int_equal(fi_eq_open(b.fabric, NULL, &eq, NULL), 0);
			assert_int_equal(fi_ep_bind(b.ep, &eq->fid, 0), 0);
			assert_int_equal(fi_ep_bind(b.ep, &b.cq->fid, FI_RECV), 0);
			assert_int_equal(fi_enable(b.ep), 0);
			assert_int_equal(fi_close(&stx->fid), 0);
			assert_int_equal(fi_close(&eq->fid), 0);
		}
		END_UNTIL(atomic_load(&rounds) > bound + 2, sched_yield());
	}
	atomic_store(&busy, false);
	assert_int_equal(pthread_join(thread, NULL), 0);
	for (int i = 0; i < 4; i++)
		assert_true(fi_cntr_read(cntrs[i]) > 0);
	renew(&a);
	renew(&b);
	for (int i = 0; i < 4; i++)
		assert_int_equal(fi_close(&cntrs[i]->fid), 0);
	ends_close();
	attr.threading = FI_THREAD_UNSPEC;
}

static void binds_and_closes_go_on_beside_the_traffic_of_another_thread(void **state)
{
	beside_traffic(FI_THREAD_SAFE);
	beside_traffic(FI_THREAD_DOMAIN); /* for control calls the same */
}

/* SOS has one endpoint for all: put and get counters and a shared context come when it is enabled. */
static void one_endpoint_for_all_gets_its_counters_and_context_late(void **state)
{
	struct fid_stx *stx[STXS];
	struct fid_cntr *put, *get;
	uint64_t word = 0, value = 7;
	struct fid_mr *mr;

	ends_open();
	assert_int_equal(fi_mr_reg(b.domain, &word, 8, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 1,
				   0, &mr, NULL),
			 0);
	for (int i = 0; i < STXS; i++)
		assert_int_equal(fi_stx_context(a.domain, NULL, &stx[i], NULL), 0);
	put = counter(&a);
	get = counter(&a);
	assert_int_equal(fi_ep_bind(a.ep, &stx[5]->fid, 0), 0);
	assert_int_equal(fi_ep_bind(a.ep, &put->fid, FI_WRITE), 0);
	assert_int_equal(fi_ep_bind(a.ep, &get->fid, FI_READ), 0);
	assert_int_equal(fi_ep_bind(a.ep, &a.cq->fid, FI_TRANSMIT | FI_RECV), 0); /* again */
	assert_int_equal(fi_ep_bind(a.ep, &a.av->fid, 0), 0);
	assert_int_equal(fi_enable(a.ep), 0);
	assert_int_equal(fi_ep_bind(a.ep, &stx[6]->fid, 0), -FI_EINVAL); /* it has one */
	TRY(fi_inject_write(a.ep, &value, 8, to_b,
			    b.info->domain_attr->mr_mode & FI_MR_VIRT_ADDR ? (uintptr_t)&word
									   : 0,
			    fi_mr_key(mr)));
	END_UNTIL(fi_cntr_read(put) == 1, step());
	END_UNTIL(*(volatile uint64_t *)&word == 7, step()); /* it is complete before */
	/* The contexts go first. */
	for (int i = 0; i < STXS; i++)
		assert_int_equal(fi_close(&stx[i]->fid), 0);
	message(3);
	assert_int_equal(fi_close(&mr->fid), 0);
	renew(&a);
	assert_int_equal(fi_close(&put->fid), 0);
	assert_int_equal(fi_close(&get->fid), 0);
	ends_close();
}

static void a_queue_that_was_missing_may_come_late(void **state)
{
	struct end_attr counted = attr;
	struct fid_cq *cq;
	uint64_t in;

	counted.no_cq = true;
	counted.no_cntr = false;
	end_open(&a, &attr);
	end_open(&b, &counted);
	to_b = end_knows(&a, &b);
	told[0] = told[1] = 0;
	TRY(fi_trecv(b.ep, &in, 8, NULL, FI_ADDR_UNSPEC, 1, 0, &contexts[0]));
	assert_int_equal(fi_cq_open(b.domain, &(struct fi_cq_attr){ 0 }, &cq, NULL), 0);
	assert_int_equal(fi_ep_bind(b.ep, &cq->fid, FI_RECV), 0);
	b.cq = cq;
	TRY(fi_tsend(a.ep, &in, 8, NULL, to_b, 1, &contexts[1]));
	END_UNTIL(fi_cntr_read(b.rx) == 1, step());
	assert_int_equal(told[1], 0); /* it was posted when no queue was bound */
	message(2);
	assert_int_equal(fi_cntr_read(b.rx), 2);
	assert_int_equal(fi_cntr_read(b.tx), 0);
	ends_close();
}

static void an_event_queue_comes_and_goes_as_it_likes(void **state)
{
	struct fi_eq_attr eq_attr = { .wait_obj = FI_WAIT_FD };
	struct fi_av_attr av_attr = { .flags = FI_EVENT };
	struct fid_eq *eq[3];
	struct fid_av *av;
	char name[128];
	size_t len = sizeof(name);

	ends_open();
	for (int i = 0; i < 3; i++)
		assert_int_equal(fi_eq_open(a.fabric, &eq_attr, &eq[i], NULL), 0);
	assert_int_equal(fi_ep_bind(a.ep, &eq[0]->fid, 0), 0);
	assert_int_equal(fi_ep_bind(a.ep, &eq[0]->fid, 0), 0); /* again */
	assert_int_equal(fi_ep_bind(a.ep, &eq[1]->fid, 0), 0); /* in its place */
	assert_int_equal(fi_close(&eq[0]->fid), 0);
	assert_int_equal(fi_close(&eq[1]->fid), 0); /* while it is bound */
	message(1);
	assert_int_equal(fi_av_open(a.domain, &av_attr, &av, NULL), 0);
	assert_int_equal(fi_av_bind(av, &eq[2]->fid, 0), 0);
	assert_int_equal(fi_domain_bind(a.domain, &eq[2]->fid, 0), 0);
	assert_int_equal(fi_close(&eq[2]->fid), 0);
	assert_int_equal(fi_getname(&b.ep->fid, name, &len), 0);
	assert_int_equal(fi_av_insert(av, name, 1, NULL, 0, NULL), 0);
	assert_int_equal(fi_close(&av->fid), 0);
	ends_close();
}

static void a_shared_receive_context_may_go_under_traffic(void **state)
{
	static char buf[ROUND][4096];
	struct fid_ep *srx, *first, *second;
	fi_addr_t to[2];
	char name[128];
	size_t len;

	ends_open();
	assert_int_equal(fi_close(&b.rma->fid), 0);
	b.rma = NULL;
	assert_int_equal(fi_close(&b.ep->fid), 0);
	assert_int_equal(fi_srx_context(b.domain, b.info->rx_attr, &srx, NULL), 0);
	for (int i = 0; i < 2; i++) {
		struct fid_ep **ep = i ? &second : &first;

		b.info->ep_attr->rx_ctx_cnt = FI_SHARED_CONTEXT;
		assert_int_equal(fi_endpoint(b.domain, b.info, ep, NULL), 0);
		b.info->ep_attr->rx_ctx_cnt = 1;
		assert_int_equal(fi_ep_bind(*ep, &b.av->fid, 0), 0);
		assert_int_equal(fi_ep_bind(*ep, &b.cq->fid, FI_TRANSMIT | FI_RECV), 0);
		assert_int_equal(fi_ep_bind(*ep, &srx->fid, 0), 0);
		assert_int_equal(fi_enable(*ep), 0);
		len = sizeof(name);
		assert_int_equal(fi_getname(&(*ep)->fid, name, &len), 0);
		assert_int_equal(fi_av_insert(a.av, name, 1, &to[i], 0, NULL), 1);
	}
	b.ep = first;
	for (int i = 0; i < ROUND / 2; i++)
		assert_int_equal(fi_trecv(srx, buf[i], sizeof(buf[i]), NULL, FI_ADDR_UNSPEC, 0,
					  0, &contexts[i]),
				 0);
	told[1] = 0;
	for (int i = 0; i < ROUND; i++)
		TRY(fi_tsend(a.ep, buf[i], sizeof(buf[i]), NULL, to[i % 2], 0, &contexts[i]));
	END_UNTIL(told[1] == ROUND / 2, step());
	assert_int_equal(fi_trecv(srx, buf[0], 64, NULL, FI_ADDR_UNSPEC, 9, 0, &contexts[0]), 0);
	assert_int_equal(fi_close(&srx->fid),
			 0); /* with messages, a receive and two endpoints */
	for (int i = 0; i < ROUND; i++)
		TRY(fi_tsend(a.ep, buf[i], 64, NULL, to[i % 2], 9, &contexts[i]));
	for (int i = 0; i < 1000; i++)
		step();
	assert_int_equal(told[1], ROUND / 2);
	assert_int_equal(fi_close(&second->fid), 0);
	for (int i = 0; i < 100; i++)
		step();
	ends_close();
}

/* fi_mr(3): an event whenever memory is modified, whatever is answered for it. */
static void a_region_counts_what_modifies_it(void **state)
{
	uint64_t word = 5, one = 1, old = 0, compare = 6, addr, key;
	struct fid_cntr *writes, *reads;
	struct fid_mr *mr;

	ends_open();
	assert_int_equal(fi_mr_reg(b.domain, &word, 8, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 1,
				   0, &mr, NULL),
			 0);
	addr = b.info->domain_attr->mr_mode & FI_MR_VIRT_ADDR ? (uintptr_t)&word : 0;
	key = fi_mr_key(mr);
	writes = counter(&b);
	reads = counter(&b);
	assert_int_equal(fi_mr_bind(mr, &writes->fid, FI_REMOTE_WRITE), 0);
	assert_int_equal(fi_mr_bind(mr, &reads->fid, FI_REMOTE_READ), 0);
	told[0] = 0;
	TRY(fi_fetch_atomic(a.ep, &one, 1, NULL, &old, NULL, to_b, addr, key, FI_UINT64, FI_SUM,
			    &contexts[0]));
	TRY(fi_fetch_atomic(a.ep, &one, 1, NULL, &old, NULL, to_b, addr, key, FI_UINT64,
			    FI_ATOMIC_WRITE, &contexts[1]));
	TRY(fi_compare_atomic(a.ep, &one, 1, NULL, &compare, NULL, &old, NULL, to_b, addr, key,
			      FI_UINT64, FI_CSWAP, &contexts[2]));
	END_UNTIL(told[0] == 3, step());
	END_UNTIL(fi_cntr_read(writes) == 3, step());
	assert_int_equal(fi_cntr_read(reads), 0);
	TRY(fi_fetch_atomic(a.ep, NULL, 1, NULL, &old, NULL, to_b, addr, key, FI_UINT64,
			    FI_ATOMIC_READ, &contexts[3]));
	END_UNTIL(told[0] == 4, step());
	assert_int_equal(fi_cntr_read(writes), 3);
	assert_int_equal(fi_cntr_read(reads), 1);
	/* A counter is closed before the region, which stays in use. */
	assert_int_equal(fi_close(&writes->fid), 0);
	TRY(fi_write(a.rma, &one, 8, NULL, to_b, addr, key, &contexts[4]));
	END_UNTIL(told[0] == 5, step());
	writes = counter(&b);
	assert_int_equal(fi_mr_bind(mr, &writes->fid, FI_REMOTE_WRITE), 0);
	TRY(fi_write(a.rma, &one, 8, NULL, to_b, addr, key, &contexts[5]));
	END_UNTIL(told[0] == 6 && fi_cntr_read(writes) == 1, step());
	assert_int_equal(fi_close(&mr->fid), 0);
	assert_int_equal(fi_close(&reads->fid), 0);
	assert_int_equal(fi_close(&writes->fid), 0);
	ends_close();
}

/* SOS reads such a queue into eight bytes of its stack. */
static void a_queue_of_no_format_tells_contexts(void **state)
{
	struct fi_cq_attr zero = { 0 };
	struct {
		void *context;
		uint64_t guard[6];
	} got = { .guard = { 1, 2, 3, 4, 5, 6 } };
	struct fid_cq *cq;
	struct fid_ep *ep;
	uint64_t in, out = 1;
	fi_addr_t self;
	char name[128];
	size_t len = sizeof(name);

	ends_open();
	assert_int_equal(fi_cq_open(a.domain, &zero, &cq, NULL), 0);
	assert_true(zero.size > 0); /* what it has room for at first */
	assert_int_equal(fi_endpoint(a.domain, a.info, &ep, NULL), 0);
	assert_int_equal(fi_ep_bind(ep, &a.av->fid, 0), 0);
	assert_int_equal(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV), 0);
	assert_int_equal(fi_enable(ep), 0);
	assert_int_equal(fi_getname(&ep->fid, name, &len), 0);
	assert_int_equal(fi_av_insert(a.av, name, 1, &self, 0, NULL), 1);
	assert_int_equal(fi_trecv(ep, &in, 8, NULL, FI_ADDR_UNSPEC, 1, 0, &contexts[0]), 0);
	END_TAKEN(fi_tinject(ep, &out, 8, self, 1), );
	END_UNTIL(fi_cq_read(cq, &got, 1) == 1, );
	assert_ptr_equal(got.context, &contexts[0]);
	for (uint64_t i = 0; i < 6; i++)
		assert_int_equal(got.guard[i], i + 1);
	assert_int_equal(fi_close(&ep->fid), 0);
	assert_int_equal(fi_close(&cq->fid), 0);
	ends_close();
}

static void immediate_data_may_come_alone(void **state)
{
	struct fi_msg_rma msg = { .addr = 0, .data = 0xda7a, .context = &contexts[0] };
	struct fi_rma_iov nowhere = { 0 };
	struct fi_cq_tagged_entry entry;

	ends_open();
	message(1);
	msg.addr = to_b;
	for (int i = 0; i < 2; i++) {
		TRY(fi_writemsg(a.ep, &msg, FI_REMOTE_CQ_DATA | FI_COMPLETION));
		END_UNTIL(fi_cq_read(b.cq, &entry, 1) == 1, fi_cq_read(a.cq, NULL, 0));
		assert_int_equal(entry.data, 0xda7a);
		assert_true(entry.flags & FI_REMOTE_CQ_DATA && entry.flags & FI_REMOTE_WRITE);
		msg.rma_iov = &nowhere;
		msg.rma_iov_count = 1;
	}
	ends_close();
}

static void aliases_bind_and_enable_what_they_are_of(void **state)
{
	struct fid_cntr *sends;
	struct fid_ep *alias = NULL;

	ends_open();
	sends = counter(&a);
	assert_int_equal(fi_ep_alias(a.ep, &alias, FI_TRANSMIT | FI_COMPLETION), 0);
	assert_int_equal(fi_ep_bind(alias, &sends->fid, FI_SEND), 0);
	assert_int_equal(fi_enable(alias), 0);
	message(4);
	assert_int_equal(fi_cntr_read(sends), 1);
	assert_int_equal(fi_close(&alias->fid), 0);
	renew(&a);
	assert_int_equal(fi_close(&sends->fid), 0);
	ends_close();
}

/* ADIOS2 edits what fi_getinfo answered; SOS binds regions to endpoints with the flags of counters. */
static void a_domain_is_what_its_info_says_when_it_is_opened(void **state)
{
	static const int modes[] = { FI_MR_BASIC, FI_MR_SCALABLE, 0,
				     FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY |
					     FI_MR_LOCAL,
				     FI_MR_ENDPOINT };
	struct fid_domain *domain;
	struct fid_cntr *cntr;
	struct fid_ep *ep;
	struct fid_mr *mr;
	char buf[64];

	end_open(&a, &attr);
	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		a.info->domain_attr->mr_mode = modes[i];
		assert_int_equal(fi_domain(a.fabric, a.info, &domain, NULL), 0);
		assert_int_equal(fi_endpoint(domain, a.info, &ep, NULL), 0);
		assert_int_equal(fi_cntr_open(domain, NULL, &cntr, NULL), 0);
		assert_int_equal(fi_mr_reg(domain, buf, 64, FI_REMOTE_READ | FI_REMOTE_WRITE, 0,
					   7, 0, &mr, NULL),
				 0);
		assert_int_equal(fi_mr_bind(mr, &cntr->fid, FI_REMOTE_WRITE), 0);
		assert_int_equal(fi_mr_bind(mr, &ep->fid, FI_REMOTE_WRITE),
				 modes[i] == FI_MR_ENDPOINT ? 0 : -FI_ENOSYS);
		assert_int_equal(fi_mr_enable(mr), 0);
		assert_true((modes[i] & (FI_MR_BASIC | FI_MR_PROV_KEY)) || fi_mr_key(mr) == 7);
		assert_int_equal(fi_ep_bind(ep, &mr->fid, 0), 0);
		assert_int_equal(fi_close(&mr->fid), 0);
		assert_int_equal(fi_close(&cntr->fid), 0);
		assert_int_equal(fi_close(&ep->fid), 0);
		assert_int_equal(fi_close(&domain->fid), 0);
	}
	end_close(&a);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counters_bound_under_traffic_count_from_then_on),
		cmocka_unit_test(the_queue_and_counter_bound_last_are_told),
		cmocka_unit_test(an_endpoint_needs_no_queue_to_be_enabled),
		cmocka_unit_test(a_late_counter_tells_of_every_write_of_peers),
		cmocka_unit_test(binds_and_closes_go_on_beside_the_traffic_of_another_thread),
		cmocka_unit_test(one_endpoint_for_all_gets_its_counters_and_context_late),
		cmocka_unit_test(a_queue_that_was_missing_may_come_late),
		cmocka_unit_test(an_event_queue_comes_and_goes_as_it_likes),
		cmocka_unit_test(a_shared_receive_context_may_go_under_traffic),
		cmocka_unit_test(a_region_counts_what_modifies_it),
		cmocka_unit_test(a_queue_of_no_format_tells_contexts),
		cmocka_unit_test(immediate_data_may_come_alone),
		cmocka_unit_test(aliases_bind_and_enable_what_they_are_of),
		cmocka_unit_test(a_domain_is_what_its_info_says_when_it_is_opened),
	};

	if (argc != 2)
		return 2;
	attr.provider = argv[1];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
