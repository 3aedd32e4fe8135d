/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The number of idle rounds after which a program that polls yields its core. With more processes
 * than cores the peer may need that core to make progress. Each yield measures this: it returns at
 * once if no other thread wants the core, and if the peer ran meanwhile, the next round finds
 * something. Used by progress/progress.c.
 */
#ifndef WEFT_YIELD_H
#define WEFT_YIELD_H

#include "platform.h"

/* Rounds for a process that has a core of its own: about 50 us over shm */
#define ENGINE_YIELD_MAX 2048u
/* Rounds for a process that shares its core with the peer it waits for */
#define ENGINE_YIELD_MIN 2u
/*
 * One of so many yields that the peer was said to have run in is followed by a longer wait, of so many
 * rounds: a message that arrives meanwhile arrives without yields too.
 */
#define ENGINE_YIELD_DOUBT 512u
#define ENGINE_YIELD_WAIT  256u
/* Most rounds between further yields, once another thread has run in one */
#define ENGINE_YIELD_EVERY 32u
/* In a shorter yield no other thread has run */
#define ENGINE_YIELD_SOME_NS 1200u
/* In a longer yield a thread has run that computes, rather than one that polls */
#define ENGINE_YIELD_LONG_NS 1500000u

/*
 * engine_yield_after - returns the number of idle rounds before the next yield
 * @after: idle rounds before the last yield
 * @ns:	   duration of that yield
 * @moved: true if a round after it moved something
 *
 * The number falls to the least if the peer ran during the yield, and stays if another thread ran
 * that polls and yields as well. It doubles if no thread ran, or one that computes: a yield to such
 * a thread lasts until the end of its time slice.
 */
static inline uint32_t engine_yield_after(uint32_t after, uint64_t ns, bool moved)
{
	if (ns >= ENGINE_YIELD_SOME_NS && ns < ENGINE_YIELD_LONG_NS)
		return moved ? ENGINE_YIELD_MIN : after;
	return after >= ENGINE_YIELD_MAX / 2 ? ENGINE_YIELD_MAX : 2 * after;
}

#endif
