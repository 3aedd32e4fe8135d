/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Inside the provider kofi_ibverbs: what its wire, its offer and its module say to each other. */
#ifndef KOFI_IBVERBS_H
#define KOFI_IBVERBS_H

#include <rdma/fabric.h>

struct wire_provider;
extern const struct wire_provider kofi_ibverbs_wire;

/* kib_begin, kib_end - as in link.h */
int kib_begin(void);
void kib_end(void);

/* as in struct kofi_provider */
int kofi_ibverbs_getinfo(uint32_t version, const char *node, const char *service,
			 uint64_t flags, const struct fi_info *hints, struct fi_info **info);
void kofi_ibverbs_freeinfo(struct fi_info *info);
int kofi_ibverbs_fabric(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context);

#endif
