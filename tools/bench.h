/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What the parts of 'weft bench' share: its options, one measuring side, and the
 * comparison of two configurations.
 */
#ifndef WEFT_TOOLS_BENCH_H
#define WEFT_TOOLS_BENCH_H

#include <stdbool.h>
#include <stdint.h>

#include "channel.h"
#include "sizes.h"

struct bench_options {
	struct channel_options channel;
	struct sizes sizes;
	unsigned tests;		/* FIGURE_BITs */
	unsigned rounds;
	unsigned iterations;	/* per sample; 0: by size */
	bool verify;
	bool json;
	bool driven;		/* a comparison drives us over stdin and stdout */
	bool has_cpus;
	int cpus[2];
	bool server;
	const char *host;	/* the server to connect to, or to listen on */
	unsigned port;
};

/*
 * bench_side - measure as one of the two sides
 * @arg:  struct bench_options
 *
 * Side 0 prints. Returns an exit status; it fits pair_run.
 */
int bench_side(struct side *side, void *arg);

#endif
