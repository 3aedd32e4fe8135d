/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * In which directions a context transfers. The caller holds the domain.
 */
#ifndef WEFT_DIRECTIONS_H
#define WEFT_DIRECTIONS_H

#include "contexts.h"

/*
 * engine_transmits, engine_receives - is there that direction: asked for, or bound for? It has messages of
 * either kind then, asked for or not. What is received into a shared context is posted there.
 */
bool engine_transmits(const struct engine_ctx *ctx);
bool engine_receives(const struct engine_ctx *ctx);

/* engine_accesses - RMA and atomics: messages of an endpoint without both are not told from what they overtake */
bool engine_accesses(const struct engine_ctx *ctx);

#endif
