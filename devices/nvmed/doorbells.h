/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The doorbell page of a queue pair: a sealed file that its owner maps, and the eventfd by which it wakes the controller.
 * What the owner writes there may be anything at any time. The loop's thread alone.
 */
#ifndef WEFT_NVMED_DOORBELLS_H
#define WEFT_NVMED_DOORBELLS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "slot/slot.h"

/*
 * struct doorbells
 * @page: NULL: none
 * @fd:   its file
 * @kick: the eventfd, in the epoll set edge-triggered and never read: whoever shares it may set it to block
 * @epoll: the set, or -1
 */
struct doorbells {
	struct slot_doorbells *page;
	int fd;
	int kick;
	int epoll;
};

/*
 * doorbells_open - make a page
 * @epoll:  the set that the eventfd joins, with @tag as its data; -1: none
 *
 * Returns 0 or a negative errno; @db then has none.
 */
int doorbells_open(struct doorbells *db, int epoll, uint64_t tag);

/* doorbells_close - let the page go, if there is one: who still has its eventfd wakes nobody */
void doorbells_close(struct doorbells *db);

/* sealed_file - a memfd of @len bytes that nobody can resize. Returns the descriptor or a negative errno */
int sealed_file(const char *name, uint64_t len);

/* doorbell_load - what its owner rang last; what it wrote before is seen */
static inline uint32_t doorbell_load(const uint32_t *doorbell)
{
	/* A:doorbell  entries of the queue; pairs R:doorbell of its owner */
	return atomic_load_explicit((const _Atomic uint32_t *)doorbell, memory_order_acquire);
}

/* doorbell_store - for words of the page that need no order */
static inline void doorbell_store(uint32_t *word, uint32_t value)
{
	atomic_store_explicit((_Atomic uint32_t *)word, value, memory_order_relaxed);
}

/* doorbell_peek - likewise */
static inline uint32_t doorbell_peek(const uint32_t *word)
{
	return atomic_load_explicit((const _Atomic uint32_t *)word, memory_order_relaxed);
}

#endif
