/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The memory region object, once it is registered (mr_reg.c). Programs call the slots on any
 * thread that the domain's threading level allows, as the registrar of the domain, or with the
 * domain held (registrar.h).
 */
#include <rdma/fi_errno.h>
#include "cntr.h"
#include "forked.h"
#include "mr_fid.h"
#include "no_call.h"
#include "progress.h"
#include "refuse.h"
#include "registrar.h"

#define REMOTE	 (FI_REMOTE_READ | FI_REMOTE_WRITE)
#define CLOSE_NS 1000000000u /* time that fi_close waits for transfers in flight, ns */
#define RAW_LEN	 8u

static struct engine_mr *mr_of(struct fid *fid)
{
	return container_of(fid, struct engine_mr, fid.fid);
}

/* Returns true if a range is inside one of the pieces of a region. */
static bool engine_mr_holds(const struct engine_mr *mr, const struct iovec *range)
{
	for (size_t i = 0; i < mr->iov_cnt; i++) {
		uint64_t at = (uintptr_t)range->iov_base - (uintptr_t)mr->iov[i].iov_base;

		if (at <= mr->iov[i].iov_len && range->iov_len <= mr->iov[i].iov_len - at)
			return true;
	}
	return false;
}

bool engine_mr_holds_all(const struct engine_mr *mr, const struct iovec *iov, size_t cnt)
{
	for (size_t i = 0; i < cnt; i++) {
		if (!engine_mr_holds(mr, &iov[i]))
			return false;
	}
	return true;
}

/* Close */

/*
 * Returns true if a transfer is in flight: of this process, or of a peer that accesses the memory
 * itself.
 */
static bool engine_mr_used(const struct engine_mr *mr)
{
	const struct engine_mrs *mrs = mr->domain->mr;

	return mr->refs || (mrs->share && mrs->shows->share_used(mrs->share, mr->index));
}

/* Waits for transfers in flight. Returns false if some are left after CLOSE_NS. */
static bool engine_mr_wait(struct engine_mr *mr)
{
	struct engine_domain *domain = mr->domain;
	uint64_t end;

	if (!engine_mr_used(mr))
		return true;
	end = platform_now_ns() + CLOSE_NS;
	while (engine_mr_used(mr)) {
		engine_domain_progress(domain);
		if (!engine_mr_used(mr))
			break;
		if (platform_now_ns() >= end)
			return false;
		engine_leave(domain);
		platform_yield();
		engine_regions_hold(domain);
	}
	return true;
}

/* Takes the memory away from peers that access it and do not end. Returns false if some still do. */
static bool engine_mr_cut(const struct engine_mr *mr)
{
	const struct engine_mrs *mrs = mr->domain->mr;

	return !mr->refs && mrs->share && mrs->shows->share_cut && mr->iov_cnt == 1 &&
	       mrs->shows->share_cut(mrs->share, mr->index, mr->iov[0].iov_base,
				     mr->iov[0].iov_len);
}

#define MR_CLOSE "fi_close of a memory region"

