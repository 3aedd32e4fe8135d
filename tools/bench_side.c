/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * One side of 'weft bench': opens the channel, runs the rounds, prints what it
 * found. Both sides run this at the same time, in processes of their own.
 *
 * All sizes and tests are visited in every round, so that a machine that changes
 * under the measurement changes all figures alike. Between rounds both sides
 * sleep in the out-of-band channel: a comparison (versus.h) lets several pairs
 * take turns that way, and gives the word for each round on standard input:
 *
 *   us:   ready VERSION PROVIDER LIBRARY
 *   it:   go
 *   us:   sample TEST SIZE VALUE RAW_NS      (any number)
 *         end
 *   it:   closes
 */
#define _GNU_SOURCE
#include "bench.h"
#include "fabric.h"
#include "figures.h"
#include "traffic.h"

#include <err.h>
#include <math.h>
#include <rdma/fi_errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GO   'g'
#define STOP 's'

struct bench {
	const struct bench_options *opt;
	struct plan plan;
	struct side *side;
	struct channel ch;
	struct traffic traffic[SIZES_MAX];
	size_t traffic_cnt;
	struct figure figs[FIGURE_TESTS * SIZES_MAX];
	size_t fig_cnt;
};

static uint32_t round_trips(const struct plan *plan, size_t size)
{
	size_t cnt = 2000 / (1 + size / 4096);

	if (plan->iterations)
		return plan->iterations;
	return cnt < 16 ? 16 : (uint32_t)cnt;
}

static uint32_t windows(const struct plan *plan, const struct traffic *tr)
{
	size_t cnt = (32u << 20) / (tr->window * (tr->size + 1));

	if (plan->iterations)
		return (plan->iterations + tr->window - 1) / tr->window;
	if (cnt > 200)
		cnt = 200;
	return cnt < 4 ? 4 : (uint32_t)cnt;
}

static int prepare(struct bench *b)
{
	size_t i;
	int rc;

	rc = plan_agree(b->side, &b->plan);
	if (rc)
		return rc;
	rc = channel_open(&b->ch, &b->plan, &b->opt->channel, b->side);
	if (rc)
		return rc;
	for (i = 0; i < b->plan.sizes.cnt && !rc; i++) {
		if (b->plan.sizes.len[i] > b->ch.info->ep_attr->max_msg_size) {
			warnx("messages of %zu bytes: %s takes %zu at most",
			      b->plan.sizes.len[i], b->ch.info->fabric_attr->prov_name,
			      b->ch.info->ep_attr->max_msg_size);
			rc = -FI_EMSGSIZE;
			break;
		}
		rc = traffic_init(&b->traffic[i], &b->ch, b->plan.sizes.len[i], b->plan.verify);
		b->traffic_cnt += !rc;
	}
	return oob_barrier(&b->side->oob, rc) ? (rc ? rc : -FI_ECONNABORTED) : rc;
}

static void unprepare(struct bench *b)
{
	size_t i;

	for (i = 0; i < b->traffic_cnt; i++)
		traffic_fini(&b->traffic[i]);
	for (i = 0; i < b->fig_cnt; i++)
		figure_fini(&b->figs[i]);
	channel_close(&b->ch);
}

static struct figure *figure_for(struct bench *b, enum figure_test test, size_t size)
{
	size_t i;

	for (i = 0; i < b->fig_cnt; i++)
		if (b->figs[i].test == test && b->figs[i].size == size)
			return &b->figs[i];
	b->figs[b->fig_cnt].test = test;
	b->figs[b->fig_cnt].size = size;
	return &b->figs[b->fig_cnt++];
}

/* Keeps or, when driven, prints what a time means for each test that is asked for. */
static int note(struct bench *b, unsigned tests, size_t size, double msgs, double ns,
		double raw)
{
	enum figure_test t;
	double value;

	if (b->side->rank)
		return 0;
	for (t = 0; t < FIGURE_TESTS; t++) {
		if (!(tests & b->plan.tests & FIGURE_BIT(t)))
			continue;
		value = figure_from_time(t, size, msgs, ns);
		if (b->opt->driven)
			printf("sample %s %zu %.9g %.9g\n", figure_test_name(t), size, value,
			       raw);
		else if (figure_add(figure_for(b, t, size), value, raw))
			return -FI_ENOMEM;
	}
	return 0;
}

static double measure_raw(struct bench *b)
{
	return b->side->line ? cacheline_measure(b->side->line, b->side->rank) : NAN;
}

