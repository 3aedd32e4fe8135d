/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Results as a picture; results.h has the contract. Called by results_publish.
 *
 * Drawn here and not by a plotting program: it is lines, bands and text, the file looks the
 * same everywhere, and 'weft bench --plot' then needs nothing that may be missing on the
 * machine that is measured.
 */
#include "results.h"
#include "sizes.h"
#include "svg.h"

#include <math.h>
#include <string.h>

#include <rdma/fabric.h>

#define PANEL_W	 520 /* of a panel with its labels */
#define PANEL_H	 360
#define LEFT	 64 /* room around a panel's axes */
#define RIGHT	 20
#define TOP	 44
#define BOTTOM	 48
#define HEADER_H 96
#define TICKS_X	 9   /* labels that fit */
#define ZERO_GAP 1.0 /* doublings between size 0, which has no logarithm, and the next */

static const char *const colors[] = { "#1f6fb4", "#d9641e" };

/* One panel: the rows of one test, and where they go. */
struct panel {
	const struct result *row;
	size_t cnt;
	/* log2 of bytes */
	double x_min;
	double x_max;
	/* log10 of the unit */
	double y_min;
	double y_max;
	/* of the area within the axes */
	double left;
	double top;
};

static bool drawable(double value)
{
	return isfinite(value) && value > 0;
}

/* Where a size lies; the smallest that has a logarithm decides where zero lies. */
static double x_value(const struct panel *p, size_t size)
{
	size_t i, least = 0;

	if (size)
		return log2((double)size);
	for (i = 0; i < p->cnt; i++)
		if (p->row[i].size && (!least || p->row[i].size < least))
			least = p->row[i].size;
	return (least ? log2((double)least) : 0) - ZERO_GAP;
}

static double x_of(const struct panel *p, size_t size)
{
	return p->left +
	       (x_value(p, size) - p->x_min) / (p->x_max - p->x_min) * (PANEL_W - LEFT - RIGHT);
}

static double y_of(const struct panel *p, double value)
{
	return p->top +
	       (p->y_max - log10(value)) / (p->y_max - p->y_min) * (PANEL_H - TOP - BOTTOM);
}

static void widen(struct panel *p, double value)
{
	if (!drawable(value))
		return;
	p->y_min = fmin(p->y_min, log10(value));
	p->y_max = fmax(p->y_max, log10(value));
}

static double raw_us(const struct result *row)
{
	return row->raw_ns.median / 1000;
}

static void find_ranges(struct panel *p, size_t config_cnt)
{
	const struct result *row;

	p->x_min = p->y_min = INFINITY;
	p->x_max = p->y_max = -INFINITY;
	for (row = p->row; row < p->row + p->cnt; row++) {
		p->x_min = fmin(p->x_min, x_value(p, row->size));
		p->x_max = fmax(p->x_max, x_value(p, row->size));
		widen(p, row->a.p10);
		widen(p, row->a.p90);
		if (config_cnt == 2) {
			widen(p, row->b.p10);
			widen(p, row->b.p90);
		}
		if (figure_test_is_time(row->test))
			widen(p, raw_us(row));
	}
	if (!isfinite(p->y_min))
		p->y_min = p->y_max = 0;
	/* Some air, and never an empty range. */
	p->x_min -= 0.5;
	p->x_max += 0.5;
	p->y_min -= 0.1;
	p->y_max += 0.1;
}

static void put_x_axis(FILE *to, const struct panel *p)
{
	double bottom = p->top + PANEL_H - TOP - BOTTOM, x, shown = -INFINITY;
	char text[24];
	size_t i;

	for (i = 0; i < p->cnt; i++) {
		x = x_of(p, p->row[i].size);
		svg_line(to, (double[]){ x, p->top, x, bottom }, "class=\"grid\"");
		if (x - shown < (double)(PANEL_W - LEFT - RIGHT) / TICKS_X / 1.5)
			continue;
		shown = x;
		svg_text(to, x, bottom + 16, "class=\"tick\" text-anchor=\"middle\"",
			 sizes_format(p->row[i].size, text));
	}
	svg_text(to, p->left + (PANEL_W - LEFT - RIGHT) / 2.0, bottom + 34,
		 "class=\"tick\" text-anchor=\"middle\"", "message size, bytes");
}

/* 1, 2 and 5 of every decade; over many decades only the 1 gets a number. */
static void put_y_axis(FILE *to, const struct panel *p)
{
	static const int steps[] = { 1, 2, 5 };
	bool all = p->y_max - p->y_min < 2.5;
	double right = p->left + PANEL_W - LEFT - RIGHT, value, y;
	char text[32];
	int decade;
	size_t i;

	for (decade = (int)floor(p->y_min); decade <= (int)ceil(p->y_max); decade++) {
		for (i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
			value = steps[i] * pow(10, decade);
			if (log10(value) < p->y_min || log10(value) > p->y_max)
				continue;
			y = y_of(p, value);
			svg_line(to, (double[]){ p->left, y, right, y },
				 steps[i] == 1 ? "class=\"decade\"" : "class=\"grid\"");
			snprintf(text, sizeof(text), "%.6g", value);
			if (all || steps[i] == 1)
				svg_text(to, p->left - 6, y + 4,
					 "class=\"tick\" text-anchor=\"end\"", text);
		}
	}
}

static const struct stats *stats_for(const struct result *row, size_t config)
{
	return config ? &row->b : &row->a;
}

