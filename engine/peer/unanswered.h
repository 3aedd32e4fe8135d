/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Quiet requests: one-sided requests that completed when they were sent (onesided/quiet.h), and
 * that the peer has not answered yet. struct engine_peer has their number, and the sequence number
 * behind the last one.
 *
 * The caller holds the domain.
 */
#ifndef WEFT_UNANSWERED_H
#define WEFT_UNANSWERED_H

#include "peers.h"

/* One of this many quiet requests asks for an ACK */
#define QUIET_ACK_INTERVAL (ENGINE_REQUESTS_MAX / 16)

/*
 * engine_quiet_wants_ack - returns true if the next quiet request has to ask for an ACK
 * (PACKET_ACKED)
 * Several ask before ENGINE_REQUESTS_MAX is reached, so that an ACK arrives before the sender has
 * to wait.
 */
static inline bool engine_quiet_wants_ack(const struct engine_peer *peer)
{
	return peer->quiet_cnt % QUIET_ACK_INTERVAL == QUIET_ACK_INTERVAL - 1;
}

/* engine_quiet_add - a quiet request with sequence number @seq was passed to the wire */
static inline void engine_quiet_add(struct engine_peer *peer, struct engine_tx_ctx *ctx,
				    uint32_t seq)
{
	peer->quiet_ctx = ctx;
	peer->quiet_cnt++;
	peer->quiet_seq = seq + 1;
}

/* engine_quiet_acked - everything before peer->acked has been carried out or refused */
static inline void engine_quiet_acked(struct engine_peer *peer)
{
	int32_t left = (int32_t)(peer->quiet_seq - peer->acked);

	if (left <= 0)
		peer->quiet_cnt = 0;
	else if (peer->quiet_cnt > (uint32_t)left)
		peer->quiet_cnt = (uint32_t)left;
}

/* engine_quiet_begin - an incarnation of the peer begins or ends: there are no quiet requests */
static inline void engine_quiet_begin(struct engine_peer *peer)
{
	peer->quiet_cnt = peer->quiet_errors = 0;
	peer->quiet_seq = peer->acked;
}

#endif
