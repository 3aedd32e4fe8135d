/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The interleaved comparison of 'weft bench': configuration A against B, each in
 * processes of its own, with another library, another provider or both.
 *
 * Three pairs of processes live at a time, or three crowds of pairs: A, B, and A once more. They take
 * turns, a round each, the pairs of a crowd at the same time, while the others sleep; who starts rotates. So what the machine does to one it does
 * to the other, each round gives a pair of samples whose ratio counts, and the second A
 * shows how much two equal things differ. All are started anew several times, because
 * where memory happens to lie makes a difference of its own.
 */
#ifndef WEFT_TOOLS_VERSUS_H
#define WEFT_TOOLS_VERSUS_H

#include <stdbool.h>

#include "results.h"

struct versus_options {
	/* directories of A's and B's libfabric.so.1; NULL: as we run */
	const char *library[2];
	/* that measures B instead of weft, or NULL */
	const char *program;
	/* of processes that run a round at the same time; VERSUS_PAIRS_MAX at most */
	unsigned pairs;
	/* pairs in all */
	unsigned rounds;
	/* times that all processes are started */
	unsigned restarts;
	/* "tagged" or "msg" */
	const char *interface;
	/* system calls, or NULL: for the report alone */
	const char *refused;
	/* exit 1 where A is slower beyond the A/A spread */
	bool fail_if_slower;
	/* "weft bench" and our own arguments, NULL-terminated */
	char **command;
	struct results_outputs *out;
};

#define VERSUS_PAIRS_MAX 16

/* What --driven gets: which of the two a child is. */
#define VERSUS_A "a"
#define VERSUS_B "b"

/*
 * versus_run - compare and print
 *
 * Main's thread. Returns an exit status.
 */
int versus_run(const struct versus_options *opt);

/*
 * versus_verdict - what a comparison says
 * @speed:  median of A's speed over B's
 * @low, @high:  p10 and p90 of one A's speed over another A's
 *
 * Returns "faster", "slower", or "same" within the spread.
 */
const char *versus_verdict(double speed, double low, double high);

#endif
