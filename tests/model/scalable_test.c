/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Scalable endpoints and their contexts, over the real library: scalable_test PROVIDER. One domain,
 * and one thread but where a test says otherwise.
 */
#include <pthread.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_trigger.h>
#include "one_domain.h"

#define CTX_CNT 4
#define BIG	300000u

struct scalable {
	struct fid_ep *sep, *tx[CTX_CNT], *rx[CTX_CNT];
	struct fid_cq *tx_cq[CTX_CNT], *rx_cq[CTX_CNT];
	fi_addr_t addr;
};

static void sep_open(struct scalable *s)
{
	info->ep_attr->tx_ctx_cnt = info->ep_attr->rx_ctx_cnt = CTX_CNT;
	assert_int_equal(fi_scalable_ep(domain, info, &s->sep, s), 0);
	assert_int_equal(fi_scalable_ep_bind(s->sep, &av->fid, 0), 0);
}

static void sep_ctx_open(struct scalable *s, int i)
{
	struct fid_ep *again;

	s->tx_cq[i] = cq_open();
	s->rx_cq[i] = cq_open();
	assert_int_equal(fi_tx_context(s->sep, i, NULL, &s->tx[i], NULL), 0);
	assert_int_equal(fi_tx_context(s->sep, i, NULL, &again, NULL), -FI_EBUSY);
	assert_int_equal(fi_rx_context(s->sep, i, NULL, &s->rx[i], NULL), 0);
	assert_int_equal(fi_ep_bind(s->tx[i], &s->tx_cq[i]->fid, FI_RECV),
			 0); /* nothing to it */
	assert_int_equal(fi_ep_bind(s->tx[i], &s->tx_cq[i]->fid, FI_TRANSMIT | FI_RECV), 0);
	assert_int_equal(fi_ep_bind(s->rx[i], &s->rx_cq[i]->fid, FI_RECV), 0);
	assert_int_equal(fi_enable(s->tx[i]), 0);
	assert_int_equal(fi_enable(s->rx[i]), 0);
}

static void sep_enable(struct scalable *s)
{
	assert_int_equal(fi_enable(s->sep), 0);
	s->addr = address_of(&s->sep->fid);
}

static void sep_ctx_close(struct scalable *s, int i)
{
	assert_int_equal(fi_close(&s->tx[i]->fid), 0);
	assert_int_equal(fi_close(&s->rx[i]->fid), 0);
	assert_int_equal(fi_close(&s->tx_cq[i]->fid), 0);
	assert_int_equal(fi_close(&s->rx_cq[i]->fid), 0);
}

static void sep_close(struct scalable *s)
{
	assert_int_equal(fi_close(&s->sep->fid), -FI_EBUSY);
	for (int i = 0; i < CTX_CNT; i++)
		sep_ctx_close(s, i);
	assert_int_equal(fi_close(&s->sep->fid), 0);
}

static void seps_open(struct scalable *a, struct scalable *b)
{
	sep_open(a);
	sep_open(b);
	sep_enable(a);
	sep_enable(b);
}

static void seps_ctx_open(struct scalable *a, struct scalable *b)
{
	for (int i = 0; i < CTX_CNT; i++) {
		sep_ctx_open(a, i);
		sep_ctx_open(b, i);
	}
}

