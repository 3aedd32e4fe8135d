/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The address vector object. FI_AV_MAP and FI_AV_TABLE give the same dense indices. Calls hold
 * the domain; addresses are inserted into and removed from the bound endpoints too.
 *
 * Authorization keys are not supported in address vectors: max_ep_auth_key is 0, so no domain is
 * opened with FI_AV_AUTH_KEY; fi_av_insert_auth_key and fi_av_lookup_auth_key return -FI_ENOSYS,
 * and FI_AUTH_KEY is an unknown flag.
 *
 * Source: fi_av(3).
 */
#include <rdma/fi_errno.h>
#include "av_fid.h"
#include "av_set.h"
#include "domain_fid.h"
#include "ep_names.h"
#include "eq_fid.h"
#include "ep_early.h"
#include "follow.h"
#include "forked.h"
#include "guard.h"
#include "no_call.h"
#include "peer.h"
#include "refs.h"
#include "refuse.h"

#define AV_FLAGS (FI_EVENT | FI_READ | FI_SYMMETRIC | FI_AV_USER_ID)

static struct engine_av *av_of(struct fid_av *fid)
{
	return container_of(fid, struct engine_av, fid);
}

int engine_av_add(struct engine_av *av, const struct weft_addr *address, const fi_addr_t *id,
		  fi_addr_t *addr)
{
	struct engine_ep *ep;
	fi_addr_t at;
	int ret;

	ret = av->view ? av_view_insert(av->view, address, &at)
		       : av_insert(&av->table, address, &at);
	if (ret < 0)
		return ret;
	if (ret && av->flags & FI_AV_USER_ID)
		av_set_cq_addr(&av->table, at, FI_ADDR_NOTAVAIL); /* until fi_av_set_user_id */
	if (id)
		av_set_cq_addr(&av->table, at, *id);
	list_for_each_entry(ep, &av->eps, av_link) {
		if (ret)
			engine_peer_adopt(ep, at, address);
		else if (id)
			engine_peer_update_addr(ep, at);
	}
	*addr = at;
	return 0;
}

static void engine_av_remove_one(struct engine_av *av, fi_addr_t addr)
{
	struct engine_ep *ep;
	int ret;

	ret = av->view ? av_view_remove(av->view, addr) : av_remove(&av->table, addr);
	if (ret == 1)
		list_for_each_entry(ep, &av->eps, av_link)
			engine_peer_orphan(ep, addr);
}

static int engine_av_refuse(const struct engine_av *av, int err, const char *call,
			    const char *why)
{
	return engine_refuse(av->domain->family, FI_LOG_AV, err, call, why);
}

static int engine_av_refuse_flags(const struct engine_av *av, const char *call, uint64_t flags)
{
	return engine_refuse_value(av->domain->family, FI_LOG_AV, -FI_EBADFLAGS, call,
				   "flags that the call does not accept", flags);
}

static int engine_av_remove(struct fid_av *fid, fi_addr_t *addr, size_t cnt, uint64_t flags)
{
	struct engine_av *av = av_of(fid);
	int ret;

	if (flags)
		return engine_av_refuse_flags(av, "fi_av_remove", flags);
	if (cnt && !addr)
		return engine_av_refuse(av, -FI_EINVAL, "fi_av_remove",
					"NULL for the addresses");
	engine_enter(av->domain);
	ret = engine_av_change(av);
	if (ret) {
		engine_leave(av->domain);
		return ret;
	}
	ret = av->view ? av_view_removable(av->view, addr, cnt)
		       : av_removable(&av->table, addr, cnt);
	for (size_t i = 0; i < cnt && !ret; i++)
		engine_av_remove_one(av, addr[i]);
	engine_av_changed(av);
	engine_leave(av->domain);
	return ret ? engine_av_refuse(av, ret, "fi_av_remove",
				      "an address that is not in the vector, or is listed twice")
		   : 0;
}

static int engine_av_lookup(struct fid_av *fid, fi_addr_t fi_addr, void *addr, size_t *addrlen)
{
	struct engine_av *av = av_of(fid);
	const struct engine_family *family = av->domain->family;
	const struct weft_addr *address;
	struct weft_addr found;

	if (!addrlen || (*addrlen && !addr))
		return engine_av_refuse(av, -FI_EINVAL, "fi_av_lookup",
					"NULL for the address or its length");
	engine_enter(av->domain);
	engine_av_follow(av);
	address = av_get(&av->table, fi_addr);
	if (address)
		found = *address;
	engine_leave(av->domain);
	if (!address)
		return engine_av_refuse(av, -FI_EINVAL, "fi_av_lookup",
					"no such address in the vector");
	*addrlen = engine_name_write(family, &found, addr, *addrlen);
	return 0;
}

