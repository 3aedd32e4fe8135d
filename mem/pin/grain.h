/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A grain of the arena, as one device has it registered, and its users. Any thread.
 *
 * A grain's word says what state it is in:
 *
 *	0		not registered
 *	WORD_BARRED	not registered, and the arena may be taking pages of it away
 *	WORD_PINNING	a thread that holds pin_lock registers it
 *	WORD_READY	registered; the low half counts its users, WORD_RECENT: there were some since that
 *			was looked at
 *	WORD_ENDING	registered; a thread with the lock looks whether it has holders, and begins
 *			none: it is ready again, or not registered, before the lock is released
 *
 * Users come and go without a lock, only while it is ready. What ends a registration takes a ready
 * word without users to another state, and with it the right to end it.
 *
 * Holders are users that one thread at a time adds and takes away: a plain count, without the cost
 * of an atomic operation between cores. What ends a registration pays for it: it takes the word to
 * WORD_ENDING, has every core of the process execute a barrier (membarrier(2)), and then reads the
 * count. A holder that was added before the barrier is counted; one that is added after it finds
 * the word not ready.
 *
 * Where there is no such barrier, holders make one of their own. It may be forbidden after it was used
 * (seccomp(2)): who finds that out first says so, and waits for long enough that all who have not
 * seen it are counted.
 */
#ifndef WEFT_MEM_GRAIN_H
#define WEFT_MEM_GRAIN_H

#include "list.h"

#define WORD_READY   (1ull << 63)
#define WORD_RECENT  (1ull << 62)
#define WORD_PINNING (1ull << 61)
#define WORD_BARRED  (1ull << 60)
#define WORD_ENDING  (1ull << 59)
#define WORD_USERS   0xffffffffull

struct grain {
	/* see above; R:grain.ready, R:grain.users */
	_Alignas(CACHE_LINE) _Atomic uint64_t word;
	/* of the device, while ready */
	uint64_t handle;
	/* its holders; R:grain.held */
	_Atomic uint32_t held;
	/* when it was registered, or found to have been used; with the lock */
	uint64_t used_ns;
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

/* Changes the number of holders; one thread at a time. */
static inline void grain_hold_more(struct grain *grain)
{
	uint32_t held = atomic_load_explicit(&grain->held, memory_order_relaxed);

	atomic_store_explicit(&grain->held, held + 1, memory_order_relaxed);
}

static inline void grain_unhold(struct grain *grain)
{
	uint32_t held = atomic_load_explicit(&grain->held, memory_order_relaxed);

	/* R:grain.held  the last use of the handle; pairs A:grain.held */
	atomic_store_explicit(&grain->held, held - 1, memory_order_release);
}

/*
 * Adds a holder to a grain that is ready; one thread at a time. Returns false if it is not ready.
 * @barriers: what ends a registration has this core execute a barrier
 */
static inline bool grain_hold(struct grain *grain, const _Atomic bool *barriers)
{
	uint64_t word;

	grain_hold_more(grain);
	/*
	 * F:grain.hold  compiler only: the count before the loads of barriers and word; pairs F:grain.end,
	 * F:grain.settle
	 */
	atomic_signal_fence(memory_order_seq_cst);
	if (__builtin_expect(!atomic_load_explicit(barriers, memory_order_relaxed), 0))
		/* F:grain.fence  the count before the load of word; pairs F:grain.fence */
		platform_fence();
	/* A:grain.ready  the handle, and what the device holds; pairs R:grain.ready */
	word = atomic_load_explicit(&grain->word, memory_order_acquire);
	if (__builtin_expect(!(word & WORD_READY), 0)) {
		grain_unhold(grain);
		return false;
	}
	if (__builtin_expect(!(word & WORD_RECENT), 0))
		atomic_fetch_or_explicit(&grain->word, WORD_RECENT, memory_order_relaxed);
	return true;
}

/*
 * Begins to end the registration of a grain, if it has one: its word is WORD_ENDING then. Returns
 * false if it has users, or is being registered. The lock is held.
 */
static inline bool grain_ending(struct grain *grain)
{
	uint64_t word = atomic_load_explicit(&grain->word, memory_order_relaxed);

	while (!(word & (WORD_USERS | WORD_PINNING))) {
		if (!(word & WORD_READY))
			return true;
		/* A:grain.users  what users did with the handle; pairs R:grain.users */
		if (atomic_compare_exchange_weak_explicit(&grain->word, &word, WORD_ENDING,
							  memory_order_acquire,
							  memory_order_relaxed))
			return true;
	}
	return false;
}

static inline bool grain_is_ending(struct grain *grain)
{
	return atomic_load_explicit(&grain->word, memory_order_relaxed) & WORD_ENDING;
}

/* Makes a grain ready again that was ending. */
static inline void grain_stay(struct grain *grain)
{
	if (grain_is_ending(grain))
		/*
		 * Changes the two bits, and none that a holder sets meanwhile.
		 * R:grain.ready  as before; pairs A:grain.ready
		 */
		atomic_fetch_add_explicit(&grain->word, WORD_READY - WORD_ENDING,
					  memory_order_release);
}

/* Returns true if a grain has holders; after a barrier, if it is ending. */
static inline bool grain_is_held(struct grain *grain)
{
	/* A:grain.held  what the holder did with the handle; pairs R:grain.held */
	return atomic_load_explicit(&grain->held, memory_order_acquire) != 0;
}

/* Has all holders counted, or see what the words are now. The lock is held. */
static inline void grain_barrier(_Atomic bool *barriers)
{
	if (!atomic_load_explicit(barriers, memory_order_relaxed)) {
		/* F:grain.fence  the words before the counts of holders; pairs F:grain.fence */
		platform_fence();
		return;
	}
	/* F:grain.end  the words before the counts of holders; pairs F:grain.hold */
	if (!platform_membarrier())
		return;
	atomic_store_explicit(barriers, false, memory_order_relaxed);
	/* F:grain.settle  barriers and the words before the counts of holders; pairs F:grain.hold */
	platform_settle();
}

/*
 * Ends the registration of a grain without users and holders: its word is 0. Returns false if it has
 * some. The lock is held.
 */
static inline bool grain_end(struct grain *grain, _Atomic bool *barriers)
{
	/* A holder that is seen without a barrier spares it. */
	if (grain_is_held(grain) || !grain_ending(grain))
		return false;
	grain_barrier(barriers);
	if (grain_is_held(grain)) {
		grain_stay(grain);
		return false;
	}
	atomic_store_explicit(&grain->word, 0, memory_order_relaxed);
	return true;
}

#endif
