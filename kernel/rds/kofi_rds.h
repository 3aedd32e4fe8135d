/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Inside the provider kofi_rds: what its module calls, besides what providers/rds has. */
#ifndef KOFI_RDS_H
#define KOFI_RDS_H

#include <rdma/fabric.h>

/* as in struct kofi_provider */
void kofi_rds_freeinfo(struct fi_info *info);
int kofi_rds_fabric(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context);

#endif