/* Without FI_XPU this is fi_av_lookup, except for what it returns when the buffer is too small. */
static int engine_av_lookup2(struct fid_av *fid, fi_addr_t addr, void *buf, size_t *len,
			     uint64_t flags, struct fid_xpu_ctx *ctx)
{
	size_t room = len ? *len : 0;
	int ret;

	if (flags & ~FI_XPU)
		return engine_av_refuse_flags(av_of(fid), "fi_av_lookup2", flags);
	if (flags & FI_XPU)
		return -FI_ENOSYS;
	if (ctx)
		return engine_av_refuse(av_of(fid), -FI_EINVAL, "fi_av_lookup2",
					"a context, and no FI_XPU");
	ret = engine_av_lookup(fid, addr, buf, len);
	return !ret && room < *len ? -FI_ETOOSMALL : ret;
}

static const char *engine_av_straddr(struct fid_av *fid, const void *addr, char *buf,
				     size_t *len)
{
	const struct engine_family *family = av_of(fid)->domain->family;

	if (!addr || !len || (*len && !buf))
		return NULL;
	*len = family->addr_str(addr, engine_name_len(family, addr, SIZE_MAX), buf, *len);
	return buf;
}

static int engine_av_set_user_id(struct fid_av *fid, fi_addr_t addr, fi_addr_t user_id,
				 uint64_t flags)
{
	struct engine_av *av = av_of(fid);
	struct engine_ep *ep;
	int ret;

	if (flags)
		return engine_av_refuse_flags(av, "fi_av_set_user_id", flags);
	if (!(av->flags & FI_AV_USER_ID))
		return engine_av_refuse(av, -FI_EINVAL, "fi_av_set_user_id",
					"the vector was opened without FI_AV_USER_ID");
	engine_enter(av->domain);
	engine_av_follow(av);
	ret = av_set_cq_addr(&av->table, addr, user_id);
	if (!ret)
		list_for_each_entry(ep, &av->eps, av_link)
			engine_peer_update_addr(ep, addr);
	engine_leave(av->domain);
	return ret;
}

static int engine_av_no_auth_key(struct fid_av *fid, const void *key, size_t len,
				 fi_addr_t *addr, uint64_t flags)
{
	return -FI_ENOSYS;
}

static int engine_av_no_lookup_auth_key(struct fid_av *fid, fi_addr_t addr, void *key,
					size_t *len)
{
	return -FI_ENOSYS;
}

/* Returns true if no event queue is bound to the vector itself. The caller holds the domain. */
static bool engine_av_unbound(const struct engine_av *av)
{
	return !av->eq || av->eq == av->domain->eq;
}

/* Sets the event queue, in place of the domain's or for the first time. */
static int engine_av_bind_eq(struct engine_av *av, struct engine_eq *eq)
{
	struct engine_eq *drop = eq;
	int ret = engine_eq_watch(eq, av->domain);

	if (ret)
		return ret;
	engine_enter(av->domain);
	if (engine_av_unbound(av)) {
		drop = av->eq;
		av->eq = eq;
	} else if (av->eq != eq) {
		ret = -FI_EINVAL;
	}
	engine_leave(av->domain);
	if (drop)
		engine_eq_drop(drop, av->domain);
	return ret;
}

#define AV_BIND "fi_av_bind"

/*
 * Without FI_EVENT insertions are reported in the queue too, and return the same as without a
 * queue.
 */
static int engine_av_bind(struct fid *fid, struct fid *target, uint64_t flags)
{
	struct engine_av *av = container_of(fid, struct engine_av, fid.fid);
	struct engine_eq *eq;
	int ret;

	if (!target || target->fclass != FI_CLASS_EQ)
		return engine_av_refuse(av, -FI_EINVAL, AV_BIND,
					"only an event queue can be bound to an address vector");
	if (flags)
		return engine_av_refuse_flags(av, AV_BIND, flags);
	eq = container_of(target, struct engine_eq, fid.fid);
	if (eq->fabric != av->domain->fabric)
		return engine_av_refuse(av, -FI_EINVAL, AV_BIND, "a queue of another fabric");
	/* The queue is checked first: a bind that is refused gives the domain no thread. */
	engine_enter(av->domain);
	ret = engine_av_unbound(av) || av->eq == eq ? 0 : -FI_EINVAL;
	engine_leave(av->domain);
	if (!ret)
		ret = engine_av_bind_eq(av, eq);
	return ret == -FI_EINVAL
		       ? engine_av_refuse(av, ret, AV_BIND,
					  "another queue is bound, which the vector keeps")
		       : ret;
}

