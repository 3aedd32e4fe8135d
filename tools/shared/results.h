/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Results of 'weft bench', of one configuration or of a comparison of two, and their three forms: a table,
 * JSON, and a plot. One thread.
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
	/* interface version of the libfabric, FI_VERSION(); 0: not a libfabric */
	unsigned api;
	/* the provider's name */
	char provider[RESULTS_TEXT_MAX];
	/* the provider's version */
	char prov_version[32];
	/* the library's own version */
	char build[RESULTS_TEXT_MAX];
	/* file of the library */
	char library[RESULTS_TEXT_MAX];
};

/* One test and size. */
struct result {
	enum figure_test test;
	size_t size;
	/* figures of configuration A, in figure_test_unit() */
	struct stats a;
	/* figures of configuration B */
	struct stats b;
	/* speed of A over speed of B, of each pair of rounds: above 1 A is faster */
	struct stats ratio;
	/* the same ratio between the two instances of A */
	struct stats twin;
	/* one-way latency of a cache line */
	struct stats raw_ns;
	/* samples of A, of B and of the second A, in the order of the rounds */
	const double *samples[3];
	/* number of samples of each */
	size_t cnt;
	/* "faster", "slower" or "same" */
	const char *verdict;
};

struct results {
	/* command line of this process, NULL-terminated */
	char **command;
	struct machine machine;
	/* "tagged" or "msg" */
	const char *interface;
	/* system calls that were refused to both sides, or NULL */
	const char *refused;
	/* a warning to print with the figures, or NULL */
	const char *note;
	unsigned rounds;
	/* number of times that all processes were started; 1 without a comparison */
	unsigned restarts;
	/* 2 in a comparison, else 1: members of B are then unused */
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
 * results_outputs_open - open the files that were requested
 * Called before anything is measured, so that a file that can't be written is noticed at once.
 * Exits on failure.
 */
void results_outputs_open(struct results_outputs *out);

/*
 * results_publish - print and write results in every form that was requested
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
