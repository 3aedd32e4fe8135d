/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The symbols for programs that were linked to an older libfabric: Open MPI of Debian 12
 * binds fi_getinfo@FABRIC_1.3, for example. Called on the application's threads.
 *
 * A structure that comes in ends where that version's structures end (info_layout), so it
 * is copied up to its length and padded with zeros. Structures that are returned are whole: an old
 * program reads their first part, and passes the pointer back to fi_domain, fi_endpoint,
 * fi_dupinfo and fi_freeinfo, of which the first two can't tell its version.
 */
#include <string.h>

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>

#include "export.h"
#include "info.h"

static int getinfo_old(enum info_abi abi, uint32_t version, const char *node,
		       const char *service, uint64_t flags, const struct fi_info *old_hints,
		       struct fi_info **info)
{
	struct fi_info *hints = NULL;
	int err;

	if (old_hints) {
		hints = info_dup(old_hints, info_layout_of(abi));
		if (!hints)
			return -FI_ENOMEM;
	}
	err = fi_getinfo(version, node, service, flags, hints, info);
	info_free(hints);
	return err;
}

/*
 * The three functions that take a fi_info, at the version of one layout. fi_getinfo_1_3 and
 * the others have no prototype elsewhere: only the dynamic loader refers to them, by their old names.
 */
#define OLD_INFO_FUNCTIONS(suffix, version_name)                                                \
	int fi_getinfo_##suffix(uint32_t version, const char *node, const char *service,        \
				uint64_t flags, const struct fi_info *hints,                    \
				struct fi_info **info);                                         \
	struct fi_info *fi_dupinfo_##suffix(const struct fi_info *info);                        \
	void fi_freeinfo_##suffix(struct fi_info *info);                                        \
                                                                                                \
	CORE_EXPORT int fi_getinfo_##suffix(uint32_t version, const char *node,                 \
					    const char *service, uint64_t flags,                \
					    const struct fi_info *hints, struct fi_info **info) \
	{                                                                                       \
		return getinfo_old(INFO_ABI_##suffix, version, node, service, flags, hints,     \
				   info);                                                       \
	}                                                                                       \
	CORE_EXPORT_OLD(fi_getinfo_##suffix, fi_getinfo, version_name);                         \
                                                                                                \
	CORE_EXPORT struct fi_info *fi_dupinfo_##suffix(const struct fi_info *info)             \
	{                                                                                       \
		return info_dup(info, info_layout_of(INFO_ABI_##suffix));                       \
	}                                                                                       \
	CORE_EXPORT_OLD(fi_dupinfo_##suffix, fi_dupinfo, version_name);                         \
                                                                                                \
	CORE_EXPORT void fi_freeinfo_##suffix(struct fi_info *info)                             \
	{                                                                                       \
		info_free(info);                                                                \
	}                                                                                       \
	CORE_EXPORT_OLD(fi_freeinfo_##suffix, fi_freeinfo, version_name)

OLD_INFO_FUNCTIONS(1_0, "FABRIC_1.0");
OLD_INFO_FUNCTIONS(1_1, "FABRIC_1.1");
OLD_INFO_FUNCTIONS(1_2, "FABRIC_1.2");
OLD_INFO_FUNCTIONS(1_3, "FABRIC_1.3");
OLD_INFO_FUNCTIONS(1_7, "FABRIC_1.7");
OLD_INFO_FUNCTIONS(1_8, "FABRIC_1.8");
OLD_INFO_FUNCTIONS(1_9, "FABRIC_1.9");

int fi_fabric_1_0(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context);

/* Programs of these versions did not pass the API version: it is between 1.0 and 1.4. */
CORE_EXPORT int fi_fabric_1_0(struct fi_fabric_attr *old_attr, struct fid_fabric **fabric,
			      void *context)
{
	struct fi_fabric_attr attr = { 0 };

	if (!old_attr)
		return -FI_EINVAL;
	memcpy(&attr, old_attr, info_layout_of(INFO_ABI_1_0)->fabric_attr);
	attr.api_version = FI_VERSION(1, 0);
	return fi_fabric(&attr, fabric, context);
}
CORE_EXPORT_OLD(fi_fabric_1_0, fi_fabric, "FABRIC_1.0");
