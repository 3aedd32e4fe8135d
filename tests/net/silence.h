/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Two processes between which the network goes away for good: all that is under way ends with an
 * error, at the one that sends and at the one that only waits.
 */
#ifndef WEFT_NET_SILENCE_H
#define WEFT_NET_SILENCE_H

#include "node.h"

/* What the two and the process that cuts the network share. */
struct silence {
	_Atomic uint32_t met; /* processes whose conn is up, and that have posted what is to fail */
	_Atomic uint64_t cut_ns; /* when it was cut; 0: it is not */
	_Atomic uint64_t took_ns[2];
};

/* silence_run - of the process @rank; process 0 sends. Ends when all has failed */
void silence_run(struct silence *s, struct node *node, fi_addr_t peer, int rank);

#endif
