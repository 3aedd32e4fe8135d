/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Reading payload from the sender's memory. On the thread that holds the domain. */
#ifndef WEFT_SHM_GET_H
#define WEFT_SHM_GET_H

#include "conn.h"

/*
 * pshm_get - get of wire_ops
 * pshm_gets_move - execute one step of a connection's gets; from poll(). Returns how many steps
 * were made
 * pshm_gets_drop - give all of them up; @wait as in pshm_transfers_drop()
 */
int pshm_get(struct wire_conn *conn, const struct wire_source *from, const struct iovec *iov,
	     size_t iov_cnt, struct wire_op *op);
void pshm_gets_init(struct pshm_wire *wire);
int pshm_gets_move(struct pshm_conn *conn);
void pshm_gets_drop(struct pshm_conn *conn, bool wait);

#endif
