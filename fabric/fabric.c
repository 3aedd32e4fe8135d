/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The only file that refers to libfabric's multi-version symbols; fabric.h says which versions and
 * why. The directives bind references made in this file, so the calls must stay here, and out of
 * link-time optimization, which loses them.
 */
#include "fabric.h"

__asm__(".symver fi_getinfo, fi_getinfo@FABRIC_1.3");
__asm__(".symver fi_freeinfo, fi_freeinfo@FABRIC_1.3");
__asm__(".symver fi_dupinfo, fi_dupinfo@FABRIC_1.3");
__asm__(".symver fi_fabric, fi_fabric@FABRIC_1.1");

struct fi_info *fabric_info_create(void)
{
	return fi_dupinfo(NULL);
}

struct fi_info *fabric_info_copy(const struct fi_info *info)
{
	return fi_dupinfo(info);
}

void fabric_info_destroy(struct fi_info *info)
{
	if (info)
		fi_freeinfo(info);
}

int fabric_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags,
		   const struct fi_info *hints, struct fi_info **list)
{
	return fi_getinfo(version, node, service, flags, hints, list);
}

int fabric_open(struct fi_fabric_attr *attr, struct fid_fabric **fabric)
{
	return fi_fabric(attr, fabric, NULL);
}
