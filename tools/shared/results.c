/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The table of results, and where all forms of them go; results.h has the contract. Called
 * by 'weft bench' when everything is measured.
 */
#define _GNU_SOURCE
#include "results.h"
#include "sizes.h"

#include <err.h>
#include <errno.h>
#include <stdlib.h>

static FILE *open_to_write(const char *path)
{
	FILE *to = fopen(path, "we");

	if (!to)
		err(EXIT_FAILURE, "%s", path);
	return to;
}

void results_outputs_open(struct results_outputs *out)
{
	out->json = out->want_json ? stdout : NULL;
	if (out->want_json && out->json_path)
		out->json = open_to_write(out->json_path);
	if (out->plot_path)
		out->plot = open_to_write(out->plot_path);
}

/* A full disk shows at the latest here. */
static int close_written(FILE *file, const char *path, int rc)
{
	if (ferror(file))
		rc = -EIO;
	if (fclose(file))
		rc = -errno;
	if (rc)
		warnx("%s: cannot write it", path);
	return rc;
}

int results_publish(const struct results *results, struct results_outputs *out)
{
	int rc = 0, json = 0, plot = 0;

	if (out->json != stdout)
		results_print(stdout, results);
	if (out->json)
		json = results_print_json(out->json, results);
	if (out->json && out->json != stdout)
		json = close_written(out->json, out->json_path, json);
	if (out->plot) {
		results_print_svg(out->plot, results);
		plot = close_written(out->plot, out->plot_path, 0);
	}
	if (fflush(stdout))
		rc = -errno;
	return json ? json : plot ? plot : rc;
}

static int by_test(const void *a, const void *b)
{
	const struct result *x = a, *y = b;

	if (x->test != y->test)
		return x->test < y->test ? -1 : 1;
	return (x->size > y->size) - (x->size < y->size);
}

void results_sort(struct result *rows, size_t cnt)
{
	if (cnt)
		qsort(rows, cnt, sizeof(*rows), by_test);
}

static void print_config(FILE *to, const char *label, const struct results_config *config)
{
	char text[5 * RESULTS_TEXT_MAX];

	fprintf(to, "%sprovider %s\n", label, results_config_format(config, text, sizeof(text)));
}

static void print_heading(FILE *to, const struct results *results)
{
	char text[512];

	fprintf(to, "machine: %s\n", machine_format(&results->machine, text, sizeof(text)));
	if (results->config_cnt == 1) {
		print_config(to, "", &results->config[0]);
	} else {
		print_config(to, "A: ", &results->config[0]);
		print_config(to, "B: ", &results->config[1]);
	}
	fprintf(to, "%s messages", results->interface);
	if (results->refused)
		fprintf(to, "; refused to both sides: %s", results->refused);
	if (results->note)
		fprintf(to, "; note: %s", results->note);
	fputc('\n', to);
}

static const char *raw_text(const struct result *row, char text[16])
{
	if (row->raw_ns.cnt)
		snprintf(text, 16, "%.0f", row->raw_ns.median);
	else
		snprintf(text, 16, "-");
	return text;
}

static void print_single(FILE *to, const struct results *results)
{
	const struct result *row;
	char size[24], raw[16];
	int last = -1, digits;

	for (row = results->row; row < results->row + results->cnt; row++) {
		if ((int)row->test != last) {
			last = (int)row->test;
			fprintf(to, "\n%s, %s; %zu rounds; raw: one cache line, one way, ns\n",
				figure_test_heading(row->test), figure_test_unit(row->test),
				row->a.cnt);
			fprintf(to, "%8s %12s %12s %12s %10s\n", "size", "median", "p10", "p90",
				"raw");
		}
		digits = figure_test_digits(row->test);
		fprintf(to, "%8s %12.*f %12.*f %12.*f %10s\n", sizes_format(row->size, size),
			digits, row->a.median, digits, row->a.p10, digits, row->a.p90,
			raw_text(row, raw));
	}
}

static void print_comparison(FILE *to, const struct results *results)
{
	const struct result *row;
	char size[24], raw[16];

	fprintf(to,
		"%u interleaved rounds, %u restarts; medians (p10..p90); A/B: speed of A over B,\n"
		"above 1 A is faster; A/A: the same of two equal runs; raw: cache line, ns\n\n",
		results->rounds, results->restarts);
	fprintf(to, "%-9s %5s %5s %10s %10s  %-22s  %-12s %-6s %5s\n", "test", "size", "unit",
		"A", "B", "A/B", "A/A spread", "A is", "raw");
	for (row = results->row; row < results->row + results->cnt; row++)
		fprintf(to,
			"%-9s %5s %5s %10.4g %10.4g  %6.3f (%5.3f..%5.3f)  %5.3f..%5.3f %-6s "
			"%5s\n",
			figure_test_name(row->test), sizes_format(row->size, size),
			figure_test_unit(row->test), row->a.median, row->b.median,
			row->ratio.median, row->ratio.p10, row->ratio.p90, row->twin.p10,
			row->twin.p90, row->verdict, raw_text(row, raw));
}

void results_print(FILE *to, const struct results *results)
{
	print_heading(to, results);
	if (results->config_cnt == 1)
		print_single(to, results);
	else
		print_comparison(to, results);
}
