/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Inside the provider kofi_sockets: what its offer and its module say to each other. */
#ifndef KOFI_SOCKETS_H
#define KOFI_SOCKETS_H

#include <rdma/fabric.h>

struct wire_provider;
extern const struct wire_provider tcp_wire_provider;

/*
 * kofi_sockets_begin, kofi_sockets_end - what the wire needs is there, before the provider is
 * known and after it is
 */
void kofi_sockets_begin(void);
void kofi_sockets_end(void);

/* as in struct kofi_provider; getinfo is tcp_getinfo() */
void kofi_sockets_freeinfo(struct fi_info *info);
int kofi_sockets_fabric(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context);

#endif
