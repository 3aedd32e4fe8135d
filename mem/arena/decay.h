/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How much of what is free keeps its pages as time passes: what is not used again goes within DECAY_STEPS
 * steps, little of it at first, most in the middle. What counts is how long so many bytes were free, whichever
 * they are: a program that uses the same amount again and again keeps it. One thread at a time.
 *
 * Source: the smooth curve is that of jemalloc's decay (jemalloc(3), opt.dirty_decay_ms); here it is applied to
 * the least bytes that were free during each step, not to those that were freed.
 */
#ifndef WEFT_MEM_DECAY_H
#define WEFT_MEM_DECAY_H

#include <stddef.h>

#define DECAY_STEPS 40u

/* Zeroed: nothing is free. */
struct decay {
	/* bytes that have been free for so many steps */
	size_t aged[DECAY_STEPS];
	/* that are to go and have not gone yet */
	size_t due;
};

/*
 * decay_step - a step has passed
 * @unused: the least bytes that were free at any time of it, at most @now
 * @now:    that are free now
 * Returns how many may keep their pages.
 */
size_t decay_step(struct decay *decay, size_t unused, size_t now);

/* decay_gone - so many bytes have lost their pages */
void decay_gone(struct decay *decay, size_t len);

#endif
