/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Inside the provider kofi_loop: what its wire, its offer and its module say to each other. */
#ifndef KOFI_LOOP_H
#define KOFI_LOOP_H

#include <rdma/fabric.h>

struct wire_provider;
extern const struct wire_provider kofi_loop_wire;

/* kofi_loop_begin, kofi_loop_end - the wire's lock is there, before the provider is known and after it is */
void kofi_loop_begin(void);
void kofi_loop_end(void);

/* as in struct kofi_provider */
int kofi_loop_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags,
		      const struct fi_info *hints, struct fi_info **info);
void kofi_loop_freeinfo(struct fi_info *info);
int kofi_loop_fabric(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context);

#endif
