/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A ring starts small, and gets a larger data area when its traffic needs one. On the thread that
 * holds the domain.
 */
#ifndef WEFT_SHM_GROW_H
#define WEFT_SHM_GROW_H

#include "conn.h"

/*
 * pshm_grow_by_use - count @len bytes, PSHM_GROW_MIN or more, that this side's ring carries, and
 * grow it if they are many
 * pshm_grow - this side's ring lacks room: offer an area, unless that is done
 * pshm_grow_step - switch to the area once the peer has mapped it; from poll() while conn->growing
 * is PSHM_OFFERED
 * pshm_grow_take - handle a line of kind PSHM_GROW: map the area. Returns 0 or -FI_EPROTO
 * pshm_grow_move - handle a line of kind PSHM_MOVE, and release it. Returns 0 or -FI_EPROTO
 * pshm_grow_drop - release the areas of a connection that ends
 */
void pshm_grow_by_use(struct pshm_conn *conn, uint32_t len);
void pshm_grow(struct pshm_conn *conn);
void pshm_grow_step(struct pshm_conn *conn);
int pshm_grow_take(struct pshm_conn *conn, const struct ring_line *line);
int pshm_grow_move(struct pshm_conn *conn);
void pshm_grow_drop(struct pshm_conn *conn);

#endif
