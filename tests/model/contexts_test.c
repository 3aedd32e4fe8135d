/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Aliases, options, shared contexts and scalable endpoints, over the real library:
 * contexts_test PROVIDER. One thread, one domain.
 */
#include <pthread.h>
#include <rdma/fi_atomic.h>
#include "ends.h"

#define CTX_CNT	 4
#define BITS	 3
#define BIG	 300000u
#define NAME_MAX 128

static struct end_attr attr = { .no_cntr = true };
static struct fi_info *info;
static struct fid_fabric *fabric;
static struct fid_domain *domain;
static struct fid_av *av;
static struct fi_context2 contexts[64];

static int setup(void **state)
{
	struct fi_av_attr av_attr = { .type = FI_AV_TABLE, .rx_ctx_bits = BITS };

	info = end_info(&attr);
	assert_non_null(info);
	info->caps |= FI_DIRECTED_RECV;
	info->rx_attr->caps |= FI_DIRECTED_RECV;
	assert_int_equal(fi_fabric(info->fabric_attr, &fabric, NULL), 0);
	assert_int_equal(fi_domain(fabric, info, &domain, NULL), 0);
	assert_int_equal(fi_av_open(domain, &av_attr, &av, NULL), 0);
	return 0;
}

static int teardown(void **state)
{
	assert_int_equal(fi_close(&av->fid), 0);
	assert_int_equal(fi_close(&domain->fid), 0);
	assert_int_equal(fi_close(&fabric->fid), 0);
	fi_freeinfo(info);
	return 0;
}

static struct fid_cq *cq_open(void)
{
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_TAGGED };
	struct fid_cq *cq;

	assert_int_equal(fi_cq_open(domain, &cq_attr, &cq, NULL), 0);
	return cq;
}

/* An endpoint in the common domain. */
struct one {
	struct fid_ep *ep;
	struct fid_cq *cq;
	fi_addr_t addr;
};

static fi_addr_t address_of(struct fid *fid)
{
	char name[NAME_MAX];
	size_t len = sizeof(name);
	fi_addr_t addr;

	assert_int_equal(fi_getname(fid, name, &len), 0);
	assert_int_equal(fi_av_insert(av, name, 1, &addr, 0, NULL), 1);
	return addr;
}

static void one_make(struct one *e, uint64_t flags)
{
	e->cq = cq_open();
	assert_int_equal(fi_endpoint(domain, info, &e->ep, e), 0);
	assert_int_equal(fi_ep_bind(e->ep, &av->fid, 0), 0);
	assert_int_equal(fi_ep_bind(e->ep, &e->cq->fid, FI_TRANSMIT | FI_RECV | flags), 0);
}

static void one_open(struct one *e)
{
	one_make(e, 0);
	assert_int_equal(fi_enable(e->ep), 0);
	e->addr = address_of(&e->ep->fid);
}

static void one_close(struct one *e)
{
	assert_int_equal(fi_close(&e->ep->fid), 0);
	assert_int_equal(fi_close(&e->cq->fid), 0);
}

static struct fi_cq_tagged_entry entry;
static fi_addr_t source;

static bool take(struct fid_cq *cq)
{
	ssize_t ret = fi_cq_readfrom(cq, &entry, 1, &source);

	assert_true(ret == 1 || ret == -FI_EAGAIN);
	return ret == 1;
}

static void expect(struct fid_cq *cq, void *context)
{
	END_UNTIL(take(cq), );
	assert_ptr_equal(entry.op_context, context);
}

static void expect_error(struct fid_cq *cq, void *context, int err)
{
	struct fi_cq_err_entry e = { 0 };

	END_UNTIL(fi_cq_readerr(cq, &e, 0) == 1, );
	assert_ptr_equal(e.op_context, context);
	assert_int_equal(e.err, err);
}

static void expect_nothing(struct fid_cq *cq)
{
	for (int i = 0; i < 300; i++)
		assert_false(take(cq));
}

/* Aliases */

