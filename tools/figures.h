/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The figures of a measurement: for each test and size the samples of all
 * rounds, each with the raw cache-line latency of its moment; printing them as
 * a table or as JSON. One thread.
 */
#ifndef WEFT_TOOLS_FIGURES_H
#define WEFT_TOOLS_FIGURES_H

#include <stddef.h>
#include <stdio.h>

#include "stats.h"

enum figure_test {
	FIGURE_LATENCY,	  /* microseconds one way */
	FIGURE_BANDWIDTH, /* MB/s, of 10^6 bytes */
	FIGURE_RATE,	  /* million messages per second */
	FIGURE_TESTS,
};

#define FIGURE_BIT(test) (1u << (test))

struct figure {
	enum figure_test test;
	size_t size;
	size_t cnt;
	size_t room;
	double *samples;
	double *raw_ns; /* NAN where it could not be measured */
};

/* Where the figures come from, for the heading. */
struct figures_origin {
	const char *provider;
	const char *library;
	unsigned version;      /* of the libfabric interface */
	const char *interface; /* "tagged" or "msg" */
	const char *note;      /* a warning to print with the figures, or NULL */
};

/*
 * figure_test_name - "latency", "bandwidth" or "rate"
 */
const char *figure_test_name(enum figure_test test);

/*
 * figure_test_unit - "us", "MB/s" or "M/s"
 */
const char *figure_test_unit(enum figure_test test);

/*
 * figure_tests_parse - read "lat,bw,rate"; "all" is all three
 *
 * Returns FIGURE_BITs, 0 for anything else.
 */
unsigned figure_tests_parse(const char *text);

/*
 * figure_add - append a sample
 *
 * Returns 0 or -ENOMEM.
 */
int figure_add(struct figure *fig, double sample, double raw_ns);

void figure_fini(struct figure *fig);

/*
 * figure_from_time - what a measured time means
 * @msgs:  messages it took; for latency, one way trips
 */
double figure_from_time(enum figure_test test, size_t size, double msgs, double ns);

/*
 * figures_print - a table for people
 * @figs:  @cnt figures, sizes ascending within a test
 */
void figures_print(FILE *to, const struct figures_origin *origin, struct figure *figs,
		   size_t cnt);

/*
 * figures_print_json - the same as one JSON object, with every sample
 */
void figures_print_json(FILE *to, const struct figures_origin *origin, struct figure *figs,
			size_t cnt);

/*
 * json_string - print a quoted and escaped string
 */
void json_string(FILE *to, const char *text);

/*
 * json_number - print a number, null for what JSON has no word for
 */
void json_number(FILE *to, double value);

#endif
