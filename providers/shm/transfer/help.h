/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Writing chunks of what a peer reads of our memory. On the thread that holds the domain. */
#ifndef WEFT_SHM_HELP_H
#define WEFT_SHM_HELP_H

#include "conn.h"

/*
 * pshm_help_take - a line of kind PSHM_JOIN: the peer reads our memory. 0 or -FI_EPROTO
 * pshm_helps_move - write a chunk, if there is any left; from poll(). Returns how many
 * pshm_helps_drop - leave the rest to the peer
 */
void pshm_helps_init(struct pshm_wire *wire);
int pshm_help_take(struct pshm_conn *conn, const struct ring_line *line);
int pshm_helps_move(struct pshm_conn *conn);
void pshm_helps_drop(struct pshm_conn *conn);

#endif
