/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Random numbers of the tests, the same for the same seed. Tests only. */
#ifndef WEFT_SHM_MOCK_RANDOM_H
#define WEFT_SHM_MOCK_RANDOM_H

#include <stdint.h>

/*
 * mock_random - the next one, of 31 bits; @state: the seed at first. Source: Knuth's MMIX
 * generator
 */
static inline uint32_t mock_random(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(*state >> 33);
}

#endif
