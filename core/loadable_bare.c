/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A loadable provider for loader_test.c that only exists: BARE_NAME and BARE_VERSION are
 * given by the build, without BARE_NAME it offers none. It refers to no symbol of a core.
 */
#include <errno.h>
#include <stddef.h>

#include <rdma/fi_errno.h>
#include <rdma/providers/fi_prov.h>

#ifdef BARE_NAME
static int bare_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags,
			const struct fi_info *hints, struct fi_info **info)
{
	return -FI_ENODATA;
}

static int bare_fabric(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context)
{
	return -FI_ENOSYS;
}

static struct fi_provider bare = {
	.version = FI_VERSION(BARE_VERSION, 0),
	.fi_version = FI_VERSION(1, 17),
	.name = BARE_NAME,
	.getinfo = bare_getinfo,
	.fabric = bare_fabric,
};
#endif

struct fi_provider *fi_prov_ini(void);

__attribute__((visibility("default"))) struct fi_provider *fi_prov_ini(void)
{
#ifdef BARE_NAME
	return &bare;
#else
	return NULL;
#endif
}
