/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Scalable endpoints with as many contexts as there can be, over the real library:
 * many_contexts_test PROVIDER. Messages, tagged messages and writes from each transmit context to a
 * receive context of its own, small ones, ones that take credit and ones that are a rendezvous. One
 * thread, one domain, one queue for each direction of an endpoint.
 */
#include <rdma/fi_rma.h>
#include "ends.h"

#define CTX_CNT	 256
#define BITS	 8
#define NAME_MAX 128
#define KEY	 77u

static struct end_attr attr = { .no_cntr = true, .caps = FI_RMA };
static struct fi_info *info;
static struct fid_fabric *fabric;
static struct fid_domain *domain;
static struct fid_av *av;

/* One of two endpoints. */
struct side {
	struct fid_ep *sep, *tx[CTX_CNT], *rx[CTX_CNT];
	struct fid_cq *tx_cq, *rx_cq;
	struct fi_context2 sends[CTX_CNT], receives[CTX_CNT];
	fi_addr_t addr;
	uint8_t *out, *in; /* CTX_CNT times the length of a message */
};

static struct side a, b;

static struct fid_cq *cq_open(void)
{
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_TAGGED };
	struct fid_cq *cq;

	assert_int_equal(fi_cq_open(domain, &cq_attr, &cq, NULL), 0);
	return cq;
}

static void side_open(struct side *s)
{
	char name[NAME_MAX];
	size_t len = sizeof(name);

	s->tx_cq = cq_open();
	s->rx_cq = cq_open();
	assert_int_equal(fi_scalable_ep(domain, info, &s->sep, s), 0);
	assert_int_equal(fi_scalable_ep_bind(s->sep, &av->fid, 0), 0);
	assert_int_equal(fi_enable(s->sep), 0);
	for (int i = 0; i < CTX_CNT; i++) {
		assert_int_equal(fi_tx_context(s->sep, i, NULL, &s->tx[i], NULL), 0);
		assert_int_equal(fi_rx_context(s->sep, i, NULL, &s->rx[i], NULL), 0);
		assert_int_equal(fi_ep_bind(s->tx[i], &s->tx_cq->fid, FI_TRANSMIT), 0);
		assert_int_equal(fi_ep_bind(s->rx[i], &s->rx_cq->fid, FI_RECV), 0);
		assert_int_equal(fi_enable(s->tx[i]), 0);
		assert_int_equal(fi_enable(s->rx[i]), 0);
	}
	assert_int_equal(fi_getname(&s->sep->fid, name, &len), 0);
	assert_int_equal(fi_av_insert(av, name, 1, &s->addr, 0, NULL), 1);
}

static void side_close(struct side *s)
{
	for (int i = 0; i < CTX_CNT; i++) {
		assert_int_equal(fi_close(&s->tx[i]->fid), 0);
		assert_int_equal(fi_close(&s->rx[i]->fid), 0);
	}
	assert_int_equal(fi_close(&s->sep->fid), 0);
	assert_int_equal(fi_close(&s->tx_cq->fid), 0);
	assert_int_equal(fi_close(&s->rx_cq->fid), 0);
}

static int setup(void **state)
{
	struct fi_av_attr av_attr = { .type = FI_AV_TABLE, .rx_ctx_bits = BITS };

	info = end_info(&attr);
	assert_non_null(info);
	info->ep_attr->tx_ctx_cnt = info->ep_attr->rx_ctx_cnt = CTX_CNT;
	assert_int_equal(fi_fabric(info->fabric_attr, &fabric, NULL), 0);
	assert_int_equal(fi_domain(fabric, info, &domain, NULL), 0);
	assert_int_equal(fi_av_open(domain, &av_attr, &av, NULL), 0);
	side_open(&a);
	side_open(&b);
	return 0;
}

static int teardown(void **state)
{
	side_close(&a);
	side_close(&b);
	assert_int_equal(fi_close(&av->fid), 0);
	assert_int_equal(fi_close(&domain->fid), 0);
	assert_int_equal(fi_close(&fabric->fid), 0);
	fi_freeinfo(info);
	return 0;
}

/* The receive context that a transmit context talks to: another one for each. */
static int partner(int i)
{
	return (i * 37 + 11) % CTX_CNT;
}

