/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The address vector object. FI_AV_MAP and FI_AV_TABLE give the same dense indices. Calls hold
 * the domain; endpoints that are bound learn of what comes and goes.
 */
#include <rdma/fi_errno.h>
#include "fids.h"
#include "peer.h"

#define WHY_LEN 128u

static struct engine_av *av_of(struct fid_av *fid)
{
	return container_of(fid, struct engine_av, fid);
}

/* One address into the table and to the bound endpoints. 0 or -FI_E* */
static int engine_av_add(struct engine_av *av, const struct weft_addr *address, fi_addr_t *out)
{
	struct list *node, *after;
	fi_addr_t addr;
	int ret;

	ret = av_insert(&av->table, address, &addr);
	if (ret < 0)
		return ret;
	if (ret)
		list_for_each(node, after, &av->eps)
			engine_peer_adopt(container_of(node, struct engine_ep, av_link), addr, address);
	if (out)
		*out = addr;
	return 0;
}

static int engine_av_insert(struct fid_av *fid, const void *addr, size_t cnt, fi_addr_t *out, uint64_t flags,
			    void *context)
{
	struct engine_av *av = av_of(fid);
	const struct engine_family *family = av->domain->family;
	int *errors = flags & FI_SYNC_ERR ? context : NULL;
	struct weft_addr address;
	char why[WHY_LEN] = "";
	bool told = false;
	int done = 0;
	int ret;

	if (flags & ~(FI_MORE | FI_SYNC_ERR))
		return -FI_EBADFLAGS;
	if ((cnt && !addr) || (flags & FI_SYNC_ERR && !context))
		return -FI_EINVAL;
	engine_enter(av->domain);
	for (size_t i = 0; i < cnt; i++) {
		ret = family->addr_read((const char *)addr + i * family->addr_len, &address, why, sizeof(why));
		if (ret && !told) {
			FI_WARN(family->provider, FI_LOG_AV, "address %zu of %zu: %s\n", i + 1, cnt, why);
			told = true;
		}
		if (!ret)
			ret = engine_av_add(av, &address, out ? &out[i] : NULL);
		if (ret && out)
			out[i] = FI_ADDR_NOTAVAIL;
		if (errors)
			errors[i] = -ret;
		done += !ret;
	}
	engine_leave(av->domain);
	return done;
}

static int engine_av_insertsvc(struct fid_av *fid, const char *node, const char *service, fi_addr_t *out,
			       uint64_t flags, void *context)
{
	struct engine_av *av = av_of(fid);
	const struct engine_family *family = av->domain->family;
	struct weft_addr address;
	int ret;

	if (flags & ~(FI_MORE | FI_SYNC_ERR))
		return -FI_EBADFLAGS;
	if (!node || !service)
		return -FI_EINVAL;
	if (!family->resolve)
		return -FI_ENOSYS;
	ret = family->resolve(node, service, 0, &address);
	if (!ret) {
		engine_enter(av->domain);
		ret = engine_av_add(av, &address, out);
		engine_leave(av->domain);
	}
	if (ret && out)
		*out = FI_ADDR_NOTAVAIL;
	if (flags & FI_SYNC_ERR && context)
		*(int *)context = -ret;
	return ret ? ret : 1;
}

static int engine_av_insertsym(struct fid_av *fid, const char *node, size_t node_cnt, const char *service,
			       size_t svc_cnt, fi_addr_t *out, uint64_t flags, void *context)
{
	return -FI_ENOSYS;
}

static int engine_av_remove(struct fid_av *fid, fi_addr_t *addr, size_t cnt, uint64_t flags)
{
	struct engine_av *av = av_of(fid);
	struct list *node, *after;
	int first = 0;

	if (flags)
		return -FI_EBADFLAGS;
	if (cnt && !addr)
		return -FI_EINVAL;
	engine_enter(av->domain);
	for (size_t i = 0; i < cnt; i++) {
		int ret = av_remove(&av->table, addr[i]);

		if (ret < 0 && !first)
			first = ret;
		if (ret == 1)
			list_for_each(node, after, &av->eps)
				engine_peer_orphan(container_of(node, struct engine_ep, av_link), addr[i]);
	}
	engine_leave(av->domain);
	return first;
}

