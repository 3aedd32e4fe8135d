/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The calls of fabrics and domains: each slot of each of their tables works, or is refused with
 * -FI_ENOSYS. See surface.h.
 *
 * usage: surface_objects_test PROVIDER
 */
#include "surface.h"

static struct fid_domain *domain_of(const struct subject *u)
{
	return u->s->domain;
}

/* Fabrics */

static ssize_t call_domain(struct subject *u)
{
	struct fid_domain *domain = NULL;
	int ret = fi_domain(u->s->fabric, u->s->info, &domain, NULL);

	return OPENED(u, ret, domain, FI_CLASS_DOMAIN);
}

/* Returns an offer of connected endpoints by the same fabric, or NULL. */
static struct fi_info *connected_info(const struct surface *s)
{
	struct fi_info *hints = fi_dupinfo(NULL), *info = NULL;

	assert_non_null(hints);
	hints->mode = s->info->mode;
	hints->domain_attr->mr_mode = s->info->domain_attr->mr_mode;
	hints->ep_attr->type = FI_EP_MSG;
	hints->fabric_attr->prov_name = strdup(s->info->fabric_attr->prov_name);
	if (fi_getinfo(SURFACE_VERSION, NULL, NULL, 0, hints, &info))
		info = NULL;
	fi_freeinfo(hints);
	return info;
}

static ssize_t call_passive(struct subject *u)
{
	struct fi_info *info = connected_info(u->s);
	struct fid_pep *pep = NULL;
	int ret = fi_passive_ep(u->s->fabric, info ? info : u->s->info, &pep, NULL);

	fi_freeinfo(info);
	return OPENED(u, ret, pep, FI_CLASS_PEP);
}

static ssize_t call_eq_open(struct subject *u)
{
	struct fi_eq_attr attr = { .wait_obj = FI_WAIT_FD };
	struct fid_eq *eq = NULL;
	int ret = fi_eq_open(u->s->fabric, &attr, &eq, NULL);

	return OPENED(u, ret, eq, FI_CLASS_EQ);
}

static ssize_t call_wait_open(struct subject *u)
{
	struct fi_wait_attr attr = { .wait_obj = FI_WAIT_FD };
	struct fid_wait *wait = NULL;
	int ret = fi_wait_open(u->s->fabric, &attr, &wait);

	return OPENED(u, ret, wait, FI_CLASS_WAIT);
}

/* An empty queue may be slept on; one that has something may not. */
static ssize_t call_trywait(struct subject *u)
{
	struct fid *fids[] = { &u->s->eq->fid };
	int ret = fi_trywait(u->s->fabric, fids, 1);
	uint32_t event;

	if (ret)
		return ret;
	assert_int_equal(fi_eq_write(u->s->eq, FI_NOTIFY, "x", 1, 0), 1);
	assert_int_equal(fi_trywait(u->s->fabric, fids, 1), -FI_EAGAIN);
	assert_int_equal(fi_eq_read(u->s->eq, &event, u->in, 1, 0), 1);
	return 0;
}

static ssize_t call_domain2(struct subject *u)
{
	struct fid_domain *domain = NULL;
	int ret = u->s->fabric->ops->domain2(u->s->fabric, u->s->info, &domain, 0, NULL);

	return OPENED(u, ret, domain, FI_CLASS_DOMAIN);
}

static const struct slot fabric_slots[] = {
	SLOT(fi_ops_fabric, domain, 0, call_domain, NULL),
	SLOT(fi_ops_fabric, passive_ep, DOES_CONNECT, call_passive, NULL),
	SLOT(fi_ops_fabric, eq_open, 0, call_eq_open, NULL),
	SLOT(fi_ops_fabric, wait_open, 0, call_wait_open, NULL),
	SLOT(fi_ops_fabric, trywait, 0, call_trywait, NULL),
	SLOT(fi_ops_fabric, domain2, 0, call_domain2, NULL),
};
ALL_SLOTS(fi_ops_fabric, fabric_slots);

/* Domains */

