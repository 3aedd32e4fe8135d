/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Aliases, options and shared contexts, over the real library: contexts_test PROVIDER. One thread,
 * one domain.
 */
#include <rdma/fi_rma.h>
#include "one_domain.h"

#define BIG 300000u

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

/* Messages and accesses that wait are bounded each: of both together there may be more than there are places. */
static void places_that_are_left_are_no_error(void **state)
{
	const uint64_t caps = info->caps;
	static uint64_t word;
	struct one a, b;

	info->caps |= FI_RMA;
	one_open(&a);
	one_open(&b);
	info->caps = caps;
	while (!fi_send(a.ep, &word, 8, NULL, b.addr, &contexts[0]))
		;
	for (int i = 0; i < 4; i++)
		assert_int_equal(fi_write(a.ep, &word, 8, NULL, b.addr, 0, 1, &contexts[1]), 0);
	assert_true(fi_tx_size_left(a.ep) >= 0);
	one_close(&a);
	one_close(&b);
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
	/* before any is enabled */
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
	/* what is for no context goes to the first */
	assert_int_equal(fi_recv(srx, buf[1], 16, NULL, FI_ADDR_UNSPEC, &contexts[3]), 0);
	assert_int_equal(fi_cancel(&srx->fid, &contexts[3]), 0);
	expect_error(a.cq, &contexts[3], FI_ECANCELED);
	assert_int_equal(fi_recv(srx, buf[1], 16, NULL, 1000, &contexts[3]), -FI_EINVAL);
	one_close(&a);
	/* the others go on */
	assert_int_equal(fi_recv(srx, buf[1], 16, NULL, c.addr, &contexts[4]), 0);
	END_TAKEN(fi_inject(c.ep, "more", 5, b.addr), );
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
		END_TAKEN(fi_tinject(b.ep, buf[0], 1, a.addr, (uint64_t)i), );
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
	/* b has the address of a, and a does not have that of b */
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
	const struct CMUnitTest tests[] = {
		ONE_DOMAIN_TEST(alias_has_flags_of_its_own),
		ONE_DOMAIN_TEST(options_say_what_is_so),
		ONE_DOMAIN_TEST(places_that_are_left_are_no_error),
		ONE_DOMAIN_TEST(srx_gives_each_message_to_the_queue_of_its_endpoint),
		ONE_DOMAIN_TEST(srx_may_come_to_an_endpoint_that_is_enabled),
		ONE_DOMAIN_TEST(srx_learns_the_name_of_who_was_unknown),
		ONE_DOMAIN_TEST(srx_buffer_takes_messages_of_several_endpoints),
		ONE_DOMAIN_TEST(attributes_beyond_what_is_offered_are_refused),
	};

	if (argc != 2) {
		fprintf(stderr, "usage: %s PROVIDER\n", argv[0]);
		return 2;
	}
	attr.provider = argv[1];
	return cmocka_run_group_tests_name(argv[1], tests, NULL, NULL);
}