static void put_band(FILE *to, const struct panel *p, size_t config)
{
	const struct stats *st;
	size_t i;

	fprintf(to, "<polygon fill=\"%s\" fill-opacity=\"0.2\" points=\"", colors[config]);
	for (i = 0; i < p->cnt; i++) {
		st = stats_for(&p->row[i], config);
		if (drawable(st->p10) && drawable(st->p90))
			fprintf(to, "%.1f,%.1f ", x_of(p, p->row[i].size), y_of(p, st->p90));
	}
	while (i--) {
		st = stats_for(&p->row[i], config);
		if (drawable(st->p10) && drawable(st->p90))
			fprintf(to, "%.1f,%.1f ", x_of(p, p->row[i].size), y_of(p, st->p10));
	}
	fputs("\"/>\n", to);
}

/* The medians, each with its figures for whoever points at it. */
static void put_medians(FILE *to, const struct panel *p, size_t config)
{
	const struct stats *st;
	char size[24];
	size_t i;

	fprintf(to, "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"2\" points=\"",
		colors[config]);
	for (i = 0; i < p->cnt; i++) {
		st = stats_for(&p->row[i], config);
		if (drawable(st->median))
			fprintf(to, "%.1f,%.1f ", x_of(p, p->row[i].size), y_of(p, st->median));
	}
	fputs("\"/>\n", to);
	for (i = 0; i < p->cnt; i++) {
		st = stats_for(&p->row[i], config);
		if (!drawable(st->median))
			continue;
		fprintf(to,
			"<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" fill=\"%s\"><title>%s: %.4g %s "
			"(%.4g to %.4g)</title></circle>\n",
			x_of(p, p->row[i].size), y_of(p, st->median), colors[config],
			sizes_format(p->row[i].size, size), st->median,
			figure_test_unit(p->row[i].test), st->p10, st->p90);
	}
}

/* The floor under a time within a host. */
static void put_raw(FILE *to, const struct panel *p)
{
	size_t i;

	if (!figure_test_is_time(p->row->test))
		return;
	fputs("<polyline class=\"raw\" points=\"", to);
	for (i = 0; i < p->cnt; i++)
		if (drawable(raw_us(&p->row[i])))
			fprintf(to, "%.1f,%.1f ", x_of(p, p->row[i].size),
				y_of(p, raw_us(&p->row[i])));
	fputs("\"/>\n", to);
}

static void put_panel(FILE *to, struct panel *p, size_t config_cnt)
{
	char heading[96];
	size_t config;

	find_ranges(p, config_cnt);
	snprintf(heading, sizeof(heading), "%s, %s", figure_test_heading(p->row->test),
		 figure_test_unit(p->row->test));
	svg_text(to, p->left, p->top - 12, "class=\"heading\"", heading);
	put_x_axis(to, p);
	put_y_axis(to, p);
	put_raw(to, p);
	for (config = 0; config < config_cnt; config++)
		put_band(to, p, config);
	for (config = 0; config < config_cnt; config++)
		put_medians(to, p, config);
}

static size_t rows_of_panel(const struct results *results, size_t first)
{
	size_t end = first;

	while (end < results->cnt && results->row[end].test == results->row[first].test)
		end++;
	return end - first;
}

static void put_header(FILE *to, const struct results *results)
{
	const struct results_config *config;
	char text[4 * RESULTS_TEXT_MAX], config_text[5 * RESULTS_TEXT_MAX];
	const char *label;
	size_t i;

	snprintf(text, sizeof(text), "weft bench: %s%s%s, %s messages",
		 results->config[0].provider, results->config_cnt == 2 ? " against " : "",
		 results->config_cnt == 2 ? results->config[1].provider : "",
		 results->interface);
	svg_text(to, 16, 26, "class=\"title\"", text);
	svg_text(to, 16, 44, "class=\"tick\"",
		 machine_format(&results->machine, text, sizeof(text)));
	for (i = 0; i < results->config_cnt; i++) {
		config = &results->config[i];
		label = results->config_cnt == 1 ? "" : i ? "B: " : "A: ";
		snprintf(text, sizeof(text), "%s%s", label,
			 results_config_format(config, config_text, sizeof(config_text)));
		fprintf(to, "<rect x=\"16\" y=\"%zu\" width=\"12\" height=\"4\" fill=\"%s\"/>\n",
			56 + 16 * i, colors[i]);
		svg_text(to, 34, 62 + 16.0 * (double)i, "class=\"tick\"", text);
	}
	snprintf(text, sizeof(text),
		 "medians of %u rounds, bands from the 10th to the 90th percentile; "
		 "dashed: one cache line, one way",
		 results->rounds);
	svg_text(to, 16, 62 + 16.0 * (double)i, "class=\"tick\"", text);
}

void results_print_svg(FILE *to, const struct results *results)
{
	size_t first, panels = 0, columns, lines, cnt;
	struct panel p;

	for (first = 0; first < results->cnt; first += rows_of_panel(results, first))
		panels++;
	columns = panels > 1 ? 2 : 1;
	lines = (panels + columns - 1) / columns;
	svg_begin(to, columns * PANEL_W, HEADER_H + lines * PANEL_H);
	put_header(to, results);
	panels = 0;
	for (first = 0; first < results->cnt; first += cnt, panels++) {
		cnt = rows_of_panel(results, first);
		p = (struct panel){
			.row = &results->row[first],
			.cnt = cnt,
			.left = (double)(panels % columns * PANEL_W + LEFT),
			.top = (double)(HEADER_H + panels / columns * PANEL_H + TOP),
		};
		put_panel(to, &p, results->config_cnt);
	}
	svg_end(to);
}
