/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Payload that does not fit in a packet, and what goes on with all that is under way. On the thread that
 * holds the domain.
 */
#ifndef WEFT_SHM_TRANSFER_H
#define WEFT_SHM_TRANSFER_H

#include "conn.h"

/* sendv of wire_ops */
int pshm_sendv(struct wire_conn *conn, const struct packet *hdr, const struct iovec *iov,
	       size_t iov_cnt, struct wire_op *op);

/* pshm_sends_begun - are the headers of all that sendv was given in the ring? */
bool pshm_sends_begun(const struct pshm_conn *conn);

/* pshm_transfers_init, pshm_transfers_fini - what that, get.c and coop_write.c keep of an endpoint */
void pshm_transfers_init(struct pshm_wire *wire);
void pshm_transfers_fini(struct pshm_wire *wire);

/* pshm_transfers_move - go on with all connections in wire->work; from poll(). Returns what was finished */
int pshm_transfers_move(struct pshm_wire *wire);

/*
 * pshm_transfers_drop - forget what is under way on a connection
 * @wait: until the peer writes to our memory no more, for up to a second
 */
void pshm_transfers_drop(struct pshm_conn *conn, bool wait);

/* pshm_op_done - an operation is over; poll() tells the engine */
void pshm_op_done(struct pshm_conn *conn, struct wire_op *op, int status);

#endif
