/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The sender's part of cooperative copies (coop_copy.h). On the thread that holds the domain. */
#ifndef WEFT_SHM_COOP_WRITE_H
#define WEFT_SHM_COOP_WRITE_H

#include "conn.h"

/*
 * pshm_coop_write_begin - handle a line of kind PSHM_COOP_COPY: the peer reads this side's memory.
 * Returns 0 or -FI_EPROTO
 * pshm_coop_writes_move - write one chunk, if any is left; from poll(). Returns how many were
 * written
 * pshm_coop_writes_drop - claim no more chunks of any copy
 */
void pshm_coop_writes_init(struct pshm_wire *wire);
int pshm_coop_write_begin(struct pshm_conn *conn, const struct ring_line *line);
int pshm_coop_writes_move(struct pshm_conn *conn);
void pshm_coop_writes_drop(struct pshm_conn *conn);

#endif
