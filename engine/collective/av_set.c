/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Sets of addresses: ordered arrays without duplicates. Called by programs; each call holds the
 * domain. A set is local and contains indices: an address that is removed from the vector stays a
 * member.
 *
 * Source: fi_av_set(3).
 */
#include <rdma/fi_errno.h>
#include "av_set.h"
#include "follow.h"
#include "forked.h"
#include "guard.h"
#include "no_call.h"
#include "refuse.h"

static struct engine_av_set *set_of(const struct fid_av_set *fid)
{
	return container_of(fid, struct engine_av_set, fid);
}

size_t engine_av_set_rank(const struct engine_av_set *set, fi_addr_t addr)
{
	for (size_t i = 0; i < set->cnt; i++)
		if (set->addrs[i] == addr)
			return i;
	return SIZE_MAX;
}

struct engine_av_set *engine_av_set_at(const struct engine_av *av, fi_addr_t addr)
{
	struct engine_av_set *set;

	list_for_each_entry(set, &av->sets, link) {
		if (set->addr == addr)
			return set;
	}
	return NULL;
}

struct engine_av_set *engine_av_set_of(const struct engine_av *av, const struct fid_av_set *fid)
{
	if (!fid || fid->fid.fclass != FI_CLASS_AV_SET || set_of(fid)->av != av)
		return NULL;
	return set_of(fid);
}

/* Makes room for @cnt members. Returns 0, or -FI_ENOMEM with the set unchanged. */
static int engine_set_room(struct engine_av_set *set, size_t cnt)
{
	size_t cap = set->cap ? set->cap : 16;
	fi_addr_t *addrs;

	if (cnt <= set->cap)
		return 0;
	while (cap < cnt)
		cap *= 2;
	addrs = platform_alloc(cap * sizeof(*addrs));
	if (!addrs)
		return -FI_ENOMEM;
	if (set->cnt)
		memcpy(addrs, set->addrs, set->cnt * sizeof(*addrs));
	platform_free(set->addrs);
	set->addrs = addrs;
	set->cap = cap;
	return 0;
}

static int engine_set_refuse(const struct engine_av *av, int err, const char *call,
			     const char *why)
{
	return engine_refuse(av->domain->family, FI_LOG_AV, err, call, why);
}

static int engine_set_insert(struct fid_av_set *fid, fi_addr_t addr)
{
	struct engine_av_set *set = set_of(fid);
	struct engine_av *av = set->av;
	int ret = -FI_EINVAL;

	engine_enter(av->domain);
	engine_av_follow(av);
	if (av_get(&av->table, addr) && engine_av_set_rank(set, addr) == SIZE_MAX)
		ret = engine_set_room(set, set->cnt + 1);
	if (!ret)
		set->addrs[set->cnt++] = addr;
	engine_leave(av->domain);
	return ret ? engine_set_refuse(
			     av, ret, "fi_av_set_insert",
			     "an address that is not in the vector, or in the set already")
		   : 0;
}

static int engine_set_remove(struct fid_av_set *fid, fi_addr_t addr)
{
	struct engine_av_set *set = set_of(fid);
	struct engine_domain *domain = set->av->domain;
	size_t at;

	engine_enter(domain);
	at = engine_av_set_rank(set, addr);
	if (at != SIZE_MAX) {
		set->cnt--;
		memmove(&set->addrs[at], &set->addrs[at + 1],
			(set->cnt - at) * sizeof(*set->addrs));
	}
	engine_leave(domain);
	return at == SIZE_MAX ? engine_set_refuse(set->av, -FI_EINVAL, "fi_av_set_remove",
						  "an address that is not in the set")
			      : 0;
}

/* Returns true if @src may be combined with @dst. */
static bool engine_sets_fit(const struct fid_av_set *dst, const struct fid_av_set *src)
{
	return dst && src && src->fid.fclass == FI_CLASS_AV_SET &&
	       set_of(dst)->av == set_of(src)->av;
}

