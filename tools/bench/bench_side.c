/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * One side of 'weft bench': opens the channel, runs the rounds, prints what it
 * found. Both sides run this at the same time, in processes of their own.
 *
 * All sizes and tests are visited in every round, so that a machine that changes
 * under the measurement changes all figures alike. Between rounds both sides
 * sleep in the out-of-band channel: a comparison (compare.h) lets several pairs
 * take turns that way, and gives the word for each round on standard input:
 *
 *   us:   ready API PROVIDER VERSION BUILD LIBRARY
 *   it:   go
 *   us:   sample TEST SIZE VALUE RAW_NS      (any number)
 *         end
 *   it:   closes
 */
#define _GNU_SOURCE
#include "bench.h"
#include "btl.h"
#include "worker.h"
#include "figures.h"
#include "first.h"
#include "registering.h"
#include "onesided.h"
#include "progress.h"
#include "rpc.h"
#include "traffic.h"

#include <err.h>
#include <math.h>
#include <rdma/fi_errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define GO   'g'
#define STOP 's'

#define AWAY_NS	   20000 /* for which a sender computes in 'away' */
#define BTL_WINDOW 64	 /* a sample of puts is of a multiple of them */

struct bench {
	const struct bench_options *opt;
	struct plan plan;
	struct side *side;
	struct channel ch;
	/* in place of the channel, for FIGURES_BTL; else NULL */
	struct btl *btl;
	/* of each size, if a test needs it */
	struct traffic traffic[SIZES_MAX];
	/* likewise; never of size 0 */
	struct onesided onesided[SIZES_MAX];
	/* likewise */
	struct rpc rpc[SIZES_MAX];
	struct figure figs[FIGURE_TESTS * SIZES_MAX];
	size_t fig_cnt;
	struct machine machine;
	struct progress progress;
	/* that are behind, of the progress */
	uint64_t steps;
	unsigned round;
};

static uint32_t round_trips(const struct plan *plan, size_t size)
{
	size_t cnt = 2000 / (1 + size / 4096);

	if (plan->iterations)
		return plan->iterations;
	return cnt < 16 ? 16 : (uint32_t)cnt;
}

static uint32_t windows(const struct plan *plan, size_t size, uint32_t window)
{
	size_t cnt = (32u << 20) / (window * (size + 1));

	if (plan->iterations)
		return (plan->iterations + window - 1) / window;
	if (cnt > 200)
		cnt = 200;
	return cnt < 4 ? 4 : (uint32_t)cnt;
}

static int prepare_size(struct bench *b, size_t i)
{
	unsigned tests = plan_tests_at(&b->plan, i);
	size_t size = b->plan.sizes.len[i];
	int rc = 0;

	if (!tests)
		return 0;
	if (size > b->ch.limits.max_message) {
		warnx("messages of %zu bytes: %s accepts at most %zu", size,
		      b->ch.limits.provider, b->ch.limits.max_message);
		return -FI_EMSGSIZE;
	}
	if (tests & FIGURES_MESSAGES)
		rc = traffic_init(&b->traffic[i], &b->ch, size, b->plan.verify);
	b->traffic[i].warm = b->plan.warm;
	if (!rc && size && tests & FIGURES_ONESIDED)
		rc = onesided_init(&b->onesided[i], &b->ch, size, b->plan.verify);
	if (!rc && size && tests & FIGURE_BIT(FIGURE_RPC))
		rc = rpc_init(&b->rpc[i], &b->ch, size, b->plan.verify);
	return rc;
}

static int prepare(struct bench *b)
{
	size_t i;
	int rc;

	rc = plan_agree(b->side, &b->plan);
	if (rc)
		return rc;
	if (b->plan.tests & FIGURES_BTL) {
		rc = btl_create(&b->plan, &b->opt->channel, b->side, &b->btl);
		return oob_barrier(&b->side->oob, rc) ? (rc ? rc : -FI_ECONNABORTED) : rc;
	}
	rc = channel_open(&b->ch, &b->plan, &b->opt->channel, b->side);
	if (rc)
		return rc;
	for (i = 0; i < b->plan.sizes.cnt && !rc; i++)
		rc = prepare_size(b, i);
	return oob_barrier(&b->side->oob, rc) ? (rc ? rc : -FI_ECONNABORTED) : rc;
}

