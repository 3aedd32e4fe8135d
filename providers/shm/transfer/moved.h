/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What the endpoints of this process have moved by memory of arenas, and how many regions and keys there are, for
 * tools (include/weft/mem_stats.h). An endpoint counts by plain additions, struct pshm_moved, and tells its
 * counts now and then. On the thread that holds its domain; the domains of a process meet here.
 */
#ifndef WEFT_SHM_MOVED_H
#define WEFT_SHM_MOVED_H

#include "conn.h"

struct pshm_share_counts;

/*
 * pshm_moved_tell - tell what an endpoint has counted since the last time, and the regions of its domain; from
 * sweeps, and when the endpoint closes. A process without an arena that has used no peer's tells nothing.
 */
void pshm_moved_tell(struct pshm_wire *wire);

/* pshm_moved_share_end - a domain closes, which has told that it has so many regions and keys */
void pshm_moved_share_end(const struct pshm_share_counts *told);

#endif
