/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The memory region object. The slots are called by programs, on any thread that the domain's
 * threading level allows; they hold the domain where they change it.
 *
 * A region without remote access needs no key and has none: it is not in the table, as fi_mr(3)
 * allows, so that any number of them can be registered under one requested key. That one is told all
 * the same where programs choose their keys: they expect of fi_mr_key() what they have asked for.
 */
#include <rdma/fi_errno.h>
#include "auth.h"
#include "cntr.h"
#include "guard.h"
#include "mr_fid.h"
#include "no_call.h"
#include "progress.h"
#include "refs.h"
#include "refuse.h"

#define REMOTE	 (FI_REMOTE_READ | FI_REMOTE_WRITE)
#define ACCESS	 (FI_SEND | FI_RECV | FI_READ | FI_WRITE | REMOTE | FI_COLLECTIVE)
#define CLOSE_NS 1000000000u /* that transfers in flight have to end */
#define RAW_LEN	 8u

static struct engine_mr *mr_of(struct fid *fid)
{
	return container_of(fid, struct engine_mr, fid.fid);
}

/* Is a range inside one of the pieces of a region? */
static bool engine_mr_holds(const struct engine_mr *mr, const struct iovec *range)
{
	for (size_t i = 0; i < mr->iov_cnt; i++) {
		uint64_t at = (uintptr_t)range->iov_base - (uintptr_t)mr->iov[i].iov_base;

		if (at <= mr->iov[i].iov_len && range->iov_len <= mr->iov[i].iov_len - at)
			return true;
	}
	return false;
}

static bool engine_mr_holds_all(const struct engine_mr *mr, const struct iovec *iov, size_t cnt)
{
	for (size_t i = 0; i < cnt; i++) {
		if (!engine_mr_holds(mr, &iov[i]))
			return false;
	}
	return true;
}

/* Close */

/* Is a transfer in flight: ours, or that of a peer that accesses the memory by itself? */
static bool engine_mr_used(const struct engine_mr *mr)
{
	const struct engine_mrs *mrs = mr->domain->mr;

	return mr->refs || (mrs->share && mrs->shows->share_used(mrs->share, mr->index));
}

/* Waits for transfers in flight. False: there are some after CLOSE_NS. */
static bool engine_mr_wait(struct engine_mr *mr)
{
	struct engine_domain *domain = mr->domain;
	uint64_t end = platform_now_ns() + CLOSE_NS;

	while (engine_mr_used(mr)) {
		engine_domain_progress(domain);
		if (!engine_mr_used(mr))
			break;
		if (platform_now_ns() >= end)
			return false;
		engine_leave(domain);
		platform_yield();
		engine_enter(domain);
	}
	return true;
}

#define MR_CLOSE "fi_close of a memory region"

/* Takes the key out of use, for good or not at all. 0 or -FI_EBUSY. */
static int engine_mr_end_key(struct engine_mr *mr)
{
	struct mr_table *table = &mr->domain->mr->table;

	mr_invalidate(table, mr->index);
	if (!engine_mr_wait(mr)) {
		if (mr->enabled)
			mr_validate(table, mr->index);
		return engine_refuse_value(
			mr->domain->family, FI_LOG_MR, -FI_EBUSY, MR_CLOSE,
			mr->refs ? "transfers of that key have not ended, it stays registered"
				 : "a peer still accesses the memory of that key by itself",
			mr->fid.key);
	}
	mr_remove(table, mr->index);
	return 0;
}

static int engine_mr_close(struct fid *fid)
{
	struct engine_mr *mr = mr_of(fid);
	struct engine_domain *domain = mr->domain;
	int ret = 0;

	engine_enter(domain);
	if (mr->subs || mr->closing)
		ret = engine_refuse(
			domain->family, FI_LOG_MR, -FI_EBUSY, MR_CLOSE,
			"regions are part of it, or another thread closes it; close those first");
	if (!ret && mr->index) {
		mr->closing = true;
		ret = engine_mr_end_key(mr);
		mr->closing = false;
	}
	if (!ret) {
		list_remove(&mr->ep_link);
		engine_cntr_region_close(&mr->reads);
		engine_cntr_region_close(&mr->writes);
		if (mr->base)
			mr->base->subs--;
	}
	engine_leave(domain);
	if (ret)
		return ret;
	platform_free(mr);
	engine_unref(&domain->refs);
	return 0;
}

