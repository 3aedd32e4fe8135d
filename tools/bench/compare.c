/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Interleaved comparison of two configurations; compare.h says how and why.
 * Called by 'weft bench' when it is given something to compare with.
 */
#define _GNU_SOURCE
#include "compare.h"
#include "worker.h"
#include "figures.h"
#include "progress.h"
#include "sizes.h"

#include <err.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SAMPLES_MAX (FIGURE_TESTS * SIZES_MAX)

enum { A, B, A2, INSTANCES };

/* One test and size: the figures of the three, and the ratios of each round. */
struct sample_set {
	struct figure fig[INSTANCES];
	/* A's over B's */
	struct figure speed;
	/* A's over the other A's */
	struct figure twin;
};

struct compare {
	const struct compare_options *opt;
	struct worker child[INSTANCES][COMPARE_PAIRS_MAX];
	/* configurations as A and B report them */
	struct results_config config[2];
	/* means of the pairs */
	struct worker_sample round[INSTANCES][SAMPLES_MAX];
	struct sample_set sets[SAMPLES_MAX];
	size_t cnt;
	struct machine machine;
	struct progress progress;
	/* rounds of one child that are behind */
	uint64_t steps;
};

const char *compare_verdict(double speed, double low, double high)
{
	if (speed < low)
		return "slower";
	return speed > high ? "faster" : "same";
}

/* The first to start gets other memory than the last: that rotates too. */
static int start_all(struct compare *vs, unsigned batch)
{
	unsigned i, pair, who;
	int rc = 0;

	for (i = 0; i < INSTANCES * vs->opt->pairs && !rc; i++) {
		pair = i / INSTANCES;
		who = (i + batch) % INSTANCES;
		rc = worker_start(&vs->child[who][pair], who == B ? vs->opt->program : NULL,
				  vs->opt->library[who == B], who == B ? COMPARE_B : COMPARE_A,
				  vs->opt->command + 1);
	}
	if (rc)
		return rc;
	vs->config[0] = vs->child[A][0].config;
	vs->config[1] = vs->child[B][0].config;
	return 0;
}

static void stop_all(struct compare *vs)
{
	unsigned i, pair;

	for (i = 0; i < INSTANCES; i++)
		for (pair = 0; pair < vs->opt->pairs; pair++)
			worker_stop(&vs->child[i][pair]);
}

/* How much faster x is than y, whichever way the test counts. */
static double speed_of(enum figure_test test, double x, double y)
{
	return figure_test_is_time(test) ? y / x : x / y;
}

static int keep(struct compare *vs, size_t idx)
{
	struct sample_set *c = &vs->sets[idx];
	const struct worker_sample *s[INSTANCES];
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

static void show_progress(struct compare *vs, int who, unsigned round)
{
	char what[RESULTS_TEXT_MAX + 64];

	snprintf(what, sizeof(what), "round %u of %u, %s (%s)", round + 1, vs->opt->rounds,
		 who == B ? "B" : "A", vs->child[who][0].config.provider);
	progress_show(&vs->progress, vs->steps++, what);
}

/* A round of all pairs of one instance at the same time. How many samples each has, or -errno. */
static int run_pairs(struct compare *vs, int who)
{
	struct worker_sample *mean = vs->round[who], got[SAMPLES_MAX];
	unsigned pairs = vs->opt->pairs, pair;
	int cnt = 0, more, i;

	for (pair = 0; pair < pairs; pair++)
		worker_go(&vs->child[who][pair]);
	for (pair = 0; pair < pairs; pair++) {
		more = worker_samples(&vs->child[who][pair], got, SAMPLES_MAX);
		if (more < 0)
			return more;
		if (pair && more != cnt)
			return -EPROTO;
		for (i = 0; i < more; i++) {
			if (!pair)
				mean[i] = (struct worker_sample){ .test = got[i].test,
								  .size = got[i].size };
			if (mean[i].test != got[i].test || mean[i].size != got[i].size)
				return -EPROTO;
			mean[i].value += got[i].value / pairs;
			mean[i].raw_ns += got[i].raw_ns / pairs;
		}
		cnt = more;
	}
	return cnt;
}

static int run_round(struct compare *vs, unsigned round)
{
	int i, who, got, rc = 0;
	size_t idx;

	for (i = 0; i < INSTANCES; i++) {
		who = (int)(((unsigned)i + round) % INSTANCES);
		show_progress(vs, who, round);
		got = run_pairs(vs, who);
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

static int run_all(struct compare *vs)
{
	unsigned restarts = vs->opt->restarts, batch, round = 0, upto;
	int rc = 0;

	progress_start(&vs->progress, STDERR_FILENO, (uint64_t)vs->opt->rounds * INSTANCES);
	for (batch = 0; batch < restarts && !rc; batch++) {
		upto = (unsigned)((unsigned long long)vs->opt->rounds * (batch + 1) / restarts);
		rc = start_all(vs, batch);
		for (; round < upto && !rc; round++)
			rc = run_round(vs, round);
		stop_all(vs);
	}
	progress_end(&vs->progress);
	return rc;
}

static struct result summarize(const struct sample_set *c)
{
	const struct figure *a = &c->fig[A], *b = &c->fig[B];
	struct result row = {
		.test = a->test,
		.size = a->size,
		.a = stats_of_copy(a->samples, a->cnt),
		.b = stats_of_copy(b->samples, b->cnt),
		.ratio = stats_of_copy(c->speed.samples, c->speed.cnt),
		.twin = stats_of_copy(c->twin.samples, c->twin.cnt),
		.raw_ns = stats_of_copy(a->raw_ns, a->cnt),
		.samples = { a->samples, b->samples, c->fig[A2].samples },
		.cnt = a->cnt,
	};

	row.verdict = compare_verdict(row.ratio.median, row.twin.p10, row.twin.p90);
	return row;
}

static int publish(const struct compare *vs, struct result *rows)
{
	const struct results results = {
		.command = vs->opt->command,
		.machine = vs->machine,
		.interface = vs->opt->interface,
		.refused = vs->opt->refused,
		.rounds = vs->opt->rounds,
		.restarts = vs->opt->restarts,
		.config_cnt = 2,
		.config = { vs->config[0], vs->config[1] },
		.row = rows,
		.cnt = vs->cnt,
	};

	return results_publish(&results, vs->opt->out);
}

static void fini(struct compare *vs)
{
	size_t i;
	int w;

	for (i = 0; i < vs->cnt; i++) {
		for (w = 0; w < INSTANCES; w++)
			figure_fini(&vs->sets[i].fig[w]);
		figure_fini(&vs->sets[i].speed);
		figure_fini(&vs->sets[i].twin);
	}
	free(vs);
}

int compare_run(const struct compare_options *opt)
{
	struct compare *vs = calloc(1, sizeof(*vs));
	struct result *rows;
	bool slower = false;
	size_t i;
	int rc;

	if (!vs)
		err(EXIT_FAILURE, "bench");
	vs->opt = opt;
	machine_read(&vs->machine);
	if (run_all(vs)) {
		fini(vs);
		return EXIT_FAILURE;
	}
	rows = calloc(vs->cnt + 1, sizeof(*rows));
	if (!rows)
		err(EXIT_FAILURE, "bench");
	for (i = 0; i < vs->cnt; i++) {
		rows[i] = summarize(&vs->sets[i]);
		slower |= !strcmp(rows[i].verdict, "slower");
	}
	results_sort(rows, vs->cnt);
	rc = publish(vs, rows);
	free(rows);
	fini(vs);
	return rc || (slower && opt->fail_if_slower) ? EXIT_FAILURE : EXIT_SUCCESS;
}
