/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The figures of a measurement: for each test and size the samples of all
 * rounds, each with the raw cache-line latency of its moment. results.h summarizes and
 * prints them. One thread.
 */
#ifndef WEFT_TOOLS_FIGURES_H
#define WEFT_TOOLS_FIGURES_H

#include <stdbool.h>
#include <stddef.h>

enum figure_test {
	/* microseconds one way */
	FIGURE_LATENCY,
	/* MB/s, of 10^6 bytes */
	FIGURE_BANDWIDTH,
	/* million messages per second */
	FIGURE_RATE,
	/* microseconds from fi_write until the target sees the data */
	FIGURE_WRITE,
	/* microseconds from fi_read to its completion */
	FIGURE_READ,
	/* MB/s */
	FIGURE_WRITE_BW,
	/* MB/s */
	FIGURE_READ_BW,
	/* microseconds from fi_fetch_atomic to its completion */
	FIGURE_ATOMIC,
	/* million additions without a result per second */
	FIGURE_ADD,
	/* microseconds one way, from a sender that computes after each send */
	FIGURE_AWAY,
	/* microseconds from a request to its answer; the server reads long requests by RMA */
	FIGURE_RPC,
	/* microseconds one way, of the first message of a size between two endpoints */
	FIGURE_FIRST,
	/* microseconds from fi_read to its completion, from a target that makes no calls */
	FIGURE_PASSIVE,
	/* microseconds of registering memory for the peer's access, and of closing that */
	FIGURE_REGISTER,
	/* microseconds of weft_btl_put and weft_btl_flush */
	FIGURE_PUT,
	/* microseconds of weft_btl_get and weft_btl_flush */
	FIGURE_GET,
	/* microseconds of weft_btl_fetch_atomic and weft_btl_flush */
	FIGURE_FETCH,
	/* million puts per second, many to a flush */
	FIGURE_PUTS,
	/* the same, into memory of a process that sleeps; by two threads, with a context and a core each */
	FIGURE_PUTS1,
	FIGURE_PUTS2,
	/* milliseconds of processor time of both sides for 10^9 bytes, in a stream */
	FIGURE_CPU,
	FIGURE_TESTS,
};

#define FIGURE_BIT(test) (1u << (test))

/* Tests of messages (traffic.h) and of one-sided transfers (onesided.h); those that need FI_RMA. */
#define FIGURES_MESSAGES                                                                       \
	(FIGURE_BIT(FIGURE_LATENCY) | FIGURE_BIT(FIGURE_BANDWIDTH) | FIGURE_BIT(FIGURE_RATE) | \
	 FIGURE_BIT(FIGURE_AWAY) | FIGURE_BIT(FIGURE_CPU))
#define FIGURES_ATOMIC (FIGURE_BIT(FIGURE_ATOMIC) | FIGURE_BIT(FIGURE_ADD))
#define FIGURES_ONESIDED                                                                    \
	(FIGURE_BIT(FIGURE_WRITE) | FIGURE_BIT(FIGURE_READ) | FIGURE_BIT(FIGURE_WRITE_BW) | \
	 FIGURE_BIT(FIGURE_READ_BW) | FIGURE_BIT(FIGURE_PASSIVE) | FIGURES_ATOMIC)
#define FIGURES_RMA                                                      \
	((FIGURES_ONESIDED & ~FIGURES_ATOMIC) | FIGURE_BIT(FIGURE_RPC) | \
	 FIGURE_BIT(FIGURE_REGISTER))

/* Tests of libweft-btl (btl.h), which are not of a channel. */
#define FIGURES_BTL                                                                   \
	(FIGURE_BIT(FIGURE_PUT) | FIGURE_BIT(FIGURE_GET) | FIGURE_BIT(FIGURE_FETCH) | \
	 FIGURE_BIT(FIGURE_PUTS) | FIGURE_BIT(FIGURE_PUTS1) | FIGURE_BIT(FIGURE_PUTS2))

struct figure {
	enum figure_test test;
	size_t size;
	size_t cnt;
	size_t room;
	double *samples;
	/* raw cache-line latency of each sample; NAN if it could not be measured */
	double *raw_ns;
};

/*
 * figure_test_name - "latency", "bandwidth", "rate", "write" and so on
 */
const char *figure_test_name(enum figure_test test);

/*
 * figure_test_unit - "us", "MB/s", "M/s" or "ms/GB"
 */
const char *figure_test_unit(enum figure_test test);

/*
 * figure_test_heading - heading of the figures in a table or a plot
 */
const char *figure_test_heading(enum figure_test test);

/*
 * figure_test_digits - number of significant digits after the decimal point
 */
int figure_test_digits(enum figure_test test);

/*
 * figure_test_is_time - returns true if the unit is a time, or a time for something, so that less is better
 */
bool figure_test_is_time(enum figure_test test);

/*
 * figure_tests_parse - parse "lat,bw,rate"; "all" means all but FIGURE_PASSIVE, which needs automatic progress,
 * and FIGURES_BTL
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
 * figure_from_time - convert a measured time into a figure
 * @msgs:  messages or transfers in that time; for latency and writes, one-way trips
 * @ns:    on the clock; for FIGURE_CPU of the processors
 */
double figure_from_time(enum figure_test test, size_t size, double msgs, double ns);

#endif
