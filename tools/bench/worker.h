/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Parent's side of a 'weft bench --worker' child: a pair of measuring processes that runs one round per
 * command. The protocol is described in bench_side.c. One thread.
 */
#ifndef WEFT_TOOLS_WORKER_H
#define WEFT_TOOLS_WORKER_H

#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>

#include "results.h"

struct worker {
	pid_t pid;
	FILE *to;
	FILE *from;
	/* provider and library, as the child reported them */
	struct results_config config;
};

/* One sample of a round. */
struct worker_sample {
	/* enum figure_test */
	unsigned test;
	size_t size;
	double value;
	double raw_ns;
};

/*
 * worker_start - start a child and wait until it is ready
 * @program:  file to run, or NULL: this one
 * @library:  directory to put first in its LD_LIBRARY_PATH, or NULL
 * @which:    argument of its --worker
 * @argv:     the arguments of this process after "bench", NULL-terminated
 *
 * From then on this process ignores SIGPIPE: that a child is gone is an error of worker_samples().
 * Prints the reason of a failure. Returns 0 or -errno, with no child left.
 */
int worker_start(struct worker *child, const char *program, const char *library,
		 const char *which, char **argv);

/* worker_go - start a round; worker_samples waits for its end */
void worker_go(struct worker *child);

/*
 * worker_samples - wait for the end of a round
 * @samples:  room for @room
 *
 * Prints the reason of a failure. Returns the number of samples, or -errno.
 */
int worker_samples(struct worker *child, struct worker_sample *samples, size_t room);

/*
 * worker_stop - end a child and wait for its exit; a zeroed struct is allowed
 */
void worker_stop(struct worker *child);

/*
 * worker_ready_print - print the line with which a child reports that it is ready
 *
 * worker_ready_parse reads that line. Returns 0 or -EPROTO.
 */
void worker_ready_print(FILE *to, const struct results_config *config);
int worker_ready_parse(const char *line, struct results_config *config);

/*
 * worker_sample_parse - read "sample TEST SIZE VALUE RAW_NS"
 *
 * Returns 0 or -EINVAL.
 */
int worker_sample_parse(const char *line, struct worker_sample *sample);

#endif
