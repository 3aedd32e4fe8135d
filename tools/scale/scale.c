/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * 'weft scale': its options, and the two forms of its figures. How they are taken is in
 * scale_side.c.
 */
#define _GNU_SOURCE
#include "scale.h"
#include "arguments.h"
#include "figures.h"
#include "stats.h"
#include "weft.h"

#include <err.h>
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include <jansson.h>

#define DEFAULT_ENDPOINTS 1000
#define DEFAULT_PEERS	  1000
#define DEFAULT_ROUNDS	  21
#define DEFAULT_READS	  10000
#define DEFAULT_IDLE_TIME 4
#define DEFAULT_TIMEOUT	  30
#define CROWD_MAX	  100000
#define REAL_DIGITS	  9

enum {
	OPT_IDLE = 256,
	OPT_IDLE_TIME,
	OPT_JSON,
};

static const struct option longopts[] = {
	{ "provider", required_argument, NULL, 'p' },
	{ "endpoints", required_argument, NULL, 'e' },
	{ "peers", required_argument, NULL, 'n' },
	{ "rounds", required_argument, NULL, 'r' },
	{ "iterations", required_argument, NULL, 'i' },
	{ "idle", required_argument, NULL, OPT_IDLE },
	{ "idle-time", required_argument, NULL, OPT_IDLE_TIME },
	{ "cpus", required_argument, NULL, ARGUMENT_CPUS },
	{ "realtime", no_argument, NULL, ARGUMENT_REALTIME },
	{ "timeout", required_argument, NULL, ARGUMENT_TIMEOUT },
	{ "json", optional_argument, NULL, OPT_JSON },
	{ "help", no_argument, NULL, 'h' },
	{ 0 },
};

static void usage(void)
{
	printf("Usage: weft scale [OPTIONS]\n"
	       "\n"
	       "Measures what many endpoints and many peers of a libfabric provider cost: the\n"
	       "memory of an endpoint that was just made, the memory of a pair that has exchanged\n"
	       "8 bytes each way, and the time of a fi_cq_read that finds nothing, of an endpoint\n"
	       "with one silent peer and of one with many.\n"
	       "\n"
	       "  -p, --provider=NAME    provider; default: the first that answers\n"
	       "  -e, --endpoints=N      endpoints to make, each with a queue; default: %u\n"
	       "  -n, --peers=N          peers of the endpoint with many; default: %u\n"
	       "  -r, --rounds=N         samples of the times; default: %u\n"
	       "  -i, --iterations=N     reads per sample; default: %u\n"
	       "      --idle=N           also, how often N domains with automatic progress that have\n"
	       "                         nothing to do wake, and what part of a core they take\n"
	       "      --idle-time=SECONDS\n"
	       "                         for which they are measured; default: %u\n"
	       "      --cpus=A,B         the two cores; default: the first two\n"
	       "      --realtime         run before all other programs (SCHED_FIFO)\n"
	       "      --timeout=SECONDS  for any one message; default: %u\n"
	       "      --json[=FILE]      one JSON object instead of the text; with FILE: there,\n"
	       "                         beside the text\n"
	       "  -h, --help             this text\n"
	       "\n"
	       "The memory of a pair is that of both processes; shared memory counts once.\n"
	       "'man weft-scale' describes how it is measured, and the JSON.\n",
	       DEFAULT_ENDPOINTS, DEFAULT_PEERS, DEFAULT_ROUNDS, DEFAULT_READS,
	       DEFAULT_IDLE_TIME, DEFAULT_TIMEOUT);
}

static void set_option(struct scale_options *opt, int c, const char *arg)
{
	switch (c) {
	case 'e':
		opt->endpoints = argument_number(arg, "endpoints", 1, CROWD_MAX);
		break;
	case 'n':
		opt->peers = argument_number(arg, "peers", 1, CROWD_MAX);
		break;
	case 'r':
		opt->rounds = argument_number(arg, "rounds", 1, 1000000);
		break;
	case 'i':
		opt->reads = argument_number(arg, "iterations", 1, 1000000000);
		break;
	case OPT_IDLE:
		opt->idle = argument_number(arg, "idle", 1, CROWD_MAX);
		break;
	case OPT_IDLE_TIME:
		opt->idle_time = argument_number(arg, "idle-time", 1, 3600);
		break;
	case OPT_JSON:
		opt->want_json = true;
		opt->json_path = arg;
		break;
	case 'h':
		usage();
		exit(EXIT_SUCCESS);
	default:
		if (!argument_take(c, arg, &opt->plan, &opt->place, &opt->channel))
			argument_unknown("scale");
	}
}

static void parse(struct scale_options *opt, int argc, char **argv)
{
	int c;

	*opt = (struct scale_options){
		.plan = { .tagged = true, .rounds = 1 },
		.place.local = true,
		.channel.timeout_s = DEFAULT_TIMEOUT,
		.endpoints = DEFAULT_ENDPOINTS,
		.peers = DEFAULT_PEERS,
		.rounds = DEFAULT_ROUNDS,
		.reads = DEFAULT_READS,
		.idle_time = DEFAULT_IDLE_TIME,
	};
	while ((c = getopt_long(argc, argv, "p:e:n:r:i:h", longopts, NULL)) != -1)
		set_option(opt, c, optarg);
	if (optind < argc)
		errx(WEFT_EXIT_USAGE, "'%s' is one argument too many", argv[optind]);
}

