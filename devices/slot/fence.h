/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The full barrier that both sides of a doorbell page have before they may sleep (slot.h). Any thread. */
#ifndef WEFT_DEVICES_FENCE_H
#define WEFT_DEVICES_FENCE_H

#include <stdatomic.h>

/* slot_fence - loads and stores before it are made before those behind it */
#ifdef __SANITIZE_THREAD__
/* The sanitizer does not support fences; a read-modify-write operation is one to the processor. */
static inline void slot_fence(void)
{
	static _Atomic int word;

	atomic_fetch_add_explicit(&word, 0, memory_order_seq_cst);
}
#else
static inline void slot_fence(void)
{
	atomic_thread_fence(memory_order_seq_cst);
}
#endif

#endif
