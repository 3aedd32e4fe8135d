/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The key table that a domain shows to its peers. On the thread that holds the domain, but for share_marked. */
#ifndef WEFT_SHM_SHARE_H
#define WEFT_SHM_SHARE_H

#include "conn.h"

/*
 * pshm_share_open, pshm_share_close, pshm_share_used, pshm_share_marked, pshm_share_cut - share_open,
 * share_close, share_used, share_marked and share_cut of wire_ops
 * pshm_share_join - add an endpoint to the share of its domain, if that has one
 * pshm_share_show - show the table to the peer of a connection that has its memory, if there is one
 * pshm_share_keep - returns true if the peer of a connection that is to be freed is inside our
 * memory:
 *	the share has taken the conn with its region and process, and nothing else of it
 * pshm_share_table - returns the memory that is shown, borrowed; its addr is NULL while there is
 * none
 */
int pshm_share_open(struct wire_share **share, struct mr_memory *memory,
		    const _Atomic uint32_t *regions);
void pshm_share_close(struct wire_share *share);
bool pshm_share_used(struct wire_share *share, uint32_t index);
bool pshm_share_marked(const struct wire_share *share, uint32_t index);
bool pshm_share_cut(struct wire_share *share, uint32_t index, const void *addr, size_t len);
void pshm_share_join(struct pshm_wire *wire, const struct wire_attr *attr);
void pshm_share_show(struct pshm_conn *conn);
bool pshm_share_keep(struct pshm_conn *conn);
/* The regions of a domain, and those of them that have keys. */
struct pshm_share_counts {
	uint32_t regions, keys;
};

/*
 * pshm_share_counts - count what a share has, or nothing without one
 * @before: out: what it was the last time
 */
struct pshm_share_counts pshm_share_counts(struct wire_share *share,
					   struct pshm_share_counts *before);
const struct pshm_region *pshm_share_table(const struct wire_share *share);

/*
 * pshm_stored - stored of wire_ops: looks at the marks of peers whose rings are hot
 * Long reads leave marks too, and count.
 */
bool pshm_stored(struct wire *wire);

#endif
