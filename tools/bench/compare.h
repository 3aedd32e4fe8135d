/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The interleaved comparison of 'weft bench': configuration A against B, each in
 * processes of its own, with another library, another provider or both.
 *
 * Three instances exist at a time: A, B, and A once more. Each is a pair of processes, or several pairs
 * that run their rounds at the same time. The instances take turns, a round each, while the others sleep,
 * and the one that starts rotates. So a change of the machine affects all of them alike; each round gives
 * a pair of samples, whose ratio is the result; and the second A shows how much two equal instances
 * differ. All are restarted several times, because the placement of memory alone causes differences.
 */
#ifndef WEFT_TOOLS_COMPARE_H
#define WEFT_TOOLS_COMPARE_H

#include <stdbool.h>

#include "results.h"

struct compare_options {
	/* directories of A's and B's libfabric.so.1; NULL: the one of this process */
	const char *library[2];
	/* program that measures B instead of weft, or NULL */
	const char *program;
	/* pairs of processes per instance, which run at the same time; at most COMPARE_PAIRS_MAX */
	unsigned pairs;
	/* rounds of each instance */
	unsigned rounds;
	/* number of times that all processes are started */
	unsigned restarts;
	/* "tagged" or "msg" */
	const char *interface;
	/* system calls that are refused, or NULL; only printed in the report */
	const char *refused;
	/* exit 1 if A is slower by more than the A/A spread */
	bool fail_if_slower;
	/* "weft bench" and the arguments of this process, NULL-terminated */
	char **command;
	struct results_outputs *out;
};

#define COMPARE_PAIRS_MAX 16

/* Arguments of --worker: which configuration a child measures. */
#define COMPARE_A "a"
#define COMPARE_B "b"

/*
 * compare_run - run the comparison and print its results
 *
 * Called on the main thread. Returns an exit status.
 */
int compare_run(const struct compare_options *opt);

/*
 * compare_verdict - the verdict for one figure
 * @speed:  median of A's speed over B's
 * @low, @high:  p10 and p90 of one A's speed over another A's
 *
 * Returns "faster", "slower", or "same" within the spread.
 */
const char *compare_verdict(double speed, double low, double high);

#endif