/* What a program does that never enables the endpoint (Chapel, MPICH), in any order of the binds. */
static void sep_alone(bool av_last, bool queue_for_all)
{
	struct fid_ep *sep, *tx, *rx;
	struct fid_cq *cq = cq_open();
	uint64_t out = 0x5eed, in = 0;
	fi_addr_t self;

	info->ep_attr->tx_ctx_cnt = info->ep_attr->rx_ctx_cnt = CTX_CNT;
	assert_int_equal(fi_scalable_ep(domain, info, &sep, NULL), 0);
	if (!av_last)
		assert_int_equal(fi_scalable_ep_bind(sep, &av->fid, 0), 0);
	assert_int_equal(fi_tx_context(sep, CTX_CNT - 1, NULL, &tx, NULL), 0);
	assert_int_equal(fi_rx_context(sep, CTX_CNT - 1, NULL, &rx, NULL), 0);
	if (queue_for_all) {
		assert_int_equal(fi_scalable_ep_bind(sep, &cq->fid, FI_TRANSMIT | FI_RECV), 0);
	} else {
		assert_int_equal(fi_ep_bind(tx, &cq->fid, FI_TRANSMIT | FI_RECV), 0);
		assert_int_equal(fi_ep_bind(rx, &cq->fid, FI_TRANSMIT | FI_RECV), 0);
	}
	assert_int_equal(fi_enable(tx), 0);
	assert_int_equal(fi_enable(rx), 0);
	assert_int_equal(fi_enable(rx), 0); /* again */
	if (av_last)
		assert_int_equal(fi_scalable_ep_bind(sep, &av->fid, 0), 0);
	self = address_of(&sep->fid);
	assert_int_equal(fi_trecv(rx, &in, 8, NULL, FI_ADDR_UNSPEC, 1, 0, &contexts[0]), 0);
	END_TAKEN(fi_tinject(tx, &out, 8, fi_rx_addr(self, CTX_CNT - 1, BITS), 1), );
	expect(cq, &contexts[0]);
	assert_int_equal(in, out);
	assert_int_equal(fi_enable(sep), 0); /* last, as oneCCL does */
	assert_int_equal(fi_close(&tx->fid), 0);
	assert_int_equal(fi_close(&rx->fid), 0);
	assert_int_equal(fi_close(&sep->fid), 0);
	assert_int_equal(fi_close(&cq->fid), 0);
}

/* Be contexts open or not: all get it, or none. */
static void what_is_refused_reaches_no_context(void **state)
{
	struct fi_cntr_attr cntr_attr = { .events = FI_CNTR_EVENTS_COMP };
	struct fid_ep *sep, *tx = NULL, *rx = NULL;
	struct fid_cq *cq = cq_open(), *foreign_cq;
	struct fid_cntr *cntr, *foreign_cntr;
	struct fid_domain *foreign;

	assert_int_equal(fi_domain(fabric, info, &foreign, NULL), 0);
	assert_int_equal(fi_cq_open(foreign, NULL, &foreign_cq, NULL), 0);
	assert_int_equal(fi_cntr_open(foreign, &cntr_attr, &foreign_cntr, NULL), 0);
	assert_int_equal(fi_cntr_open(domain, &cntr_attr, &cntr, NULL), 0);
	assert_int_equal(fi_scalable_ep(domain, info, &sep, NULL), 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(fi_scalable_ep_bind(sep, &cq->fid, FI_TRANSMIT | FI_TAGGED),
				 -FI_EBADFLAGS);
		assert_int_equal(fi_scalable_ep_bind(sep, &foreign_cq->fid, FI_TRANSMIT),
				 -FI_EINVAL);
		assert_int_equal(fi_scalable_ep_bind(sep, &cntr->fid, FI_SEND | FI_TAGGED),
				 -FI_EBADFLAGS);
		assert_int_equal(fi_scalable_ep_bind(sep, &foreign_cntr->fid, FI_SEND),
				 -FI_EINVAL);
		if (i)
			continue;
		assert_int_equal(fi_tx_context(sep, 0, NULL, &tx, NULL), 0);
		assert_int_equal(fi_rx_context(sep, 0, NULL, &rx, NULL), 0);
	}
	/* Nothing has them. */
	assert_int_equal(fi_close(&cq->fid), 0);
	assert_int_equal(fi_close(&cntr->fid), 0);
	assert_int_equal(fi_close(&foreign_cq->fid), 0);
	assert_int_equal(fi_close(&foreign_cntr->fid), 0);
	assert_int_equal(fi_close(&foreign->fid), 0);
	assert_int_equal(fi_close(&tx->fid), 0);
	assert_int_equal(fi_close(&rx->fid), 0);
	assert_int_equal(fi_close(&sep->fid), 0);
}

static void contexts_bring_up_their_endpoint(void **state)
{
	for (int i = 0; i < 4; i++)
		sep_alone(i & 1, i & 2);
}

