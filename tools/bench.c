/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * 'weft bench': its options, and where the two sides run. What a side does
 * is in bench_side.c, the comparison of two configurations in versus.c.
 */
#define _GNU_SOURCE
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
#define CONNECT_WAIT_MS 10000

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
	       "ordinary malloc memory that together exceed the second-level cache. Server and\n"
	       "client need the same options.\n",
	       DEFAULT_ROUNDS, DEFAULT_TIMEOUT, OOB_PORT);
}

static unsigned number(const char *text, const char *what, unsigned min, unsigned max)
{
	char *end;
	unsigned long value = strtoul(text, &end, 10);

	if (!*text || *end || *text == '-' || value < min || value > max)
		errx(WEFT_EXIT_USAGE, "%s: '%s' is not a number from %u to %u", what, text, min,
		     max);
	return (unsigned)value;
}

static void set_messages(struct bench_options *opt, const char *text)
{
	if (!strcmp(text, "tagged"))
		opt->channel.tagged = true;
	else if (!strcmp(text, "msg"))
		opt->channel.tagged = false;
	else
		errx(WEFT_EXIT_USAGE, "messages are 'tagged' or 'msg', not '%s'", text);
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
		opt->channel.provider = arg;
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
		set_messages(opt, arg);
		break;
	case 'S':
		if (sizes_parse(arg, &opt->sizes))
			errx(WEFT_EXIT_USAGE, "'%s' is not a list of sizes like 8,64k,1M", arg);
		break;
	case 't':
		opt->tests = figure_tests_parse(arg);
		if (!opt->tests)
			errx(WEFT_EXIT_USAGE, "'%s' is not a list of lat,bw,rate", arg);
		break;
	case 'r':
		opt->rounds = number(arg, "rounds", 1, 1000000);
		break;
	case 'i':
		opt->iterations = number(arg, "iterations", 1, 1000000000);
		break;
	case 'c':
		opt->verify = true;
		break;
	case 'l':
		opt->server = true;
		break;
	case 'P':
		opt->port = number(arg, "port", 1, 65535);
		break;
	case OPT_JSON:
		opt->json = true;
		break;
	case OPT_CPUS:
		opt->has_cpus = !pair_cpus_parse(arg, opt->cpus);
		if (!opt->has_cpus)
			errx(WEFT_EXIT_USAGE, "'%s' is not two cpu numbers like 0,1", arg);
		break;
	case OPT_NO_INJECT:
		opt->channel.no_inject = true;
		break;
	case OPT_PROGRESS:
		set_progress(opt, arg);
		break;
	case OPT_TIMEOUT:
		opt->channel.timeout_s = number(arg, "timeout", 1, 86400);
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

	opt->channel.tagged = true;
	opt->channel.timeout_s = DEFAULT_TIMEOUT;
	opt->tests = figure_tests_parse("all");
	opt->rounds = DEFAULT_ROUNDS;
	opt->port = OOB_PORT;
	sizes_parse(DEFAULT_SIZES, &opt->sizes);
	while ((c = getopt_long(argc, argv, "p:d:e:m:s:S:t:r:i:clP:h", longopts, NULL)) != -1)
		set_option(opt, c, optarg);
	if (optind < argc)
		opt->host = argv[optind++];
	if (optind < argc)
		errx(WEFT_EXIT_USAGE, "one HOST at most, not also '%s'", argv[optind]);
}

/* The client prints: it is where the person looks who started it last. */
static int run_remote(struct bench_options *opt)
{
	struct side side = { .rank = opt->server };
	int rc, status;

	if (opt->server)
		rc = oob_listen(&side.oob, opt->host, opt->port);
	else
		rc = oob_connect(&side.oob, opt->host, opt->port, CONNECT_WAIT_MS);
	if (rc)
		return EXIT_FAILURE;
	status = bench_side(&side, opt);
	oob_close(&side.oob);
	return status;
}

int weft_bench(int argc, char **argv)
{
	struct bench_options opt = { 0 };

	parse(&opt, argc, argv);
	if (opt.server || opt.host)
		return run_remote(&opt);
	return pair_run(opt.has_cpus ? opt.cpus : NULL, bench_side, &opt);
}
