/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What is known to be wrong in other libraries, against libfabric.so.1 and each provider: matching
 * order, unexpected messages, cancel, getinfo. Two endpoints with a domain each, in one process,
 * on its main thread.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>

#define ADDR_MAX 64
#define DEADLINE_S 60
#define FLOOD 100000

struct side {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;
	fi_addr_t peer;
	char name[ADDR_MAX];
	uint64_t sent;
};

static const char *provider;
static struct side a, b;

static void side_open(struct side *s)
{
	struct fi_info *hints = fi_allocinfo();
	struct fi_av_attr av_attr = { .type = FI_AV_MAP };
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_TAGGED };
	size_t len = sizeof(s->name);

	memset(s, 0, sizeof(*s));
	hints->fabric_attr->prov_name = strdup(provider);
	hints->ep_attr->type = FI_EP_RDM;
	hints->caps = FI_TAGGED | FI_DIRECTED_RECV | FI_SOURCE;
	hints->tx_attr->size = 64;
	assert_int_equal(fi_getinfo(FI_VERSION(1, 18), NULL, NULL, 0, hints, &s->info), 0);
	fi_freeinfo(hints);
	assert_int_equal(s->info->tx_attr->size, 64);
	assert_int_equal(fi_fabric(s->info->fabric_attr, &s->fabric, NULL), 0);
	assert_int_equal(fi_domain(s->fabric, s->info, &s->domain, NULL), 0);
	assert_int_equal(fi_av_open(s->domain, &av_attr, &s->av, NULL), 0);
	assert_int_equal(fi_cq_open(s->domain, &cq_attr, &s->cq, NULL), 0);
	assert_int_equal(fi_endpoint(s->domain, s->info, &s->ep, NULL), 0);
	assert_int_equal(fi_ep_bind(s->ep, &s->av->fid, 0), 0);
	assert_int_equal(fi_ep_bind(s->ep, &s->cq->fid, FI_TRANSMIT | FI_RECV), 0);
	assert_int_equal(fi_enable(s->ep), 0);
	assert_int_equal(fi_getname(&s->ep->fid, s->name, &len), 0);
}

static void side_close(struct side *s)
{
	assert_int_equal(fi_close(&s->ep->fid), 0);
	assert_int_equal(fi_close(&s->cq->fid), 0);
	assert_int_equal(fi_close(&s->av->fid), 0);
	assert_int_equal(fi_close(&s->domain->fid), 0);
	assert_int_equal(fi_close(&s->fabric->fid), 0);
	fi_freeinfo(s->info);
}

static int pair_open(void **state)
{
	side_open(&a);
	side_open(&b);
	assert_int_equal(fi_av_insert(a.av, b.name, 1, &a.peer, 0, NULL), 1);
	assert_int_equal(fi_av_insert(b.av, a.name, 1, &b.peer, 0, NULL), 1);
	return 0;
}

static int pair_close(void **state)
{
	side_close(&a);
	side_close(&b);
	return 0;
}

/* Progress on both sides: sends complete on a, receives on b. */
static ssize_t turn(struct fi_cq_tagged_entry *entry)
{
	struct fi_cq_tagged_entry sent;

	if (fi_cq_read(a.cq, &sent, 1) == 1)
		a.sent++;
	return fi_cq_read(b.cq, entry, 1);
}

static void receive(struct fi_cq_tagged_entry *entry)
{
	time_t end = time(NULL) + DEADLINE_S;
	ssize_t ret;

	while ((ret = turn(entry)) == -FI_EAGAIN)
		assert_true(time(NULL) < end);
	assert_int_equal(ret, 1);
}

static void send_one(const void *buf, size_t len, uint64_t tag)
{
	time_t end = time(NULL) + DEADLINE_S;
	struct fi_cq_tagged_entry entry;
	ssize_t ret;

	while ((ret = fi_tsend(a.ep, buf, len, NULL, a.peer, tag, NULL)) == -FI_EAGAIN) {
		assert_int_equal(turn(&entry), -FI_EAGAIN);
		assert_true(time(NULL) < end);
	}
	assert_int_equal(ret, 0);
}

