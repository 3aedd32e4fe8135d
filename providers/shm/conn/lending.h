/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Whether payload in the arena that the ring can carry too is lent. What is lent is copied once, but
 * then both sides' caches have its lines: a program that writes to them again, as a reduction does, has
 * to take them back first, which costs as much as it saves. What a program does with its buffers shows
 * in its time alone. So sends are lent, or not, in bursts, and the way is taken in which bursts of that
 * length follow each other faster. One object for each connection, on the thread that holds the domain.
 */
#ifndef WEFT_SHM_LENDING_H
#define WEFT_SHM_LENDING_H

#include "platform.h"

/* Classes of lengths: up to 16 KiB, 32 KiB, and longer. */
#define PSHM_LENDING_CLASSES 3u
/* Bursts of each way that are remembered */
#define PSHM_LENDING_COSTS 4u

/* Sends of a class of lengths; index 1: lent, 0: through the ring. */
struct pshm_lending_class {
	/* sends that are left of the burst */
	uint32_t left;
	/* those of the burst are lent */
	bool lends;
	/* bursts since the slower way was tried */
	uint32_t since;
	/* when the burst began; 0: there was none */
	uint64_t begin_ns;
	/* ns that the last bursts of each way took, up to the next burst; 0: not measured */
	uint64_t cost[2][PSHM_LENDING_COSTS];
	/* place of the next one */
	uint32_t next[2];
};

struct pshm_lending {
	struct pshm_lending_class classes[PSHM_LENDING_CLASSES];
};

/* pshm_lending_next - returns true if the next send, of @len bytes, is better lent; counts it */
bool pshm_lending_next(struct pshm_lending *lending, size_t len);

#endif
