/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * After how many idle rounds a program that polls lets others have its core. Whoever is waited for may
 * want it: more processes than cores poll like this. Each yield shows whether that is so: where nobody
 * else runs it returns at once, and where the peer does, there is something when it returns. Used by
 * progress.c.
 */
#ifndef WEFT_YIELD_H
#define WEFT_YIELD_H

#include "platform.h"

#define ENGINE_YIELD_MAX     2048u    /* of who has a core to himself: some 50 us over shm */
#define ENGINE_YIELD_MIN     2u	      /* of who shares it with those that he waits for */
#define ENGINE_YIELD_EVERY   32u      /* rounds between yields, after so many, at most */
#define ENGINE_YIELD_SOME_NS 1200u    /* nobody else has run in less */
#define ENGINE_YIELD_LONG_NS 1500000u /* who has run so long waits for nobody */

/*
 * engine_yield_after - how many idle rounds to make the next time
 * @after: how many there were before this yield
 * @ns:	   that it took
 * @moved: a round after it moved something
 *
 * Few where the one who ran was the peer. Where others poll like this too, and yield, as before. More and more
 * where nobody runs, or somebody who computes: who yields to him waits for the end of his turn.
 */
static inline uint32_t engine_yield_after(uint32_t after, uint64_t ns, bool moved)
{
	if (ns >= ENGINE_YIELD_SOME_NS && ns < ENGINE_YIELD_LONG_NS)
		return moved ? ENGINE_YIELD_MIN : after;
	return after >= ENGINE_YIELD_MAX / 2 ? ENGINE_YIELD_MAX : 2 * after;
}

#endif
