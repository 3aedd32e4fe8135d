/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * libfabric's calls that exist in several versions; fabric.h says why. The directives bind references made in this
 * file, so the calls must stay here, and out of link-time optimization, which loses them.
 */
#include "fabric.h"

__asm__(".symver fi_getinfo, fi_getinfo@FABRIC_1.3");
__asm__(".symver fi_freeinfo, fi_freeinfo@FABRIC_1.3");
__asm__(".symver fi_dupinfo, fi_dupinfo@FABRIC_1.3");
__asm__(".symver fi_fabric, fi_fabric@FABRIC_1.1");

struct fi_info *btl_info_create(void)
{
	return fi_dupinfo(NULL);
}

struct fi_info *btl_info_copy(const struct fi_info *info)
{
	return fi_dupinfo(info);
}

void btl_info_destroy(struct fi_info *info)
{
	if (info)
		fi_freeinfo(info);
}

int btl_getinfo(const struct fi_info *hints, struct fi_info **list)
{
	return fi_getinfo(BTL_API_VERSION, NULL, NULL, 0, hints, list);
}

int btl_fabric_open(struct fi_fabric_attr *attr, struct fid_fabric **fabric)
{
	return fi_fabric(attr, fabric, NULL);
}
