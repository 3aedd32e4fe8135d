/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A ring starts small, and gets a larger data area when it is wanted. On the thread that holds the
 * domain.
 */
#ifndef WEFT_SHM_GROW_H
#define WEFT_SHM_GROW_H

#include "conn.h"

/*
 * pshm_grow_by_use - it is to carry @len bytes, PSHM_GROW_MIN or more: it grows when that were many
 * pshm_grow - our ring has not the room that it should have: offer an area, unless that is done
 * pshm_grow_step - has the peer answered? Then move; from poll() while conn->growing is PSHM_OFFERED
 * pshm_grow_take - a line of kind PSHM_GROW: map the area. 0 or -FI_EPROTO
 * pshm_grow_move - a line of kind PSHM_MOVE, which is released. 0 or -FI_EPROTO
 * pshm_grow_drop - release the areas of a connection that ends
 */
void pshm_grow_by_use(struct pshm_conn *conn, uint32_t len);
void pshm_grow(struct pshm_conn *conn);
void pshm_grow_step(struct pshm_conn *conn);
int pshm_grow_take(struct pshm_conn *conn, const struct ring_line *line);
int pshm_grow_move(struct pshm_conn *conn);
void pshm_grow_drop(struct pshm_conn *conn);

#endif