/* Bind and control */

#define MR_BIND "fi_mr_bind"

/* The flags of a counter say nothing of an endpoint, and programs give them all the same. */
static int engine_mr_bind_ep(struct engine_mr *mr, struct fid *target, uint64_t flags)
{
	struct engine_ctx *ctx = engine_ctx_of(container_of(target, struct fid_ep, fid));
	const struct engine_family *family = mr->domain->family;

	if (flags & ~REMOTE)
		return engine_refuse_value(family, FI_LOG_MR, -FI_EBADFLAGS, MR_BIND,
					   "an endpoint has no flags", flags);
	if (!ctx->ep || ctx->domain != mr->domain)
		return engine_refuse(family, FI_LOG_MR, -FI_EINVAL, MR_BIND,
				     "an endpoint of another domain; register with its own");
	if (!(mr->domain->mr->mode & FI_MR_ENDPOINT))
		return engine_refuse(
			family, FI_LOG_MR, -FI_ENOSYS, MR_BIND,
			"regions belong to the domain, which was opened without FI_MR_ENDPOINT");
	if (mr->ep == ctx->ep)
		return 0;
	if (mr->ep)
		return engine_refuse(
			family, FI_LOG_MR, -FI_EINVAL, MR_BIND,
			"it is bound to another endpoint, which it serves until it is closed");
	if (mr->enabled)
		return engine_refuse(family, FI_LOG_MR, -FI_EOPBADSTATE, MR_BIND,
				     "it is enabled; bind before fi_mr_enable");
	mr->ep = ctx->ep;
	list_push(&mr->domain->mr->bound, &mr->ep_link);
	return 0;
}

static bool engine_region_free(const struct cntr_region *r, const struct engine_cntr *cntr)
{
	return !r->cntr || r->cntr == cntr;
}

/* Source: fi_mr(3), fi_mr_bind: which operations of peers on the region the counter counts. */
static int engine_mr_bind_cntr(struct engine_mr *mr, struct fid *target, uint64_t flags)
{
	struct engine_cntr *cntr = container_of(target, struct engine_cntr, fid.fid);
	const struct engine_family *family = mr->domain->family;
	bool reads = flags & FI_REMOTE_READ, writes = flags & FI_REMOTE_WRITE;

	if (flags & ~REMOTE || !flags)
		return engine_refuse_value(
			family, FI_LOG_MR, flags ? -FI_EBADFLAGS : -FI_EINVAL, MR_BIND,
			"a counter counts FI_REMOTE_READ, FI_REMOTE_WRITE or both", flags);
	if (cntr->domain != mr->domain)
		return engine_refuse(family, FI_LOG_MR, -FI_EINVAL, MR_BIND,
				     "a counter of another domain; open one in the region's");
	if ((reads && !engine_region_free(&mr->reads, cntr)) ||
	    (writes && !engine_region_free(&mr->writes, cntr)))
		return engine_refuse_value(family, FI_LOG_MR, -FI_EINVAL, MR_BIND,
					   "another counter counts that already", flags);
	if (reads && !mr->reads.cntr)
		engine_cntr_region_bind(&mr->reads, cntr);
	if (writes && !mr->writes.cntr)
		engine_cntr_region_bind(&mr->writes, cntr);
	if (mr->index)
		mr_tell(&mr->domain->mr->table, mr->index);
	return 0;
}

/* Taken, and told nothing: writes with data are told in the queues of endpoints. Source: libfabric's sockets. */
static int engine_mr_bind_cq(struct engine_mr *mr, struct fid *target)
{
	if (container_of(target, struct engine_cq, fid.fid)->domain == mr->domain)
		return 0;
	return engine_refuse(mr->domain->family, FI_LOG_MR, -FI_EINVAL, MR_BIND,
			     "a completion queue of another domain");
}

