/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * 'weft mem' and 'weft tcp': what their files share. One thread.
 */
#ifndef WEFT_TOOLS_FOLLOW_H
#define WEFT_TOOLS_FOLLOW_H

#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>

#include <jansson.h>

#include "processes.h"
#include "sample.h"

/* What one of the two shows. */
struct mem_view {
	/* the name of the command, what it shows, and the options that have it look over time */
	const char *command, *shown, *over_time;
	/* parts that count, of MEM_KIND(): a process without any shows nothing */
	uint32_t kinds;
	/* those of enum mem_option that it has, for getopt_long(3) */
	const struct option *options;
	void (*usage)(void);
	/* as report_process() and so on: report.h */
	void (*process)(FILE *to, const struct sample *sample);
	void (*list)(FILE *to, const struct sample *samples, size_t cnt);
	void (*heading)(FILE *to);
	void (*moment)(FILE *to, const struct sample *sample, const struct sample *last);
	json_t *(*object)(const struct sample *sample);
};

#define MEM_KIND(kind) (1u << (kind))

enum mem_option {
	MEM_OPT_WATCH = 256,
	MEM_OPT_SECONDS,
	MEM_OPT_PLOT,
	MEM_OPT_JSON,
};

struct mem_options {
	const struct mem_view *view;
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

/* mem_show - do what the arguments of the view's command say. Returns the status to exit with */
int mem_show(const struct mem_view *view, int argc, char **argv);

/*
 * mem_round - read all processes that are wanted and show something; the caller frees the samples
 * @first: it is the first one that has any: errors are told of processes that were named by number, and of
 *	   those whose page makes no sense
 */
void mem_round(const struct wanted *wanted, const struct mem_view *view, bool first,
	       struct round *round);

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
