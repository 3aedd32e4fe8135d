/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What forced.c and lacking.c leave as libfabric has it: making and freeing a struct fi_info
 * (fabric/fabric.h).
 */
#include "fabric.h"

struct fi_info *fabric_info_create(void)
{
	return fi_allocinfo();
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
