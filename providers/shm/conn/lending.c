/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Choosing whether payload is lent, by measuring the program. */
#include "lending.h"

/* Messages of a burst: many to one reading of the clock, and few enough that nothing interrupts them. */
#define BURST	   16u
#define BURST_LONG 4u
/* A burst whose bytes have not arrived goes on, up to so many. */
#define BURST_MOST 64u
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
/* Bytes whose ns are a burst's cost, since the lengths of a class differ */
#define COST_LEN 65536u
/* The ring is taken if it costs less by more than this part. */
#define MARGIN 16u
/*
 * A trial of long messages, which may take four times as long the other way, ends after the message by which
 * it has taken TOO_SLOW times what the faster way takes. The next one comes once what this one has lost is
 * less than one part of LOSS, after GAP_LOST bursts at most: memory may have been touched first in it.
 */
#define TOO_SLOW 2u
#define LOSS	 128u
#define GAP_LOST 128u

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

static uint32_t burst_len(uint32_t class)
{
	return class < PSHM_LENDING_SENDS ? BURST : BURST_LONG;
}

/* Cost of what has been moved of a burst in @ns, perhaps by fewer messages than burst_len(). */
static uint64_t cost_of(const struct pshm_lending_class *c, uint64_t ns)
{
	return ns * COST_LEN / c->bytes + 1;
}

static void measured(struct pshm_lending_class *c, uint32_t class, uint64_t ns)
{
	uint64_t best = least(c, !c->lends, 1), cost = cost_of(c, ns), lost;

	c->cost[c->lends][c->next[c->lends]] = cost;
	c->next[c->lends] = (c->next[c->lends] + 1) % PSHM_LENDING_COSTS;
	if (!c->trial || class < PSHM_LENDING_SENDS)
		return;
	/* in parts of a burst */
	lost = cost > best ? (cost - best) * LOSS * c->cnt / (best * burst_len(class)) : 0;
	c->gap = lost < GAP_LOST ? (uint32_t)lost : GAP_LOST;
}

/* Returns the way of the next burst: the faster one, but now and then the other one, to measure it. */
static bool next_burst(struct pshm_lending_class *c, uint32_t class)
{
	uint32_t cnt = class < READS ? PSHM_LENDING_COSTS : 1;
	uint32_t early = class < READS ? TRY_EARLY : TRY_EARLY_READS;
	uint64_t lent = least(c, true, cnt), ring = least(c, false, cnt);
	bool lends = ring >= lent - lent / MARGIN;
	uint32_t gap = TRY_EVERY + TRY_APART * class;

	c->trial = false;
	if (!lent || !ring)
		return !lent;
	if (class >= PSHM_LENDING_SENDS)
		gap >>= early - c->trials;
	if (++c->since < (gap > c->gap ? gap : c->gap))
		return lends;
	c->since = 0;
	c->trials += c->trials < early;
	c->trial = true;
	return !lends;
}

/* Returns whether a trial of long messages that has gone on until @now is to end. */
static bool is_too_slow(const struct pshm_lending_class *c, uint64_t now)
{
	return cost_of(c, now - c->begin_ns) > TOO_SLOW * least(c, !c->lends, 1);
}

/* Returns whether what was chosen for so far was copied, or so much that nobody waits for it. */
static bool has_arrived(const struct pshm_lending *lending, const struct pshm_lending_class *c,
			uint32_t class)
{
	return class < PSHM_LENDING_SENDS || c->cnt >= BURST_MOST ||
	       lending->arrived - c->arrived >= c->bytes;
}

/* Begins a burst, unless the last one goes on. */
static void burst_begin(struct pshm_lending *lending, struct pshm_lending_class *c,
			uint32_t class)
{
	uint64_t now;

	if (!has_arrived(lending, c, class))
		return;
	now = platform_now_ns();
	if (c->cnt < burst_len(class) && c->cnt && !is_too_slow(c, now))
		return;
	if (c->begin_ns)
		measured(c, class, now - c->begin_ns);
	c->begin_ns = now;
	c->cnt = 0;
	c->bytes = 0;
	c->arrived = lending->arrived;
	c->lends = next_burst(c, class);
}

static inline bool choose(struct pshm_lending *lending, uint32_t class, size_t len)
{
	struct pshm_lending_class *c = &lending->classes[class];

	if (unlikely(!c->cnt || c->cnt >= burst_len(class) ||
		     (c->trial && class >= PSHM_LENDING_SENDS)))
		burst_begin(lending, c, class);
	c->cnt++;
	c->bytes += len;
	return c->lends;
}

bool pshm_lending_next(struct pshm_lending *lending, size_t len)
{
	return choose(lending, class_of(len), len);
}

bool pshm_lending_read(struct pshm_lending *lending, size_t len)
{
	return choose(lending, READS + class_of_long(len), len);
}