static ssize_t call_av_open(struct subject *u)
{
	struct fid_av *av = NULL;
	int ret = 0;

	for (int type = FI_AV_UNSPEC; !ret && type <= FI_AV_TABLE; type++) {
		struct fi_av_attr attr = { .type = (enum fi_av_type)type };

		ret = fi_av_open(domain_of(u), &attr, &av, NULL);
		ret = (int)OPENED(u, ret, av, FI_CLASS_AV);
		assert_true(attr.type != FI_AV_UNSPEC);
	}
	return ret;
}

static ssize_t call_cq_open(struct subject *u)
{
	struct fid_cq *cq = NULL;
	int ret = 0;

	for (int format = FI_CQ_FORMAT_UNSPEC; !ret && format <= FI_CQ_FORMAT_TAGGED; format++) {
		struct fi_cq_attr attr = { .format = (enum fi_cq_format)format };

		ret = fi_cq_open(domain_of(u), &attr, &cq, NULL);
		ret = (int)OPENED(u, ret, cq, FI_CLASS_CQ);
	}
	return ret;
}

static ssize_t call_endpoint(struct subject *u)
{
	struct fid_ep *ep = NULL;
	int ret = fi_endpoint(domain_of(u), u->s->info, &ep, NULL);

	return OPENED(u, ret, ep, FI_CLASS_EP);
}

static ssize_t call_scalable(struct subject *u)
{
	struct fid_ep *ep = NULL;
	int ret = fi_scalable_ep(domain_of(u), u->s->info, &ep, NULL);

	return OPENED(u, ret, ep, FI_CLASS_SEP);
}

static ssize_t call_cntr_open(struct subject *u)
{
	struct fid_cntr *cntr = NULL;
	int ret = fi_cntr_open(domain_of(u), NULL, &cntr, NULL);

	return OPENED(u, ret, cntr, FI_CLASS_CNTR);
}

static ssize_t call_poll_open(struct subject *u)
{
	struct fid_poll *poll = NULL;
	int ret = fi_poll_open(domain_of(u), NULL, &poll);

	return OPENED(u, ret, poll, FI_CLASS_POLL);
}

static ssize_t call_stx(struct subject *u)
{
	struct fid_stx *stx = NULL;
	int ret = fi_stx_context(domain_of(u), u->s->info->tx_attr, &stx, NULL);

	return OPENED(u, ret, stx, FI_CLASS_STX_CTX);
}

static ssize_t call_srx(struct subject *u)
{
	struct fid_ep *srx = NULL;
	int ret = fi_srx_context(domain_of(u), u->s->info->rx_attr, &srx, NULL);

	return OPENED(u, ret, srx, FI_CLASS_SRX_CTX);
}

static ssize_t call_query_atomic(struct subject *u)
{
	struct fi_atomic_attr attr = { 0 };
	int ret = fi_query_atomic(domain_of(u), FI_UINT32, FI_SUM, &attr, 0);

	if (!ret)
		assert_true(attr.size == sizeof(uint32_t) && attr.count);
	return ret;
}

static ssize_t call_query_collective(struct subject *u)
{
	int ret = 0;

	for (int coll = FI_BARRIER; !ret && coll <= FI_GATHER; coll++) {
		struct fi_collective_attr attr = { .op = FI_SUM, .datatype = FI_UINT32 };

		ret = fi_query_collective(domain_of(u), (enum fi_collective_op)coll, &attr, 0);
		assert_true(attr.max_members > 1);
	}
	return ret;
}

static ssize_t call_endpoint2(struct subject *u)
{
	struct fid_ep *ep = NULL;
	int ret = domain_of(u)->ops->endpoint2(domain_of(u), u->s->info, &ep, 0, NULL);

	return OPENED(u, ret, ep, FI_CLASS_EP);
}

static ssize_t call_xpu(struct subject *u)
{
	struct fid_xpu_ctx *ctx;

	return domain_of(u)->ops->xpu_ctx(domain_of(u), NULL, &ctx, NULL);
}

