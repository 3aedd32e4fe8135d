/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What works because of default operation flags and of message orders. The surface's info has
 * the flag that a proof is for. See surface_offer.h.
 */
#include <rdma/fi_trigger.h>
#include "surface_offer.h"

#define ROUNDS	   200	  /* of progress in which what must not happen would have */
#define ORDER_LEN  4096u  /* that each order is proven with */
#define ORDER_ROOM 70000u /* and at most */

/* Default flags: of an endpoint with the surface's info whose completions are selective */

static void flagged_open(struct surface *s, struct party *p)
{
	assert_int_equal(fi_cq_open(s->domain,
				    &(struct fi_cq_attr){ .format = FI_CQ_FORMAT_TAGGED },
				    &p->cq, NULL),
			 0);
	assert_int_equal(fi_endpoint(s->domain, s->info, &p->ep, NULL), 0);
	assert_int_equal(fi_ep_bind(p->ep, &s->av->fid, 0), 0);
	assert_int_equal(
		fi_ep_bind(p->ep, &p->cq->fid, FI_TRANSMIT | FI_RECV | FI_SELECTIVE_COMPLETION),
		0);
	party_enable(s, p);
}

static void stays_empty(struct fid_cq *cq)
{
	struct fi_cq_tagged_entry entry;

	for (int i = 0; i < ROUNDS; i++)
		assert_int_equal(fi_cq_read(cq, &entry, 1), -FI_EAGAIN);
}

static void take(struct party *p)
{
	static char buf[8];
	static struct fi_context2 context;

	assert_int_equal(fi_recv(p->ep, buf, sizeof(buf), NULL, FI_ADDR_UNSPEC, &context), 0);
	surface_done(p->cq, &context);
	assert_memory_equal(buf, "12345678", 8);
}

static void proof_tx_completion(struct surface *s)
{
	struct fi_context2 context;
	struct party p = { 0 };

	flagged_open(s, &p);
	assert_int_equal(fi_send(p.ep, "12345678", 8, NULL, s->far.addr, &context), 0);
	surface_done(p.cq, &context);
	take(&s->far);
	party_close(&p);
}

static void proof_inject(struct surface *s)
{
	char buf[] = "12345678";
	struct fi_context2 context;

	END_TAKEN(fi_send(s->near.ep, buf, 8, NULL, s->far.addr, &context), );
	memset(buf, 0, sizeof(buf));
	take(&s->far);
	surface_done(s->near.cq, &context);
}

/* It ends whether or not there is a receive. */
static void proof_early(struct surface *s)
{
	struct fi_context2 context;

	assert_int_equal(fi_send(s->near.ep, "12345678", 8, NULL, s->far.addr, &context), 0);
	surface_done(s->near.cq, &context);
	take(&s->far);
}

/* It ends when there is one. */
static void proof_late(struct surface *s)
{
	struct fi_context2 context;

	assert_int_equal(fi_send(s->near.ep, "12345678", 8, NULL, s->far.addr, &context), 0);
	stays_empty(s->near.cq);
	take(&s->far);
	surface_done(s->near.cq, &context);
}

static struct fid_cntr *threshold(struct surface *s, struct fi_triggered_context2 *when)
{
	struct fid_cntr *cntr;

	assert_int_equal(fi_cntr_open(s->domain, NULL, &cntr, NULL), 0);
	*when = (struct fi_triggered_context2){ .event_type = FI_TRIGGER_THRESHOLD };
	when->trigger.threshold.cntr = cntr;
	when->trigger.threshold.threshold = 1;
	return cntr;
}

static void proof_tx_trigger(struct surface *s)
{
	struct fi_triggered_context2 when;
	struct fid_cntr *cntr = threshold(s, &when);

	assert_int_equal(fi_send(s->near.ep, "12345678", 8, NULL, s->far.addr, &when), 0);
	stays_empty(s->near.cq);
	assert_int_equal(fi_cntr_add(cntr, 1), 0);
	surface_done(s->near.cq, &when);
	take(&s->far);
	assert_int_equal(fi_close(&cntr->fid), 0);
}

static void proof_rx_completion(struct surface *s)
{
	struct party p = { 0 };

	flagged_open(s, &p);
	END_TAKEN(fi_inject(s->far.ep, "12345678", 8, p.addr), );
	take(&p);
	party_close(&p);
}

/* How sends complete is nothing to it. */
static void proof_rx_as_ever(struct surface *s)
{
	END_TAKEN(fi_inject(s->far.ep, "12345678", 8, s->near.addr), );
	take(&s->near);
}

