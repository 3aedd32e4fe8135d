/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The directions in which a context transfers. The caller holds the domain.
 */
#ifndef WEFT_DIRECTIONS_H
#define WEFT_DIRECTIONS_H

#include "contexts.h"

/*
 * engine_transmits, engine_receives - returns true if the context has that direction
 * It has if its capabilities name the direction, or if a queue or counter is bound for it; then
 * tagged and untagged messages work, whichever were asked for. An endpoint with a shared receive
 * context does not receive by itself: receives are posted to that context.
 */
bool engine_transmits(const struct engine_ctx *ctx);
bool engine_receives(const struct engine_ctx *ctx);

/* engine_accesses - returns true if the context transmits and its endpoint has RMA or atomics */
bool engine_accesses(const struct engine_ctx *ctx);

#endif