/* The ratio of each round, many over few. The caller frees it. */
static double *ratios_of(const struct scale_options *opt, const struct scale_figures *fig)
{
	double *ratio = calloc(opt->rounds, sizeof(*ratio));
	unsigned i;

	if (!ratio)
		err(EXIT_FAILURE, "scale");
	for (i = 0; i < opt->rounds; i++)
		ratio[i] = fig->many_ns[i] / fig->few_ns[i];
	return ratio;
}

static void print_memory(const char *what, const struct memory *memory)
{
	printf("%-34s %8.1f KiB  (%.1f private, %.1f shared)\n", what,
	       (double)(memory->private_bytes + memory->shared_bytes) / 1024,
	       (double)memory->private_bytes / 1024, (double)memory->shared_bytes / 1024);
}

static void print_times(const char *what, const struct stats *st, const char *unit)
{
	printf("%-34s %8.2f %-3s  (%.2f..%.2f)\n", what, st->median, unit, st->p10, st->p90);
}

static void print_idle(const struct scale_options *opt, const struct idle *idle)
{
	char what[64];

	snprintf(what, sizeof(what), "an idle domain, of %u", opt->idle);
	printf("%-34s %8.2f wake-ups a second  (all: %.2f%% of a core)\n", what, idle->wakes,
	       100 * idle->cpu * opt->idle);
}

static void print_text(const struct scale_options *opt, const struct scale_figures *fig)
{
	char text[5 * RESULTS_TEXT_MAX], what[64];
	double *ratio = ratios_of(opt, fig);
	struct stats few, many, both;

	few = stats_of_copy(fig->few_ns, opt->rounds);
	many = stats_of_copy(fig->many_ns, opt->rounds);
	both = stats_of(ratio, opt->rounds);
	printf("provider %s\n\n", results_config_format(&fig->config, text, sizeof(text)));
	snprintf(what, sizeof(what), "an endpoint, of %u", opt->endpoints);
	print_memory(what, &fig->endpoint);
	snprintf(what, sizeof(what), "a pair that has met, of %u", opt->peers);
	print_memory(what, &fig->pair);
	print_times("an empty fi_cq_read, 1 peer", &few, "ns");
	snprintf(what, sizeof(what), "an empty fi_cq_read, %u peers", opt->peers);
	print_times(what, &many, "ns");
	print_times("the ratio of the two", &both, "");
	if (opt->idle)
		print_idle(opt, &fig->idle);
	free(ratio);
}

static json_t *memory_object(const struct memory *memory)
{
	return json_pack("{s:I, s:I}", "private", (json_int_t)memory->private_bytes, "shared",
			 (json_int_t)memory->shared_bytes);
}

static json_t *times_array(const double *ns, unsigned cnt)
{
	json_t *array = json_array();
	unsigned i;

	for (i = 0; i < cnt; i++)
		json_array_append_new(array, json_real(ns[i]));
	return array;
}

static int write_json(const struct scale_options *opt, const struct scale_figures *fig)
{
	FILE *to = opt->json_path ? fopen(opt->json_path, "we") : stdout;
	json_t *whole;
	int rc;

	if (!to) {
		warn("%s", opt->json_path);
		return -errno;
	}
	whole = json_pack("{s:s, s:i, s:s, s:s, s:i, s:i, s:o, s:o, s:o, s:o}", "format",
			  "weft-scale", "format_version", 1, "provider", fig->config.provider,
			  "library", fig->config.library, "endpoints", (int)opt->endpoints,
			  "peers", (int)opt->peers, "endpoint_bytes",
			  memory_object(&fig->endpoint), "pair_bytes", memory_object(&fig->pair),
			  "idle_one_ns", times_array(fig->few_ns, opt->rounds), "idle_many_ns",
			  times_array(fig->many_ns, opt->rounds));
	if (opt->idle)
		json_object_set_new(whole, "idle_domain",
				    json_pack("{s:i, s:f, s:f}", "domains", (int)opt->idle,
					      "wakes", fig->idle.wakes, "cpu", fig->idle.cpu));
	rc = json_dumpf(whole, to, JSON_REAL_PRECISION(REAL_DIGITS)) || fputc('\n', to) == EOF;
	json_decref(whole);
	if (to == stdout ? fflush(to) : fclose(to))
		rc = -EIO;
	if (rc)
		warnx("%s: cannot write it", opt->json_path ? opt->json_path : "JSON");
	return rc;
}

/* Where 1,024 descriptors are too few, it is not for the tool to fail. */
static void raise_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

int weft_scale(int argc, char **argv)
{
	struct scale_figures figures;
	struct scale_options opt;
	int status;

	parse(&opt, argc, argv);
	raise_limit();
	status = scale_measure(&opt, &figures);
	if (status)
		return status;
	if (!opt.want_json || opt.json_path)
		print_text(&opt, &figures);
	if (opt.want_json && write_json(&opt, &figures))
		status = EXIT_FAILURE;
	free(figures.few_ns);
	free(figures.many_ns);
	return status;
}
