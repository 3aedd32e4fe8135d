/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Choosing whether payload is lent, by measuring the program. */
#include "lending.h"

/* Messages of a burst: many to one reading of the clock, and few enough that nothing interrupts them. */
#define BURST	   16u
#define BURST_LONG 4u
/*
 * Bursts of the faster way between two of the other one; more for each further class, so that a program
 * that sends of two classes in turns does not try the ring for both in the same bursts.
 */
#define TRY_EVERY 128u
#define TRY_APART 9u
/*
 * The first trials of long messages follow each other sooner, each after twice as many bursts as the last
 * one: the first bursts may have touched their memory first, or connected. Those of sends have many more
 * messages: it would take a tenth of a short program's time.
 */
#define TRY_EARLY 5u
/* The ring is taken if its bursts are shorter by more than this part. */
#define MARGIN 16u

static uint32_t class_of(size_t len)
{
	if (len <= 65536)
		return (len > 16384) + (len > 32768);
	return PSHM_LENDING_SENDS + (len > 256u << 10) + (len > 1u << 20);
}

/* The least of the last ones: the program may have computed, or waited, in the others. */
static uint64_t least(const struct pshm_lending_class *c, bool lends)
{
	uint64_t cost = UINT64_MAX;

	for (uint32_t i = 0; i < PSHM_LENDING_COSTS; i++)
		if (c->cost[lends][i] < cost)
			cost = c->cost[lends][i];
	return cost;
}

static void measured(struct pshm_lending_class *c, uint64_t ns)
{
	uint32_t *next = &c->next[c->lends];

	c->cost[c->lends][*next] = ns;
	*next = (*next + 1) % PSHM_LENDING_COSTS;
}

/* Returns the way of the next burst: the faster one, but now and then the other one, to measure it. */
static bool next_burst(struct pshm_lending_class *c, uint32_t class)
{
	uint64_t lent = least(c, true), ring = least(c, false);
	bool lends = ring >= lent - lent / MARGIN;
	uint32_t gap = TRY_EVERY + TRY_APART * class;

	if (!lent || !ring)
		return !lent;
	if (class >= PSHM_LENDING_SENDS)
		gap >>= TRY_EARLY - c->trials;
	if (++c->since < gap)
		return lends;
	c->since = 0;
	c->trials += c->trials < TRY_EARLY;
	return !lends;
}

bool pshm_lending_next(struct pshm_lending *lending, size_t len)
{
	uint32_t class = class_of(len);
	struct pshm_lending_class *c = &lending->classes[class];
	uint64_t now;

	if (likely(c->left)) {
		c->left--;
		return c->lends;
	}
	now = platform_now_ns();
	if (c->begin_ns)
		measured(c, now - c->begin_ns);
	c->begin_ns = now;
	c->left = (class < PSHM_LENDING_SENDS ? BURST : BURST_LONG) - 1;
	c->lends = next_burst(c, class);
	return c->lends;
}
