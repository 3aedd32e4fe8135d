/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What a peer has not answered of the requests that were complete when they left (quiet.h): how many,
 * and the place behind the last one.
 *
 * The caller holds the domain.
 */
#ifndef WEFT_UNANSWERED_H
#define WEFT_UNANSWERED_H

#include "peers.h"

#define QUIET_ASKS (ENGINE_ASKED_MAX / 16) /* of so many one asks for an ACK */

/*
 * engine_quiet_asks - is the next one to ask for an ACK?
 * Some do on the way to ENGINE_ASKED_MAX, so that it has come before that.
 */
static inline bool engine_quiet_asks(const struct engine_peer *peer)
{
	return peer->quiet_cnt % QUIET_ASKS == QUIET_ASKS - 1;
}

/* engine_quiet_add - one with place @seq was given to the wire */
static inline void engine_quiet_add(struct engine_peer *peer, struct engine_tx_ctx *ctx,
				    uint32_t flags, uint32_t seq)
{
	peer->quiet_ctx = ctx;
	peer->quiet_cnt++;
	peer->quiet_seq = seq + 1;
	if (!(flags & ENGINE_INJECT))
		peer->quiet_reported_seq = seq + 1;
}

/* engine_quiet_acked - everything before peer->acked has been carried out, or was refused */
static inline void engine_quiet_acked(struct engine_peer *peer)
{
	int32_t left = (int32_t)(peer->quiet_seq - peer->acked);

	if (left <= 0)
		peer->quiet_cnt = 0;
	else if (peer->quiet_cnt > (uint32_t)left)
		peer->quiet_cnt = (uint32_t)left;
}

/* engine_quiet_begin - an incarnation of the peer begins, or ends: there are none */
static inline void engine_quiet_begin(struct engine_peer *peer)
{
	peer->quiet_cnt = peer->quiet_errors = 0;
	peer->quiet_seq = peer->quiet_reported_seq = peer->acked;
}

#endif
