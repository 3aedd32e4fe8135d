/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What 'weft bench' found out, of one configuration or of two compared, and its three forms:
 * a table for people, JSON for programs, a plot. One thread.
 */
#ifndef WEFT_TOOLS_RESULTS_H
#define WEFT_TOOLS_RESULTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "figures.h"
#include "machine.h"
#include "stats.h"

#define RESULTS_TEXT_MAX 512

/* What was measured: a provider of a library. */
struct results_config {
	/* level of libfabric's interface, FI_VERSION(); 0: it is none */
	unsigned api;
	/* as it calls itself */
	char provider[RESULTS_TEXT_MAX];
	/* of that provider */
	char prov_version[32];
	/* what the library says of its own version */
	char build[RESULTS_TEXT_MAX];
	/* its file */
	char library[RESULTS_TEXT_MAX];
};

/* One test and size. */
struct result {
	enum figure_test test;
	size_t size;
	/* of configuration A, in figure_test_unit() */
	struct stats a;
	/* of B */
	struct stats b;
	struct stats
		/* A's speed over B's, of each pair of rounds: above 1 A is faster */
		ratio;
	/* the same of two equal As */
	struct stats twin;
	/* the cache line's latency, one way */
	struct stats raw_ns;
	/* of A, B and the other A, in the order of the rounds */
	const double *samples[3];
	/* samples of each */
	size_t cnt;
	/* "faster", "slower" or "same" */
	const char *verdict;
};

struct results {
	/* our command line, NULL-terminated */
	char **command;
	struct machine machine;
	/* "tagged" or "msg" */
	const char *interface;
	/* system calls that were refused to both sides, or NULL */
	const char *refused;
	/* a warning to print with the figures, or NULL */
	const char *note;
	unsigned rounds;
	/* times that all processes were started; 1 for one pair */
	unsigned restarts;
	/* 2 in a comparison: B's members count then only */
	size_t config_cnt;
	struct results_config config[2];
	struct result *row;
	/* rows, by test and then by size */
	size_t cnt;
};

/* Where results go. */
struct results_outputs {
	bool want_json;
	/* NULL: standard output, without a table */
	const char *json_path;
	/* NULL: none */
	const char *plot_path;
	FILE *json;
	FILE *plot;
};

/*
 * results_outputs_open - open the files that are asked for
 *
 * Before anything is measured: a name that can't be written costs a second then and not an
 * hour. Ends the process when it fails.
 */
void results_outputs_open(struct results_outputs *out);

/*
 * results_publish - print and write results in every form that is asked for
 *
 * Closes the files. Prints the reason of a failure. Returns 0 or -errno.
 */
int results_publish(const struct results *results, struct results_outputs *out);

/* results_config_format - a configuration in words; @len: bytes of @text, at least 1. Returns @text */
char *results_config_format(const struct results_config *config, char *text, size_t len);

/*
 * results_sort - put rows in the order of tests, and of sizes within a test
 */
void results_sort(struct result *rows, size_t cnt);

/*
 * results_print - a table for people
 */
void results_print(FILE *to, const struct results *results);

/*
 * results_print_json - one JSON object, with every sample; weft-bench(1) names its members
 *
 * Returns 0 or -EIO.
 */
int results_print_json(FILE *to, const struct results *results);

/*
 * results_print_svg - a picture: a panel for each test, sizes to the right
 *
 * Both axes are logarithmic. Each configuration is a line through its medians, in a band from
 * the 10th to the 90th percentile. Well-formed XML whatever the names contain.
 */
void results_print_svg(FILE *to, const struct results *results);

#endif