static int engine_set_union(struct fid_av_set *to, const struct fid_av_set *from)
{
	struct engine_av_set *dst, *src;
	int ret;

	if (!engine_sets_fit(to, from))
		return engine_set_refuse(set_of(to)->av, -FI_EINVAL, "a call on two sets",
					 "sets of one address vector");
	dst = set_of(to);
	src = set_of(from);
	engine_enter(dst->av->domain);
	ret = engine_set_room(dst, dst->cnt + src->cnt);
	for (size_t i = 0, cnt = src->cnt; !ret && i < cnt; i++)
		if (engine_av_set_rank(dst, src->addrs[i]) == SIZE_MAX)
			dst->addrs[dst->cnt++] = src->addrs[i];
	engine_leave(dst->av->domain);
	return ret;
}

/* Keeps the members that are in @from (@in), or those that are not, in their order. */
static int engine_set_filter(struct fid_av_set *to, const struct fid_av_set *from, bool in)
{
	struct engine_av_set *dst, *src;
	size_t kept = 0;

	if (!engine_sets_fit(to, from))
		return engine_set_refuse(set_of(to)->av, -FI_EINVAL, "a call on two sets",
					 "sets of one address vector");
	dst = set_of(to);
	src = set_of(from);
	engine_enter(dst->av->domain);
	if (dst == src) {
		kept = in ? dst->cnt : 0;
	} else {
		for (size_t i = 0; i < dst->cnt; i++)
			if ((engine_av_set_rank(src, dst->addrs[i]) != SIZE_MAX) == in)
				dst->addrs[kept++] = dst->addrs[i];
	}
	dst->cnt = kept;
	engine_leave(dst->av->domain);
	return 0;
}

static int engine_set_intersect(struct fid_av_set *dst, const struct fid_av_set *src)
{
	return engine_set_filter(dst, src, true);
}

static int engine_set_diff(struct fid_av_set *dst, const struct fid_av_set *src)
{
	return engine_set_filter(dst, src, false);
}

static int engine_set_addr(struct fid_av_set *fid, fi_addr_t *addr)
{
	if (!addr)
		return engine_set_refuse(set_of(fid)->av, -FI_EINVAL, "fi_av_set_addr", "NULL");
	*addr = set_of(fid)->addr;
	return 0;
}

static struct fi_ops_av_set engine_set_ops = {
	.size = sizeof(struct fi_ops_av_set),
	.set_union = engine_set_union,
	.intersect = engine_set_intersect,
	.diff = engine_set_diff,
	.insert = engine_set_insert,
	.remove = engine_set_remove,
	.addr = engine_set_addr,
};

static int engine_set_close(struct fid *fid)
{
	struct engine_av_set *set = container_of(fid, struct engine_av_set, fid.fid);
	struct engine_domain *domain = set->av->domain;
	int ret = engine_left(domain, FI_LOG_AV, "fi_close of an address vector set");

	if (ret)
		return ret;
	engine_enter(domain);
	list_remove(&set->link);
	engine_leave(domain);
	platform_free(set->addrs);
	platform_free(set);
	return 0;
}

static struct fi_ops engine_set_fi_ops = {
	.size = sizeof(struct fi_ops),
	.close = engine_set_close,
	.bind = engine_no_bind,
	.control = engine_no_control,
	.ops_open = engine_no_ops_open,
	.tostr = engine_no_tostr,
	.ops_set = engine_no_ops_set,
};

#define SET_OPEN "fi_av_set"

