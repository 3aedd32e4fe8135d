/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Reading and writing the regions that a peer shows, by their keys, without a packet to it. On the
 * thread that holds the domain.
 */
#ifndef WEFT_SHM_KEY_ACCESS_H
#define WEFT_SHM_KEY_ACCESS_H

#include "conn.h"

/*
 * pshm_taken, pshm_direct - taken and direct of wire_ops
 * pshm_direct_move - advance the accesses under way on a connection; from poll(). Returns how many
 * steps were made
 * pshm_direct_drop - give them up
 */
bool pshm_taken(struct wire_conn *conn);
int pshm_direct(struct wire_conn *conn, const struct wire_access *access, struct wire_op *op);
int pshm_direct_move(struct pshm_conn *conn);
void pshm_direct_drop(struct pshm_conn *conn);

#endif