static void alias_has_flags_of_its_own(void **state)
{
	struct fid_ep *quiet = NULL, *again = NULL;
	uint64_t flags = FI_TRANSMIT;
	struct one a, b;
	char buf[8];

	one_make(&a, FI_SELECTIVE_COMPLETION);
	assert_int_equal(fi_ep_alias(a.ep, &again, FI_TRANSMIT | FI_COMPLETION), 0);
	assert_int_equal(fi_tsend(again, "early", 6, NULL, 0, 1, NULL), -FI_EOPBADSTATE);
	assert_int_equal(fi_enable(a.ep), 0);
	a.addr = address_of(&a.ep->fid);
	one_open(&b);
	assert_int_equal(fi_ep_alias(a.ep, &quiet, 0), -FI_EINVAL);
	assert_int_equal(fi_ep_alias(a.ep, &quiet, FI_TRANSMIT | FI_RECV), -FI_EINVAL);
	assert_int_equal(fi_ep_alias(a.ep, &quiet, FI_TRANSMIT | FI_MULTI_RECV), -FI_EBADFLAGS);
	assert_int_equal(fi_ep_alias(again, &quiet, FI_TRANSMIT), 0);

	for (int i = 0; i < 3; i++)
		assert_int_equal(
			fi_trecv(b.ep, buf, 8, NULL, FI_ADDR_UNSPEC, 1, 0, &contexts[i]), 0);
	assert_int_equal(fi_tsend(a.ep, "a", 2, NULL, b.addr, 1, &contexts[10]), 0);
	assert_int_equal(fi_tsend(again, "b", 2, NULL, b.addr, 1, &contexts[11]), 0);
	assert_int_equal(fi_tsend(quiet, "c", 2, NULL, b.addr, 1, &contexts[12]), 0);
	for (int i = 0; i < 3; i++)
		expect(b.cq, &contexts[i]);
	expect(a.cq, &contexts[11]);
	expect_nothing(a.cq);

	assert_int_equal(fi_control(&quiet->fid, FI_GETOPSFLAG, &flags), 0);
	assert_int_equal(flags, 0);
	flags = FI_TRANSMIT;
	assert_int_equal(fi_control(&again->fid, FI_GETOPSFLAG, &flags), 0);
	assert_int_equal(flags, FI_COMPLETION);
	flags = FI_TRANSMIT | FI_COMPLETION;
	assert_int_equal(fi_control(&quiet->fid, FI_SETOPSFLAG, &flags), 0);
	flags = FI_TRANSMIT | FI_RECV;
	assert_int_equal(fi_control(&quiet->fid, FI_GETOPSFLAG, &flags), -FI_EINVAL);
	assert_int_equal(fi_trecv(b.ep, buf, 8, NULL, a.addr, 1, 0, &contexts[0]), 0);
	assert_int_equal(fi_tsend(quiet, "d", 2, NULL, b.addr, 1, &contexts[13]), 0);
	expect(b.cq, &contexts[0]);
	expect(a.cq, &contexts[13]);

	/* What is posted by one is cancelled by another. */
	assert_int_equal(fi_trecv(quiet, buf, 8, NULL, FI_ADDR_UNSPEC, 1, 0, &contexts[5]), 0);
	assert_int_equal(fi_cancel(&a.ep->fid, &contexts[5]), 0);
	expect_error(a.cq, &contexts[5], FI_ECANCELED);

	assert_int_equal(fi_close(&a.ep->fid), -FI_EBUSY);
	assert_int_equal(fi_close(&quiet->fid), 0);
	assert_int_equal(fi_close(&a.ep->fid), -FI_EBUSY);
	assert_int_equal(fi_close(&again->fid), 0);
	one_close(&a);
	one_close(&b);
}

/* Options */

static size_t option(struct fid_ep *ep, int name, int *ret)
{
	size_t value = 0, len = sizeof(value);

	*ret = fi_getopt(&ep->fid, FI_OPT_ENDPOINT, name, &value, &len);
	if (!*ret)
		assert_int_equal(len, sizeof(value));
	return value;
}