static int engine_set_attr_check(const struct engine_domain *domain,
				 const struct fi_av_set_attr *attr)
{
	bool start = attr->start_addr != FI_ADDR_NOTAVAIL,
	     end = attr->end_addr != FI_ADDR_NOTAVAIL;

	if (attr->flags & ~(FI_UNIVERSE | ENGINE_SET_COLLECTIVES))
		return engine_refuse_value(domain->family, FI_LOG_AV, -FI_EBADFLAGS, SET_OPEN,
					   "flags are FI_UNIVERSE and those of collectives",
					   attr->flags);
	if (attr->comm_key_size)
		return engine_refuse(domain->family, FI_LOG_AV, -FI_ENOSYS, SET_OPEN,
				     "sets have no comm_key");
	if (attr->flags & FI_UNIVERSE || (!start && !end))
		return 0;
	if (start != end || attr->start_addr > attr->end_addr || !attr->stride ||
	    (attr->count && (attr->end_addr - attr->start_addr) / attr->stride >= attr->count))
		return engine_refuse(
			domain->family, FI_LOG_AV, -FI_EINVAL, SET_OPEN,
			"start_addr to end_addr by stride is no range of count addresses");
	return 0;
}

/* Adds the first members: the existing addresses from @start to @end, @stride apart. */
static int engine_set_fill(struct engine_av_set *set, fi_addr_t start, fi_addr_t end,
			   uint64_t stride)
{
	const struct av_table *table = &set->av->table;

	for (fi_addr_t at = start; at <= end && at < table->cap; at += stride) {
		if (av_get(table, at)) {
			if (engine_set_room(set, set->cnt + 1))
				return -FI_ENOMEM;
			set->addrs[set->cnt++] = at;
		}
		if (stride > UINT64_MAX - at)
			break;
	}
	return 0;
}

/* Returns a set without members, owned, or NULL without memory. */
static struct engine_av_set *engine_set_new(struct engine_av *av,
					    const struct fi_av_set_attr *attr, void *context)
{
	struct engine_av_set *set = platform_alloc(sizeof(*set));

	if (!set)
		return NULL;
	set->fid.fid.fclass = FI_CLASS_AV_SET;
	set->fid.fid.context = context;
	set->fid.fid.ops = &engine_set_fi_ops;
	set->fid.ops = &engine_set_ops;
	set->av = av;
	set->collectives = attr->flags & ENGINE_SET_COLLECTIVES
				   ? attr->flags & ENGINE_SET_COLLECTIVES
				   : ENGINE_SET_COLLECTIVES;
	return set;
}

/* Sets the first members and the address of the set. With the domain held. */
static int engine_set_start(struct engine_av_set *set, const struct fi_av_set_attr *attr)
{
	struct engine_av *av = set->av;
	int ret = 0;

	engine_av_follow(av);
	if (attr->flags & FI_UNIVERSE)
		ret = engine_set_fill(set, 0, FI_ADDR_NOTAVAIL, 1);
	else if (attr->start_addr != FI_ADDR_NOTAVAIL)
		ret = engine_set_fill(set, attr->start_addr, attr->end_addr, attr->stride);
	if (ret)
		return ret;
	set->addr = ENGINE_SET_ADDR | av->set_cnt++;
	list_add_tail(&av->sets, &set->link);
	return 0;
}

int engine_av_set_open(struct fid_av *fid, struct fi_av_set_attr *attr, struct fid_av_set **out,
		       void *context)
{
	struct engine_av *av = container_of(fid, struct engine_av, fid);
	struct engine_av_set *set;
	int ret;

	if (!attr || !out)
		return engine_refuse(av->domain->family, FI_LOG_AV, -FI_EINVAL, SET_OPEN,
				     "NULL for the attributes, or where the set is to go");
	ret = engine_set_attr_check(av->domain, attr);
	if (ret)
		return ret;
	set = engine_set_new(av, attr, context);
	if (!set)
		return -FI_ENOMEM;
	engine_enter(av->domain);
	ret = engine_set_start(set, attr);
	engine_leave(av->domain);
	if (ret) {
		platform_free(set->addrs);
		platform_free(set);
		return ret;
	}
	*out = &set->fid;
	return 0;
}
