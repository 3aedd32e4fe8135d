/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * 'weft bench': its options, and where the two sides run. What a side does
 * is in bench_side.c, the comparison of two configurations in versus.c.
 */
#define _GNU_SOURCE
#include "arguments.h"
#include "bench.h"
#include "figures.h"
#include "weft.h"

#include <err.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_SIZES	"8,64,1k,4k,64k,1M,4M"
#define DEFAULT_ROUNDS	21
#define DEFAULT_TIMEOUT 30

enum {
	OPT_JSON = 256,
	OPT_CPUS,
	OPT_NO_INJECT,
	OPT_PROGRESS,
	OPT_TIMEOUT,
	OPT_DRIVEN,
};

static const struct option longopts[] = {
	{ "provider", required_argument, NULL, 'p' },
	{ "domain", required_argument, NULL, 'd' },
	{ "endpoint", required_argument, NULL, 'e' },
	{ "messages", required_argument, NULL, 'm' },
	{ "source", required_argument, NULL, 's' },
	{ "sizes", required_argument, NULL, 'S' },
	{ "tests", required_argument, NULL, 't' },
	{ "rounds", required_argument, NULL, 'r' },
	{ "iterations", required_argument, NULL, 'i' },
	{ "check", no_argument, NULL, 'c' },
	{ "listen", no_argument, NULL, 'l' },
	{ "port", required_argument, NULL, 'P' },
	{ "json", no_argument, NULL, OPT_JSON },
	{ "cpus", required_argument, NULL, OPT_CPUS },
	{ "no-inject", no_argument, NULL, OPT_NO_INJECT },
	{ "progress", required_argument, NULL, OPT_PROGRESS },
	{ "timeout", required_argument, NULL, OPT_TIMEOUT },
	{ "driven", no_argument, NULL, OPT_DRIVEN },
	{ "help", no_argument, NULL, 'h' },
	{ 0 },
};

static void usage(void)
{
	printf("Usage: weft bench [OPTIONS]              two processes on this machine\n"
	       "       weft bench [OPTIONS] --listen     wait for the other side\n"
	       "       weft bench [OPTIONS] HOST         be the other side, and print\n"
	       "\n"
	       "Measures latency, bandwidth and message rate of a libfabric provider over\n"
	       "reliable datagram endpoints. Every figure is the median of many rounds with\n"
	       "the 10th and the 90th percentile; beside it stands the raw latency of one cache\n"
	       "line between the two cores, taken right before: it is the floor, and it moves\n"
	       "with the machine.\n"
	       "\n"
	       "  -p, --provider=NAME    provider; default: the first that answers\n"
	       "  -d, --domain=NAME      domain of the provider\n"
	       "  -s, --source=ADDR      local address to use\n"
	       "  -e, --endpoint=rdm     endpoint type; rdm is the only one\n"
	       "  -m, --messages=KIND    tagged (default) or msg\n"
	       "  -S, --sizes=LIST       message sizes, \"8,64k,1M\" or \"8:1M\" for every doubling;\n"
	       "                         default: " DEFAULT_SIZES "\n"
	       "  -t, --tests=LIST       of lat,bw,rate; default: all\n"
	       "  -r, --rounds=N         samples per figure; default: %u\n"
	       "  -i, --iterations=N     messages per sample; default: by size\n"
	       "  -c, --check            fill and verify every byte (costs time that is counted)\n"
	       "      --cpus=A,B         the two cores; default: the first two\n"
	       "      --no-inject        never use fi_inject for small messages\n"
	       "      --progress=MODE    manual or auto; default: the provider's\n"
	       "      --timeout=SECONDS  for any one message; default: %u\n"
	       "      --json             print JSON, with every sample\n"
	       "  -l, --listen           be the server, on the port below\n"
	       "  -P, --port=PORT        TCP port where server and client meet; default: %u\n"
	       "  -h, --help             this text\n"
	       "\n"
	       "The processes are pinned. From 64 KiB up messages rotate through buffers of\n"
	       "ordinary malloc memory that together exceed the second-level cache. A server does\n"
	       "what its client was told to; it needs its own -p, -d, -s only to differ.\n",
	       DEFAULT_ROUNDS, DEFAULT_TIMEOUT, OOB_PORT);
}