static void unprepare(struct bench *b)
{
	size_t i;

	for (i = 0; i < b->plan.sizes.cnt; i++) {
		traffic_fini(&b->traffic[i]);
		onesided_fini(&b->onesided[i]);
		rpc_fini(&b->rpc[i]);
	}
	for (i = 0; i < b->fig_cnt; i++)
		figure_fini(&b->figs[i]);
	btl_destroy(b->btl);
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

/* Records the time or, when driven, prints it, for each test that was requested. */
static int note(struct bench *b, unsigned tests, size_t size, double msgs, double ns, double raw)
{
	enum figure_test t;
	double value;

	if (b->side->rank)
		return 0;
	for (t = 0; t < FIGURE_TESTS; t++) {
		if (!(tests & b->plan.tests & FIGURE_BIT(t)))
			continue;
		value = figure_from_time(t, size, msgs, ns);
		if (b->opt->is_worker)
			printf("sample %s %zu %.9g %.9g\n", figure_test_name(t), size, value,
			       raw);
		else if (figure_add(figure_for(b, t, size), value, raw))
			return -FI_ENOMEM;
	}
	return 0;
}

static double measure_raw(struct bench *b)
{
	/* Several pairs share the cores, so the time of a cache line would mean nothing. */
	return b->side->line && b->opt->comparison.pairs == 1
		       ? cacheline_measure(b->side->line, b->side->rank)
		       : NAN;
}

static int run_pingpong(struct bench *b, size_t i, enum figure_test test, bool warm)
{
	struct traffic *tr = &b->traffic[i];
	uint32_t cnt = round_trips(&b->plan, tr->size);
	uint64_t ns;
	double raw;
	int rc;

	if (warm)
		cnt = cnt / 10 + 1;
	raw = measure_raw(b);
	rc = traffic_pingpong(tr, cnt, test == FIGURE_AWAY ? AWAY_NS : 0, &ns);
	if (rc || warm)
		return rc;
	return note(b, FIGURE_BIT(test), tr->size, 2.0 * cnt, (double)ns, raw);
}

/* What the processors gave to this process and its threads. */
static uint64_t cpu_time_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* The sum of both sides' times. */
static int add_theirs(struct bench *b, uint64_t mine, uint64_t *sum)
{
	uint64_t theirs = 0;
	size_t len = sizeof(theirs);
	int rc = oob_exchange(&b->side->oob, &mine, sizeof(mine), &theirs, &len);

	if (!rc)
		*sum = mine + theirs;
	return rc;
}

static int run_stream(struct bench *b, size_t i, enum figure_test test, bool warm)
{
	struct traffic *tr = &b->traffic[i];
	uint32_t cnt = windows(&b->plan, tr->size, tr->window);
	unsigned bits = FIGURE_BIT(FIGURE_BANDWIDTH) | FIGURE_BIT(FIGURE_RATE);
	uint64_t ns, cpu_ns;
	double raw;
	int rc;

	if (warm)
		cnt = 2;
	raw = measure_raw(b);
	cpu_ns = cpu_time_ns();
	rc = traffic_stream(tr, cnt, &ns);
	if (!rc && test == FIGURE_CPU) {
		bits = FIGURE_BIT(test);
		cpu_ns = cpu_time_ns() - cpu_ns;
		rc = add_theirs(b, cpu_ns, &ns);
	}
	if (rc || warm)
		return rc;
	return note(b, bits, tr->size, (double)cnt * tr->window, (double)ns, raw);
}

/* One test after the other of a size; each of @cnt, and @trips ways in each of these. */
static int run_onesided(struct bench *b, size_t i, enum figure_test test, bool warm)
{
	struct onesided *os = &b->onesided[i];
	bool streams = test == FIGURE_WRITE_BW || test == FIGURE_READ_BW || test == FIGURE_ADD;
	bool words = test == FIGURE_ATOMIC || test == FIGURE_ADD;
	uint32_t cnt = round_trips(&b->plan, os->size);
	uint64_t ns = 0;
	double raw;
	int rc;

	if (!os->ch)
		return 0;
	if (streams)
		cnt = windows(&b->plan, os->size, os->window) * os->window;
	if (warm)
		cnt = streams ? 2 * os->window : cnt / 10 + 1;
	raw = measure_raw(b);
	if (test == FIGURE_WRITE)
		rc = onesided_write_pingpong(os, cnt, &ns);
	else if (test == FIGURE_READ || test == FIGURE_PASSIVE)
		rc = onesided_read(os, test == FIGURE_PASSIVE, cnt, &ns);
	else if (test == FIGURE_ATOMIC)
		rc = onesided_fetch_add(os, cnt, &ns);
	else if (test == FIGURE_ADD)
		rc = onesided_add(os, cnt, &ns);
	else
		rc = onesided_stream(os, test == FIGURE_READ_BW, cnt, &ns);
	if (rc || warm)
		return rc;
	return note(b, FIGURE_BIT(test), words ? sizeof(uint64_t) : os->size,
		    test == FIGURE_WRITE ? 2.0 * cnt : cnt, (double)ns, raw);
}

/* Of one word, whatever the sizes: with the regions of the first of them. */
static int run_words(struct bench *b, size_t i, enum figure_test test, bool warm)
{
	size_t before;

	for (before = 0; before < i; before++)
		if (b->onesided[before].ch && plan_tests_at(&b->plan, before) & FIGURE_BIT(test))
			return 0;
	return run_onesided(b, i, test, warm);
}

static int run_rpc(struct bench *b, size_t i, enum figure_test test, bool warm)
{
	struct rpc *rpc = &b->rpc[i];
	uint32_t cnt = round_trips(&b->plan, rpc->size);
	uint64_t ns;
	double raw;
	int rc;

	if (!rpc->ch)
		return 0;
	if (warm)
		cnt = cnt / 10 + 1;
	raw = measure_raw(b);
	rc = rpc_run(rpc, cnt, &ns);
	return rc || warm ? rc : note(b, FIGURE_BIT(test), rpc->size, cnt, (double)ns, raw);
}

static int run_first(struct bench *b, size_t i, enum figure_test test, bool warm)
{
	size_t size = b->plan.sizes.len[i];
	double raw = measure_raw(b);
	uint64_t ns;
	int rc = first_run(&b->plan, &b->opt->channel, b->side, size, &ns);

	return rc || warm ? rc : note(b, FIGURE_BIT(test), size, 2, (double)ns, raw);
}

#define REGISTER_CNT 2000u

static int run_register(struct bench *b, size_t i, enum figure_test test, bool warm)
{
	size_t size = b->plan.sizes.len[i];
	double raw = measure_raw(b);
	uint64_t ns;
	int rc;

	/* The other side has done its part of the raw latency. */
	if (!size || b->side->rank)
		return 0;
	rc = registering_run(&b->ch, size, REGISTER_CNT, &ns);
	return rc || warm ? rc : note(b, FIGURE_BIT(test), size, REGISTER_CNT, (double)ns, raw);
}

static int run_btl(struct bench *b, size_t i, enum figure_test test, bool warm)
{
	bool many = test == FIGURE_PUTS || test == FIGURE_PUTS1 || test == FIGURE_PUTS2;
	size_t size = test == FIGURE_FETCH ? sizeof(uint64_t) : b->plan.sizes.len[i];
	uint32_t cnt = round_trips(&b->plan, size);
	uint64_t ns;
	double raw;
	int rc;

	if (!size || (test == FIGURE_FETCH && i))
		return 0;
	if (many)
		cnt = windows(&b->plan, size, BTL_WINDOW) * BTL_WINDOW;
	if (warm)
		cnt = cnt / 10 + 2;
	raw = measure_raw(b);
	rc = btl_run(b->btl, test, size, cnt, &ns);
	return rc || warm ? rc : note(b, FIGURE_BIT(test), size, cnt, (double)ns, raw);
}

/* The measurements of one run: the test that each is of, and one more that it gives a figure for. */
static const struct run_kind {
	enum figure_test test, also;
	const char *name;
	int (*run)(struct bench *b, size_t i, enum figure_test test, bool warm);
} run_kinds[] = {
	{ FIGURE_LATENCY, FIGURE_LATENCY, "latency", run_pingpong },
	{ FIGURE_BANDWIDTH, FIGURE_RATE, "stream", run_stream },
	{ FIGURE_CPU, FIGURE_CPU, "stream for its processor time", run_stream },
	{ FIGURE_WRITE, FIGURE_WRITE, "write", run_onesided },
	{ FIGURE_READ, FIGURE_READ, "read", run_onesided },
	{ FIGURE_PASSIVE, FIGURE_PASSIVE, "passive read", run_onesided },
	{ FIGURE_WRITE_BW, FIGURE_WRITE_BW, "write stream", run_onesided },
	{ FIGURE_READ_BW, FIGURE_READ_BW, "read stream", run_onesided },
	{ FIGURE_ATOMIC, FIGURE_ATOMIC, "atomic", run_words },
	{ FIGURE_ADD, FIGURE_ADD, "add", run_words },
	{ FIGURE_AWAY, FIGURE_AWAY, "away", run_pingpong },
	{ FIGURE_RPC, FIGURE_RPC, "call", run_rpc },
	{ FIGURE_FIRST, FIGURE_FIRST, "first message", run_first },
	{ FIGURE_REGISTER, FIGURE_REGISTER, "registration", run_register },
	{ FIGURE_PUT, FIGURE_PUT, "put", run_btl },
	{ FIGURE_GET, FIGURE_GET, "get", run_btl },
	{ FIGURE_FETCH, FIGURE_FETCH, "fetch", run_btl },
	{ FIGURE_PUTS, FIGURE_PUTS, "puts", run_btl },
	{ FIGURE_PUTS1, FIGURE_PUTS1, "puts, one thread", run_btl },
	{ FIGURE_PUTS2, FIGURE_PUTS2, "puts, two threads", run_btl },
};

#define RUN_KINDS (sizeof(run_kinds) / sizeof(run_kinds[0]))

/* Returns true if a measurement gives a figure that the plan has at that size. */
static bool run_wanted(const struct bench *b, const struct run_kind *kind, size_t i)
{
	return plan_tests_at(&b->plan, i) & (FIGURE_BIT(kind->test) | FIGURE_BIT(kind->also));
}

/* Called between measurements; a comparison shows its own line. */
static void start_progress(struct bench *b)
{
	uint64_t steps = 0;
	size_t k, i;

	for (k = 0; k < RUN_KINDS; k++)
		for (i = 0; i < b->plan.sizes.cnt; i++)
			if (run_wanted(b, &run_kinds[k], i))
				steps += b->plan.rounds;
	progress_start(&b->progress, b->opt->is_worker || b->side->rank ? -1 : STDERR_FILENO,
		       steps ? steps : 1);
}

static void show_progress(struct bench *b, const char *name, size_t size, bool warm)
{
	char what[128], text[24];

	if (warm) {
		snprintf(what, sizeof(what), "warming up, %s %s", name,
			 sizes_format(size, text));
		progress_show(&b->progress, 0, what);
		return;
	}
	snprintf(what, sizeof(what), "%s, %s %s, round %u of %u",
		 b->btl ? "btl" : b->ch.limits.provider, name, sizes_format(size, text),
		 b->round + 1, b->plan.rounds);
	progress_show(&b->progress, b->steps++, what);
}

static int run_round(struct bench *b, bool warm)
{
	size_t k, i;
	int rc = 0;

	for (k = 0; k < RUN_KINDS; k++) {
		for (i = 0; i < b->plan.sizes.cnt && !rc; i++) {
			if (!run_wanted(b, &run_kinds[k], i))
				continue;
			show_progress(b, run_kinds[k].name, b->plan.sizes.len[i], warm);
			rc = run_kinds[k].run(b, i, run_kinds[k].test, warm);
		}
	}
	return rc;
}

/* Side 0's word for the next round, from the comparison or from the count. */
static char decide(struct bench *b)
{
	char line[16];

	if (!b->opt->is_worker)
		return b->round < b->plan.rounds ? GO : STOP;
	return fgets(line, sizeof(line), stdin) && !strcmp(line, "go\n") ? GO : STOP;
}

static int run_rounds(struct bench *b)
{
	char word, theirs;
	size_t len;
	int rc;

	for (b->round = 0;; b->round++) {
		word = b->side->rank ? 0 : decide(b);
		len = sizeof(theirs);
		rc = oob_exchange(&b->side->oob, &word, sizeof(word), &theirs, &len);
		if (rc)
			return rc;
		if ((b->side->rank ? theirs : word) != GO)
			return 0;
		rc = run_round(b, false);
		if (rc)
			return rc;
		if (b->opt->is_worker && !b->side->rank) {
			printf("end\n");
			fflush(stdout);
		}
	}
}

static const char *note_of(const struct bench *b)
{
	if (b->plan.verify)
		return "the times include filling and checking every byte (-c)";
	return b->side->shares_core ? "both sides shared one core" : NULL;
}

static void describe(const struct bench *b, struct results_config *config)
{
	if (b->btl)
		btl_describe(b->btl, config);
	else
		channel_describe(&b->ch, config);
}

static void say_ready(const struct bench *b)
{
	struct results_config config;

	describe(b, &config);
	worker_ready_print(stdout, &config);
}

static struct result summarize(const struct figure *fig)
{
	return (struct result){
		.test = fig->test,
		.size = fig->size,
		.a = stats_of_copy(fig->samples, fig->cnt),
		.raw_ns = stats_of_copy(fig->raw_ns, fig->cnt),
		.samples[0] = fig->samples,
		.cnt = fig->cnt,
	};
}

static int publish(struct bench *b)
{
	struct results_outputs out = b->opt->out;
	struct results results = {
		.command = b->opt->command,
		.machine = b->machine,
		.interface = b->plan.tagged ? "tagged" : "msg",
		.refused = b->opt->refused,
		.note = note_of(b),
		.rounds = b->plan.rounds,
		.restarts = 1,
		.config_cnt = 1,
		.cnt = b->fig_cnt,
	};
	size_t i;
	int rc;

	describe(b, &results.config[0]);
	results.row = calloc(b->fig_cnt + 1, sizeof(*results.row));
	if (!results.row)
		err(EXIT_FAILURE, "bench");
	for (i = 0; i < b->fig_cnt; i++)
		results.row[i] = summarize(&b->figs[i]);
	results_sort(results.row, results.cnt);
	rc = results_publish(&results, &out);
	free(results.row);
	return rc;
}

static int run_all(struct bench *b)
{
	int rc;

	start_progress(b);
	rc = run_round(b, true);
	if (!rc && b->opt->is_worker && !b->side->rank)
		say_ready(b);
	if (!rc)
		rc = run_rounds(b);
	progress_end(&b->progress);
	return rc;
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
	/* Before our own work counts as load. */
	machine_read(&b->machine);
	rc = prepare(b);
	if (!rc)
		rc = run_all(b);
	if (!rc && !b->opt->is_worker && !side->rank)
		rc = publish(b);
	unprepare(b);
	free(b);
	return rc ? EXIT_FAILURE : EXIT_SUCCESS;
}
