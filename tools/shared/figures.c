/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Collecting figures; figures.h has the contract. Called by 'weft bench' on side 0.
 */
#include "figures.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct {
	const char *name;
	const char *brief;
	const char *unit;
	const char *heading;
	int digits;
} tests[FIGURE_TESTS] = {
	[FIGURE_LATENCY] = { "latency", "lat", "us", "one-way latency", 3 },
	[FIGURE_BANDWIDTH] = { "bandwidth", "bw", "MB/s", "bandwidth", 1 },
	[FIGURE_RATE] = { "rate", "rate", "M/s", "message rate", 4 },
	[FIGURE_WRITE] = { "write", "write", "us", "RMA write, until visible", 3 },
	[FIGURE_READ] = { "read", "read", "us", "RMA read", 3 },
	[FIGURE_WRITE_BW] = { "writebw", "writebw", "MB/s", "RMA write bandwidth", 1 },
	[FIGURE_READ_BW] = { "readbw", "readbw", "MB/s", "RMA read bandwidth", 1 },
	[FIGURE_ATOMIC] = { "atomic", "atomic", "us", "atomic fetch and add", 3 },
	[FIGURE_ADD] = { "add", "add", "M/s", "atomic additions", 4 },
	[FIGURE_AWAY] = { "away", "away", "us", "one-way latency, sender away", 3 },
	[FIGURE_RPC] = { "rpc", "rpc", "us", "remote procedure call", 3 },
	[FIGURE_FIRST] = { "first", "first", "us", "first message, one way", 3 },
	[FIGURE_PASSIVE] = { "passive", "passive", "us", "RMA read of a passive target", 3 },
	[FIGURE_REGISTER] = { "register", "register", "us", "registration, and its end", 4 },
	[FIGURE_PUT] = { "put", "put", "us", "put and flush", 3 },
	[FIGURE_GET] = { "get", "get", "us", "get and flush", 3 },
	[FIGURE_FETCH] = { "fetch", "fetch", "us", "fetch and add, and flush", 3 },
	[FIGURE_PUTS] = { "puts", "puts", "M/s", "puts, many to a flush", 4 },
	[FIGURE_PUTS1] = { "puts1", "puts1", "M/s", "puts to a process that sleeps", 4 },
	[FIGURE_PUTS2] = { "puts2", "puts2", "M/s", "the same by two threads", 4 },
	[FIGURE_CPU] = { "cpu", "cpu", "ms/GB", "processor time of a stream, both sides", 1 },
};

const char *figure_test_name(enum figure_test test)
{
	return tests[test].name;
}

const char *figure_test_unit(enum figure_test test)
{
	return tests[test].unit;
}

const char *figure_test_heading(enum figure_test test)
{
	return tests[test].heading;
}

int figure_test_digits(enum figure_test test)
{
	return tests[test].digits;
}

bool figure_test_is_time(enum figure_test test)
{
	return !strcmp(tests[test].unit, "us") || test == FIGURE_CPU;
}

static unsigned test_bit(const char *word, size_t len)
{
	unsigned t;

	if (len == 3 && !strncmp(word, "all", len))
		return (FIGURE_BIT(FIGURE_TESTS) - 1) & ~FIGURE_BIT(FIGURE_PASSIVE) &
		       ~FIGURES_BTL;
	for (t = 0; t < FIGURE_TESTS; t++)
		if ((strlen(tests[t].name) == len && !strncmp(word, tests[t].name, len)) ||
		    (strlen(tests[t].brief) == len && !strncmp(word, tests[t].brief, len)))
			return FIGURE_BIT(t);
	return 0;
}

unsigned figure_tests_parse(const char *text)
{
	unsigned bits = 0, bit;
	size_t len;

	for (;;) {
		len = strcspn(text, ",");
		bit = test_bit(text, len);
		if (!bit)
			return 0;
		bits |= bit;
		if (!text[len])
			return bits;
		text += len + 1;
	}
}

int figure_add(struct figure *fig, double sample, double raw_ns)
{
	size_t room = fig->room ? fig->room * 2 : 32;
	double *grown;

	if (fig->cnt == fig->room) {
		grown = realloc(fig->samples, room * sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		fig->samples = grown;
		grown = realloc(fig->raw_ns, room * sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		fig->raw_ns = grown;
		fig->room = room;
	}
	fig->samples[fig->cnt] = sample;
	fig->raw_ns[fig->cnt++] = raw_ns;
	return 0;
}

void figure_fini(struct figure *fig)
{
	free(fig->samples);
	free(fig->raw_ns);
	memset(fig, 0, sizeof(*fig));
}

double figure_from_time(enum figure_test test, size_t size, double msgs, double ns)
{
	switch (test) {
	case FIGURE_LATENCY:
	case FIGURE_WRITE:
	case FIGURE_READ:
	case FIGURE_ATOMIC:
	case FIGURE_AWAY:
	case FIGURE_RPC:
	case FIGURE_FIRST:
	case FIGURE_PASSIVE:
	case FIGURE_REGISTER:
	case FIGURE_PUT:
	case FIGURE_GET:
	case FIGURE_FETCH:
		return ns / msgs / 1000;
	case FIGURE_BANDWIDTH:
	case FIGURE_WRITE_BW:
	case FIGURE_READ_BW:
		return (double)size * msgs / ns * 1000;
	case FIGURE_RATE:
	case FIGURE_ADD:
	case FIGURE_PUTS:
	case FIGURE_PUTS1:
	case FIGURE_PUTS2:
		return msgs / ns * 1000;
	case FIGURE_CPU:
		return ns / 1e6 / ((double)size * msgs / 1e9);
	case FIGURE_TESTS:
		break;
	}
	return NAN;
}
