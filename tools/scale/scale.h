/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What many endpoints and many peers cost: the figures of 'weft scale', and how they are
 * taken. One thread per process.
 */
#ifndef WEFT_TOOLS_SCALE_H
#define WEFT_TOOLS_SCALE_H

#include <stdbool.h>
#include <stdio.h>

#include "channel.h"
#include "idle.h"
#include "memory.h"
#include "plan.h"
#include "results.h"

struct scale_options {
	/* only its provider is used */
	struct plan plan;
	struct place place;
	struct channel_options channel;
	unsigned endpoints;
	unsigned peers;
	unsigned rounds;
	/* reads of an empty queue per round */
	unsigned reads;
	/* domains with automatic progress; 0: not measured */
	unsigned idle;
	/* seconds for which they are measured */
	unsigned idle_time;
	bool want_json;
	/* NULL: standard output, without the text */
	const char *json_path;
};

struct scale_figures {
	struct results_config config;
	/* bytes of one endpoint with its completion queue */
	struct memory endpoint;
	/* bytes of one pair, in both processes */
	struct memory pair;
	/* time of a fi_cq_read of an endpoint with one peer, of each round */
	double *few_ns;
	/* the same of an endpoint with all peers */
	double *many_ns;
	/* valid if opt->idle */
	struct idle idle;
};

/*
 * scale_measure - measure all figures, in child processes
 * @figures:  receives them
 *
 * Prints the reason of a failure. Returns an exit status; on success the caller frees the two arrays.
 */
int scale_measure(const struct scale_options *opt, struct scale_figures *figures);

#endif
