/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Quiet requests: writes and atomics without results that complete as soon as the wire has their
 * payload. Their completion level is none, FI_INJECT_COMPLETE or, over a wire whose packets arrive
 * even if this process ends (wire_ops.arrives), FI_TRANSMIT_COMPLETE.
 *
 * No state is kept for each request: the peer has the sequence number behind the last one and the
 * number of those that may be unanswered (peer/unanswered.h). A NAK is reported as an error of no
 * operation. An ACK carries the sequence number up to which the target has carried out requests.
 *
 * One in QUIET_ACK_INTERVAL quiet requests asks for an ACK, so that the number of unanswered ones
 * stays below ENGINE_REQUESTS_MAX. An operation that has to wait for all of them calls
 * engine_ack_request(). In any case the target sends an ACK within ENGINE_ACKS_NS (ack.h), and before it
 * closes.
 *
 * The caller holds the domain.
 */
#ifndef WEFT_QUIET_H
#define WEFT_QUIET_H

#include "unanswered.h"

/*
 * engine_is_quiet - returns true if a request with these flags completes when it is sent
 * @flags: of a write, or of an atomic without a result
 */
static inline bool engine_is_quiet(uint32_t flags, const struct wire_ops *wire)
{
	return !(flags & ENGINE_DELIVERED) && (!(flags & ENGINE_ARRIVED) || wire->arrives);
}

/*
 * engine_quiet_refused - the peer has refused the quiet request at @seq: report the error
 * @err: -FI_E*
 * Returns 0, or -FI_EINVAL if no quiet request is unanswered at @seq.
 */
int engine_quiet_refused(struct engine_peer *peer, uint32_t seq, int err);

/*
 * engine_quiet_lost - the peer is lost: report one error if any quiet request is unanswered
 * @err: -FI_E*
 */
void engine_quiet_lost(struct engine_peer *peer, int err);

#endif