/* Mercury and kfilnd: the endpoint first; queues and counters when a context is used already. */
static void contexts_come_after_their_endpoint_and_queues_after_them(void **state)
{
	struct fi_av_attr av_attr = { .type = FI_AV_TABLE, .rx_ctx_bits = 8 };
	uint64_t out = 0x5eed, in = 0;
	struct fid_cntr *sends, *receives;
	struct fid_cq *cq = cq_open(), *late = cq_open();
	struct fid_ep *sep, *tx, *rx;
	struct fid_av *wide;
	fi_addr_t self;
	char name[NAME_MAX];
	size_t len = sizeof(name);

	assert_int_equal(fi_av_open(domain, &av_attr, &wide, NULL), 0);
	assert_int_equal(fi_cntr_open(domain, NULL, &sends, NULL), 0);
	assert_int_equal(fi_cntr_open(domain, NULL, &receives, NULL), 0);
	info->ep_attr->tx_ctx_cnt = info->ep_attr->rx_ctx_cnt = CTX_CNT;
	assert_int_equal(fi_scalable_ep(domain, info, &sep, NULL), 0);
	assert_int_equal(fi_scalable_ep_bind(sep, &wide->fid, 0), 0);
	assert_int_equal(fi_enable(sep), 0);
	assert_int_equal(fi_getname(&sep->fid, name, &len), 0);
	assert_int_equal(fi_av_insert(wide, name, 1, &self, 0, NULL), 1);
	assert_int_equal(fi_tx_context(sep, 1, NULL, &tx, NULL), 0);
	assert_int_equal(fi_rx_context(sep, 1, NULL, &rx, NULL), 0);
	assert_int_equal(fi_ep_bind(tx, &sends->fid, FI_SEND), 0);
	assert_int_equal(fi_ep_bind(rx, &cq->fid, FI_RECV), 0);
	assert_int_equal(fi_enable(tx), 0);
	assert_int_equal(fi_enable(rx), 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(fi_trecv(rx, &in, 8, NULL, FI_ADDR_UNSPEC, 1, 0, &contexts[0]),
				 0);
		assert_int_equal(
			fi_tsend(tx, &out, 8, NULL, fi_rx_addr(self, 1, 8), 1, &contexts[1]), 0);
		expect(cq, &contexts[0]);
		END_UNTIL(fi_cntr_read(sends) == (uint64_t)i + 1, );
		if (i)
			expect(late, &contexts[1]);
		else
			assert_int_equal(fi_ep_bind(tx, &late->fid, FI_TRANSMIT), 0);
		assert_int_equal(fi_cntr_read(receives), i);
		assert_int_equal(fi_ep_bind(rx, &receives->fid, FI_RECV), 0);
	}
	assert_int_equal(fi_close(&tx->fid), 0);
	assert_int_equal(fi_close(&rx->fid), 0);
	assert_int_equal(fi_close(&sep->fid), 0);
	assert_int_equal(fi_close(&cq->fid), 0);
	assert_int_equal(fi_close(&late->fid), 0);
	assert_int_equal(fi_close(&sends->fid), 0);
	assert_int_equal(fi_close(&receives->fid), 0);
	assert_int_equal(fi_close(&wide->fid), 0);
}

