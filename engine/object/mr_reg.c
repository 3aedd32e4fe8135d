/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Registration of memory: the slots of a domain. Programs call them on any thread that the domain's
 * threading level allows, as the registrar of the domain, or with the domain held (registrar.h).
 *
 * A region without remote access needs no key and is not in the table, as fi_mr(3) allows, so that
 * any number of them can be registered with one requested key. Where programs choose the keys,
 * fi_mr_key() returns the requested key for such a region too.
 */
#include <rdma/fi_errno.h>
#include "auth.h"
#include "cntr.h"
#include "forked.h"
#include "mr_fid.h"
#include "refuse.h"
#include "registrar.h"

#define REMOTE (FI_REMOTE_READ | FI_REMOTE_WRITE)
#define ACCESS (FI_SEND | FI_RECV | FI_READ | FI_WRITE | REMOTE | FI_COLLECTIVE)

/*
 * Converts attributes to those of the newest interface. A program of an older one has a shorter
 * struct, beyond which nothing may be read.
 */
static void engine_mr_attr_read(const struct fi_mr_attr *from, uint32_t api_version,
				struct fi_mr_attr *attr)
{
	static const struct {
		uint32_t api_version;
		size_t len;
	} ages[] = {
		{ FI_VERSION(2, 0), sizeof(struct fi_mr_attr) },
		{ FI_VERSION(1, 22), offsetof(struct fi_mr_attr, base_mr) },
		{ FI_VERSION(1, 19), offsetof(struct fi_mr_attr, page_size) },
		{ FI_VERSION(1, 9), offsetof(struct fi_mr_attr, hmem_data) },
		{ FI_VERSION(1, 5), offsetof(struct fi_mr_attr, iface) },
		{ 0, offsetof(struct fi_mr_attr, auth_key_size) },
	};
	size_t i = 0;

	while (api_version < ages[i].api_version)
		i++;
	*attr = (struct fi_mr_attr){ .iface = FI_HMEM_SYSTEM };
	memcpy(attr, from, ages[i].len);
}

#define MR_REG "registration of memory"

/* Returns 0 if a region with these attributes can be part of @attr->base_mr, or -FI_EINVAL. */
static int engine_mr_base_check(const struct engine_domain *domain,
				const struct fi_mr_attr *attr)
{
	const struct engine_mr *base = container_of(attr->base_mr, const struct engine_mr, fid);

	if (attr->base_mr->fid.fclass != FI_CLASS_MR || base->domain != domain ||
	    base->closing || base->subs == UINT32_MAX ||
	    !engine_mr_holds_all(base, attr->mr_iov, attr->iov_count))
		return engine_refuse(
			domain->family, FI_LOG_MR, -FI_EINVAL, MR_REG,
			"base_mr is no region of this domain that has all of these ranges");
	return 0;
}

/* Returns true if the region has no authorization key but that of its domain. */
static bool engine_mr_shares_key(const struct engine_domain *domain,
				 const struct fi_mr_attr *attr)
{
	struct engine_auth auth = domain->auth;

	return !engine_auth_read(attr->auth_key, attr->auth_key_size, &auth) &&
	       !memcmp(auth.secret, domain->auth.secret, sizeof(auth.secret));
}

/*
 * Returns the error for attributes that this domain can't register, or 0. Access bits and flags
 * without effect here are accepted: FI_RMA, FI_MSG, hints on how the memory will be used. So are
 * an offset, which is reserved, and an authorization key in a domain whose endpoints accept all
 * peers.
 */
static int engine_mr_attr_check(struct engine_domain *domain, const struct fi_mr_attr *attr,
				uint64_t flags)
{
	const struct engine_family *family = domain->family;

	if (flags & FI_MR_DMABUF)
		return engine_refuse(family, FI_LOG_MR, -FI_ENOSYS, MR_REG,
				     "FI_MR_DMABUF; memory is given by its address");
	if (!attr->mr_iov || !attr->iov_count || attr->iov_count > MR_IOV_MAX)
		return engine_refuse_value(family, FI_LOG_MR, -FI_EINVAL, MR_REG,
					   "iov_count is from 1 to domain_attr.mr_iov_limit",
					   attr->iov_count);
	if (domain->auth.keyed && !engine_mr_shares_key(domain, attr))
		return engine_refuse(family, FI_LOG_MR, -FI_ENOSYS, MR_REG,
				     "regions have no auth_key but that of the domain");
	if (attr->iface != FI_HMEM_SYSTEM)
		return engine_refuse_value(
			family, FI_LOG_MR, -FI_ENOSYS, MR_REG,
			"iface is FI_HMEM_SYSTEM, memory of a device is not reached",
			attr->iface);
	return attr->base_mr ? engine_mr_base_check(domain, attr) : 0;
}

