/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The parts of receive calls that recv.c and peek.c share.
 *
 * The caller holds the domain.
 */
#ifndef WEFT_POST_H
#define WEFT_POST_H

#include "recv.h"

/* Defined in recv.c. */

/*
 * engine_want_check - check the buffers of a receive before it is posted
 * Returns 0 or -FI_EINVAL.
 */
int engine_want_check(const struct engine_ctx *ctx, const struct engine_want *want);

/*
 * engine_recv_source - get the id that the matcher compares for the source of a receive
 * @src:    source address of the call; without FI_DIRECTED_RECV it is ignored
 * @source: out: the id of the source, or MATCH_ANY_SOURCE
 * Returns 0, or -FI_E* if there is no such source.
 */
int engine_recv_source(struct engine_ctx *ctx, fi_addr_t src, uint64_t *source);

/*
 * engine_rx_new - create a receive that is not linked, and whose source and tag are not set
 * @want: passed engine_want_check(); its iovec is copied
 * Returns the receive, owned by the caller, or NULL without memory.
 */
struct engine_rx *engine_rx_new(struct engine_ctx *ctx, const struct engine_want *want);

/* engine_rx_match - set which messages a receive matches */
static inline void engine_rx_match(struct engine_rx *rx, uint64_t source, uint64_t tag,
				   uint64_t ignore)
{
	rx->match.source = source;
	rx->match.tag = tag;
	rx->match.ignore = ignore;
}

/*
 * engine_post_multi - receive the stored messages that match a multi-receive buffer, and post the
 * buffer unless it is spent
 * @rx: takes it; its source, tag and ignore are set, and it may have parts
 * Without memory for a part the buffer is closed, as by engine_multi_close().
 */
void engine_post_multi(struct engine_ctx *ctx, struct engine_rx *rx);

/* Defined in peek.c. */

/*
 * engine_look - carry out a receive call with FI_PEEK, FI_CLAIM or FI_DISCARD
 * @want:  the receive, with the flags that engine_post() takes; ENGINE_COMPLETE is added
 * @flags: flags of the call
 * Returns 0, also if FI_PEEK finds no message: the completion reports FI_ENOMSG. -FI_E*: nothing
 * happened.
 * Source: fi_msg(3), fi_tagged(3).
 */
ssize_t engine_look(struct engine_ctx *ctx, struct engine_want *want, uint64_t flags);

#endif