static void proof_rx_multi(struct surface *s)
{
	static char buf[3 * 4096];
	struct fi_context2 context;

	assert_int_equal(fi_recv(s->near.ep, buf, sizeof(buf), NULL, FI_ADDR_UNSPEC, &context),
			 0);
	for (int i = 0; i < 2; i++) {
		END_TAKEN(fi_inject(s->far.ep, "12345678", 8, s->near.addr), );
		assert_ptr_equal(surface_done(s->near.cq, &context).buf, buf + 8 * i);
	}
}

static void proof_rx_trigger(struct surface *s)
{
	struct fi_triggered_context2 when;
	struct fid_cntr *cntr = threshold(s, &when);
	char buf[8];

	END_TAKEN(fi_inject(s->far.ep, "12345678", 8, s->near.addr), );
	assert_int_equal(fi_recv(s->near.ep, buf, 8, NULL, FI_ADDR_UNSPEC, &when), 0);
	stays_empty(s->near.cq);
	assert_int_equal(fi_cntr_add(cntr, 1), 0);
	surface_done(s->near.cq, &when);
	assert_int_equal(fi_close(&cntr->fid), 0);
}

const struct offered tx_flags_offered[] = {
	OFFERED(FI_COMPLETION, proof_tx_completion), OFFERED(FI_INJECT, proof_inject),
	OFFERED(FI_INJECT_COMPLETE, proof_early),    OFFERED(FI_TRANSMIT_COMPLETE, proof_early),
	OFFERED(FI_DELIVERY_COMPLETE, proof_early),  OFFERED(FI_MATCH_COMPLETE, proof_late),
	OFFERED(FI_COMMIT_COMPLETE, proof_late),     OFFERED(FI_TRIGGER, proof_tx_trigger),
};

const struct offered rx_flags_offered[] = {
	OFFERED(FI_COMPLETION, proof_rx_completion),
	OFFERED(FI_MULTI_RECV, proof_rx_multi),
	OFFERED(FI_TRIGGER, proof_rx_trigger),
	OFFERED(FI_INJECT, proof_rx_as_ever),
	OFFERED(FI_INJECT_COMPLETE, proof_rx_as_ever),
	OFFERED(FI_TRANSMIT_COMPLETE, proof_rx_as_ever),
	OFFERED(FI_DELIVERY_COMPLETE, proof_rx_as_ever),
	OFFERED(FI_COMMIT_COMPLETE, proof_rx_as_ever),
};

/* Order: near does one thing, then another */

static uint8_t target[ORDER_ROOM], out[2][ORDER_ROOM], in[2][ORDER_ROOM], message[2][ORDER_ROOM];
static struct fi_context2 contexts[4];

static void post(struct surface *s, char what, int i, size_t len)
{
	ssize_t ret = 0;

	if (what == 'R')
		ret = fi_read(s->near.ep, in[i], len, NULL, s->far.addr, 0, SURFACE_KEY + 1,
			      &contexts[i]);
	else if (what == 'W')
		ret = fi_write(s->near.ep, out[i], len, NULL, s->far.addr, 0, SURFACE_KEY + 1,
			       &contexts[i]);
	else if (what == 'r')
		ret = fi_fetch_atomic(s->near.ep, NULL, len, NULL, in[i], NULL, s->far.addr, 0,
				      SURFACE_KEY + 1, FI_UINT8, FI_ATOMIC_READ, &contexts[i]);
	else if (what == 'w')
		ret = fi_atomic(s->near.ep, out[i], len, NULL, s->far.addr, 0, SURFACE_KEY + 1,
				FI_UINT8, FI_ATOMIC_WRITE, &contexts[i]);
	else
		ret = fi_send(s->near.ep, out[i], len, NULL, s->far.addr, &contexts[i]);
	assert_int_equal(ret, 0);
}

static void both_end(struct fid_cq *cq)
{
	struct fi_cq_tagged_entry entry;
	int seen = 0;

	while (seen != 3) {
		END_UNTIL(fi_cq_read(cq, &entry, 1) == 1, );
		assert_true(entry.op_context == &contexts[0] ||
			    entry.op_context == &contexts[1]);
		seen |= entry.op_context == &contexts[0] ? 1 : 2;
	}
}