static void every_context_reaches_every_other(void **state)
{
	static char from[BIG], to[BIG];
	struct scalable a, b;
	fi_addr_t dest;
	size_t len;

	sep_open(&a);
	sep_open(&b);
	assert_int_equal(fi_send(a.sep, from, 1, NULL, 0, NULL), -FI_EOPBADSTATE);
	seps_ctx_open(&a, &b);
	assert_int_equal(fi_tx_context(a.sep, CTX_CNT, NULL, &a.tx[0], NULL), -FI_EINVAL);
	sep_enable(&a); /* which it is since its first context was */
	sep_enable(&b);
	assert_int_equal(fi_send(a.sep, from, 1, NULL, b.addr, NULL), -FI_ENOSYS);
	assert_int_equal(fi_recv(a.tx[0], to, 1, NULL, FI_ADDR_UNSPEC, NULL), -FI_ENOSYS);
	assert_int_equal(fi_send(a.rx[0], from, 1, NULL, b.addr, NULL), -FI_ENOSYS);
	for (size_t i = 0; i < BIG; i++)
		from[i] = (char)(i * 3);
	for (int t = 0; t < CTX_CNT; t++) {
		for (int r = 0; r < CTX_CNT; r++) {
			dest = fi_rx_addr(b.addr, r, BITS);
			len = (t + r) % 3 ? 40 + (size_t)r : BIG;
			memset(to, 0, sizeof(to));
			assert_int_equal(
				fi_tsend(a.tx[t], from, len, NULL, dest, 9, &contexts[t]), 0);
			assert_int_equal(fi_trecv(b.rx[r], to, BIG, NULL, a.addr, 9, 0,
						  &contexts[20 + r]),
					 0);
			expect(b.rx_cq[r], &contexts[20 + r]);
			assert_int_equal(source, a.addr);
			assert_int_equal(entry.len, len);
			assert_memory_equal(to, from, len);
			expect(a.tx_cq[t], &contexts[t]);
		}
	}
	/* an address that names no context is that of the first */
	END_TAKEN(fi_inject(b.tx[3], "first", 6, a.addr), );
	assert_int_equal(fi_recv(a.rx[0], to, BIG, NULL, FI_ADDR_UNSPEC, &contexts[5]), 0);
	expect(a.rx_cq[0], &contexts[5]);
	sep_close(&a);
	sep_close(&b);
}

static void messages_wait_for_a_context_that_is_not_open(void **state)
{
	struct scalable a, b;
	char buf[16];

	seps_open(&a, &b);
	sep_ctx_open(&a, 0);
	for (int i = 0; i < CTX_CNT; i++)
		assert_int_equal(fi_tsend(a.tx[0], "waits", 6, NULL, fi_rx_addr(b.addr, i, BITS),
					  (uint64_t)i, &contexts[i]),
				 0);
	for (int i = 0; i < CTX_CNT; i++)
		expect(a.tx_cq[0], &contexts[i]);
	for (int i = CTX_CNT; i--;) {
		sep_ctx_open(&b, i);
		assert_int_equal(fi_trecv(b.rx[i], buf, 16, NULL, FI_ADDR_UNSPEC, 0, UINT64_MAX,
					  &contexts[i]),
				 0);
		expect(b.rx_cq[i], &contexts[i]);
		assert_int_equal(entry.tag, i);
		assert_string_equal(buf, "waits");
	}
	for (int i = 1; i < CTX_CNT; i++)
		sep_ctx_open(&a, i);
	sep_close(&a);
	sep_close(&b);
}

/* A context is closed while a peer sends into it, and opened again. */
static void closed_context_leaves_memory_alone(void **state)
{
	static char from[BIG], to[BIG];
	struct scalable a, b;
	char buf[16];

	seps_open(&a, &b);
	seps_ctx_open(&a, &b);
	assert_int_equal(fi_recv(b.rx[1], to, BIG, NULL, FI_ADDR_UNSPEC, &contexts[0]), 0);
	assert_int_equal(fi_recv(b.rx[1], to, BIG, NULL, FI_ADDR_UNSPEC, &contexts[1]), 0);
	assert_int_equal(
		fi_send(a.tx[1], from, BIG, NULL, fi_rx_addr(b.addr, 1, BITS), &contexts[2]), 0);
	for (int i = 0; i < 3; i++)
		take(a.tx_cq[0]);
	sep_ctx_close(&b, 1);
	sep_ctx_close(&a, 1);
	memset(to, 0x11, sizeof(to));
	sep_ctx_open(&a, 1);
	/* what has been sent may have ended with the connection: begin anew until one arrives */
	END_TAKEN(fi_tinject(a.tx[1], "again", 6, fi_rx_addr(b.addr, 1, BITS), 5), );
	expect_nothing(a.tx_cq[1]);
	sep_ctx_open(&b, 1);
	assert_int_equal(fi_trecv(b.rx[1], buf, 16, NULL, FI_ADDR_UNSPEC, 5, 0, &contexts[3]),
			 0);
	expect(b.rx_cq[1], &contexts[3]);
	assert_string_equal(buf, "again");
	for (size_t i = 0; i < BIG; i++)
		assert_int_equal(to[i], 0x11);
	sep_close(&a);
	sep_close(&b);
}

