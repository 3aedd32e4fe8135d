/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fi_cancel of a context. The caller holds the domain. */
#ifndef WEFT_CANCEL_H
#define WEFT_CANCEL_H

#include "contexts.h"

/*
 * engine_cancel - end the operation with that context: triggered work, a receive, an unsent send,
 * or a collective
 *
 * Returns 0, or -FI_ENOENT if there is none; fi_cancel does not report that. Source:
 * fi_endpoint(3).
 */
int engine_cancel(struct engine_ctx *ctx, void *context);

#endif
