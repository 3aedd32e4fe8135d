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
#include "compare.h"

struct bench_options {
	struct plan plan;
	struct place place;
	struct channel_options channel;
	struct compare_options comparison;
	/* argument of --tests */
	const char *tests;
	const char *vs_provider;
	/* libweft-btl is measured */
	bool btl;
	/* B has buffers of malloc's memory */
	bool vs_malloc;
	/* system calls, as refuse.h names them, or NULL */
	const char *refused;
	bool compare;
	struct results_outputs out;
	/* the command line of this process */
	char **command;
	/* this process is a worker of a comparison, commanded over stdin and stdout */
	bool is_worker;
	/* a worker that measures configuration B */
	bool worker_b;
};

/*
 * bench_side - measure as one of the two sides
 * @arg:  struct bench_options
 *
 * Side 0 publishes. Returns an exit status; it fits pair_run.
 */
int bench_side(struct side *side, void *arg);

#endif