/* The calls have returned success, and the connection is made only now. */
static void closed_context_sends_what_was_injected(void **state)
{
	static const uint64_t lens[] = { 5, 0 };
	struct scalable a, b;
	char buf[16];

	seps_open(&a, &b);
	seps_ctx_open(&a, &b);
	for (int i = 0; i < 2; i++)
		END_TAKEN(fi_tinject(a.tx[1], "late", lens[i], b.addr, (uint64_t)i), );
	sep_ctx_close(&a, 1);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(fi_trecv(b.rx[0], buf, 16, NULL, FI_ADDR_UNSPEC, (uint64_t)i,
					  0, &contexts[i]),
				 0);
		expect(b.rx_cq[0], &contexts[i]);
		assert_int_equal(entry.len, lens[i]);
	}
	sep_ctx_open(&a, 1);
	sep_close(&a);
	sep_close(&b);
}

static void closed_context_is_not_counted_in_the_next(void **state)
{
	struct fi_cntr_attr cntr_attr = { .events = FI_CNTR_EVENTS_COMP };
	struct fid_cntr *cntr;
	struct scalable a, b;
	char buf[16];

	assert_int_equal(fi_cntr_open(domain, &cntr_attr, &cntr, NULL), 0);
	seps_open(&a, &b);
	seps_ctx_open(&a, &b);
	END_TAKEN(fi_tinject(a.tx[1], "late", 5, b.addr, 1), );
	sep_ctx_close(&a, 1);
	sep_ctx_open(&a, 1);
	assert_int_equal(fi_ep_bind(a.tx[1], &cntr->fid, FI_SEND), 0);
	assert_int_equal(fi_trecv(b.rx[0], buf, 16, NULL, FI_ADDR_UNSPEC, 1, 0, &contexts[0]),
			 0);
	expect(b.rx_cq[0], &contexts[0]);
	assert_int_equal(fi_cntr_read(cntr), 0);
	END_TAKEN(fi_tinject(a.tx[1], "next", 5, b.addr, 2), );
	END_UNTIL(fi_cntr_read(cntr), );
	assert_int_equal(fi_cntr_read(cntr), 1);
	sep_close(&a);
	sep_close(&b);
	assert_int_equal(fi_close(&cntr->fid), 0);
}

static void closed_context_leaves_the_next_its_completions(void **state)
{
	const uint64_t selective = FI_SELECTIVE_COMPLETION;
	struct fid_cq *cq = cq_open();
	size_t first = 0, min = 0, len = sizeof(min);
	struct fid_ep *tx, *rx;
	struct scalable a;
	char buf[16];

	sep_open(&a);
	sep_enable(&a);
	assert_int_equal(fi_tx_context(a.sep, 1, NULL, &tx, NULL), 0);
	assert_int_equal(fi_rx_context(a.sep, 1, NULL, &rx, NULL), 0);
	assert_int_equal(fi_ep_bind(tx, &cq->fid, FI_TRANSMIT | selective), 0);
	assert_int_equal(fi_ep_bind(rx, &cq->fid, FI_RECV | selective), 0);
	assert_int_equal(
		fi_getopt(&rx->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &first, &len), 0);
	min = first + 1;
	assert_int_equal(fi_setopt(&rx->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &min, len),
			 0);
	assert_int_equal(fi_close(&tx->fid), 0);
	assert_int_equal(fi_close(&rx->fid), 0);
	assert_int_equal(fi_close(&cq->fid), 0);
	for (int i = 0; i < CTX_CNT; i++)
		sep_ctx_open(&a, i);
	assert_int_equal(
		fi_getopt(&a.rx[1]->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &min, &len), 0);
	assert_int_equal(min, first);
	assert_int_equal(fi_trecv(a.rx[1], buf, 16, NULL, FI_ADDR_UNSPEC, 1, 0, &contexts[0]),
			 0);
	END_TAKEN(fi_tsend(a.tx[1], "next", 5, NULL, fi_rx_addr(a.addr, 1, BITS), 1,
			   &contexts[1]), );
	expect(a.rx_cq[1], &contexts[0]);
	expect(a.tx_cq[1], &contexts[1]);
	sep_close(&a);
}