static int engine_av_close(struct fid *fid)
{
	struct engine_av *av = container_of(fid, struct engine_av, fid.fid);
	struct engine_domain *domain = av->domain;
	int ret = engine_left(domain, FI_LOG_AV, "fi_close of an address vector");
	bool busy;

	if (ret)
		return ret;
	engine_enter(domain);
	if (list_empty(&av->sets))
		engine_early_part_av(av);
	busy = !list_empty(&av->eps) || !list_empty(&av->sets);
	engine_leave(domain);
	if (busy)
		return engine_av_refuse(
			av, -FI_EBUSY, "fi_close of an address vector",
			"an endpoint that is enabled is bound to it, or it has sets; close those first");
	if (av->eq)
		engine_eq_drop(av->eq, domain);
	engine_av_named_close(av);
	av_fini(&av->table);
	platform_free(av);
	engine_unref(&domain->refs);
	return 0;
}

static struct fi_ops engine_av_fi_ops = {
	.size = sizeof(struct fi_ops),
	.close = engine_av_close,
	.bind = engine_av_bind,
	.control = engine_no_control,
	.ops_open = engine_no_ops_open,
	.tostr = engine_no_tostr,
	.ops_set = engine_no_ops_set,
};

static struct fi_ops_av engine_av_ops = {
	.size = sizeof(struct fi_ops_av),
	.insert = engine_av_insert,
	.insertsvc = engine_av_insertsvc,
	.insertsym = engine_av_insertsym,
	.remove = engine_av_remove,
	.lookup = engine_av_lookup,
	.straddr = engine_av_straddr,
	.av_set = engine_av_set_open,
	.insert_auth_key = engine_av_no_auth_key,
	.lookup_auth_key = engine_av_no_lookup_auth_key,
	.set_user_id = engine_av_set_user_id,
	.lookup2 = engine_av_lookup2,
};

#define AV_OPEN "fi_av_open"

/* count, ep_per_node and FI_SYMMETRIC are hints; every type becomes FI_AV_TABLE. */
static int engine_av_attr_check(const struct engine_domain *domain,
				const struct fi_av_attr *attr)
{
	const struct engine_family *family = domain->family;

	if (attr->flags & ~AV_FLAGS)
		return engine_refuse_value(
			family, FI_LOG_AV, -FI_EBADFLAGS, AV_OPEN,
			"flags are FI_EVENT, FI_READ, FI_SYMMETRIC, FI_AV_USER_ID", attr->flags);
	if (attr->rx_ctx_bits < 0 || attr->rx_ctx_bits > ENGINE_RX_CTX_BITS_MAX)
		return engine_refuse_value(
			family, FI_LOG_AV, -FI_EINVAL, AV_OPEN,
			"more rx_ctx_bits than leave room for addresses in an fi_addr_t",
			(uint64_t)attr->rx_ctx_bits);
	if (attr->name ? !*attr->name : !!(attr->flags & FI_READ))
		return engine_refuse(family, FI_LOG_AV, -FI_EINVAL, AV_OPEN,
				     "an empty name, or FI_READ without one");
	return 0;
}

/* Returns a vector without addresses or event queue, owned, or NULL without memory. */
static struct engine_av *engine_av_new(struct engine_domain *domain,
				       const struct fi_av_attr *attr, void *context)
{
	struct engine_av *av = platform_alloc(sizeof(*av));

	if (!av)
		return NULL;
	if (av_init(&av->table, attr->count ? attr->count : 64)) {
		platform_free(av);
		return NULL;
	}
	list_init(&av->eps);
	list_init(&av->sets);
	av->domain = domain;
	av->flags = attr->flags;
	av->rx_ctx_bits = (uint32_t)attr->rx_ctx_bits;
	av->fid.fid.fclass = FI_CLASS_AV;
	av->fid.fid.context = context;
	av->fid.fid.ops = &engine_av_fi_ops;
	av->fid.ops = &engine_av_ops;
	return av;
}

int engine_av_open(struct fid_domain *fid, struct fi_av_attr *attr, struct fid_av **out,
		   void *context)
{
	struct engine_domain *domain = container_of(fid, struct engine_domain, fid);
	struct engine_eq *eq;
	struct engine_av *av;
	int ret;

	if (!attr || !out)
		return engine_refuse(domain->family, FI_LOG_AV, -FI_EINVAL, AV_OPEN,
				     "NULL for the attributes, or where the vector is to go");
	ret = engine_av_attr_check(domain, attr);
	if (ret)
		return ret;
	av = engine_av_new(domain, attr, context);
	if (!av)
		return -FI_ENOMEM;
	eq = attr->flags & FI_EVENT ? engine_domain_eq(domain) : NULL;
	ret = eq ? engine_av_bind_eq(av, eq) : 0;
	if (ret)
		goto err_free;
	ret = attr->name ? engine_av_named_open(av, attr) : 0;
	if (ret)
		goto err_eq;
	if (attr->type == FI_AV_UNSPEC)
		attr->type = FI_AV_TABLE;
	engine_ref(&domain->refs);
	*out = &av->fid;
	return 0;

err_eq:
	if (av->eq)
		engine_eq_drop(av->eq, domain);
err_free:
	av_fini(&av->table);
	platform_free(av);
	return ret;
}
