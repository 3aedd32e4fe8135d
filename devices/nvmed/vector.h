/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Interrupts: an eventfd for each vector, masks, and coalescing (features 8 and 9). The loop's thread alone.
 */
#ifndef WEFT_NVMED_VECTOR_H
#define WEFT_NVMED_VECTOR_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

struct nvmed;

/*
 * struct vector
 * @fd:      -1: nobody listens
 * @alone:   not coalesced (Interrupt Vector Configuration)
 * @pending: entries that it has to tell of, since @since
 */
struct vector {
	int fd;
	bool alone;
	uint32_t pending;
	uint64_t since;
};

/*
 * struct vectors
 * @waiting: how many have something pending
 * @mask:    of the first 32, as INTMS and INTMC set it
 * @guard:   a timer that interrupts a write which blocks; @guarded: it runs
 */
struct vectors {
	timer_t guard;
	bool guarded;
	struct vector *each;
	uint32_t cnt;
	uint32_t waiting;
	uint32_t mask;
};

/* vectors_init - @cnt of them, to which nobody listens. SIGALRM is theirs. Returns 0 or a negative errno */
int vectors_init(struct vectors *v, uint32_t cnt);
void vectors_fini(struct vectors *v);

/* vectors_rest - the loop is about to sleep: nothing need be guarded */
void vectors_rest(struct nvmed *c);

/*
 * vector_set - where a vector's interrupts go
 * @fd: takes; -1: nowhere
 */
void vector_set(struct nvmed *c, uint32_t index, int fd);

/*
 * vector_raise - tell of @cnt entries, now or when coalescing or a mask allows
 * @admin: the queue is the admin one, which is not coalesced
 */
void vector_raise(struct nvmed *c, uint32_t index, uint32_t cnt, bool admin);

/* vector_fire - tell at once, masked or not: there will be no more */
void vector_fire(struct nvmed *c, uint32_t index);

/* vectors_mask - set the mask; what is unmasked is told at once */
void vectors_mask(struct nvmed *c, uint32_t mask);

/* vectors_due - tell of what has waited long enough. Returns when the next one has, or UINT64_MAX */
uint64_t vectors_due(struct nvmed *c);

#endif
