/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Named address vectors: processes of one user on one host that open the same name with the same
 * provider have the same addresses at the same fi_addr_t. The first process that opens the name
 * without FI_READ creates the table, and the name exists until that process closes it. Processes
 * that still have it open then keep their table and its addresses; the next process that opens the
 * name creates a new one. Every process that opened it without FI_READ may change it. User ids
 * (FI_AV_USER_ID) belong to each process.
 *
 * Called with the domain held, except to open and close. A process that is stopped while it changes
 * the vector blocks others that change it, but not those that use it.
 *
 * Source: fi_av(3), name, map_addr and FI_READ. The page does not define what map_addr points to;
 * programs expect the fi_addr_t of each insertion (libfabric's own fi_rdm_shared_av does).
 */
#include <rdma/fi_errno.h>
#include "av_fid.h"
#include "peer.h"

#define OPEN_NS 1000000000u /* time to retry a name that is created and closed meanwhile, ns */

/* Appends @text. Returns false when there is no room for it. */
static bool engine_name_append(char *name, size_t *at, const char *text)
{
	size_t len = strlen(text);

	if (len >= AV_SHARED_NAME - *at)
		return false;
	memcpy(name + *at, text, len + 1);
	*at += len;
	return true;
}

/* Builds the shared name: addresses of another provider or format get another table. */
static int engine_av_name(const struct engine_av *av, const char *given, char *name)
{
	const struct engine_family *family = av->domain->family;
	char format[2] = { (char)('0' + family->addr_format % 64), '\0' };
	size_t at = 0;

	if (engine_name_append(name, &at, family->provider->name) &&
	    engine_name_append(name, &at, "/") && engine_name_append(name, &at, format) &&
	    engine_name_append(name, &at, "/") && engine_name_append(name, &at, given))
		return 0;
	return -FI_EINVAL;
}

static int engine_av_share(const char *name, size_t cnt, struct platform_shared **shared)
{
	size_t len = av_shared_len(cnt);
	int ret;

	ret = platform_shared_create(name, len, shared);
	if (ret)
		return ret;
	av_shared_format(platform_shared_map(*shared, &len), len, name);
	ret = platform_shared_publish(*shared);
	if (ret)
		platform_shared_close(*shared);
	return ret;
}

static int engine_av_find(const char *name, size_t cnt, bool read_only,
			  struct platform_shared **shared)
{
	uint64_t end = platform_now_ns() + OPEN_NS;
	int ret;

	for (;;) {
		ret = platform_shared_attach(name, !read_only, shared);
		if (ret == -FI_ENOENT && !read_only)
			ret = engine_av_share(name, cnt, shared);
		if (ret != -FI_EAGAIN && ret != -FI_EADDRINUSE)
			return ret;
		if (platform_now_ns() >= end)
			return -FI_EAGAIN;
		platform_yield();
	}
}

static void engine_av_pulled(void *arg, fi_addr_t addr, const struct weft_addr *address)
{
	struct engine_av *av = arg;
	struct engine_ep *ep;

	if (address && av->flags & FI_AV_USER_ID)
		av_set_cq_addr(&av->table, addr, FI_ADDR_NOTAVAIL);
	list_for_each_entry(ep, &av->eps, av_link) {
		if (address)
			engine_peer_adopt(ep, addr, address);
		else
			engine_peer_orphan(ep, addr);
	}
}

static void engine_av_pull(struct engine_av *av)
{
	av_view_pull(av->view, engine_av_pulled,
		     av); /* without memory the remaining addresses are read next time */
}

int engine_av_named_open(struct engine_av *av, struct fi_av_attr *attr)
{
	char name[AV_SHARED_NAME];
	size_t len;
	void *map;
	int ret;

	ret = engine_av_name(av, attr->name, name);
	if (ret)
		return ret;
	ret = engine_av_find(name, attr->count, attr->flags & FI_READ, &av->shared);
	if (ret)
		return ret;
	map = platform_shared_map(av->shared, &len);
	av->view = platform_alloc(sizeof(*av->view));
	ret = av->view ? av_view_init(av->view, map, len, name, &av->table) : -FI_ENOMEM;
	if (ret) {
		platform_free(av->view);
		platform_shared_close(av->shared);
		return ret;
	}
	av->pull = engine_av_pull;
	if (!attr->map_addr) /* an index is the same in every process */
		attr->map_addr = av->view->addrs;
	return 0;
}

void engine_av_named_close(struct engine_av *av)
{
	if (!av->view)
		return;
	av_view_fini(av->view);
	platform_free(av->view);
	platform_shared_close(av->shared);
}

int engine_av_change(struct engine_av *av)
{
	int ret;

	if (av->flags & FI_READ)
		return -FI_EACCES;
	if (!av->view)
		return 0;
	ret = platform_shared_lock(av->shared);
	if (ret)
		return ret;
	ret = av_view_pull(av->view, engine_av_pulled, av);
	if (ret)
		platform_shared_unlock(av->shared);
	return ret;
}

void engine_av_changed(struct engine_av *av)
{
	if (av->view)
		platform_shared_unlock(av->shared);
}