static void options_say_what_is_so(void **state)
{
	static const int none[] = { FI_OPT_SEND_BUF_SIZE,
				    FI_OPT_RECV_BUF_SIZE,
				    FI_OPT_FI_HMEM_P2P,
				    FI_OPT_XPU_TRIGGER,
				    FI_OPT_CUDA_API_PERMITTED,
				    -5,
				    1000 };
	static const int inject[] = { FI_OPT_INJECT_MSG_SIZE, FI_OPT_INJECT_TAGGED_SIZE };
	static const int most[] = { FI_OPT_MAX_MSG_SIZE, FI_OPT_MAX_TAGGED_SIZE };
	bool no = false, yes = true;
	size_t value = 5, len = 4;
	struct one a;
	int ret;

	one_make(&a, 0);
	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
		option(a.ep, none[i], &ret);
		assert_int_equal(ret, -FI_ENOPROTOOPT);
		assert_int_equal(
			fi_setopt(&a.ep->fid, FI_OPT_ENDPOINT, none[i], &value, sizeof(value)),
			-FI_ENOPROTOOPT);
	}
	for (int i = 0; i < 2; i++) {
		assert_int_equal(option(a.ep, most[i], &ret), info->ep_attr->max_msg_size);
		assert_int_equal(option(a.ep, inject[i], &ret), info->tx_attr->inject_size);
		value = info->tx_attr->inject_size + 1;
		assert_int_equal(fi_setopt(&a.ep->fid, FI_OPT_ENDPOINT, inject[i], &value,
					   sizeof(value)),
				 -FI_EINVAL);
		value = 100;
		assert_int_equal(fi_setopt(&a.ep->fid, FI_OPT_ENDPOINT, inject[i], &value,
					   sizeof(value)),
				 0);
		assert_int_equal(option(a.ep, inject[i], &ret), 100);
	}
	assert_int_equal(
		fi_getopt(&a.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &value, &len),
		-FI_ETOOSMALL);
	assert_int_equal(len, sizeof(size_t));
	assert_int_equal(fi_getopt(&a.ep->fid, 7, FI_OPT_MIN_MULTI_RECV, &value, &len),
			 -FI_ENOPROTOOPT);
	assert_int_equal(
		fi_setopt(&a.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &value, 3),
		-FI_EINVAL);
	value = 3;
	assert_int_equal(
		fi_setopt(&a.ep->fid, FI_OPT_ENDPOINT, FI_OPT_TX_SIZE, &value, sizeof(value)),
		0);
	assert_int_equal(option(a.ep, FI_OPT_TX_SIZE, &ret), 3);
	assert_int_equal(fi_setopt(&a.ep->fid, FI_OPT_ENDPOINT, FI_OPT_SHARED_MEMORY_PERMITTED,
				   &yes, sizeof(yes)),
			 0);
	ret = fi_setopt(&a.ep->fid, FI_OPT_ENDPOINT, FI_OPT_SHARED_MEMORY_PERMITTED, &no,
			sizeof(no));
	assert_int_equal(ret, strcmp(attr.provider, "shm") ? 0 : -FI_EOPNOTSUPP);
	assert_int_equal(fi_tx_size_left(a.ep), -FI_EOPBADSTATE);
	assert_int_equal(fi_enable(a.ep), 0);
	assert_int_equal(fi_tx_size_left(a.ep), 3);
	assert_true(fi_rx_size_left(a.ep) >= 256);
	one_close(&a);
}

/* Shared contexts */

