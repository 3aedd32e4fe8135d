/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Payload that does not fit in a packet, and the step of poll() that advances everything under
 * way. On the thread that holds the domain.
 */
#ifndef WEFT_SHM_TRANSFER_H
#define WEFT_SHM_TRANSFER_H

#include "conn.h"

/* lends, lent and sendv of wire_ops */
bool pshm_lends(struct wire_conn *conn, const void *buf, size_t len);
bool pshm_lent(const struct wire *wire);
int pshm_sendv(struct wire_conn *conn, const struct packet *hdr, const struct iovec *iov,
	       size_t iov_cnt, struct wire_op *op);

/*
 * pshm_sends_begun - returns true if the headers of all payload that sendv was given are in the
 * ring
 */
bool pshm_sends_begun(const struct pshm_conn *conn);

/*
 * pshm_transfers_init, pshm_transfers_fini - the pools of this file, get.c and coop_write.c in an
 * endpoint
 */
void pshm_transfers_init(struct pshm_wire *wire);
void pshm_transfers_fini(struct pshm_wire *wire);

/*
 * pshm_transfers_move - advance all connections in wire->work; from poll(). Returns how many steps
 * were made
 */
int pshm_transfers_move(struct pshm_wire *wire);

/*
 * pshm_transfers_drop - give up the transfers under way on a connection
 * @wait: until the peer no longer writes to this side's memory, for up to a second
 */
void pshm_transfers_drop(struct pshm_conn *conn, bool wait);

/* pshm_op_done - an operation has ended with that status; poll() calls its done() */
void pshm_op_done(struct pshm_conn *conn, struct wire_op *op, int status);

#endif