/* It waits for a connection when its context closes: it is dropped, and what waits for it is not to begin. */
static void deferred_work_of_a_closed_context_is_not_done(void **state)
{
	struct iovec iov = { "lost", 5 };
	struct fi_cntr_attr cntr_attr = { 0 };
	struct fid_cntr *when, *done;
	struct scalable a, b;
	struct fi_op_tagged op = { .msg = { .msg_iov = &iov, .iov_count = 1 } };
	struct fi_deferred_work work = { .op_type = FI_OP_TSEND, .op.tagged = &op };

	info->caps |= FI_TRIGGER;
	info->tx_attr->caps = info->rx_attr->caps = 0;
	seps_open(&a, &b);
	seps_ctx_open(&a, &b);
	assert_int_equal(fi_cntr_open(domain, &cntr_attr, &when, NULL), 0);
	assert_int_equal(fi_cntr_open(domain, &cntr_attr, &done, NULL), 0);
	work.triggering_cntr = when;
	work.completion_cntr = done;
	op.ep = a.tx[1];
	op.msg.addr = b.addr;
	assert_int_equal(fi_control(&domain->fid, FI_QUEUE_WORK, &work), 0);
	sep_ctx_close(&a, 1);
	assert_int_equal(fi_cntr_read(done) + fi_cntr_readerr(done), 0);
	sep_ctx_open(&a, 1);
	assert_int_equal(fi_close(&done->fid), 0);
	assert_int_equal(fi_close(&when->fid), 0);
	sep_close(&a);
	sep_close(&b);
}

/* An atomic read has no operand, but a place for its result. */
static void closed_context_has_what_it_fetches(void **state)
{
	const uint64_t caps = FI_ATOMIC | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
	static uint64_t word, was;
	struct scalable a, b;
	struct fid_mr *mr;
	char buf[16];

	info->caps |= caps;
	info->tx_attr->caps = info->rx_attr->caps = 0;
	seps_open(&a, &b);
	seps_ctx_open(&a, &b);
	assert_int_equal(
		fi_mr_reg(domain, &word, sizeof(word), FI_REMOTE_READ, 0, 7, 0, &mr, NULL), 0);
	assert_int_equal(fi_recv(b.rx[0], buf, 16, NULL, FI_ADDR_UNSPEC, &contexts[0]), 0);
	END_TAKEN(fi_inject(a.tx[1], "hello", 6, b.addr), );
	expect(b.rx_cq[0], &contexts[0]);
	assert_int_equal(fi_fetch_atomic(a.tx[1], NULL, 1, NULL, &was, NULL, b.addr, 0, 7,
					 FI_UINT64, FI_ATOMIC_READ, &contexts[1]),
			 0);
	sep_ctx_close(&a, 1);
	was = 0x5eed; /* the program's again */
	expect_nothing(b.tx_cq[0]);
	assert_int_equal(was, 0x5eed);
	sep_ctx_open(&a, 1);
	assert_int_equal(fi_close(&mr->fid), 0);
	sep_close(&a);
	sep_close(&b);
}

static void counters_and_aliases_of_contexts_work(void **state)
{
	struct fi_cntr_attr cntr_attr = { 0 };
	struct fid_cntr *sent, *received;
	struct scalable a, b;
	struct fid_ep *alias = NULL;
	char buf[16];

	seps_open(&a, &b);
	assert_int_equal(fi_cntr_open(domain, &cntr_attr, &sent, NULL), 0);
	assert_int_equal(fi_cntr_open(domain, &cntr_attr, &received, NULL), 0);
	assert_int_equal(fi_tx_context(a.sep, 2, NULL, &a.tx[2], NULL), 0);
	assert_int_equal(fi_rx_context(b.sep, 2, NULL, &b.rx[2], NULL), 0);
	assert_int_equal(fi_ep_bind(a.tx[2], &sent->fid, FI_SEND), 0);
	assert_int_equal(fi_ep_bind(b.rx[2], &received->fid, FI_RECV), 0);
	assert_int_equal(fi_enable(a.tx[2]), 0);
	assert_int_equal(fi_enable(b.rx[2]), 0);
	assert_int_equal(fi_ep_alias(a.tx[2], &alias, FI_TRANSMIT | FI_INJECT), 0);
	assert_int_equal(fi_recv(b.rx[2], buf, 16, NULL, FI_ADDR_UNSPEC, NULL), 0);
	END_TAKEN(fi_send(alias, "counted", 8, NULL, fi_rx_addr(b.addr, 2, BITS), NULL), );
	END_UNTIL(fi_cntr_read(received) == 1 && fi_cntr_read(sent) == 1, );
	assert_string_equal(buf, "counted");
	assert_int_equal(fi_close(&a.tx[2]->fid), -FI_EBUSY);
	assert_int_equal(fi_close(&alias->fid), 0);
	assert_int_equal(fi_close(&a.tx[2]->fid), 0);
	assert_int_equal(fi_close(&b.rx[2]->fid), 0);
	assert_int_equal(fi_close(&sent->fid), 0);
	assert_int_equal(fi_close(&received->fid), 0);
	assert_int_equal(fi_close(&a.sep->fid), 0);
	assert_int_equal(fi_close(&b.sep->fid), 0);
}