static void srx_gives_each_message_to_the_queue_of_its_endpoint(void **state)
{
	struct one a, b, c;
	struct fid_ep *srx;
	char buf[4][16];
	struct fid_stx *stx;

	assert_int_equal(fi_srx_context(domain, info->rx_attr, &srx, NULL), 0);
	assert_int_equal(fi_stx_context(domain, info->tx_attr, &stx, NULL), 0);
	info->ep_attr->rx_ctx_cnt = info->ep_attr->tx_ctx_cnt = FI_SHARED_CONTEXT;
	one_make(&a, 0);
	one_make(&b, 0);
	info->ep_attr->rx_ctx_cnt = info->ep_attr->tx_ctx_cnt = 1;
	one_open(&c);
	assert_int_equal(fi_ep_bind(a.ep, &srx->fid, 0), 0);
	assert_int_equal(fi_ep_bind(a.ep, &srx->fid, 0), 0); /* again */
	assert_int_equal(fi_ep_bind(a.ep, &stx->fid, 0), 0);
	assert_int_equal(fi_ep_bind(b.ep, &srx->fid, 0), 0);
	assert_int_equal(fi_ep_bind(b.ep, &stx->fid, 0), 0);
	/* before anybody is enabled */
	assert_int_equal(
		fi_trecv(srx, buf[0], 16, NULL, FI_ADDR_UNSPEC, 0, UINT64_MAX, &contexts[0]), 0);
	assert_int_equal(fi_enable(a.ep), 0);
	assert_int_equal(fi_enable(b.ep), 0);
	a.addr = address_of(&a.ep->fid);
	b.addr = address_of(&b.ep->fid);
	assert_int_equal(fi_trecv(a.ep, buf[0], 16, NULL, FI_ADDR_UNSPEC, 1, 0, NULL),
			 -FI_ENOSYS);

	assert_int_equal(fi_tsend(c.ep, "for b", 6, NULL, b.addr, 1, &contexts[10]), 0);
	expect(b.cq, &contexts[0]);
	assert_int_equal(source, c.addr);
	assert_string_equal(buf[0], "for b");
	/* unexpected at one and the other, taken in the order of arrival */
	assert_int_equal(fi_send(c.ep, "for a", 6, NULL, a.addr, &contexts[11]), 0);
	expect(c.cq, &contexts[10]);
	expect(c.cq, &contexts[11]);
	expect_nothing(a.cq);
	assert_int_equal(fi_send(b.ep, "b to a", 7, NULL, a.addr, &contexts[12]), 0);
	expect(b.cq, &contexts[12]);
	expect_nothing(a.cq);
	assert_int_equal(fi_recv(srx, buf[1], 16, NULL, b.addr, &contexts[1]), 0);
	assert_int_equal(fi_recv(srx, buf[2], 16, NULL, FI_ADDR_UNSPEC, &contexts[2]), 0);
	expect(a.cq, &contexts[1]);
	assert_int_equal(source, b.addr);
	assert_string_equal(buf[1], "b to a");
	expect(a.cq, &contexts[2]);
	assert_string_equal(buf[2], "for a");
	/* what is nobody's goes to the first */
	assert_int_equal(fi_recv(srx, buf[1], 16, NULL, FI_ADDR_UNSPEC, &contexts[3]), 0);
	assert_int_equal(fi_cancel(&srx->fid, &contexts[3]), 0);
	expect_error(a.cq, &contexts[3], FI_ECANCELED);
	assert_int_equal(fi_recv(srx, buf[1], 16, NULL, 1000, &contexts[3]), -FI_EINVAL);
	one_close(&a);
	/* the others go on */
	assert_int_equal(fi_recv(srx, buf[1], 16, NULL, c.addr, &contexts[4]), 0);
	assert_int_equal(fi_inject(c.ep, "more", 5, b.addr), 0);
	expect(b.cq, &contexts[4]);
	assert_string_equal(buf[1], "more");
	one_close(&b);
	one_close(&c);
	assert_int_equal(fi_close(&srx->fid), 0);
	assert_int_equal(fi_close(&stx->fid), 0);
}

