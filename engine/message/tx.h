/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Sends and one-sided operations that have a struct engine_tx, because they do not complete in the
 * call: create, queue, pass to the wire, end.
 *
 * The caller holds the domain.
 */
#ifndef WEFT_TX_H
#define WEFT_TX_H

#include "control.h"
#include "endpoint.h"

/*
 * engine_tx_flags - translate the flags of a call to enum engine_flag and enum packet_flag
 * @flags: flags of the call
 * @known: flags that the call may have
 * @out:   out: the translated flags
 * Returns 0 or -FI_EBADFLAGS.
 */
int engine_tx_flags(const struct engine_tx_ctx *tx, uint64_t flags, uint64_t known,
		    uint32_t *out);

/*
 * engine_tx_new - create an operation in state TX_QUEUED that is not linked
 * The caller sets the fields that describe the operation.
 * Returns the operation, owned by the caller, or NULL without memory.
 */
struct engine_tx *engine_tx_new(struct engine_peer *peer, struct engine_tx_ctx *ctx);

/*
 * engine_tx_queue - queue an operation for its peer, and send what can be sent now
 * @tx: takes it; the caller has counted it in ep->queued_cnt
 * Connects to the peer if it is not connected. @tx may be gone on return.
 */
void engine_tx_queue(struct engine_peer *peer, struct engine_tx *tx);

/*
 * engine_lane_busy - returns true if a request that is sent now may overtake the header of a sendv
 */
static inline bool engine_lane_busy(const struct engine_peer *peer)
{
	return peer->leaving_cnt || (int32_t)(peer->lane_seq - peer->acked) > 0;
}

/*
 * engine_tx_leave - pass a message or write to the wire, which sends the payload from @tx->iov
 * @packet: header; copied
 * @lane:   requests that are sent later may overtake the header until it is acknowledged
 * Returns 0, or the error of the wire's sendv(): nothing happened.
 */
int engine_tx_leave(struct engine_peer *peer, struct engine_tx *tx, const struct packet *packet,
		    bool lane);

/* engine_outstanding - returns true if an operation that was sent to the peer has not ended */
static inline bool engine_outstanding(const struct engine_peer *peer)
{
	return !list_empty(&peer->started) || !list_empty(&peer->pushing) ||
	       !list_empty(&peer->unacked) || engine_quiet_open(peer);
}

/*
 * engine_fenced - returns true if an operation with FI_FENCE has to wait
 * Asks the peer for an ACK if quiet requests have no answer yet: it may come late otherwise.
 */
static inline bool engine_fenced(struct engine_peer *peer)
{
	if (engine_quiet_open(peer))
		engine_ack_request(peer);
	return engine_outstanding(peer);
}

/*
 * engine_tx_end - end an operation: count it, write its completion and free it
 * @tx:     takes it; not linked
 * @status: 0 or -FI_E*
 */
void engine_tx_end(struct engine_tx *tx, int status);

#endif
