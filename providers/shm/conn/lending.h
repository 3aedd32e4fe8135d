/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Whether payload in the arena is copied once, from where its sender has it, or through the ring. What is
 * copied once has to come out of the sender's caches, which is slow between cores without a common one,
 * and then both sides' caches have its lines: a program that writes to them again, as a reduction does, has
 * to take them back first. What a program does with its buffers shows in its time alone. So payload is
 * lent, or not, in bursts, and the way is taken in which bursts of that length follow each other faster.
 * The sender chooses for what it may send at once, the receiver for what it is to ask for; there a burst ends when
 * its bytes have arrived, since many messages may be announced before the first one is copied. So it is with a
 * region that is read: the target may have written it just before. One object for each connection, on the
 * thread that holds the domain.
 */
#ifndef WEFT_SHM_LENDING_H
#define WEFT_SHM_LENDING_H

#include "platform.h"

/* Classes of lengths of what the sender chooses for: up to 16 KiB, 32 KiB, and longer, */
#define PSHM_LENDING_SENDS 3u
/* and the receiver of a message, or who reads a region: up to 256 KiB, 1 MiB, and longer. */
#define PSHM_LENDING_LONG    3u
#define PSHM_LENDING_CLASSES (PSHM_LENDING_SENDS + 2 * PSHM_LENDING_LONG)
/* Bursts of each way that are remembered */
#define PSHM_LENDING_COSTS 4u

/* Payload of a class of lengths; index 1: lent, 0: through the ring. */
struct pshm_lending_class {
	/* messages of the burst so far */
	uint32_t cnt;
	/* those of the burst are lent */
	bool lends;
	/* it measures the slower way */
	bool trial;
	/* bursts since the slower way was tried */
	uint32_t since;
	/* least bursts until it is again, of long messages: by what the last trial has lost */
	uint32_t gap;
	/* how often it was, for long messages, up to the number after which that is done seldom */
	uint32_t trials;
	/* when the burst began; 0: there was none */
	uint64_t begin_ns;
	/* of the burst, so far */
	uint64_t bytes;
	/* pshm_lending.arrived when it began */
	uint64_t arrived;
	/* ns per 64 KiB of the last bursts of each way, up to the next burst; 0: not measured */
	uint64_t cost[2][PSHM_LENDING_COSTS];
	/* place of the next one */
	uint32_t next[2];
};

struct pshm_lending {
	/* bytes that were copied here, of messages and reads of all classes of the receiver's choice */
	uint64_t arrived;
	struct pshm_lending_class classes[PSHM_LENDING_CLASSES];
};

/*
 * pshm_lending_next - returns true if the next message, of @len bytes, is better lent; counts it
 * Called by the sender for up to PSHM_EAGER_MAX bytes, by the receiver for more.
 */
bool pshm_lending_next(struct pshm_lending *lending, size_t len);

/*
 * pshm_lending_read - returns true if the next read of the peer's regions, of @len bytes, is better made by our
 * loads; counts it
 * Called for more than PSHM_EAGER_MAX bytes.
 */
bool pshm_lending_read(struct pshm_lending *lending, size_t len);

#endif
