/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Counts of references: of what is bound to, open in, or waits for an object. Any thread.
 */
#ifndef WEFT_ENGINE_REFS_H
#define WEFT_ENGINE_REFS_H

#include "platform.h"

static inline void engine_ref(_Atomic int *refs)
{
	atomic_fetch_add_explicit(refs, 1, memory_order_relaxed);
}

static inline void engine_unref(_Atomic int *refs)
{
	atomic_fetch_sub_explicit(refs, 1, memory_order_relaxed);
}

static inline bool engine_in_use(_Atomic int *refs)
{
	return atomic_load_explicit(refs, memory_order_relaxed) != 0;
}

#endif