static int run_latency(struct bench *b, struct traffic *tr, bool warm)
{
	uint32_t cnt = round_trips(&b->plan, tr->size);
	uint64_t ns;
	double raw;
	int rc;

	if (warm)
		cnt = cnt / 10 + 1;
	raw = measure_raw(b);
	rc = traffic_pingpong(tr, cnt, &ns);
	if (rc || warm)
		return rc;
	return note(b, FIGURE_BIT(FIGURE_LATENCY), tr->size, 2.0 * cnt, (double)ns, raw);
}

static int run_stream(struct bench *b, struct traffic *tr, bool warm)
{
	uint32_t cnt = windows(&b->plan, tr);
	uint64_t ns;
	double raw;
	int rc;

	if (warm)
		cnt = 2;
	raw = measure_raw(b);
	rc = traffic_stream(tr, cnt, &ns);
	if (rc || warm)
		return rc;
	return note(b, FIGURE_BIT(FIGURE_BANDWIDTH) | FIGURE_BIT(FIGURE_RATE), tr->size,
		    (double)cnt * tr->window, (double)ns, raw);
}

static int run_round(struct bench *b, bool warm)
{
	size_t i;
	int rc = 0;

	for (i = 0; i < b->traffic_cnt && !rc; i++)
		if (b->plan.tests & FIGURE_BIT(FIGURE_LATENCY))
			rc = run_latency(b, &b->traffic[i], warm);
	for (i = 0; i < b->traffic_cnt && !rc; i++)
		if (b->plan.tests & (FIGURE_BIT(FIGURE_BANDWIDTH) | FIGURE_BIT(FIGURE_RATE)))
			rc = run_stream(b, &b->traffic[i], warm);
	return rc;
}

/* Side 0's word for the next round, from the comparison or from the count. */
static char decide(struct bench *b, unsigned round)
{
	char line[16];

	if (!b->opt->driven)
		return round < b->plan.rounds ? GO : STOP;
	return fgets(line, sizeof(line), stdin) && !strcmp(line, "go\n") ? GO : STOP;
}

static int run_rounds(struct bench *b)
{
	unsigned round;
	char word, theirs;
	size_t len;
	int rc;

	for (round = 0;; round++) {
		word = b->side->rank ? 0 : decide(b, round);
		len = sizeof(theirs);
		rc = oob_swap(&b->side->oob, &word, sizeof(word), &theirs, &len);
		if (rc)
			return rc;
		if ((b->side->rank ? theirs : word) != GO)
			return 0;
		rc = run_round(b, false);
		if (rc)
			return rc;
		if (b->opt->driven && !b->side->rank) {
			printf("end\n");
			fflush(stdout);
		}
	}
}

static struct figures_origin origin_of(const struct bench *b)
{
	struct figures_origin origin = {
		.provider = b->ch.info->fabric_attr->prov_name,
		.library = fabric_library_path(),
		.version = fi_version(),
		.interface = b->plan.tagged ? "tagged" : "msg",
	};

	if (b->plan.verify)
		origin.note = "the times include filling and checking every byte (-c)";
	else if (b->side->crowded)
		origin.note = "both sides shared one core";
	return origin;
}

static int by_test(const void *a, const void *b)
{
	const struct figure *x = a, *y = b;

	if (x->test != y->test)
		return x->test < y->test ? -1 : 1;
	return (x->size > y->size) - (x->size < y->size);
}

static void print_ready(const struct bench *b)
{
	struct figures_origin origin = origin_of(b);

	printf("ready %u %s %s\n", origin.version, origin.provider, origin.library);
	fflush(stdout);
}

static void print_figures(struct bench *b)
{
	struct figures_origin origin = origin_of(b);
	FILE *to = stdout;

	qsort(b->figs, b->fig_cnt, sizeof(b->figs[0]), by_test);
	if (!b->opt->json || b->opt->json_file)
		figures_print(stdout, &origin, b->figs, b->fig_cnt);
	if (!b->opt->json)
		return;
	if (b->opt->json_file)
		to = fopen(b->opt->json_file, "w");
	if (!to)
		err(EXIT_FAILURE, "%s", b->opt->json_file);
	figures_print_json(to, &origin, b->figs, b->fig_cnt);
	if (b->opt->json_file)
		fclose(to);
}

int bench_side(struct side *side, void *arg)
{
	struct bench *b = calloc(1, sizeof(*b));
	int rc;

	if (!b)
		err(EXIT_FAILURE, "bench");
	b->opt = arg;
	b->plan = b->opt->plan;
	b->side = side;
	rc = prepare(b);
	if (!rc)
		rc = run_round(b, true);
	if (!rc && b->opt->driven && !side->rank)
		print_ready(b);
	if (!rc)
		rc = run_rounds(b);
	if (!rc && !b->opt->driven && !side->rank)
		print_figures(b);
	unprepare(b);
	free(b);
	return rc ? EXIT_FAILURE : EXIT_SUCCESS;
}
