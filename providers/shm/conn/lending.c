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
/*
 * Reads begin once their memory is mapped, so that one burst of each way is compared, and the next trial comes
 * after more of them: a program that makes few shall not make a part of them by the slower way.
 */
#define TRY_EARLY_READS 3u
/* The ring is taken if its bursts are shorter by more than this part. */
#define MARGIN 16u

/* First class of reads */
#define READS (PSHM_LENDING_SENDS + PSHM_LENDING_LONG)

static uint32_t class_of_long(size_t len)
{
	return (len > 256u << 10) + (len > 1u << 20);
}

static uint32_t class_of(size_t len)
{
	if (len <= 65536)
		return (len > 16384) + (len > 32768);
	return PSHM_LENDING_SENDS + class_of_long(len);
}

/*
 * The least of the last ones: the program may have computed, or waited, in the others. 0: fewer than @cnt were
 * measured.
 */
static uint64_t least(const struct pshm_lending_class *c, bool lends, uint32_t cnt)
{
	uint64_t cost = UINT64_MAX;

	for (uint32_t i = 0; i < PSHM_LENDING_COSTS; i++)
		if (c->cost[lends][i] < cost && (c->cost[lends][i] || i < cnt))
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
	uint32_t cnt = class < READS ? PSHM_LENDING_COSTS : 1;
	uint32_t early = class < READS ? TRY_EARLY : TRY_EARLY_READS;
	uint64_t lent = least(c, true, cnt), ring = least(c, false, cnt);
	bool lends = ring >= lent - lent / MARGIN;
	uint32_t gap = TRY_EVERY + TRY_APART * class;

	if (!lent || !ring)
		return !lent;
	if (class >= PSHM_LENDING_SENDS)
		gap >>= early - c->trials;
	if (++c->since < gap)
		return lends;
	c->since = 0;
	c->trials += c->trials < early;
	return !lends;
}

static inline bool choose(struct pshm_lending *lending, uint32_t class)
{
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

bool pshm_lending_next(struct pshm_lending *lending, size_t len)
{
	return choose(lending, class_of(len));
}

bool pshm_lending_read(struct pshm_lending *lending, size_t len)
{
	return choose(lending, READS + class_of_long(len));
}
