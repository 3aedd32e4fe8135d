/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What the receive calls of recv.c and peek.c do for one another. With the domain held.
 */
#ifndef WEFT_POST_H
#define WEFT_POST_H

#include "recv.h"

/* From recv.c */

/* engine_want_check - can such a receive be posted? 0 or -FI_E* */
int engine_want_check(const struct engine_ctx *ctx, const struct engine_want *want);

/*
 * engine_recv_source - the id by which the matcher knows a source; MATCH_ANY_SOURCE for any
 * Returns 0, or -FI_E* when there is no such source.
 */
int engine_recv_source(struct engine_ctx *ctx, fi_addr_t src, uint64_t *source);

/* engine_rx_new - a receive, linked nowhere; what it takes is not set. NULL: no memory */
struct engine_rx *engine_rx_new(struct engine_ctx *ctx, const struct engine_want *want);

/* engine_rx_match - what it takes */
static inline void engine_rx_match(struct engine_rx *rx, uint64_t source, uint64_t tag,
				   uint64_t ignore)
{
	rx->match.source = source;
	rx->match.tag = tag;
	rx->match.ignore = ignore;
}

/*
 * engine_post_multi - post a buffer for several messages, first for those that are here
 * Takes rx, whose source, tag and ignore are set, and which may have parts.
 */
void engine_post_multi(struct engine_ctx *ctx, struct engine_rx *rx);

/* From peek.c */

/*
 * engine_look - a receive call with FI_PEEK, FI_CLAIM or FI_DISCARD
 * @flags: of the call; @want has them as engine_post() wants them
 * Returns 0, or -FI_E*: nothing happened.
 */
ssize_t engine_look(struct engine_ctx *ctx, struct engine_want *want, uint64_t flags);

#endif