/* Gives a key to a region that peers may access. Returns 0 or -FI_E*. */
static int engine_mr_give_key(struct engine_mr *mr, const struct fi_mr_attr *attr)
{
	struct mr_spec spec = {
		.iov = mr->iov,
		.iov_cnt = mr->iov_cnt,
		.access = attr->access & ACCESS,
		.iova = engine_mr_iova(mr),
		.key = attr->requested_key,
		.object = mr,
		.live = mr->enabled,
		/* the table that peers see does not show that the region belongs to one endpoint */
		.notify = mr->domain->mr->remote_events || mr->domain->mr->mode & FI_MR_ENDPOINT,
	};
	struct mr_table *table = &mr->domain->mr->table;
	int ret;

	ret = mr_insert(table, &spec, &mr->index);
	if (ret)
		return engine_refuse_value(
			mr->domain->family, FI_LOG_MR, ret, MR_REG,
			ret == -FI_ENOKEY
				? "another region has that requested_key"
				: "a range that wraps around, an invalid key, or no memory",
			spec.key);
	mr->fid.key = mr_at(table, mr->index)->key;
	return 0;
}

/* The fields that a freed region leaves as the next one in its place of the pool needs them. */
static void engine_mr_place(struct engine_mr *mr, struct engine_domain *domain)
{
	mr->fid.fid.fclass = FI_CLASS_MR;
	mr->fid.fid.ops = &engine_mr_fi_ops;
	mr->fid.mem_desc = mr;
	mr->domain = domain;
	list_init(&mr->ep_link);
	engine_cntr_region_open(&mr->reads);
	engine_cntr_region_open(&mr->writes);
}

/*
 * Copies pieces. The first one is read word by word, as engine_mr_reg() has written it: a load of both
 * words would wait until the two stores have left the core, for a third of a registration.
 */
static void engine_mr_pieces(struct engine_mr *mr, const struct fi_mr_attr *attr)
{
	const volatile struct iovec *first = attr->mr_iov;

	mr->iov_cnt = attr->iov_count;
	mr->iov[0].iov_base = first->iov_base;
	mr->iov[0].iov_len = first->iov_len;
	if (unlikely(mr->iov_cnt > 1))
		memcpy(mr->iov, attr->mr_iov, mr->iov_cnt * sizeof(*mr->iov));
}

/* Makes a region, all but what only one with a key has. Its memory was another's before. */
static struct engine_mr *engine_mr_create(struct engine_domain *domain,
					  const struct fi_mr_attr *attr, uint64_t flags)
{
	int mode = domain->mr->mode;
	struct engine_mr *mr = pool_get(&domain->mr->pool);

	if (!mr)
		return NULL;
	if (unlikely(!mr->domain))
		engine_mr_place(mr, domain);
	mr->fid.fid.context = attr->context;
	mr->fid.key = mode & FI_MR_PROV_KEY ? FI_KEY_NOTAVAIL : attr->requested_key;
	mr->index = 0;
	mr->enabled = !(mode & FI_MR_ENDPOINT) &&
		      !(mode & FI_MR_RMA_EVENT && flags & FI_RMA_EVENT);
	engine_mr_pieces(mr, attr);
	return mr;
}

/* Makes a region's memory reachable: for devices, and for peers by its key. Returns 0 or -FI_E*. */
static int engine_mr_reach(struct engine_mr *mr, const struct fi_mr_attr *attr)
{
	const struct engine_domain *domain = mr->domain;
	int ret = 0;

	if (domain->mr->device_cnt)
		ret = engine_mr_pin(mr, attr->access & ACCESS);
	if (ret)
		return engine_refuse_value(domain->family, FI_LOG_MR, ret, MR_REG,
					   "a device of the provider does not reach that memory",
					   (uintptr_t)mr->iov[0].iov_base);
	if (attr->access & REMOTE)
		ret = engine_mr_give_key(mr, attr);
	if (ret && domain->mr->device_cnt)
		engine_mr_unpin(mr);
	return ret;
}

