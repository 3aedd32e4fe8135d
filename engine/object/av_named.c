/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Address vectors with a name: processes of one user on one host that open the same name, with the
 * same provider, have the same addresses at the same fi_addr_t. Who opens it first without
 * FI_READ makes it, and the name lives as long as that process has it open; who has it open then
 * keeps it, with its addresses, and whoever opens the name next makes another. All that opened
 * it without FI_READ may change it. User ids (FI_AV_USER_ID) are each process's own.
 *
 * Called with the domain held but for opening and closing. A process that is stopped while it
 * changes the vector stops the others that change it, not those that use it.
 *
 * Source: fi_av(3), name, map_addr and FI_READ. What stands at map_addr it leaves open; programs
 * take it for the fi_addr_t of each insertion (libfabric's own fi_rdm_shared_av does).
 */
#include <rdma/fi_errno.h>
#include "av_fid.h"
#include "peer.h"

#define OPEN_NS 1000000000u /* to open one that comes and goes while we look, ns */

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

/* What the processes call it: addresses of another provider or format are none of its. */
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
	struct list *node, *after;

	if (address && av->flags & FI_AV_USER_ID)
		av_set_cq_addr(&av->table, addr, FI_ADDR_NOTAVAIL);
	list_for_each(node, after, &av->eps) {
		struct engine_ep *ep = container_of(node, struct engine_ep, av_link);

		if (address)
			engine_peer_adopt(ep, addr, address);
		else
			engine_peer_orphan(ep, addr);
	}
}

static void engine_av_pull(struct engine_av *av)
{
	av_view_pull(av->view, engine_av_pulled,
		     av); /* without memory the rest comes next time */
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
	if (!attr->map_addr) /* an index is the same wherever it is */
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