static void srx_may_come_to_an_endpoint_that_is_enabled(void **state)
{
	struct fid_ep *srx, *alias = NULL;
	struct one a, b;
	char buf[3][16];

	info->ep_attr->rx_ctx_cnt = FI_SHARED_CONTEXT;
	one_open(&a);
	info->ep_attr->rx_ctx_cnt = 1;
	one_open(&b);
	assert_int_equal(fi_srx_context(domain, info->rx_attr, &srx, NULL), 0);
	assert_int_equal(fi_ep_alias(a.ep, &alias, FI_RECV), 0);
	/* a receive of its own stays its own */
	assert_int_equal(fi_trecv(a.ep, buf[0], 16, NULL, FI_ADDR_UNSPEC, 7, 0, &contexts[0]),
			 0);
	assert_int_equal(fi_ep_bind(a.ep, &srx->fid, 0), -FI_EOPBADSTATE);
	assert_int_equal(fi_cancel(&a.ep->fid, &contexts[0]), 0);
	expect_error(a.cq, &contexts[0], FI_ECANCELED);
	/* messages wait: for a receive that is posted already, and for those that come */
	for (int i = 0; i < 3; i++) {
		buf[0][0] = (char)('0' + i);
		assert_int_equal(fi_tinject(b.ep, buf[0], 1, a.addr, (uint64_t)i), 0);
	}
	expect_nothing(a.cq);
	assert_int_equal(fi_trecv(srx, buf[1], 16, NULL, b.addr, 1, 0, &contexts[1]), 0);
	assert_int_equal(fi_ep_bind(a.ep, &srx->fid, 0), 0);
	expect(a.cq, &contexts[1]);
	assert_int_equal(buf[1][0], '1');
	for (int i = 0; i < 3; i += 2) {
		assert_int_equal(fi_trecv(srx, buf[i], 16, NULL, FI_ADDR_UNSPEC, 0, UINT64_MAX,
					  &contexts[i]),
				 0);
		expect(a.cq, &contexts[i]);
		assert_int_equal(source, b.addr);
		assert_int_equal(buf[i][0], '0' + i);
	}
	assert_int_equal(fi_trecv(a.ep, buf[0], 16, NULL, FI_ADDR_UNSPEC, 1, 0, NULL),
			 -FI_ENOSYS);
	assert_int_equal(fi_trecv(alias, buf[0], 16, NULL, FI_ADDR_UNSPEC, 1, 0, NULL),
			 -FI_ENOSYS);
	assert_int_equal(fi_close(&alias->fid), 0);
	one_close(&a);
	one_close(&b);
	assert_int_equal(fi_close(&srx->fid), 0);
}

static void srx_learns_the_name_of_who_was_unknown(void **state)
{
	struct fi_av_attr av_attr = { .type = FI_AV_TABLE };
	struct fid_av *other;
	struct one a, b;
	struct fid_ep *srx;
	char name[NAME_MAX], buf[16];
	size_t len = sizeof(name);
	fi_addr_t to_a, known;

	assert_int_equal(fi_srx_context(domain, NULL, &srx, NULL), 0);
	one_make(&a, 0);
	assert_int_equal(fi_ep_bind(a.ep, &srx->fid, 0), 0);
	assert_int_equal(fi_enable(a.ep), 0);
	/* b knows a, and a does not know b */
	assert_int_equal(fi_av_open(domain, &av_attr, &other, NULL), 0);
	b.cq = cq_open();
	assert_int_equal(fi_endpoint(domain, info, &b.ep, NULL), 0);
	assert_int_equal(fi_ep_bind(b.ep, &other->fid, 0), 0);
	assert_int_equal(fi_ep_bind(b.ep, &b.cq->fid, FI_TRANSMIT | FI_RECV), 0);
	assert_int_equal(fi_enable(b.ep), 0);
	assert_int_equal(fi_getname(&a.ep->fid, name, &len), 0);
	assert_int_equal(fi_av_insert(other, name, 1, &to_a, 0, NULL), 1);
	for (int i = 0; i < 3; i++)
		assert_int_equal(fi_tsend(b.ep, "stranger", 9, NULL, to_a, (uint64_t)i,
					  &contexts[10 + i]),
				 0);
	for (int i = 0; i < 3; i++)
		expect(b.cq, &contexts[10 + i]);
	expect_nothing(a.cq);
	known = address_of(&b.ep->fid);
	assert_int_equal(fi_trecv(srx, buf, 16, NULL, known, 1, 0, &contexts[1]), 0);
	expect(a.cq, &contexts[1]);
	assert_int_equal(source, known);
	/* and is a stranger again */
	assert_int_equal(fi_av_remove(av, &known, 1, 0), 0);
	assert_int_equal(
		fi_trecv(srx, buf, 16, NULL, FI_ADDR_UNSPEC, 0, UINT64_MAX, &contexts[2]), 0);
	expect(a.cq, &contexts[2]);
	assert_int_equal(entry.tag, 0);
	assert_int_equal(source, FI_ADDR_NOTAVAIL);
	one_close(&b);
	assert_int_equal(fi_close(&other->fid), 0);
	one_close(&a);
	assert_int_equal(fi_close(&srx->fid), 0);
}