/* Ends the use of the key. Returns 0, or -FI_EBUSY with the key still in use. */
static int engine_mr_end_key(struct engine_mr *mr)
{
	struct mr_table *table = &mr->domain->mr->table;

	mr_invalidate(table, mr->index);
	if (!engine_mr_wait(mr) && !engine_mr_cut(mr)) {
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

/*
 * Ends what a region has without its key, and frees it: it has no endpoint, no counters, no checks
 * and no users, as engine_mr_create() expects it.
 */
static inline void engine_mr_free(struct engine_mr *mr)
{
	struct engine_mrs *mrs = mr->domain->mr;

	if (mrs->device_cnt)
		engine_mr_unpin(mr);
	if (mr->base) {
		mr->base->subs--;
		mr->base = NULL;
	}
	if (unlikely(mr->checks.cnt))
		mr->checks = (struct engine_mr_checks){ 0 };
	engine_mrs_count(mrs, UINT32_MAX);
	pool_put(&mrs->pool, mr);
}

/* A thread that waited when the process was forked is not in the child. */
static bool engine_mr_closing(const struct engine_mr *mr)
{
	return mr->closing && mr->closing == platform_forks() + 1;
}

/* Closes a region; the domain is held. */
static int engine_mr_close_held(struct engine_mr *mr)
{
	int ret = 0;

	if (mr->subs || engine_mr_closing(mr))
		return engine_refuse(
			mr->domain->family, FI_LOG_MR, -FI_EBUSY, MR_CLOSE,
			"regions are part of it, or another thread closes it; close those first");
	if (mr->index) {
		mr->closing = platform_forks() + 1;
		ret = engine_mr_end_key(mr);
		mr->closing = 0;
	}
	if (ret)
		return ret;
	list_remove(&mr->ep_link);
	mr->ep = NULL;
	engine_cntr_region_close(&mr->reads);
	engine_cntr_region_close(&mr->writes);
	engine_mr_free(mr);
	return 0;
}

/* Ends the use of the key as the registrar. Returns false, with nothing changed, if a peer may use it. */
static bool engine_mr_end_key_early(struct engine_mr *mr)
{
	struct engine_mrs *mrs = mr->domain->mr;

	mr_invalidate(&mrs->table, mr->index);
	if (mrs->share &&
	    (!mrs->shows->share_marked || mrs->shows->share_marked(mrs->share, mr->index))) {
		if (mr->enabled)
			mr_validate(&mrs->table, mr->index);
		return false;
	}
	mr_remove(&mrs->table, mr->index);
	return true;
}

/*
 * Closes a region as the registrar, which no other object has to do with, and no transfer. Returns
 * false, with nothing changed, if that is not so.
 */
static bool engine_mr_close_early(struct engine_mr *mr)
{
	if (mr->subs | mr->refs | mr->closing)
		return false;
	if (mr->ep || mr->reads.cntr || mr->writes.cntr)
		return false;
	if (mr->index && !engine_mr_end_key_early(mr))
		return false;
	engine_mr_free(mr);
	return true;
}

static int engine_mr_close(struct fid *fid)
{
	struct engine_mr *mr = mr_of(fid);
	struct engine_domain *domain = mr->domain;
	uint32_t turn = engine_regions_begin(domain);
	int ret = 0;

	if (unlikely(turn == ENGINE_REGIONS_HELD)) {
		ret = engine_left(domain, FI_LOG_MR, MR_CLOSE);
		if (ret)
			return ret;
		engine_regions_appoint(domain);
		ret = engine_mr_close_held(mr);
	} else if (unlikely(!engine_mr_close_early(mr))) {
		engine_regions_leave(domain, turn);
		engine_regions_hold(domain);
		turn = ENGINE_REGIONS_HELD;
		ret = engine_mr_close_held(mr);
	}
	engine_regions_leave(domain, turn);
	return ret;
}

/* Bind and control */

#define MR_BIND "fi_mr_bind"

/* Flags that belong to counters are accepted for an endpoint, since programs pass them. */
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
	list_add_tail(&mr->domain->mr->bound, &mr->ep_link);
	return 0;
}

static bool engine_region_free(const struct cntr_region *r, const struct engine_cntr *cntr)
{
	return !r->cntr || r->cntr == cntr;
}

/* Binds a counter of remote operations on the region. Source: fi_mr(3), fi_mr_bind. */
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
		mr_set_notify(&mr->domain->mr->table, mr->index);
	return 0;
}

/*
 * Accepted without effect: writes with data complete in the queues of endpoints. Source:
 * libfabric's sockets provider.
 */
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
		return engine_refuse(mr->domain->family, FI_LOG_MR, -FI_EINVAL, MR_BIND, "NULL");
	engine_regions_hold(mr->domain);
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

	engine_regions_hold(mr->domain);
	if (engine_mr_closing(mr) || (mr->domain->mr->mode & FI_MR_ENDPOINT && !mr->ep)) {
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

/* Checks the ranges. There is nothing to refresh: the memory is in this process's address space. */
static int engine_mr_refresh(struct engine_mr *mr, const struct fi_mr_modify *arg)
{
	if (!arg || (arg->attr.iov_count && !arg->attr.mr_iov))
		return engine_mr_refuse(mr->domain, -FI_EINVAL, "fi_mr_refresh", "NULL");
	if (arg->flags)
		return engine_mr_refuse(mr->domain, -FI_EBADFLAGS, "fi_mr_refresh",
					"no flags are valid");
	if (!engine_mr_holds_all(mr, arg->attr.mr_iov, arg->attr.iov_count))
		return engine_mr_refuse(mr->domain, -FI_EINVAL, "fi_mr_refresh",
					"a range that is not in the region");
	return 0;
}

static int engine_mr_raw(struct engine_mr *mr, const struct fi_mr_raw_attr *arg)
{
	size_t room;

	if (!arg || !arg->key_size || !arg->base_addr)
		return engine_mr_refuse(mr->domain, -FI_EINVAL, MR_RAW,
					"NULL for the length or the address");
	if (arg->flags)
		return engine_mr_refuse(mr->domain, -FI_EBADFLAGS, MR_RAW, "no flags are valid");
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
	*arg->base_addr = engine_mr_iova(mr);
	return 0;
}

/* A raw key contains all that is needed: mapping one stores nothing. */
static int engine_mr_map_raw(const struct engine_domain *domain, const struct fi_mr_map_raw *arg)
{
	uint64_t key = 0;

	if (!arg || !arg->raw_key || !arg->key || arg->key_size != RAW_LEN)
		return engine_mr_refuse(
			domain, -FI_EINVAL, "fi_mr_map_raw",
			"a raw key as fi_mr_raw_attr gave it, and where the key is to go");
	if (arg->flags)
		return engine_mr_refuse(domain, -FI_EBADFLAGS, "fi_mr_map_raw",
					"no flags are valid");
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
		return arg ? 0 : engine_mr_refuse(domain, -FI_EINVAL, "fi_mr_unmap_key", "NULL");
	default:
		return -FI_ENOSYS;
	}
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

struct fi_ops engine_mr_fi_ops = {
	.size = sizeof(struct fi_ops),
	.close = engine_mr_close,
	.bind = engine_mr_bind,
	.control = engine_mr_fid_control,
	.ops_open = engine_no_ops_open,
	.tostr = engine_no_tostr,
	.ops_set = engine_no_ops_set,
};
