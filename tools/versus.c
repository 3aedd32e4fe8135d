/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Interleaved comparison of two configurations; versus.h says how and why.
 * Called by 'weft bench' when it is given something to compare with.
 */
#define _GNU_SOURCE
#include "versus.h"
#include "driven.h"
#include "figures.h"
#include "sizes.h"

#include <err.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SAMPLES_MAX (FIGURE_TESTS * SIZES_MAX)

enum { A, B, A2, INSTANCES };

/* One test and size: the figures of the three, and the ratios of each round. */
struct contest {
	struct figure fig[INSTANCES];
	struct figure speed; /* A's over B's */
	struct figure twin;  /* A's over the other A's */
};

struct versus {
	const struct versus_options *opt;
	struct driven child[INSTANCES];
	struct driven origin[2]; /* what A and B said of themselves */
	struct driven_sample round[INSTANCES][SAMPLES_MAX];
	struct contest contest[SAMPLES_MAX];
	size_t cnt;
};

const char *versus_verdict(double speed, double low, double high)
{
	if (speed < low)
		return "slower";
	return speed > high ? "faster" : "same";
}

/* The first to start gets other memory than the last: that rotates too. */
static int start_all(struct versus *vs, unsigned batch)
{
	unsigned i, who;
	int rc = 0;

	for (i = 0; i < INSTANCES && !rc; i++) {
		who = (i + batch) % INSTANCES;
		rc = driven_start(&vs->child[who], vs->opt->library[who == B],
				  who == B ? VERSUS_B : VERSUS_A, vs->opt->argv);
	}
	if (rc)
		return rc;
	vs->origin[0] = vs->child[A];
	vs->origin[1] = vs->child[B];
	return 0;
}

static void stop_all(struct versus *vs)
{
	int i;

	for (i = 0; i < INSTANCES; i++)
		driven_stop(&vs->child[i]);
}

/* How much faster x is than y, whichever way the test counts. */
static double speed_of(unsigned test, double x, double y)
{
	return test == FIGURE_LATENCY ? y / x : x / y;
}

static int keep(struct versus *vs, size_t idx)
{
	struct contest *c = &vs->contest[idx];
	const struct driven_sample *s[INSTANCES];
	int i, rc = 0;

	for (i = 0; i < INSTANCES; i++) {
		s[i] = &vs->round[i][idx];
		if (s[i]->test != s[0]->test || s[i]->size != s[0]->size)
			return -EPROTO;
		c->fig[i].test = s[i]->test;
		c->fig[i].size = s[i]->size;
		rc |= figure_add(&c->fig[i], s[i]->value, s[i]->raw_ns);
	}
	rc |= figure_add(&c->speed, speed_of(s[A]->test, s[A]->value, s[B]->value), NAN);
	rc |= figure_add(&c->twin, speed_of(s[A]->test, s[A]->value, s[A2]->value), NAN);
	return rc ? -ENOMEM : 0;
}

static int run_round(struct versus *vs, unsigned round)
{
	int i, who, got, rc = 0;
	size_t idx;

	for (i = 0; i < INSTANCES; i++) {
		who = (int)(((unsigned)i + round) % INSTANCES);
		got = driven_round(&vs->child[who], vs->round[who], SAMPLES_MAX);
		if (got < 0)
			return got;
		if (!vs->cnt)
			vs->cnt = (size_t)got;
		if ((size_t)got != vs->cnt)
			return -EPROTO;
	}
	for (idx = 0; idx < vs->cnt && !rc; idx++)
		rc = keep(vs, idx);
	return rc;
}

static int run_all(struct versus *vs)
{
	unsigned restarts = vs->opt->restarts, batch, round = 0, upto;
	int rc = 0;

	for (batch = 0; batch < restarts && !rc; batch++) {
		upto = (unsigned)((unsigned long long)vs->opt->rounds * (batch + 1) / restarts);
		rc = start_all(vs, batch);
		for (; round < upto && !rc; round++)
			rc = run_round(vs, round);
		stop_all(vs);
	}
	return rc;
}

/* The summary of one contest; sorts its samples. */
struct summary {
	struct stats a, b, speed, twin, raw;
	const char *verdict;
};

static struct summary summarize(struct contest *c)
{
	struct summary sum = {
		.a = stats_of(c->fig[A].samples, c->fig[A].cnt),
		.b = stats_of(c->fig[B].samples, c->fig[B].cnt),
		.speed = stats_of(c->speed.samples, c->speed.cnt),
		.twin = stats_of(c->twin.samples, c->twin.cnt),
		.raw = stats_of(c->fig[A].raw_ns, c->fig[A].cnt),
	};

	sum.verdict = versus_verdict(sum.speed.median, sum.twin.p10, sum.twin.p90);
	return sum;
}

