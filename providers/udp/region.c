/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Registered memory, for programs that register what they send: datagrams need no registration, and
 * no peer reaches the memory, so that a region is a key and nothing else. Called by programs, on
 * any thread. Source: fi_mr(3).
 */
#include "absent.h"
#include "objects.h"

struct udp_mr {
	struct fid_mr fid;
	struct udp_domain *domain;
};

static int mr_close(struct fid *fid)
{
	struct udp_mr *mr = container_of(fid, struct udp_mr, fid.fid);

	udp_unref(&mr->domain->refs);
	platform_free(mr);
	return 0;
}

static struct fi_ops mr_fi_ops = {
	.size = sizeof(struct fi_ops),
	.close = mr_close,
	.bind = udp_no_bind,
	.control = udp_no_control,
	.ops_open = udp_no_ops_open,
	.tostr = udp_no_tostr,
	.ops_set = udp_no_ops_set,
};

static int mr_regattr(struct fid *fid, const struct fi_mr_attr *attr, uint64_t flags,
		      struct fid_mr **out)
{
	struct udp_domain *domain = container_of(fid, struct udp_domain, fid.fid);
	struct udp_mr *mr;

	if (fid->fclass != FI_CLASS_DOMAIN || !attr || !out || !attr->iov_count ||
	    !attr->mr_iov || attr->iov_count > UDP_IOV_MAX)
		return udp_refuse(FI_LOG_MR, -FI_EINVAL, "fi_mr_reg",
				  "no memory, more vectors than mr_iov_limit, or NULL where the "
				  "region is to go");
	if (flags)
		return udp_refuse(FI_LOG_MR, -FI_EBADFLAGS, "fi_mr_reg", "no flags are valid");
	if (!udp_here(domain))
		return -FI_EOPBADSTATE;
	mr = platform_alloc(sizeof(*mr));
	if (!mr)
		return -FI_ENOMEM;
	mr->fid.fid.fclass = FI_CLASS_MR;
	mr->fid.fid.context = attr->context;
	mr->fid.fid.ops = &mr_fi_ops;
	mr->fid.key = attr->requested_key;
	mr->domain = domain;
	udp_ref(&domain->refs);
	*out = &mr->fid;
	return 0;
}

static int mr_regv(struct fid *fid, const struct iovec *iov, size_t cnt, uint64_t access,
		   uint64_t offset, uint64_t key, uint64_t flags, struct fid_mr **mr,
		   void *context)
{
	const struct fi_mr_attr attr = {
		.mr_iov = iov,
		.iov_count = cnt,
		.access = access,
		.offset = offset,
		.requested_key = key,
		.context = context,
	};

	return mr_regattr(fid, &attr, flags, mr);
}

static int mr_reg(struct fid *fid, const void *buf, size_t len, uint64_t access, uint64_t offset,
		  uint64_t key, uint64_t flags, struct fid_mr **mr, void *context)
{
	const struct iovec iov = { .iov_base = (void *)(uintptr_t)buf, .iov_len = len };

	return mr_regv(fid, &iov, 1, access, offset, key, flags, mr, context);
}

struct fi_ops_mr udp_mr_ops = {
	.size = sizeof(struct fi_ops_mr),
	.reg = mr_reg,
	.regv = mr_regv,
	.regattr = mr_regattr,
};
