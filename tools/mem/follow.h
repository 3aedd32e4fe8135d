/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * 'weft mem': what its files share. One thread.
 */
#ifndef WEFT_TOOLS_FOLLOW_H
#define WEFT_TOOLS_FOLLOW_H

#include <stdbool.h>
#include <stdio.h>

#include "processes.h"
#include "sample.h"

struct mem_options {
	struct wanted wanted;
	/* seconds between two samples, or 0 */
	double interval;
	/* a line for each sample */
	bool watch;
	/* seconds after which it ends; 0: it does not */
	double seconds;
	bool json;
	/* where figures go, and the file that this is, or NULL */
	FILE *to;
	const char *to_path;
	/* where the picture goes, or NULL */
	FILE *plot;
	const char *plot_path;
	/* what is run meanwhile, NULL-terminated, or NULL */
	char **command;
};

/* Those that were read in one round. */
struct round {
	struct sample *samples;
	size_t cnt;
	/* something was wrong, which was told */
	bool failed;
};

/*
 * mem_round - read all processes that are wanted and show something; the caller frees the samples
 * @first: it is the first one that has any: errors are told of processes that were named by number, and of
 *	   those whose page makes no sense
 */
void mem_round(const struct wanted *wanted, bool first, struct round *round);

/*
 * mem_output_end - close the file that figures went to, if they went to one
 * Returns the status to exit with: it says if it could not be written.
 */
int mem_output_end(const struct mem_options *opt);

/*
 * mem_follow - sample until the time is over, the command or all processes have ended, or a signal comes
 * Returns the status to exit with.
 */
int mem_follow(const struct mem_options *opt);

#endif