static void srx_buffer_takes_messages_of_several_endpoints(void **state)
{
	static char buf[2 * BIG], from[BIG];
	struct iovec iov = { buf, sizeof(buf) };
	struct fi_msg msg = {
		.msg_iov = &iov, .iov_count = 1, .addr = FI_ADDR_UNSPEC, .context = &contexts[0]
	};
	size_t min = BIG;
	struct one a, b, c;
	struct fid_ep *srx;

	memset(from, 0x77, sizeof(from));
	assert_int_equal(fi_srx_context(domain, NULL, &srx, NULL), 0);
	assert_int_equal(
		fi_setopt(&srx->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &min, sizeof(min)),
		0);
	one_make(&a, 0);
	one_make(&b, 0);
	one_open(&c);
	assert_int_equal(fi_ep_bind(a.ep, &srx->fid, 0), 0);
	assert_int_equal(fi_ep_bind(b.ep, &srx->fid, 0), 0);
	assert_int_equal(fi_enable(a.ep), 0);
	assert_int_equal(fi_enable(b.ep), 0);
	assert_int_equal(fi_recvmsg(srx, &msg, FI_MULTI_RECV), 0);
	assert_int_equal(fi_send(c.ep, from, 1000, NULL, address_of(&a.ep->fid), NULL), 0);
	expect(a.cq, &contexts[0]);
	assert_int_equal(entry.flags, FI_RECV | FI_MSG);
	assert_int_equal(fi_send(c.ep, from, BIG, NULL, address_of(&b.ep->fid), NULL), 0);
	expect(b.cq, &contexts[0]);
	assert_int_equal(entry.flags, FI_RECV | FI_MSG | FI_MULTI_RECV);
	assert_ptr_equal(entry.buf, buf + 1000);
	assert_memory_equal(buf + 1000, from, BIG);
	one_close(&a);
	one_close(&b);
	one_close(&c);
	assert_int_equal(fi_close(&srx->fid), 0);
}

/* Scalable endpoints */

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
	assert_int_equal(fi_tinject(tx, &out, 8, fi_rx_addr(self, CTX_CNT - 1, BITS), 1), 0);
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
	for (int i = 0; i < CTX_CNT; i++) {
		sep_ctx_open(&a, i);
		sep_ctx_open(&b, i);
	}
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
	assert_int_equal(fi_inject(b.tx[3], "first", 6, a.addr), 0);
	assert_int_equal(fi_recv(a.rx[0], to, BIG, NULL, FI_ADDR_UNSPEC, &contexts[5]), 0);
	expect(a.rx_cq[0], &contexts[5]);
	sep_close(&a);
	sep_close(&b);
}

