/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A 'weft bench --driven' child: a pair of measuring processes that runs a round
 * whenever it is told to. The protocol is in bench_side.c. One thread.
 */
#ifndef WEFT_TOOLS_DRIVEN_H
#define WEFT_TOOLS_DRIVEN_H

#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>

#include "results.h"

struct driven {
	pid_t pid;
	FILE *to;
	FILE *from;
	/* what it says of itself */
	struct results_config config;
};

/* One sample of a round. */
struct driven_sample {
	/* enum figure_test */
	unsigned test;
	size_t size;
	double value;
	double raw_ns;
};

/*
 * driven_start - start a child and wait until it is ready
 * @program:  file to run, or NULL: this one
 * @library:  directory to put first in its LD_LIBRARY_PATH, or NULL
 * @which:    what its --driven says
 * @argv:     our own arguments behind "bench", NULL-terminated
 *
 * Complains itself. Returns 0 or -errno, with no child left.
 */
int driven_start(struct driven *child, const char *program, const char *library,
		 const char *which, char **argv);

/* driven_go - have it begin a round, which driven_samples waits for */
void driven_go(struct driven *child);

/*
 * driven_samples - wait for the end of a round
 * @samples:  room for @room
 *
 * Complains itself. Returns how many samples there are, or -errno.
 */
int driven_samples(struct driven *child, struct driven_sample *samples, size_t room);

/*
 * driven_stop - let it end, and wait for that; a child that was not started is allowed
 */
void driven_stop(struct driven *child);

/*
 * driven_ready_print - what a child says when it is ready
 *
 * driven_ready_parse reads the line. Returns 0 or -EPROTO.
 */
void driven_ready_print(FILE *to, const struct results_config *config);
int driven_ready_parse(const char *line, struct results_config *config);

/*
 * driven_sample_parse - read "sample TEST SIZE VALUE RAW_NS"
 *
 * Returns 0 or -EINVAL.
 */
int driven_sample_parse(const char *line, struct driven_sample *sample);

#endif