static const struct slot domain_slots[] = {
	SLOT(fi_ops_domain, av_open, 0, call_av_open, NULL),
	SLOT(fi_ops_domain, cq_open, 0, call_cq_open, NULL),
	SLOT(fi_ops_domain, endpoint, 0, call_endpoint, NULL),
	SLOT(fi_ops_domain, scalable_ep, 0, call_scalable, NULL),
	SLOT(fi_ops_domain, cntr_open, 0, call_cntr_open, NULL),
	SLOT(fi_ops_domain, poll_open, 0, call_poll_open, NULL),
	SLOT(fi_ops_domain, stx_ctx, 0, call_stx, NULL),
	SLOT(fi_ops_domain, srx_ctx, 0, call_srx, NULL),
	SLOT(fi_ops_domain, query_atomic, 0, call_query_atomic, NULL),
	SLOT(fi_ops_domain, query_collective, 0, call_query_collective, NULL),
	SLOT(fi_ops_domain, endpoint2, 0, call_endpoint2, NULL),
	SLOT(fi_ops_domain, xpu_ctx, DOES_NOT, call_xpu, NULL),
};
ALL_SLOTS(fi_ops_domain, domain_slots);

/* Memory */

#define MR_KEY 100u

static uint64_t areas[2][4];

/* A peer writes to the region, one word into it. */
static ssize_t reached(struct subject *u, ssize_t ret, struct fid_mr *mr)
{
	if (ret)
		return ret;
	areas[0][1] = 0;
	assert_int_equal(fi_mr_key(mr), MR_KEY);
	assert_int_equal(fi_write(u->s->far.ep, u->out, 8, NULL, u->s->near.addr, 8, MR_KEY,
				  &u->context),
			 0);
	surface_done(u->s->far.cq, &u->context);
	END_UNTIL(end_holds(&areas[0][1], u->out, 8), fi_cq_read(u->s->near.cq, NULL, 0));
	return fi_close(&mr->fid);
}

static ssize_t call_reg(struct subject *u)
{
	struct fid_mr *mr = NULL;
	int ret = fi_mr_reg(domain_of(u), areas[0], 32, FI_REMOTE_WRITE, 0, MR_KEY, 0, &mr,
			    NULL);

	return reached(u, ret, mr);
}

static ssize_t call_regv(struct subject *u)
{
	struct iovec iov[] = { { areas[0], 32 }, { areas[1], 32 } };
	struct fid_mr *mr = NULL;
	int ret = fi_mr_regv(domain_of(u), iov, 2, FI_REMOTE_WRITE, 0, MR_KEY, 0, &mr, NULL);

	return reached(u, ret, mr);
}

static ssize_t call_regattr(struct subject *u)
{
	struct iovec iov = { areas[0], 32 };
	struct fi_mr_attr attr = { .mr_iov = &iov,
				   .iov_count = 1,
				   .access = FI_REMOTE_WRITE,
				   .requested_key = MR_KEY,
				   .iface = FI_HMEM_SYSTEM };
	struct fid_mr *mr = NULL;
	int ret = fi_mr_regattr(domain_of(u), &attr, 0, &mr);

	return reached(u, ret, mr);
}

static const struct slot mr_slots[] = {
	SLOT(fi_ops_mr, reg, 0, call_reg, NULL),
	SLOT(fi_ops_mr, regv, 0, call_regv, NULL),
	SLOT(fi_ops_mr, regattr, 0, call_regattr, NULL),
};
ALL_SLOTS(fi_ops_mr, mr_slots);

static void fabrics_and_domains_open_all_there_is(void **state)
{
	struct fi_info *connected;
	struct surface s;
	struct subject u;

	surface_open(&s, surface_all(), FI_THREAD_SAFE);
	connected = connected_info(&s);
	surface_subject(&u, &s, "fabric", NULL, connected ? DOES_CONNECT : 0);
	fi_freeinfo(connected);
	surface_walk(&u, "fi_ops_fabric", s.fabric->ops, fabric_slots, COUNT_OF(fabric_slots));
	u.name = "domain";
	surface_walk(&u, "fi_ops_domain", s.domain->ops, domain_slots, COUNT_OF(domain_slots));
	surface_walk(&u, "fi_ops_mr", s.domain->mr, mr_slots, COUNT_OF(mr_slots));
	surface_close(&s);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fabrics_and_domains_open_all_there_is),
	};

	if (argc != 2) {
		fprintf(stderr, "usage: %s PROVIDER\n", argv[0]);
		return 2;
	}
	surface_provider = argv[1];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