static void messages_wait_for_a_context_that_is_not_open(void **state)
{
	struct scalable a, b;
	char buf[16];

	sep_open(&a);
	sep_open(&b);
	sep_enable(&a);
	sep_enable(&b);
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

	sep_open(&a);
	sep_open(&b);
	sep_enable(&a);
	sep_enable(&b);
	for (int i = 0; i < CTX_CNT; i++) {
		sep_ctx_open(&a, i);
		sep_ctx_open(&b, i);
	}
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
	assert_int_equal(fi_tinject(a.tx[1], "again", 6, fi_rx_addr(b.addr, 1, BITS), 5), 0);
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
	sep_open(&a);
	sep_open(&b);
	sep_enable(&a);
	sep_enable(&b);
	for (int i = 0; i < CTX_CNT; i++) {
		sep_ctx_open(&a, i);
		sep_ctx_open(&b, i);
	}
	assert_int_equal(
		fi_mr_reg(domain, &word, sizeof(word), FI_REMOTE_READ, 0, 7, 0, &mr, NULL), 0);
	assert_int_equal(fi_recv(b.rx[0], buf, 16, NULL, FI_ADDR_UNSPEC, &contexts[0]), 0);
	assert_int_equal(fi_inject(a.tx[1], "hello", 6, b.addr), 0);
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

	sep_open(&a);
	sep_open(&b);
	sep_enable(&a);
	sep_enable(&b);
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
	assert_int_equal(fi_send(alias, "counted", 8, NULL, fi_rx_addr(b.addr, 2, BITS), NULL),
			 0);
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

	sep_open(&a);
	sep_open(&b);
	sep_enable(&a);
	sep_enable(&b);
	for (int i = 0; i < CTX_CNT; i++) {
		sep_ctx_open(&a, i);
		sep_ctx_open(&b, i);
	}
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

/* Attributes */

static void attributes_beyond_what_is_offered_are_refused(void **state)
{
	struct fid_ep *ep;
	struct fid_stx *stx;
	struct fi_rx_attr rx = *info->rx_attr;
	struct fi_tx_attr tx = *info->tx_attr;
	uint64_t caps = info->caps;

	info->caps |= FI_MULTICAST;
	assert_int_equal(fi_endpoint(domain, info, &ep, NULL), -FI_EINVAL);
	info->caps = caps;
	info->tx_attr->inject_size = 1u << 20;
	assert_int_equal(fi_endpoint(domain, info, &ep, NULL), -FI_EINVAL);
	*info->tx_attr = tx;
	info->tx_attr->op_flags = FI_MULTI_RECV;
	assert_int_equal(fi_endpoint(domain, info, &ep, NULL), -FI_EINVAL);
	assert_int_equal(fi_stx_context(domain, info->tx_attr, &stx, NULL), -FI_EINVAL);
	*info->tx_attr = tx;
	info->rx_attr->op_flags = FI_FENCE;
	assert_int_equal(fi_endpoint(domain, info, &ep, NULL), -FI_EINVAL);
	assert_int_equal(fi_srx_context(domain, info->rx_attr, &ep, NULL), -FI_EINVAL);
	*info->rx_attr = rx;
	info->rx_attr->iov_limit = 1000;
	assert_int_equal(fi_endpoint(domain, info, &ep, NULL), -FI_EINVAL);
	*info->rx_attr = rx;
	info->ep_attr->rx_ctx_cnt = 257;
	assert_int_equal(fi_scalable_ep(domain, info, &ep, NULL), -FI_EINVAL);
}

int main(int argc, char **argv)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(alias_has_flags_of_its_own),
		TEST(options_say_what_is_so),
		TEST(srx_gives_each_message_to_the_queue_of_its_endpoint),
		TEST(srx_may_come_to_an_endpoint_that_is_enabled),
		TEST(srx_learns_the_name_of_who_was_unknown),
		TEST(srx_buffer_takes_messages_of_several_endpoints),
		TEST(what_is_refused_reaches_no_context),
		TEST(contexts_bring_up_their_endpoint),
		TEST(contexts_come_after_their_endpoint_and_queues_after_them),
		TEST(every_context_reaches_every_other),
		TEST(messages_wait_for_a_context_that_is_not_open),
		TEST(closed_context_leaves_memory_alone),
		TEST(closed_context_has_what_it_fetches),
		TEST(counters_and_aliases_of_contexts_work),
		TEST(threads_have_a_context_each),
		TEST(attributes_beyond_what_is_offered_are_refused),
	};

	if (argc != 2) {
		fprintf(stderr, "usage: %s PROVIDER\n", argv[0]);
		return 2;
	}
	attr.provider = argv[1];
	return cmocka_run_group_tests_name(argv[1], tests, NULL, NULL);
}
