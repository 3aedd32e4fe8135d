/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The calls that libfabric exports in several versions, bound to old ones. This is the one place
 * that knows about versions: what runs on any libfabric calls fabric_*() in their place. Any
 * thread.
 *
 * One binary runs on our library and on a stock one, Debian's 1.17 included, whose newest symbols
 * are FABRIC_1.6. So getinfo, freeinfo and dupinfo are bound to FABRIC_1.3 (what Open MPI asks
 * for), fi_fabric to 1.1; fi_open (1.5), fi_tostr_r (1.4) and what is left (1.0) have one version
 * each. A test reads the dynamic symbols of the weft tool and fails on anything newer.
 *
 * A fi_info of FABRIC_1.3 ends where that layout ended. Never touch, whatever the headers offer:
 *   fi_domain_attr  max_ep_auth_key, max_group_id, max_cntr_value and later
 *   fi_ep_attr      anything after auth_key
 *   fi_info         anything after nic
 * and never allocate one by hand: fabric_info_create() makes it.
 */
#ifndef WEFT_FABRIC_H
#define WEFT_FABRIC_H

#include <rdma/fabric.h>

/* fabric_info_create - an empty fi_info with its attributes, for hints. Returns owned, or NULL */
struct fi_info *fabric_info_create(void);

/* fabric_info_copy - a copy of one fi_info, without those after it. Returns owned, or NULL */
struct fi_info *fabric_info_copy(const struct fi_info *info);

/* fabric_info_destroy - free a list of fi_info; NULL is allowed */
void fabric_info_destroy(struct fi_info *info);

/*
 * fabric_getinfo - fi_getinfo
 * @version: of the interface that the caller is written for
 * @list:    receives the answers, owned
 *
 * Returns 0 or what fi_getinfo returned.
 */
int fabric_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags,
		   const struct fi_info *hints, struct fi_info **list);

/*
 * fabric_open - fi_fabric, without a context
 *
 * Returns 0 or what fi_fabric returned.
 */
int fabric_open(struct fi_fabric_attr *attr, struct fid_fabric **fabric);

#endif
