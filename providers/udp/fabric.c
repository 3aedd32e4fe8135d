/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The fabric object and the domain object. Called by programs, on any thread. Source: fi_fabric(3),
 * fi_domain(3).
 */
#include <net/if.h>
#include "absent.h"
#include "socket.h"
#include "wait.h"
#include "wait_set.h"

static int fabric_close(struct fid *fid)
{
	struct udp_fabric *fabric = container_of(fid, struct udp_fabric, fid.fid);

	if (udp_in_use(&fabric->refs))
		return udp_refuse(FI_LOG_FABRIC, -FI_EBUSY, "fi_close of a fabric",
				  "a domain or event queue of it is open; close that first");
	platform_free(fabric);
	return 0;
}

static int no_passive_ep(struct fid_fabric *fabric, struct fi_info *info, struct fid_pep **pep,
			 void *context)
{
	return -FI_ENOSYS;
}

static int domain2_open(struct fid_fabric *fabric, struct fi_info *info,
			struct fid_domain **domain, uint64_t flags, void *context)
{
	if (flags)
		return udp_refuse(FI_LOG_DOMAIN, -FI_EBADFLAGS, "fi_domain2",
				  "no flags are valid");
	return udp_domain_open(fabric, info, domain, context);
}

static struct fi_ops fabric_fi_ops = {
	.size = sizeof(struct fi_ops),
	.close = fabric_close,
	.bind = udp_no_bind,
	.control = udp_no_control,
	.ops_open = udp_no_ops_open,
	.tostr = udp_no_tostr,
	.ops_set = udp_no_ops_set,
};

static struct fi_ops_fabric fabric_ops = {
	.size = sizeof(struct fi_ops_fabric),
	.domain = udp_domain_open,
	.passive_ep = no_passive_ep,
	.eq_open = udp_eq_open,
	.wait_open = udp_wait_set_open,
	.trywait = udp_trywait,
	.domain2 = domain2_open,
};

int udp_fabric_open(struct fi_fabric_attr *attr, struct fid_fabric **out, void *context)
{
	struct udp_fabric *fabric;

	if (!attr || !out)
		return udp_refuse(FI_LOG_FABRIC, -FI_EINVAL, "fi_fabric",
				  "NULL for the attributes, or where the fabric is to go");
	fabric = platform_alloc(sizeof(*fabric));
	if (!fabric)
		return -FI_ENOMEM;
	fabric->fid.fid.fclass = FI_CLASS_FABRIC;
	fabric->fid.fid.context = context;
	fabric->fid.fid.ops = &fabric_fi_ops;
	fabric->fid.ops = &fabric_ops;
	fabric->forks = platform_forks();
	fabric->fid.api_version = attr->api_version;
	*out = &fabric->fid;
	return 0;
}

/* The domain */

static int domain_close(struct fid *fid)
{
	struct udp_domain *domain = container_of(fid, struct udp_domain, fid.fid);

	if (udp_in_use(&domain->refs))
		return udp_refuse(FI_LOG_DOMAIN, -FI_EBUSY, "fi_close of a domain",
				  "objects of it are open; close those first");
	udp_unref(&domain->fabric->refs);
	if (udp_here(domain))
		platform_lock_fini(&domain->lock);
	platform_free(domain->batch);
	platform_free(domain);
	return 0;
}

static int ep2_open(struct fid_domain *domain, struct fi_info *info, struct fid_ep **ep,
		    uint64_t flags, void *context)
{
	if (flags)
		return udp_refuse(FI_LOG_EP_CTRL, -FI_EBADFLAGS, "fi_endpoint2",
				  "no flags are valid");
	return udp_ep_open(domain, info, ep, context);
}

static int no_scalable_ep(struct fid_domain *domain, struct fi_info *info, struct fid_ep **sep,
			  void *context)
{
	return -FI_ENOSYS;
}

static int no_stx(struct fid_domain *domain, struct fi_tx_attr *attr, struct fid_stx **stx,
		  void *context)
{
	return -FI_ENOSYS;
}

static int no_srx(struct fid_domain *domain, struct fi_rx_attr *attr, struct fid_ep **srx,
		  void *context)
{
	return -FI_ENOSYS;
}

static int no_query_atomic(struct fid_domain *domain, enum fi_datatype datatype, enum fi_op op,
			   struct fi_atomic_attr *attr, uint64_t flags)
{
	return -FI_EOPNOTSUPP;
}

static int no_query_collective(struct fid_domain *domain, enum fi_collective_op coll,
			       struct fi_collective_attr *attr, uint64_t flags)
{
	return -FI_EOPNOTSUPP;
}

static int no_xpu(struct fid_domain *domain, struct fi_xpu_attr *attr, struct fid_xpu_ctx **ctx,
		  void *context)
{
	return -FI_ENOSYS;
}

static struct fi_ops domain_fi_ops = {
	.size = sizeof(struct fi_ops),
	.close = domain_close,
	.bind = udp_no_bind,
	.control = udp_no_control,
	.ops_open = udp_no_ops_open,
	.tostr = udp_no_tostr,
	.ops_set = udp_no_ops_set,
};

static struct fi_ops_domain domain_ops = {
	.size = sizeof(struct fi_ops_domain),
	.av_open = udp_av_open,
	.cq_open = udp_cq_open,
	.endpoint = udp_ep_open,
	.scalable_ep = no_scalable_ep,
	.cntr_open = udp_cntr_open,
	.poll_open = udp_poll_open,
	.stx_ctx = no_stx,
	.srx_ctx = no_srx,
	.query_atomic = no_query_atomic,
	.query_collective = no_query_collective,
	.endpoint2 = ep2_open,
	.xpu_ctx = no_xpu,
};

int udp_domain_open(struct fid_fabric *fid, struct fi_info *info, struct fid_domain **out,
		    void *context)
{
	struct udp_fabric *fabric = container_of(fid, struct udp_fabric, fid);
	struct udp_domain *domain;

	if (!info || !info->domain_attr || !out)
		return udp_refuse(
			FI_LOG_DOMAIN, -FI_EINVAL, "fi_domain",
			"NULL for the fi_info or its domain_attr, or where the domain is to go");
	domain = platform_alloc(sizeof(*domain));
	if (!domain)
		return -FI_ENOMEM;
	domain->batch = platform_alloc(sizeof(*domain->batch));
	if (!domain->batch) {
		platform_free(domain);
		return -FI_ENOMEM;
	}
	domain->fid.fid.fclass = FI_CLASS_DOMAIN;
	domain->fid.fid.context = context;
	domain->fid.fid.ops = &domain_fi_ops;
	domain->fid.ops = &domain_ops;
	domain->fid.mr = &udp_mr_ops;
	domain->fabric = fabric;
	domain->forks = platform_forks();
	domain->family = info->addr_format == FI_SOCKADDR_IN6 ? AF_INET6 : AF_INET;
	if (info->domain_attr->name)
		domain->iface = if_nametoindex(info->domain_attr->name);
	platform_lock_init(&domain->lock);
	list_init(&domain->holding);
	udp_ref(&fabric->refs);
	*out = &domain->fid;
	return 0;
}
