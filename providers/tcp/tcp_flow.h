/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Payload that arrives after its header, on either lane.
 */
#ifndef WEFT_TCP_FLOW_H
#define WEFT_TCP_FLOW_H

#include "tcp_wire.h"

/*
 * tcp_flow_begin - pass a header to the engine whose payload is still to arrive
 *
 * Returns 0, -FI_EAGAIN when it has to wait for its turn, or -FI_E* that ends the conn. The engine
 * may have ended the conn in any case.
 */
int tcp_flow_begin(struct tcp_conn *conn, struct tcp_flow *flow, const struct packet *packet);

/*
 * tcp_flow_pieces - where the next bytes go, about @max of them
 * @iov:   out: room for WIRE_DEST_MAX + 1 pieces
 * @total: out: bytes of them; flow->left when all of it fits
 *
 * Returns the number of pieces.
 */
int tcp_flow_pieces(struct tcp_conn *conn, const struct tcp_flow *flow, struct iovec *iov,
		    size_t max, size_t *total);

/*
 * tcp_flow_take - @len bytes of the payload have arrived, at most flow->left
 * @from: memory to copy them from; NULL: they are in place
 */
void tcp_flow_take(struct tcp_flow *flow, const uint8_t *from, size_t len);

/* tcp_flow_end - flow->left has become 0: the payload is complete. The engine may end the conn */
void tcp_flow_end(struct tcp_conn *conn, struct tcp_flow *flow);

#endif
