/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Reading and writing the regions that a peer shows, by their keys and without it. On the thread that
 * holds the domain.
 */
#ifndef WEFT_SHM_KEY_ACCESS_H
#define WEFT_SHM_KEY_ACCESS_H

#include "conn.h"

/*
 * pshm_taken, pshm_direct - taken and direct of wire_ops
 * pshm_direct_move - go on with what is under way on a connection; from poll(). Returns how many steps were made
 * pshm_direct_drop - forget it
 */
bool pshm_taken(struct wire_conn *conn);
int pshm_direct(struct wire_conn *conn, const struct wire_access *access, struct wire_op *op);
int pshm_direct_move(struct pshm_conn *conn);
void pshm_direct_drop(struct pshm_conn *conn);

#endif