static int engine_mr_bind(struct fid *fid, struct fid *target, uint64_t flags)
{
	struct engine_mr *mr = mr_of(fid);
	int ret;

	if (!target)
		return engine_refuse(mr->domain->family, FI_LOG_MR, -FI_EINVAL, MR_BIND,
				     "NULL");
	engine_enter(mr->domain);
	if (target->fclass == FI_CLASS_EP || target->fclass == FI_CLASS_SEP)
		ret = engine_mr_bind_ep(mr, target, flags);
	else if (target->fclass == FI_CLASS_CNTR)
		ret = engine_mr_bind_cntr(mr, target, flags);
	else if (target->fclass == FI_CLASS_CQ)
		ret = engine_mr_bind_cq(mr, target);
	else
		ret = engine_refuse_value(mr->domain->family, FI_LOG_MR, -FI_EINVAL, MR_BIND,
					  "endpoints and counters are bound to regions",
					  target->fclass);
	engine_leave(mr->domain);
	return ret;
}

static int engine_mr_enable(struct engine_mr *mr)
{
	int ret = 0;

	engine_enter(mr->domain);
	if (mr->closing || (mr->domain->mr->mode & FI_MR_ENDPOINT && !mr->ep)) {
		ret = engine_refuse(
			mr->domain->family, FI_LOG_MR, -FI_EOPBADSTATE, "fi_mr_enable",
			"the domain has FI_MR_ENDPOINT, and no endpoint is bound to the region");
	} else if (!mr->enabled) {
		mr->enabled = true;
		if (mr->index)
			mr_validate(&mr->domain->mr->table, mr->index);
	}
	engine_leave(mr->domain);
	return ret;
}

#define MR_RAW "fi_mr_raw_attr"

static int engine_mr_refuse(const struct engine_domain *domain, int err, const char *call,
			    const char *why)
{
	return engine_refuse(domain->family, FI_LOG_MR, err, call, why);
}

/* The address space is our own and always up to date: nothing is left to do for these ranges. */
static int engine_mr_refresh(struct engine_mr *mr, const struct fi_mr_modify *arg)
{
	if (!arg || (arg->attr.iov_count && !arg->attr.mr_iov))
		return engine_mr_refuse(mr->domain, -FI_EINVAL, "fi_mr_refresh", "NULL");
	if (arg->flags)
		return engine_mr_refuse(mr->domain, -FI_EBADFLAGS, "fi_mr_refresh",
					"there are no flags");
	if (!engine_mr_holds_all(mr, arg->attr.mr_iov, arg->attr.iov_count))
		return engine_mr_refuse(mr->domain, -FI_EINVAL, "fi_mr_refresh",
					"a range that is not in the region");
	return 0;
}

static uint64_t engine_mr_name(const struct engine_mr *mr)
{
	return mr->domain->mr->mode & FI_MR_VIRT_ADDR ? (uintptr_t)mr->iov[0].iov_base : 0;
}

static int engine_mr_raw(struct engine_mr *mr, const struct fi_mr_raw_attr *arg)
{
	size_t room;

	if (!arg || !arg->key_size || !arg->base_addr)
		return engine_mr_refuse(mr->domain, -FI_EINVAL, MR_RAW,
					"NULL for the length or the address");
	if (arg->flags)
		return engine_mr_refuse(mr->domain, -FI_EBADFLAGS, MR_RAW,
					"there are no flags");
	if (!mr->index)
		return engine_mr_refuse(mr->domain, -FI_ENOKEY, MR_RAW,
					"the region was registered without remote access");
	room = *arg->key_size;
	*arg->key_size = RAW_LEN;
	if (room < RAW_LEN)
		return -FI_ETOOSMALL;
	if (!arg->raw_key)
		return engine_mr_refuse(mr->domain, -FI_EINVAL, MR_RAW,
					"NULL where the key is to go");
	for (uint32_t i = 0; i < RAW_LEN; i++)
		arg->raw_key[i] = (uint8_t)(mr->fid.key >> 8 * i);
	*arg->base_addr = engine_mr_name(mr);
	return 0;
}