/* Reads one completion, which is one of @of; returns which. */
static int done(struct fid_cq *cq, const struct fi_context2 *of)
{
	struct fi_cq_tagged_entry entry;
	ssize_t ret = 0, idle;
	ptrdiff_t which;

	END_UNTIL((ret = fi_cq_read(cq, &entry, 1)) == 1, {
		assert_int_equal(ret, -FI_EAGAIN);
		idle = fi_cq_read(cq == a.tx_cq ? b.rx_cq : a.tx_cq, NULL, 0);
		assert_true(idle == -FI_EAGAIN || idle == 0);
	});
	which = (struct fi_context2 *)entry.op_context - of;
	assert_true(which >= 0 && which < CTX_CNT);
	return (int)which;
}

/* Each message arrives at the context that it is for, and at no other. */
static void exchange(size_t len, bool tagged)
{
	bool sent[CTX_CNT] = { false }, received[CTX_CNT] = { false };
	int i;

	a.out = malloc(CTX_CNT * len);
	b.in = calloc(CTX_CNT, len);
	for (i = 0; i < CTX_CNT; i++) {
		memset(a.out + i * len, i ^ 0x5a, len);
		assert_int_equal(tagged ? fi_trecv(b.rx[i], b.in + i * len, len, NULL,
						   FI_ADDR_UNSPEC, 9, 0, &b.receives[i])
					: fi_recv(b.rx[i], b.in + i * len, len, NULL,
						  FI_ADDR_UNSPEC, &b.receives[i]),
				 0);
	}
	for (i = 0; i < CTX_CNT; i++) {
		fi_addr_t to = fi_rx_addr(b.addr, partner(i), BITS);

		assert_int_equal(
			tagged ? fi_tsend(a.tx[i], a.out + i * len, len, NULL, to, 9,
					  &a.sends[i])
			       : fi_send(a.tx[i], a.out + i * len, len, NULL, to, &a.sends[i]),
			0);
	}
	for (i = 0; i < CTX_CNT; i++)
		received[done(b.rx_cq, b.receives)] = true;
	for (i = 0; i < CTX_CNT; i++)
		sent[done(a.tx_cq, a.sends)] = true;
	for (i = 0; i < CTX_CNT; i++) {
		assert_true(sent[i] && received[i]);
		assert_memory_equal(a.out + i * len, b.in + partner(i) * len, len);
	}
	free(a.out);
	free(b.in);
}

static void each_context_has_messages_of_its_own(void **state)
{
	exchange(8, false);
	exchange(8, true);
	exchange(1000, true);
	exchange(1000, false);
	exchange(70000, true);
	exchange(70000, false);
}

static void writes_name_each_context(void **state)
{
	static uint64_t words[CTX_CNT], from[CTX_CNT];
	struct fid_mr *mr;

	assert_int_equal(
		fi_mr_reg(domain, words, sizeof(words), FI_REMOTE_WRITE, 0, KEY, 0, &mr, NULL),
		0);
	for (int i = 0; i < CTX_CNT; i++) {
		from[i] = 1000u + (unsigned int)i;
		assert_int_equal(fi_write(a.tx[i], &from[i], 8, NULL,
					  fi_rx_addr(b.addr, partner(i), BITS),
					  8 * (unsigned int)i, KEY, &a.sends[i]),
				 0);
	}
	for (int i = 0; i < CTX_CNT; i++)
		done(a.tx_cq, a.sends);
	END_UNTIL(!memcmp(words, from, sizeof(words)), fi_cq_read(b.rx_cq, NULL, 0));
	assert_int_equal(fi_close(&mr->fid), 0);
}

static void an_address_names_no_context_beyond_the_last(void **state)
{
	fi_addr_t beyond = b.addr | 1ull << (64 - BITS - 1);
	struct fid_ep *ep;

	assert_int_equal(fi_send(a.tx[0], "x", 1, NULL, beyond, NULL), -FI_EINVAL);
	assert_int_equal(fi_tx_context(a.sep, CTX_CNT, NULL, &ep, NULL), -FI_EINVAL);
	assert_int_equal(fi_rx_context(a.sep, CTX_CNT, NULL, &ep, NULL), -FI_EINVAL);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_context_has_messages_of_its_own),
		cmocka_unit_test(writes_name_each_context),
		cmocka_unit_test(an_address_names_no_context_beyond_the_last),
	};

	if (argc != 2) {
		fprintf(stderr, "usage: %s PROVIDER\n", argv[0]);
		return 2;
	}
	attr.provider = argv[1];
	return cmocka_run_group_tests_name(argv[1], tests, setup, teardown);
}
