/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Raw cache-line latency; cacheline.h has the contract. Called by both sides
 * of a local measurement right before each sample.
 */
#define _GNU_SOURCE
#include "cacheline.h"
#include "clock.h"
#include "stats.h"

#include <math.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>

#define BATCHES	    5
#define ROUND_TRIPS 60
#define GIVE_UP_NS  1000000000ull

struct cacheline {
	/* Side 0 writes odd values, side 1 answers with the next even one. */
	_Alignas(128) _Atomic uint64_t ball;
	/* Balls played so far, private to each side, so that calls chain. */
	_Alignas(128) uint64_t played[2];
	/* Set when a side gave up: the two no longer agree where the ball is. */
	_Alignas(128) _Atomic int lost;
};

struct cacheline *cacheline_create(void)
{
	void *mem = mmap(NULL, sizeof(struct cacheline), PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	return mem == MAP_FAILED ? NULL : mem;
}

void cacheline_destroy(struct cacheline *line)
{
	if (line)
		munmap(line, sizeof(*line));
}

static int await(struct cacheline *line, uint64_t value)
{
	uint64_t give_up = 0;
	unsigned spins;

	for (spins = 1;; spins++) {
		/* A:ball  pairs R:ball; the value is all that is passed */
		if (atomic_load_explicit(&line->ball, memory_order_acquire) == value)
			return 0;
		if (spins % 65536)
			continue;
		if (!give_up)
			give_up = clock_ns() + GIVE_UP_NS;
		else if (clock_ns() > give_up)
			break;
	}
	atomic_store_explicit(&line->lost, 1, memory_order_relaxed);
	return -1;
}

static int play(struct cacheline *line, int side, int trips)
{
	uint64_t at = line->played[side];
	int rc = 0;

	for (; trips-- && !rc; at += 2) {
		if (side) {
			rc = await(line, at + 1);
			/* R:ball */
			atomic_store_explicit(&line->ball, at + 2, memory_order_release);
		} else {
			/* R:ball */
			atomic_store_explicit(&line->ball, at + 1, memory_order_release);
			rc = await(line, at + 2);
		}
	}
	line->played[side] = at;
	return rc;
}

double cacheline_measure(struct cacheline *line, int side)
{
	double batch[BATCHES];
	uint64_t start;
	int i;

	if (atomic_load_explicit(&line->lost, memory_order_relaxed))
		return NAN;
	/* The first trips bring both sides here. */
	if (play(line, side, 4))
		return NAN;
	for (i = 0; i < BATCHES; i++) {
		start = clock_ns();
		if (play(line, side, ROUND_TRIPS))
			return NAN;
		batch[i] = (double)(clock_ns() - start) / (2 * ROUND_TRIPS);
	}
	return side ? 0 : stats_of(batch, BATCHES).median;
}