static int engine_mr_fid_control(struct fid *fid, int command, void *arg)
{
	struct engine_mr *mr = mr_of(fid);

	switch (command) {
	case FI_ENABLE:
		return engine_mr_enable(mr);
	case FI_REFRESH:
		return engine_mr_refresh(mr, arg);
	case FI_GET_RAW_MR:
		return engine_mr_raw(mr, arg);
	default:
		return engine_no_control(fid, command, arg);
	}
}

static struct fi_ops engine_mr_fi_ops = {
	.size = sizeof(struct fi_ops),
	.close = engine_mr_close,
	.bind = engine_mr_bind,
	.control = engine_mr_fid_control,
	.ops_open = engine_no_ops_open,
	.tostr = engine_no_tostr,
	.ops_set = engine_no_ops_set,
};

/* Registration */

/*
 * The attributes as the newest interface knows them. A program of an older one has a shorter
 * struct, of which nothing more may be read.
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

/* Is @attr->base_mr one that such a region can be part of? */
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

/* Has the region no authorization key but that of its domain? */
static bool engine_mr_shares_key(const struct engine_domain *domain,
				 const struct fi_mr_attr *attr)
{
	struct engine_auth auth = domain->auth;

	return !engine_auth_read(attr->auth_key, attr->auth_key_size, &auth) &&
	       !memcmp(auth.secret, domain->auth.secret, sizeof(auth.secret));
}

/*
 * What this domain can't register, with the error that says so; 0: it can. Access bits and flags that
 * say nothing here are let through: FI_RMA, FI_MSG, hints on how the memory will be used; and so are an
 * offset, which is reserved, and a key of a domain whose endpoints let everyone in.
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

/* A key for a region that peers may access. 0 or -FI_E*. */
static int engine_mr_give_key(struct engine_mr *mr, const struct fi_mr_attr *attr)
{
	struct mr_spec spec = {
		.iov = mr->iov,
		.iov_cnt = mr->iov_cnt,
		.access = attr->access & ACCESS,
		.name = engine_mr_name(mr),
		.key = attr->requested_key,
		.object = mr,
		.live = mr->enabled,
		/* that only one endpoint leads there is nothing that peers see */
		.told = mr->domain->mr->remote_events || mr->domain->mr->mode & FI_MR_ENDPOINT,
	};
	struct mr_table *table = &mr->domain->mr->table;
	int ret;

	ret = mr_insert(table, &spec, &mr->index);
	if (ret)
		return engine_refuse_value(
			mr->domain->family, FI_LOG_MR, ret, MR_REG,
			ret == -FI_ENOKEY
				? "another region has that requested_key"
				: "a range that wraps around, a key that is none, or no memory",
			spec.key);
	mr->fid.key = mr_at(table, mr->index)->key;
	return 0;
}

static struct engine_mr *engine_mr_create(struct engine_domain *domain,
					  const struct fi_mr_attr *attr, uint64_t flags)
{
	int mode = domain->mr->mode;
	struct engine_mr *mr = platform_alloc(sizeof(*mr));

	if (!mr)
		return NULL;
	mr->fid.fid.fclass = FI_CLASS_MR;
	mr->fid.fid.context = attr->context;
	mr->fid.fid.ops = &engine_mr_fi_ops;
	mr->fid.mem_desc = mr;
	mr->fid.key = mode & FI_MR_PROV_KEY ? FI_KEY_NOTAVAIL : attr->requested_key;
	mr->domain = domain;
	mr->enabled = !(mode & FI_MR_ENDPOINT) &&
		      !(mode & FI_MR_RMA_EVENT && flags & FI_RMA_EVENT);
	mr->iov_cnt = attr->iov_count;
	memcpy(mr->iov, attr->mr_iov, attr->iov_count * sizeof(*mr->iov));
	list_init(&mr->ep_link);
	engine_cntr_region_open(&mr->reads);
	engine_cntr_region_open(&mr->writes);
	return mr;
}