static void a_wildcard_posted_first_gets_the_message(void **state)
{
	struct fi_cq_tagged_entry entry;
	uint64_t out[2] = { 1, 2 }, any = 0, directed = 0;

	assert_int_equal(fi_trecv(b.ep, &any, 8, NULL, FI_ADDR_UNSPEC, 0, UINT64_MAX, &any), 0);
	assert_int_equal(fi_trecv(b.ep, &directed, 8, NULL, b.peer, 7, 0, &directed), 0);
	send_one(&out[0], 8, 7);
	send_one(&out[1], 8, 7);
	receive(&entry);
	assert_ptr_equal(entry.op_context, &any);
	receive(&entry);
	assert_ptr_equal(entry.op_context, &directed);
	assert_int_equal(any, 1);
	assert_int_equal(directed, 2);
}

/* Messages nobody waits for, and then the one that somebody does. */
static void flood(size_t len, size_t cnt)
{
	static char out[1024], in[1024];
	struct fi_cq_tagged_entry entry;

	memset(out, 'u', sizeof(out));
	assert_int_equal(fi_trecv(b.ep, in, len, NULL, b.peer, 1, 0, in), 0);
	for (size_t i = 0; i < cnt; i++)
		send_one(out, len, 2);
	send_one(out, len, 1);
	receive(&entry);
	assert_ptr_equal(entry.op_context, in);
	assert_int_equal(entry.tag, 1);
	for (size_t i = 0; i < cnt; i++) {
		assert_int_equal(fi_trecv(b.ep, in, len, NULL, FI_ADDR_UNSPEC, 2, 0, in), 0);
		receive(&entry);
		assert_int_equal(entry.len, len);
	}
	while (a.sent < cnt + 1)
		assert_int_equal(turn(&entry), -FI_EAGAIN);
}

static void unexpected_messages_do_not_stop_the_one_that_matches(void **state)
{
	flood(8, FLOOD);
}

static void unexpected_payload_beyond_the_budget_does_not_either(void **state)
{
	flood(600, FLOOD / 10);
}

static void cancelled(void *context)
{
	struct fi_cq_err_entry err = { 0 };
	struct fi_cq_tagged_entry entry;

	assert_int_equal(fi_cancel(&b.ep->fid, context), 0);
	assert_int_equal(fi_cq_read(b.cq, &entry, 1), -FI_EAVAIL);
	assert_int_equal(fi_cq_readerr(b.cq, &err, 0), 1);
	assert_int_equal(err.err, FI_ECANCELED);
	assert_ptr_equal(err.op_context, context);
	assert_int_equal(fi_cancel(&b.ep->fid, context), -FI_ENOENT);
}

static void cancel_ends_a_receive_once(void **state)
{
	struct fi_cq_tagged_entry entry;
	uint64_t out = 5, in[3] = { 0 };

	assert_int_equal(fi_trecv(b.ep, &in[0], 8, NULL, b.peer, 3, 0, &in[0]), 0);
	assert_int_equal(fi_trecv(b.ep, &in[1], 8, NULL, FI_ADDR_UNSPEC, 3, 1, &in[1]), 0);
	assert_int_equal(fi_trecv(b.ep, &in[2], 8, NULL, b.peer, 3, 0, &in[2]), 0);
	cancelled(&in[0]);
	cancelled(&in[1]);
	send_one(&out, 8, 3);
	receive(&entry);
	assert_ptr_equal(entry.op_context, &in[2]);
	assert_int_equal(fi_cancel(&b.ep->fid, &in[2]), -FI_ENOENT);
	assert_int_equal(in[0] | in[1], 0);
}

static void an_absent_provider_is_no_data(void **state)
{
	struct fi_info *hints = fi_allocinfo(), *info = NULL;

	hints->fabric_attr->prov_name = strdup("nobody");
	assert_int_equal(fi_getinfo(FI_VERSION(1, 18), NULL, NULL, 0, hints, &info), -FI_ENODATA);
	assert_null(info);
	fi_freeinfo(hints);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_wildcard_posted_first_gets_the_message, pair_open, pair_close),
		cmocka_unit_test_setup_teardown(unexpected_messages_do_not_stop_the_one_that_matches, pair_open,
						pair_close),
		cmocka_unit_test_setup_teardown(unexpected_payload_beyond_the_budget_does_not_either, pair_open,
						pair_close),
		cmocka_unit_test_setup_teardown(cancel_ends_a_receive_once, pair_open, pair_close),
		cmocka_unit_test(an_absent_provider_is_no_data),
	};

	provider = argc > 1 ? argv[1] : "link";
	setenv("FI_LINK_RX_BUDGET", "0", 1);
	setenv("FI_SHM_RX_BUDGET", "0", 1);
	setenv("FI_TCP_RX_BUDGET", "0", 1);
	return cmocka_run_group_tests_name(provider, tests, NULL, NULL);
}