static int engine_av_lookup(struct fid_av *fid, fi_addr_t fi_addr, void *addr, size_t *addrlen)
{
	struct engine_av *av = av_of(fid);
	const struct engine_family *family = av->domain->family;
	const struct weft_addr *address;
	uint8_t whole[sizeof(struct weft_addr)];
	size_t room;

	if (!addrlen || (*addrlen && !addr))
		return -FI_EINVAL;
	engine_enter(av->domain);
	address = av_get(&av->table, fi_addr);
	if (address)
		family->addr_write(address, whole);
	engine_leave(av->domain);
	if (!address)
		return -FI_EINVAL;
	room = *addrlen;
	*addrlen = family->addr_len;
	memcpy(addr, whole, room < family->addr_len ? room : family->addr_len);
	return 0;
}

static const char *engine_av_straddr(struct fid_av *fid, const void *addr, char *buf, size_t *len)
{
	const struct engine_family *family = av_of(fid)->domain->family;

	if (!addr || !len || (*len && !buf))
		return NULL;
	*len = family->addr_str(addr, buf, *len);
	return buf;
}

static int engine_av_no_set(struct fid_av *fid, struct fi_av_set_attr *attr, struct fid_av_set **set, void *context)
{
	return -FI_ENOSYS;
}

static int engine_av_no_auth_key(struct fid_av *fid, const void *key, size_t len, fi_addr_t *addr, uint64_t flags)
{
	return -FI_ENOSYS;
}

static int engine_av_no_lookup_auth_key(struct fid_av *fid, fi_addr_t addr, void *key, size_t *len)
{
	return -FI_ENOSYS;
}

static int engine_av_no_user_id(struct fid_av *fid, fi_addr_t addr, fi_addr_t user_id, uint64_t flags)
{
	return -FI_ENOSYS;
}

static int engine_av_lookup2(struct fid_av *fid, fi_addr_t addr, void *buf, size_t *len, uint64_t flags,
			     struct fid_xpu_ctx *ctx)
{
	return -FI_ENOSYS;
}

static int engine_av_bind(struct fid *fid, struct fid *target, uint64_t flags)
{
	if (!target || target->fclass != FI_CLASS_EQ)
		return -FI_EINVAL;
	return -FI_ENOSYS; /* insertion is never asynchronous */
}

static int engine_av_close(struct fid *fid)
{
	struct engine_av *av = container_of(fid, struct engine_av, fid.fid);
	struct engine_domain *domain = av->domain;

	bool busy;

	engine_enter(domain);
	busy = !list_empty(&av->eps);
	engine_leave(domain);
	if (busy)
		return -FI_EBUSY;
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
	.av_set = engine_av_no_set,
	.insert_auth_key = engine_av_no_auth_key,
	.lookup_auth_key = engine_av_no_lookup_auth_key,
	.set_user_id = engine_av_no_user_id,
	.lookup2 = engine_av_lookup2,
};

int engine_av_open(struct fid_domain *fid, struct fi_av_attr *attr, struct fid_av **out, void *context)
{
	struct engine_domain *domain = container_of(fid, struct engine_domain, fid);
	struct engine_av *av;
	int ret;

	if (!attr || !out)
		return -FI_EINVAL;
	if (attr->name || attr->rx_ctx_bits || attr->flags & ~FI_SYMMETRIC)
		return -FI_ENOSYS;
	av = platform_alloc(sizeof(*av));
	if (!av)
		return -FI_ENOMEM;
	ret = av_init(&av->table, attr->count ? attr->count : 64);
	if (ret) {
		platform_free(av);
		return ret;
	}
	if (attr->type == FI_AV_UNSPEC)
		attr->type = FI_AV_TABLE;
	av->fid.fid.fclass = FI_CLASS_AV;
	av->fid.fid.context = context;
	av->fid.fid.ops = &engine_av_fi_ops;
	av->fid.ops = &engine_av_ops;
	av->domain = domain;
	list_init(&av->eps);
	engine_ref(&domain->refs);
	*out = &av->fid;
	return 0;
}