static void set_progress(struct bench_options *opt, const char *text)
{
	if (!strcmp(text, "manual"))
		opt->channel.progress = FI_PROGRESS_MANUAL;
	else if (!strcmp(text, "auto"))
		opt->channel.progress = FI_PROGRESS_AUTO;
	else
		errx(WEFT_EXIT_USAGE, "progress is 'manual' or 'auto', not '%s'", text);
}

static void set_option(struct bench_options *opt, int c, const char *arg)
{
	switch (c) {
	case 'p':
		argument_provider(arg, &opt->plan);
		break;
	case 'd':
		opt->channel.domain = arg;
		break;
	case 's':
		opt->channel.source = arg;
		break;
	case 'e':
		if (strcmp(arg, "rdm"))
			errx(WEFT_EXIT_USAGE, "endpoints are 'rdm', not '%s'", arg);
		break;
	case 'm':
		opt->plan.tagged = argument_tagged(arg);
		break;
	case 'S':
		argument_sizes(arg, &opt->plan.sizes);
		break;
	case 't':
		opt->plan.tests = figure_tests_parse(arg);
		if (!opt->plan.tests)
			errx(WEFT_EXIT_USAGE, "'%s' is not a list of lat,bw,rate", arg);
		break;
	case 'r':
		opt->plan.rounds = argument_number(arg, "rounds", 1, 1000000);
		break;
	case 'i':
		opt->plan.iterations = argument_number(arg, "iterations", 1, 1000000000);
		break;
	case 'c':
		opt->plan.verify = true;
		break;
	case 'l':
		opt->place.local = false;
		break;
	case 'P':
		opt->place.port = argument_number(arg, "port", 1, 65535);
		break;
	case OPT_JSON:
		opt->json = true;
		break;
	case OPT_CPUS:
		argument_cpus(arg, &opt->place);
		break;
	case OPT_NO_INJECT:
		opt->channel.no_inject = true;
		break;
	case OPT_PROGRESS:
		set_progress(opt, arg);
		break;
	case OPT_TIMEOUT:
		opt->channel.timeout_s = argument_number(arg, "timeout", 1, 86400);
		break;
	case OPT_DRIVEN:
		opt->driven = true;
		break;
	case 'h':
		usage();
		exit(EXIT_SUCCESS);
	default:
		fprintf(stderr, "'weft bench --help' lists the options\n");
		exit(WEFT_EXIT_USAGE);
	}
}

static void parse(struct bench_options *opt, int argc, char **argv)
{
	int c;

	opt->place.local = true;
	opt->plan.tagged = true;
	opt->channel.timeout_s = DEFAULT_TIMEOUT;
	opt->plan.tests = figure_tests_parse("all");
	opt->plan.rounds = DEFAULT_ROUNDS;
	opt->place.port = OOB_PORT;
	argument_sizes(DEFAULT_SIZES, &opt->plan.sizes);
	while ((c = getopt_long(argc, argv, "p:d:e:m:s:S:t:r:i:clP:h", longopts, NULL)) != -1)
		set_option(opt, c, optarg);
	opt->place.host = argument_host(argc, argv, optind);
	if (opt->place.host && !opt->place.local)
		errx(WEFT_EXIT_USAGE, "a server (--listen) takes no HOST");
	if (opt->place.host)
		opt->place.local = false;
}

int weft_bench(int argc, char **argv)
{
	struct bench_options opt = { 0 };

	parse(&opt, argc, argv);
	return place_run(&opt.place, bench_side, &opt);
}