/* Registers a region by attributes in their newest form; the domain is held. */
static int engine_mr_register(struct engine_domain *domain, const struct fi_mr_attr *attr,
			      uint64_t flags, struct fid_mr **out)
{
	struct engine_mr *mr;
	int ret;

	ret = engine_mr_attr_check(domain, attr, flags);
	if (ret)
		return ret;
	mr = engine_mr_create(domain, attr, flags);
	if (!mr)
		return -FI_ENOMEM;
	ret = engine_mr_reach(mr, attr);
	if (ret) {
		pool_put(&domain->mr->pool, mr);
		return ret;
	}
	if (attr->base_mr) {
		mr->base = container_of((struct fid_mr *)attr->base_mr, struct engine_mr, fid);
		mr->base->subs++;
	}
	engine_mrs_count(domain->mr, 1);
	*out = &mr->fid;
	return 0;
}

static int engine_mr_start(struct fid *fid, const struct fi_mr_attr *attr, uint64_t flags,
			   struct fid_mr **mr)
{
	struct engine_domain *domain = container_of(fid, struct engine_domain, fid.fid);
	uint32_t turn = engine_regions_begin(domain);
	int ret;

	if (unlikely(turn == ENGINE_REGIONS_HELD)) {
		ret = engine_left(domain, FI_LOG_MR, MR_REG);
		if (ret)
			return ret;
		engine_regions_appoint(domain);
	}
	/* Conns show a table that grows. */
	if (unlikely(turn != ENGINE_REGIONS_HELD && attr->access & REMOTE &&
		     mr_full(&domain->mr->table))) {
		engine_regions_leave(domain, turn);
		engine_regions_hold(domain);
		turn = ENGINE_REGIONS_HELD;
	}
	ret = engine_mr_register(domain, attr, flags, mr);
	engine_regions_leave(domain, turn);
	return ret;
}

static int engine_mr_regattr(struct fid *fid, const struct fi_mr_attr *attr, uint64_t flags,
			     struct fid_mr **mr)
{
	struct engine_domain *domain = container_of(fid, struct engine_domain, fid.fid);
	struct fi_mr_attr whole;

	if (fid->fclass != FI_CLASS_DOMAIN)
		return -FI_EINVAL;
	if (!attr || !mr)
		return engine_refuse(domain->family, FI_LOG_MR, -FI_EINVAL, MR_REG,
				     "NULL for the attributes, or where the region is to go");
	engine_mr_attr_read(attr, domain->fabric->fid.api_version, &whole);
	return engine_mr_start(fid, &whole, flags, mr);
}

static int engine_mr_regv(struct fid *fid, const struct iovec *iov, size_t cnt, uint64_t access,
			  uint64_t offset, uint64_t requested_key, uint64_t flags,
			  struct fid_mr **mr, void *context)
{
	struct fi_mr_attr attr = {
		.mr_iov = iov,
		.iov_count = cnt,
		.access = access,
		.offset = offset,
		.requested_key = requested_key,
		.context = context,
		.iface = FI_HMEM_SYSTEM,
	};

	if (fid->fclass != FI_CLASS_DOMAIN)
		return -FI_EINVAL;
	if (!mr)
		return engine_refuse(container_of(fid, struct engine_domain, fid.fid)->family,
				     FI_LOG_MR, -FI_EINVAL, MR_REG,
				     "NULL where the region is to go");
	return engine_mr_start(fid, &attr, flags, mr);
}

static int engine_mr_reg(struct fid *fid, const void *buf, size_t len, uint64_t access,
			 uint64_t offset, uint64_t requested_key, uint64_t flags,
			 struct fid_mr **mr, void *context)
{
	struct iovec iov = { .iov_base = (void *)buf, .iov_len = len };

	return engine_mr_regv(fid, &iov, 1, access, offset, requested_key, flags, mr, context);
}

struct fi_ops_mr engine_mr_ops = {
	.size = sizeof(struct fi_ops_mr),
	.reg = engine_mr_reg,
	.regv = engine_mr_regv,
	.regattr = engine_mr_regattr,
};
