/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What the parts of 'weft bench' share: its options, one measuring side, and the
 * comparison of two configurations.
 */
#ifndef WEFT_TOOLS_BENCH_H
#define WEFT_TOOLS_BENCH_H

#include <stdbool.h>

#include "channel.h"
#include "plan.h"
#include "results.h"
#include "versus.h"

struct bench_options {
	struct plan plan;
	struct place place;
	struct channel_options channel;
	struct versus_options versus;
	const char *tests; /* as it was given */
	const char *vs_provider;
	const char *refused; /* system calls, as refuse.h names them, or NULL */
	bool compare;
	struct results_outputs out;
	char **command; /* our command line as it was given */
	bool driven;	/* a comparison drives us over stdin and stdout */
	bool driven_b;	/* and we are its B */
};

/*
 * bench_side - measure as one of the two sides
 * @arg:  struct bench_options
 *
 * Side 0 publishes. Returns an exit status; it fits pair_run.
 */
int bench_side(struct side *side, void *arg);

#endif