static void proof_order_of(struct surface *s, char first, char second, size_t len)
{
	struct fid_mr *mr;

	assert_int_equal(fi_mr_reg(s->domain, target, sizeof(target),
				   FI_REMOTE_READ | FI_REMOTE_WRITE, 0, SURFACE_KEY + 1, 0, &mr,
				   NULL),
			 0);
	memset(target, 'o', len);
	memset(out[0], '0', len);
	memset(out[1], '1', len);
	for (int i = 0; i < 2; i++)
		if ((i ? second : first) == 'S')
			assert_int_equal(fi_recv(s->far.ep, message[i], len, NULL,
						 FI_ADDR_UNSPEC, &contexts[2 + i]),
					 0);
	post(s, first, 0, len);
	post(s, second, 1, len);
	for (int i = 0; i < 2; i++) {
		if ((i ? second : first) != 'S')
			continue;
		surface_done(s->far.cq, &contexts[2 + i]);
		assert_memory_equal(message[i], out[i], len);
		if (i && first == 'W') /* what was sent before it has arrived */
			assert_memory_equal(target, out[0], len);
	}
	both_end(s->near.cq);
	if ((first == 'W' && second == 'R') || (first == 'w' && second == 'r'))
		assert_memory_equal(in[1], out[0], len);
	if (first == 'R' || first == 'r')
		assert_true(in[0][0] == 'o' && in[0][len - 1] == 'o');
	if (second == 'W' || second == 'w') {
		END_UNTIL(target[len - 1] == '1', fi_cq_read(s->far.cq, NULL, 0));
		assert_memory_equal(target, out[1], len);
	}
	assert_int_equal(fi_close(&mr->fid), 0);
}

/* Bytes of one atomic operation of a group of them, at most @len. */
static size_t atomic_len(struct surface *s, size_t len)
{
	size_t cnt = 0;

	assert_int_equal(fi_atomicvalid(s->near.ep, FI_UINT8, FI_ATOMIC_WRITE, &cnt), 0);
	return len < cnt ? len : cnt;
}

void proof_order(struct surface *s, uint64_t order, size_t len)
{
	/* Of each group of bits: what comes second, and for each of those what came first. */
	static const struct {
		const char *kinds; /* in small letters: by atomics */
		int bit, cnt;
	} groups[] = { { "RWS", 0, 3 }, { "RW", 32, 2 }, { "rw", 36, 2 } };

	assert_true(len <= ORDER_ROOM);
	for (size_t g = 0; g < sizeof(groups) / sizeof(groups[0]); g++)
		for (int n = 0; n < groups[g].cnt * groups[g].cnt; n++)
			if (order == 1ull << (groups[g].bit + n))
				proof_order_of(s, groups[g].kinds[n % groups[g].cnt],
					       groups[g].kinds[n / groups[g].cnt],
					       g == 2 ? atomic_len(s, len) : len);
}

#define ORDER_PROOF(name)                                   \
	static void proof_##name(struct surface *s)         \
	{                                                   \
		proof_order(s, FI_ORDER_##name, 8);         \
		proof_order(s, FI_ORDER_##name, ORDER_LEN); \
	}

ORDER_PROOF(RAR)
ORDER_PROOF(RAW)
ORDER_PROOF(RAS)
ORDER_PROOF(WAR)
ORDER_PROOF(WAW)
ORDER_PROOF(WAS)
ORDER_PROOF(SAR)
ORDER_PROOF(SAW)
ORDER_PROOF(SAS)
ORDER_PROOF(RMA_RAR)
ORDER_PROOF(RMA_RAW)
ORDER_PROOF(RMA_WAR)
ORDER_PROOF(RMA_WAW)
ORDER_PROOF(ATOMIC_RAR)
ORDER_PROOF(ATOMIC_RAW)
ORDER_PROOF(ATOMIC_WAR)
ORDER_PROOF(ATOMIC_WAW)

const struct offered msg_order_offered[] = {
	OFFERED(FI_ORDER_RAR, proof_RAR),
	OFFERED(FI_ORDER_RAW, proof_RAW),
	OFFERED(FI_ORDER_RAS, proof_RAS),
	OFFERED(FI_ORDER_WAR, proof_WAR),
	OFFERED(FI_ORDER_WAW, proof_WAW),
	OFFERED(FI_ORDER_WAS, proof_WAS),
	OFFERED(FI_ORDER_SAR, proof_SAR),
	OFFERED(FI_ORDER_SAW, proof_SAW),
	OFFERED(FI_ORDER_SAS, proof_SAS),
	OFFERED(FI_ORDER_RMA_RAR, proof_RMA_RAR),
	OFFERED(FI_ORDER_RMA_RAW, proof_RMA_RAW),
	OFFERED(FI_ORDER_RMA_WAR, proof_RMA_WAR),
	OFFERED(FI_ORDER_RMA_WAW, proof_RMA_WAW),
	OFFERED(FI_ORDER_ATOMIC_RAR, proof_ATOMIC_RAR),
	OFFERED(FI_ORDER_ATOMIC_RAW, proof_ATOMIC_RAW),
	OFFERED(FI_ORDER_ATOMIC_WAR, proof_ATOMIC_WAR),
	OFFERED(FI_ORDER_ATOMIC_WAW, proof_ATOMIC_WAW),
};