static void print_row(const struct contest *c, const struct summary *sum)
{
	char size[24], raw[16] = "-";

	if (sum->raw.cnt)
		snprintf(raw, sizeof(raw), "%.0f", sum->raw.median);
	printf("%-9s %5s %5s %10.4g %10.4g  %6.3f (%5.3f..%5.3f)  %5.3f..%5.3f %-6s %5s\n",
	       figure_test_name(c->fig[A].test), sizes_format(c->fig[A].size, size),
	       figure_test_unit(c->fig[A].test), sum->a.median, sum->b.median,
	       sum->speed.median, sum->speed.p10, sum->speed.p90, sum->twin.p10, sum->twin.p90,
	       sum->verdict, raw);
}

static void print_text(const struct versus *vs, const struct summary *sums)
{
	size_t i;
	int w;

	for (w = 0; w < 2; w++)
		printf("%s: provider %s, libfabric %u.%u, %s\n", w ? "B" : "A",
		       vs->origin[w].provider, vs->origin[w].version >> 16,
		       vs->origin[w].version & 0xffff, vs->origin[w].library);
	printf("%u interleaved rounds, %u restarts; medians (p10..p90); A/B: speed of A over B,\n"
	       "above 1 A is faster; A/A: the same of two equal runs; raw: cache line, ns\n\n",
	       vs->opt->rounds, vs->opt->restarts);
	printf("%-9s %5s %5s %10s %10s  %-22s  %-12s %-6s %5s\n", "test", "size", "unit", "A",
	       "B", "A/B", "A/A spread", "A is", "raw");
	for (i = 0; i < vs->cnt; i++)
		print_row(&vs->contest[i], &sums[i]);
}

static void json_stats(FILE *to, const char *name, const struct stats *st)
{
	fprintf(to, ", \"%s\": {\"median\": ", name);
	json_number(to, st->median);
	fprintf(to, ", \"p10\": ");
	json_number(to, st->p10);
	fprintf(to, ", \"p90\": ");
	json_number(to, st->p90);
	fprintf(to, "}");
}

static void json_origin(FILE *to, const char *name, const struct driven *origin)
{
	fprintf(to, "  \"%s\": {\"provider\": ", name);
	json_string(to, origin->provider);
	fprintf(to, ", \"libfabric\": \"%u.%u\", \"library\": ", origin->version >> 16,
		origin->version & 0xffff);
	json_string(to, origin->library);
	fprintf(to, "},\n");
}

static void print_json(FILE *to, const struct versus *vs, const struct summary *sums)
{
	size_t i;

	fprintf(to, "{\n");
	json_origin(to, "a", &vs->origin[0]);
	json_origin(to, "b", &vs->origin[1]);
	fprintf(to, "  \"rounds\": %u, \"restarts\": %u,\n  \"comparisons\": [\n",
		vs->opt->rounds, vs->opt->restarts);
	for (i = 0; i < vs->cnt; i++) {
		fprintf(to, "    {\"test\": \"%s\", \"size\": %zu, \"unit\": \"%s\"",
			figure_test_name(vs->contest[i].fig[A].test),
			vs->contest[i].fig[A].size,
			figure_test_unit(vs->contest[i].fig[A].test));
		json_stats(to, "a", &sums[i].a);
		json_stats(to, "b", &sums[i].b);
		json_stats(to, "speed", &sums[i].speed);
		json_stats(to, "aa", &sums[i].twin);
		json_stats(to, "raw_ns", &sums[i].raw);
		fprintf(to, ", \"verdict\": \"%s\"}%s\n", sums[i].verdict,
			i + 1 < vs->cnt ? "," : "");
	}
	fprintf(to, "  ]\n}\n");
}

static void print(const struct versus *vs, const struct summary *sums)
{
	FILE *to;

	if (vs->opt->json && !vs->opt->json_file) {
		print_json(stdout, vs, sums);
		return;
	}
	print_text(vs, sums);
	if (!vs->opt->json)
		return;
	to = fopen(vs->opt->json_file, "w");
	if (!to)
		err(EXIT_FAILURE, "%s", vs->opt->json_file);
	print_json(to, vs, sums);
	fclose(to);
}

static void fini(struct versus *vs)
{
	size_t i;
	int w;

	for (i = 0; i < vs->cnt; i++) {
		for (w = 0; w < INSTANCES; w++)
			figure_fini(&vs->contest[i].fig[w]);
		figure_fini(&vs->contest[i].speed);
		figure_fini(&vs->contest[i].twin);
	}
	free(vs);
}

int versus_run(const struct versus_options *opt)
{
	struct versus *vs = calloc(1, sizeof(*vs));
	struct summary *sums;
	bool slower = false;
	size_t i;

	if (!vs)
		err(EXIT_FAILURE, "bench");
	vs->opt = opt;
	if (run_all(vs)) {
		fini(vs);
		return EXIT_FAILURE;
	}
	sums = calloc(vs->cnt + 1, sizeof(*sums));
	if (!sums)
		err(EXIT_FAILURE, "bench");
	for (i = 0; i < vs->cnt; i++) {
		sums[i] = summarize(&vs->contest[i]);
		slower |= !strcmp(sums[i].verdict, "slower");
	}
	print(vs, sums);
	free(sums);
	fini(vs);
	return slower && opt->fail_if_slower ? EXIT_FAILURE : EXIT_SUCCESS;
}
