/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A grain of the arena, as one device has it registered, and its users. Any thread.
 *
 * A grain's word says what state it is in:
 *
 *	0		not registered
 *	WORD_BARRED	not registered, and the arena may be taking pages of it away
 *	WORD_PINNING	a thread that holds pin_lock registers it
 *	WORD_READY	registered; the low half counts its users, WORD_RECENT: there were some lately
 *
 * Users come and go without a lock, only while it is ready. What ends a registration takes a ready
 * word without users to another state, and with it the right to end it.
 */
#ifndef WEFT_MEM_GRAIN_H
#define WEFT_MEM_GRAIN_H

#include "list.h"

#define WORD_READY   (1ull << 63)
#define WORD_RECENT  (1ull << 62)
#define WORD_PINNING (1ull << 61)
#define WORD_BARRED  (1ull << 60)
#define WORD_USERS   0xffffffffull

struct grain {
	/* see above; R:grain.ready, R:grain.users */
	_Alignas(CACHE_LINE) _Atomic uint64_t word;
	/* of the device, while ready */
	uint64_t handle;
	/* in pins->recent, while ready */
	struct list link;
};

/* Adds a user to a grain that is ready. Returns false if it is not. */
static inline bool grain_use(struct grain *grain)
{
	uint64_t word = atomic_load_explicit(&grain->word, memory_order_relaxed);

	while (word & WORD_READY)
		/* A:grain.ready  the handle, and what the device holds; pairs R:grain.ready */
		if (atomic_compare_exchange_weak_explicit(
			    &grain->word, &word, (word + 1) | WORD_RECENT, memory_order_acquire,
			    memory_order_relaxed))
			return true;
	return false;
}

static inline void grain_unuse(struct grain *grain)
{
	/* R:grain.users  the last use of the handle; pairs A:grain.users */
	atomic_fetch_sub_explicit(&grain->word, 1, memory_order_release);
}

/* Takes a ready grain that has no users to another state. Returns false if it has some. */
static inline bool grain_end(struct grain *grain, uint64_t to)
{
	uint64_t word = atomic_load_explicit(&grain->word, memory_order_relaxed);

	while (!(word & (WORD_USERS | WORD_PINNING)))
		/* A:grain.users  what users did with the handle; pairs R:grain.users */
		if (atomic_compare_exchange_weak_explicit(
			    &grain->word, &word, to, memory_order_acquire, memory_order_relaxed))
			return true;
	return false;
}

/* Has it users, or is it being registered? */
static inline bool grain_in_use(struct grain *grain)
{
	return atomic_load_explicit(&grain->word, memory_order_relaxed) &
	       (WORD_USERS | WORD_PINNING);
}

#endif