/* Registers with attributes in their newest form; the domain is held. */
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
	if (attr->access & REMOTE) {
		ret = engine_mr_give_key(mr, attr);
		if (ret) {
			platform_free(mr);
			return ret;
		}
	}
	if (attr->base_mr) {
		mr->base = container_of((struct fid_mr *)attr->base_mr, struct engine_mr, fid);
		mr->base->subs++;
	}
	engine_ref(&domain->refs);
	*out = &mr->fid;
	return 0;
}

static int engine_mr_start(struct fid *fid, const struct fi_mr_attr *attr, uint64_t flags,
			   struct fid_mr **mr)
{
	struct engine_domain *domain = container_of(fid, struct engine_domain, fid.fid);
	int ret;

	engine_enter(domain);
	ret = engine_mr_register(domain, attr, flags, mr);
	engine_leave(domain);
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

/* The domain's part */

/* A raw key holds all that is to know: mapping one keeps nothing. */
static int engine_mr_map_raw(const struct engine_domain *domain,
			     const struct fi_mr_map_raw *arg)
{
	uint64_t key = 0;

	if (!arg || !arg->raw_key || !arg->key || arg->key_size != RAW_LEN)
		return engine_mr_refuse(
			domain, -FI_EINVAL, "fi_mr_map_raw",
			"a raw key as fi_mr_raw_attr gave it, and where the key is to go");
	if (arg->flags)
		return engine_mr_refuse(domain, -FI_EBADFLAGS, "fi_mr_map_raw",
					"there are no flags");
	for (uint32_t i = 0; i < RAW_LEN; i++)
		key |= (uint64_t)arg->raw_key[i] << 8 * i;
	*arg->key = key;
	return 0;
}

int engine_mr_control(struct engine_domain *domain, int command, void *arg)
{
	switch (command) {
	case FI_MAP_RAW_MR:
		return engine_mr_map_raw(domain, arg);
	case FI_UNMAP_KEY:
		return arg ? 0
			   : engine_mr_refuse(domain, -FI_EINVAL, "fi_mr_unmap_key", "NULL");
	default:
		return -FI_ENOSYS;
	}
}

void engine_mrs_tell(struct engine_domain *domain)
{
	struct mr_table *table = &domain->mr->table;

	if (domain->mr->remote_events)
		return;
	domain->mr->remote_events = true;
	for (uint32_t i = mr_next(table, 0); i; i = mr_next(table, i))
		mr_tell(table, i);
}

bool engine_mr_bound(const struct engine_domain *domain, const struct engine_ep *ep)
{
	struct list *node, *after;

	list_for_each(node, after, &domain->mr->bound) {
		if (container_of(node, struct engine_mr, ep_link)->ep == ep)
			return true;
	}
	return false;
}

/* The first wire of the family over which peers can look at the table. False: there is none. */
static bool engine_mrs_show(struct engine_mrs *mrs, const struct engine_family *family,
			    struct mr_memory *memory)
{
	for (uint32_t i = 0; i < ENGINE_WIRE_MAX - 1 && family->wires[i]; i++) {
		const struct wire_provider *wp = wire_find(family->wires[i]);

		if (!wp || !wp->ops->share_open || wp->ops->share_open(&mrs->share, memory))
			continue;
		mrs->shows = wp->ops;
		return true;
	}
	return false;
}

int engine_mrs_open(struct engine_domain *domain, int mr_mode)
{
	struct engine_mrs *mrs = platform_alloc(sizeof(*mrs));
	struct mr_memory memory;
	bool shown;

	if (!mrs)
		return -FI_ENOMEM;
	if (mr_mode & FI_MR_BASIC)
		mr_mode |= FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
	mrs->mode = mr_mode;
	shown = engine_mrs_show(mrs, domain->family, &memory);
	mr_init(&mrs->table, mr_mode & FI_MR_PROV_KEY ? MR_KEYS_ISSUED : MR_KEYS_GIVEN,
		shown ? &memory : NULL);
	list_init(&mrs->bound);
	domain->mr = mrs;
	return 0;
}

void engine_mrs_close(struct engine_domain *domain)
{
	mr_fini(&domain->mr->table);
	if (domain->mr->share)
		domain->mr->shows->share_close(domain->mr->share);
	platform_free(domain->mr);
}
