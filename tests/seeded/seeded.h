/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Random numbers for tests, which a seed decides: who prints the seed can run the same again. Any
 * thread, with a state of its own.
 */
#ifndef WEFT_SEEDED_H
#define WEFT_SEEDED_H

#include <stdint.h>

/*
 * seeded_random - the next of a seed's numbers, 64 bits that are all equally good
 * @state: the seed at first, any number
 *
 * Source: Steele, Lea, Flood, Fast Splittable Pseudorandom Number Generators, 2014.
 */
static inline uint64_t seeded_random(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

/* seeded_below - the next one, below @n, which is at least 1 */
static inline uint64_t seeded_below(uint64_t *state, uint64_t n)
{
	return seeded_random(state) % n;
}

#endif
