/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Endpoints that share a domain; one_domain.h has the contract.
 */
#include "one_domain.h"

struct end_attr attr = { .no_cntr = true };
struct fi_info *info;
struct fid_fabric *fabric;
struct fid_domain *domain;
struct fid_av *av;
struct fi_context2 contexts[64];
struct fi_cq_tagged_entry entry;
fi_addr_t source;

int one_domain_setup(void **state)
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

int one_domain_teardown(void **state)
{
	assert_int_equal(fi_close(&av->fid), 0);
	assert_int_equal(fi_close(&domain->fid), 0);
	assert_int_equal(fi_close(&fabric->fid), 0);
	fi_freeinfo(info);
	return 0;
}

struct fid_cq *cq_open(void)
{
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_TAGGED };
	struct fid_cq *cq;

	assert_int_equal(fi_cq_open(domain, &cq_attr, &cq, NULL), 0);
	return cq;
}

fi_addr_t address_of(struct fid *fid)
{
	char name[NAME_MAX];
	size_t len = sizeof(name);
	fi_addr_t addr;

	assert_int_equal(fi_getname(fid, name, &len), 0);
	assert_int_equal(fi_av_insert(av, name, 1, &addr, 0, NULL), 1);
	return addr;
}

void one_make(struct one *e, uint64_t flags)
{
	e->cq = cq_open();
	assert_int_equal(fi_endpoint(domain, info, &e->ep, e), 0);
	assert_int_equal(fi_ep_bind(e->ep, &av->fid, 0), 0);
	assert_int_equal(fi_ep_bind(e->ep, &e->cq->fid, FI_TRANSMIT | FI_RECV | flags), 0);
}

void one_open(struct one *e)
{
	one_make(e, 0);
	assert_int_equal(fi_enable(e->ep), 0);
	e->addr = address_of(&e->ep->fid);
}

void one_close(struct one *e)
{
	assert_int_equal(fi_close(&e->ep->fid), 0);
	assert_int_equal(fi_close(&e->cq->fid), 0);
}

bool take(struct fid_cq *cq)
{
	ssize_t ret = fi_cq_readfrom(cq, &entry, 1, &source);

	assert_true(ret == 1 || ret == -FI_EAGAIN);
	return ret == 1;
}

void expect(struct fid_cq *cq, void *context)
{
	END_UNTIL(take(cq), );
	assert_ptr_equal(entry.op_context, context);
}

void expect_error(struct fid_cq *cq, void *context, int err)
{
	struct fi_cq_err_entry e = { 0 };

	END_UNTIL(fi_cq_readerr(cq, &e, 0) == 1, );
	assert_ptr_equal(e.op_context, context);
	assert_int_equal(e.err, err);
}

void expect_nothing(struct fid_cq *cq)
{
	for (int i = 0; i < 300; i++)
		assert_false(take(cq));
}
