/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * libfabric's calls that exist in several versions, bound to versions that every libfabric has since 2019: the
 * library runs on a stock one. Any thread.
 */
#ifndef BTL_FABRIC_H
#define BTL_FABRIC_H

#include <rdma/fabric.h>

/* The interface that is asked for: the first with all modes of registration that are known here. */
#define BTL_API_VERSION FI_VERSION(1, 9)

/* btl_info_create - an empty struct fi_info, to be filled with hints. Returns it, owned, or NULL */
struct fi_info *btl_info_create(void);

/* btl_info_copy - a copy of one struct fi_info. Returns it, owned, or NULL */
struct fi_info *btl_info_copy(const struct fi_info *info);

/* btl_info_destroy - free a list, or NULL */
void btl_info_destroy(struct fi_info *info);

/* btl_getinfo - fi_getinfo(3) for any node. Returns 0 with an owned list, or -FI_E* */
int btl_getinfo(const struct fi_info *hints, struct fi_info **list);

/* btl_fabric_open - fi_fabric(3). Returns 0 or -FI_E* */
int btl_fabric_open(struct fi_fabric_attr *attr, struct fid_fabric **fabric);

#endif
