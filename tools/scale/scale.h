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
	struct plan plan; /* its provider alone */
	struct place place;
	struct channel_options channel;
	unsigned endpoints;
	unsigned peers;
	unsigned rounds;
	unsigned reads; /* of an idle queue, per round */
	unsigned idle;	/* domains with automatic progress; 0: not measured */
	bool want_json;
	const char *json_path; /* NULL: standard output, without the text */
};

struct scale_figures {
	struct results_config config;
	struct memory endpoint; /* bytes of one, with its completion queue */
	struct memory pair;	/* bytes of one, in both processes */
	double *few_ns;		/* a fi_cq_read of an endpoint with one peer; of each round */
	double *many_ns;	/* the same with all peers */
	struct idle idle;	/* where it is measured */
};

/*
 * scale_measure - take all figures, in processes of their own
 * @figures:  receives them
 *
 * Complains itself. Returns an exit status; on success the caller frees the two arrays.
 */
int scale_measure(const struct scale_options *opt, struct scale_figures *figures);

#endif
