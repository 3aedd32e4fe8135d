/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Collecting and printing figures; figures.h has the contract. Called by
 * 'weft bench' and 'weft pingpong' on side 0.
 */
#include "figures.h"
#include "sizes.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fabric.h>

static const struct {
	const char *name, *brief, *unit, *heading;
	int digits;
} tests[FIGURE_TESTS] = {
	[FIGURE_LATENCY] = { "latency", "lat", "us", "one-way latency", 3 },
	[FIGURE_BANDWIDTH] = { "bandwidth", "bw", "MB/s", "bandwidth", 1 },
	[FIGURE_RATE] = { "rate", "rate", "M/s", "message rate", 4 },
};

const char *figure_test_name(enum figure_test test)
{
	return tests[test].name;
}

const char *figure_test_unit(enum figure_test test)
{
	return tests[test].unit;
}

static unsigned test_bit(const char *word, size_t len)
{
	unsigned t;

	if (len == 3 && !strncmp(word, "all", len))
		return FIGURE_BIT(FIGURE_TESTS) - 1;
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
		return ns / msgs / 1000;
	case FIGURE_BANDWIDTH:
		return (double)size * msgs / ns * 1000;
	case FIGURE_RATE:
		return msgs / ns * 1000;
	case FIGURE_TESTS:
		break;
	}
	return NAN;
}

static struct stats stats_of_copy(const double *samples, size_t cnt)
{
	struct stats st = { 0, NAN, NAN, NAN };
	double *copy = malloc(cnt * sizeof(*copy) + 1);

	if (!copy)
		return st;
	memcpy(copy, samples, cnt * sizeof(*copy));
	st = stats_of(copy, cnt);
	free(copy);
	return st;
}

static void print_row(FILE *to, const struct figure *fig)
{
	struct stats st = stats_of_copy(fig->samples, fig->cnt);
	struct stats raw = stats_of_copy(fig->raw_ns, fig->cnt);
	int digits = tests[fig->test].digits;
	char size[24];

	fprintf(to, "%8s %12.*f %12.*f %12.*f", sizes_format(fig->size, size), digits,
		st.median, digits, st.p10, digits, st.p90);
	if (raw.cnt)
		fprintf(to, " %10.0f\n", raw.median);
	else
		fprintf(to, " %10s\n", "-");
}

void figures_print(FILE *to, const struct figures_origin *origin, struct figure *figs,
		   size_t cnt)
{
	int last = -1;
	size_t i;

	fprintf(to, "provider %s, %s; libfabric %u.%u, %s\n", origin->provider,
		origin->interface, FI_MAJOR(origin->version), FI_MINOR(origin->version),
		origin->library);
	if (origin->note)
		fprintf(to, "note: %s\n", origin->note);
	for (i = 0; i < cnt; i++) {
		if ((int)figs[i].test != last) {
			last = (int)figs[i].test;
			fprintf(to, "\n%s, %s; %zu rounds; raw: one cache line, one way, ns\n",
				tests[last].heading, tests[last].unit, figs[i].cnt);
			fprintf(to, "%8s %12s %12s %12s %10s\n", "size", "median", "p10", "p90",
				"raw");
		}
		print_row(to, &figs[i]);
	}
}

void json_string(FILE *to, const char *text)
{
	fputc('"', to);
	for (; *text; text++) {
		if ((unsigned char)*text < 0x20)
			fprintf(to, "\\u%04x", (unsigned)*text);
		else if (*text == '"' || *text == '\\')
			fprintf(to, "\\%c", *text);
		else
			fputc(*text, to);
	}
	fputc('"', to);
}

void json_number(FILE *to, double value)
{
	if (isfinite(value))
		fprintf(to, "%.6g", value);
	else
		fputs("null", to);
}

static void json_member(FILE *to, const char *name, double value)
{
	fprintf(to, ", \"%s\": ", name);
	json_number(to, value);
}

static void json_list(FILE *to, const char *name, const double *values, size_t cnt)
{
	size_t i;

	fprintf(to, ", \"%s\": [", name);
	for (i = 0; i < cnt; i++) {
		fputs(i ? ", " : "", to);
		json_number(to, values[i]);
	}
	fputc(']', to);
}

static void json_figure(FILE *to, const struct figure *fig)
{
	struct stats st = stats_of_copy(fig->samples, fig->cnt);
	struct stats raw = stats_of_copy(fig->raw_ns, fig->cnt);

	fprintf(to, "    {\"test\": \"%s\", \"unit\": \"%s\", \"size\": %zu",
		tests[fig->test].name, tests[fig->test].unit, fig->size);
	json_member(to, "median", st.median);
	json_member(to, "p10", st.p10);
	json_member(to, "p90", st.p90);
	json_member(to, "raw_ns", raw.median);
	json_list(to, "samples", fig->samples, fig->cnt);
	json_list(to, "raw_ns_samples", fig->raw_ns, fig->cnt);
	fputc('}', to);
}

void figures_print_json(FILE *to, const struct figures_origin *origin, struct figure *figs,
			size_t cnt)
{
	size_t i;

	fputs("{\n  \"provider\": ", to);
	json_string(to, origin->provider);
	fputs(",\n  \"interface\": ", to);
	json_string(to, origin->interface);
	fprintf(to,
		",\n  \"libfabric\": \"%u.%u\",\n  \"library\": ", FI_MAJOR(origin->version),
		FI_MINOR(origin->version));
	json_string(to, origin->library);
	if (origin->note) {
		fputs(",\n  \"note\": ", to);
		json_string(to, origin->note);
	}
	fputs(",\n  \"figures\": [\n", to);
	for (i = 0; i < cnt; i++) {
		json_figure(to, &figs[i]);
		fputs(i + 1 < cnt ? ",\n" : "\n", to);
	}
	fputs("  ]\n}\n", to);
}
