/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Quiet requests: writes and atomics without results that are complete, for the program, as soon
 * as the wire has what they carry (no completion level, FI_INJECT_COMPLETE; where what the wire
 * has arrives by itself also FI_TRANSMIT_COMPLETE). Nothing is kept of each: a peer has the place
 * behind its last one, and how many may be without an answer. A NAK is an error that belongs to no
 * operation; an ACK tells how far the target has come. Few of these requests ask for one: some of
 * many, so that their number stays below its bound, and what waits for them all asks then
 * (engine_ask()). Else the target tells in time: every 1 ms while it makes progress, before it
 * sleeps and before it closes.
 *
 * The caller holds the domain.
 */
#ifndef WEFT_QUIET_H
#define WEFT_QUIET_H

#include "unanswered.h"

/* engine_is_quiet - is a request with these flags complete once the wire has it? */
static inline bool engine_is_quiet(uint32_t flags, const struct wire_ops *wire)
{
	return !(flags & ENGINE_DELIVERED) && (!(flags & ENGINE_ARRIVED) || wire->arrives);
}

/* engine_quiet_refused - the peer has refused the one at @seq. 0, or -FI_EINVAL: there is none */
int engine_quiet_refused(struct engine_peer *peer, uint32_t seq, int err);

/* engine_quiet_lost - the peer is gone: tell of those that it has not answered */
void engine_quiet_lost(struct engine_peer *peer, int err);

#endif
