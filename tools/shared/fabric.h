/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The exported libfabric calls that the tools make, bound to old symbol
 * versions. This is the one place that knows about versions: every other file
 * calls fabric_*() where libfabric has several versions of a call.
 *
 * One weft binary runs on our library and on a stock one, Debian's 1.17
 * included, whose newest symbols are FABRIC_1.6. So getinfo, freeinfo and
 * dupinfo are bound to FABRIC_1.3 (what Open MPI asks for), fi_fabric to 1.1;
 * fi_open (1.5), fi_tostr_r (1.4) and what is left (1.0) have one version each.
 * A test reads the binary's dynamic symbols and fails on anything newer.
 *
 * A fi_info of FABRIC_1.3 ends where that layout ended. Never touch, whatever
 * the headers offer:
 *   fi_domain_attr  max_ep_auth_key, max_group_id, max_cntr_value and later
 *   fi_ep_attr      anything after auth_key
 *   fi_info         anything after nic
 * and never allocate one by hand: fabric_info_create() makes it.
 */
#ifndef WEFT_TOOLS_FABRIC_H
#define WEFT_TOOLS_FABRIC_H

#include <rdma/fabric.h>

/* The interface version the tools ask for: it has all they use, and every
 * libfabric since 2020 grants it. */
#define FABRIC_API_VERSION FI_VERSION(1, 11)

/*
 * fabric_info_create - an empty fi_info with its attributes, for hints
 *
 * Returns it owned (fabric_info_destroy), or NULL without memory.
 */
struct fi_info *fabric_info_create(void);

/*
 * fabric_info_destroy - free a list of fi_info; NULL is allowed
 */
void fabric_info_destroy(struct fi_info *info);

/*
 * fabric_getinfo - fi_getinfo at FABRIC_API_VERSION
 * @list:  receives the answers, owned
 *
 * Returns 0 or what fi_getinfo returned.
 */
int fabric_getinfo(const char *node, const char *service, uint64_t flags,
		   const struct fi_info *hints, struct fi_info **list);

/*
 * fabric_open - fi_fabric
 *
 * Returns 0 or what fi_fabric returned.
 */
int fabric_open(struct fi_fabric_attr *attr, struct fid_fabric **fabric);

/*
 * fabric_library_path - the file of the libfabric this process runs on
 *
 * Returns a string that lives as long as the process, "?" when unknown.
 */
const char *fabric_library_path(void);

#endif
