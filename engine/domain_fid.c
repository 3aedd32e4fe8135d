/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The domain object: what endpoints, queues and address vectors share, and the lock of
 * callers that do not serialize themselves.
 */
#include <rdma/fi_atomic.h>
#include <rdma/fi_errno.h>
#include "fids.h"

static int engine_domain_close(struct fid *fid)
{
	struct engine_domain *domain = container_of(fid, struct engine_domain, fid.fid);

	if (engine_in_use(&domain->refs))
		return -FI_EBUSY;
	engine_unref(&domain->fabric->refs);
	platform_lock_fini(&domain->lock);
	platform_free(domain);
	return 0;
}

static int engine_no_sep(struct fid_domain *domain, struct fi_info *info, struct fid_ep **sep, void *context)
{
	return -FI_ENOSYS;
}

static int engine_no_cntr(struct fid_domain *domain, struct fi_cntr_attr *attr, struct fid_cntr **cntr, void *context)
{
	return -FI_ENOSYS;
}

static int engine_no_poll(struct fid_domain *domain, struct fi_poll_attr *attr, struct fid_poll **pollset)
{
	return -FI_ENOSYS;
}

static int engine_no_stx(struct fid_domain *domain, struct fi_tx_attr *attr, struct fid_stx **stx, void *context)
{
	return -FI_ENOSYS;
}

static int engine_no_srx(struct fid_domain *domain, struct fi_rx_attr *attr, struct fid_ep **rx_ep, void *context)
{
	return -FI_ENOSYS;
}

static int engine_no_query_atomic(struct fid_domain *domain, enum fi_datatype datatype, enum fi_op op,
				  struct fi_atomic_attr *attr, uint64_t flags)
{
	return -FI_EOPNOTSUPP;
}

static int engine_no_query_collective(struct fid_domain *domain, enum fi_collective_op coll,
				      struct fi_collective_attr *attr, uint64_t flags)
{
	return -FI_ENOSYS;
}

static int engine_ep2_open(struct fid_domain *domain, struct fi_info *info, struct fid_ep **ep, uint64_t flags,
			   void *context)
{
	if (flags)
		return -FI_EBADFLAGS;
	return engine_ep_open(domain, info, ep, context);
}

static int engine_no_xpu(struct fid_domain *domain, struct fi_xpu_attr *attr, struct fid_xpu_ctx **ctx, void *context)
{
	return -FI_ENOSYS;
}

static int engine_no_mr_reg(struct fid *fid, const void *buf, size_t len, uint64_t access, uint64_t offset,
			    uint64_t requested_key, uint64_t flags, struct fid_mr **mr, void *context)
{
	return -FI_ENOSYS;
}

static int engine_no_mr_regv(struct fid *fid, const struct iovec *iov, size_t cnt, uint64_t access, uint64_t offset,
			     uint64_t requested_key, uint64_t flags, struct fid_mr **mr, void *context)
{
	return -FI_ENOSYS;
}

static int engine_no_mr_regattr(struct fid *fid, const struct fi_mr_attr *attr, uint64_t flags, struct fid_mr **mr)
{
	return -FI_ENOSYS;
}

static int engine_domain_bind(struct fid *fid, struct fid *target, uint64_t flags)
{
	if (!target || target->fclass != FI_CLASS_EQ)
		return -FI_EINVAL;
	return flags ? -FI_EBADFLAGS : 0; /* nothing here completes by event */
}

static struct fi_ops engine_domain_fi_ops = {
	.size = sizeof(struct fi_ops),
	.close = engine_domain_close,
	.bind = engine_domain_bind,
	.control = engine_no_control,
	.ops_open = engine_no_ops_open,
	.tostr = engine_no_tostr,
	.ops_set = engine_no_ops_set,
};

static struct fi_ops_domain engine_domain_ops = {
	.size = sizeof(struct fi_ops_domain),
	.av_open = engine_av_open,
	.cq_open = engine_cq_open,
	.endpoint = engine_ep_open,
	.scalable_ep = engine_no_sep,
	.cntr_open = engine_no_cntr,
	.poll_open = engine_no_poll,
	.stx_ctx = engine_no_stx,
	.srx_ctx = engine_no_srx,
	.query_atomic = engine_no_query_atomic,
	.query_collective = engine_no_query_collective,
	.endpoint2 = engine_ep2_open,
	.xpu_ctx = engine_no_xpu,
};

static struct fi_ops_mr engine_mr_ops = {
	.size = sizeof(struct fi_ops_mr),
	.reg = engine_no_mr_reg,
	.regv = engine_no_mr_regv,
	.regattr = engine_no_mr_regattr,
};

int engine_domain_open(struct fid_fabric *fid, struct fi_info *info, struct fid_domain **out, void *context)
{
	struct engine_fabric *fabric = container_of(fid, struct engine_fabric, fid);
	struct engine_domain *domain;

	if (!info || !info->domain_attr || !out)
		return -FI_EINVAL;
	domain = platform_alloc(sizeof(*domain));
	if (!domain)
		return -FI_ENOMEM;
	domain->fid.fid.fclass = FI_CLASS_DOMAIN;
	domain->fid.fid.context = context;
	domain->fid.fid.ops = &engine_domain_fi_ops;
	domain->fid.ops = &engine_domain_ops;
	domain->fid.mr = &engine_mr_ops;
	domain->fabric = fabric;
	domain->family = fabric->family;
	domain->safe = info->domain_attr->threading != FI_THREAD_DOMAIN;
	platform_lock_init(&domain->lock);
	list_init(&domain->eps);
	engine_ref(&fabric->refs);
	*out = &domain->fid;
	return 0;
}