/* A thread for each pair of contexts (FI_THREAD_SAFE). */
struct thread {
	struct scalable *a, *b;
	int idx;
	pthread_t id;
};

#define ROUNDS 400

static void *exchange(void *arg)
{
	struct thread *t = arg;
	struct fi_context2 c[2];
	uint64_t got;

	for (uint64_t i = 0; i < ROUNDS; i++) {
		struct fi_cq_tagged_entry e;

		got = 0;
		if (fi_trecv(t->b->rx[t->idx], &got, 8, NULL, FI_ADDR_UNSPEC, i, 0, &c[0]))
			return "receive";
		while (fi_tsend(t->a->tx[t->idx], &i, 8, NULL,
				fi_rx_addr(t->b->addr, t->idx, BITS), i, &c[1]))
			;
		while (fi_cq_read(t->b->rx_cq[t->idx], &e, 1) != 1)
			;
		if (got != i || e.op_context != &c[0])
			return "bytes";
		while (fi_cq_read(t->a->tx_cq[t->idx], &e, 1) != 1)
			;
	}
	return NULL;
}

static void threads_have_a_context_each(void **state)
{
	struct thread threads[CTX_CNT];
	struct scalable a, b;
	void *wrong;

	seps_open(&a, &b);
	seps_ctx_open(&a, &b);
	for (int i = 0; i < CTX_CNT; i++) {
		threads[i] = (struct thread){ &a, &b, i, 0 };
		assert_int_equal(pthread_create(&threads[i].id, NULL, exchange, &threads[i]), 0);
	}
	for (int i = 0; i < CTX_CNT; i++) {
		assert_int_equal(pthread_join(threads[i].id, &wrong), 0);
		assert_null(wrong);
	}
	sep_close(&a);
	sep_close(&b);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		ONE_DOMAIN_TEST(what_is_refused_reaches_no_context),
		ONE_DOMAIN_TEST(contexts_bring_up_their_endpoint),
		ONE_DOMAIN_TEST(contexts_come_after_their_endpoint_and_queues_after_them),
		ONE_DOMAIN_TEST(every_context_reaches_every_other),
		ONE_DOMAIN_TEST(messages_wait_for_a_context_that_is_not_open),
		ONE_DOMAIN_TEST(closed_context_leaves_memory_alone),
		ONE_DOMAIN_TEST(closed_context_sends_what_was_injected),
		ONE_DOMAIN_TEST(closed_context_is_not_counted_in_the_next),
		ONE_DOMAIN_TEST(closed_context_leaves_the_next_its_completions),
		ONE_DOMAIN_TEST(deferred_work_of_a_closed_context_is_not_done),
		ONE_DOMAIN_TEST(closed_context_has_what_it_fetches),
		ONE_DOMAIN_TEST(counters_and_aliases_of_contexts_work),
		ONE_DOMAIN_TEST(threads_have_a_context_each),
	};

	if (argc != 2) {
		fprintf(stderr, "usage: %s PROVIDER\n", argv[0]);
		return 2;
	}
	attr.provider = argv[1];
	return cmocka_run_group_tests_name(argv[1], tests, NULL, NULL);
}
