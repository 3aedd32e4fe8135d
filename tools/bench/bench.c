/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * 'weft bench': its options, and where the two sides run. What a side does
 * is in bench_side.c, the comparison of two configurations in compare.c.
 */
#define _GNU_SOURCE
#include "arguments.h"
#include "bench.h"
#include "figures.h"
#include "refuse.h"
#include "weft.h"

#include <err.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_SIZES	 "8,64,1k,4k,64k,1M,4M"
#define DEFAULT_TESTS	 "lat,bw,rate"
#define BTL_TESTS	 "put,get,fetch,puts"
#define DEFAULT_ROUNDS	 21
#define DEFAULT_TIMEOUT	 30
#define DEFAULT_RESTARTS 3

enum {
	OPT_JSON = 256,
	OPT_PLOT,
	OPT_REFUSE,
	OPT_NO_INJECT,
	OPT_MEM,
	OPT_BTL,
	OPT_WARM,
	OPT_PROGRESS,
	OPT_WAIT,
	OPT_WORKER,
	OPT_LIBRARY,
	OPT_VS_LIBRARY,
	OPT_VS_PROVIDER,
	OPT_VS_MALLOC,
	OPT_VS_PROGRAM,
	OPT_RESTARTS,
	OPT_PAIRS,
	OPT_FAIL_IF_SLOWER,
};

static const struct option longopts[] = {
	ARGUMENT_OPTIONS,
	{ "sizes", required_argument, NULL, 'S' },
	{ "tests", required_argument, NULL, 't' },
	{ "rounds", required_argument, NULL, 'r' },
	{ "iterations", required_argument, NULL, 'i' },
	{ "listen", no_argument, NULL, 'l' },
	{ "json", optional_argument, NULL, OPT_JSON },
	{ "plot", required_argument, NULL, OPT_PLOT },
	{ "realtime", no_argument, NULL, ARGUMENT_REALTIME },
	{ "refuse", required_argument, NULL, OPT_REFUSE },
	{ "no-inject", no_argument, NULL, OPT_NO_INJECT },
	{ "mem", no_argument, NULL, OPT_MEM },
	{ "btl", no_argument, NULL, OPT_BTL },
	{ "warm", no_argument, NULL, OPT_WARM },
	{ "progress", required_argument, NULL, OPT_PROGRESS },
	{ "wait", required_argument, NULL, OPT_WAIT },
	{ "worker", required_argument, NULL, OPT_WORKER },
	{ "library", required_argument, NULL, OPT_LIBRARY },
	{ "vs-library", required_argument, NULL, OPT_VS_LIBRARY },
	{ "vs-provider", required_argument, NULL, OPT_VS_PROVIDER },
	{ "vs-malloc", no_argument, NULL, OPT_VS_MALLOC },
	{ "vs-program", required_argument, NULL, OPT_VS_PROGRAM },
	{ "restarts", required_argument, NULL, OPT_RESTARTS },
	{ "pairs", required_argument, NULL, OPT_PAIRS },
	{ "fail-if-slower", no_argument, NULL, OPT_FAIL_IF_SLOWER },
	{ "help", no_argument, NULL, 'h' },
	{ 0 },
};

static void usage_tests(void)
{
	printf("\n"
	       "Tests; \"all\" is all of these but passive:\n"
	       "  lat, bw, rate                  messages: latency, bandwidth, message rate\n"
	       "  write, read, writebw, readbw   RMA: latency, bandwidth\n"
	       "  atomic, add                    additions that return the old value, and that do not\n"
	       "  rpc                            a request and its answer; the server reads a request\n"
	       "                                 above 4 KiB from registered memory\n"
	       "  register                       fi_mr_reg and fi_close\n"
	       "  first                          the first message of its size between new endpoints\n"
	       "  cpu                            processor time of bw, of both sides; with --wait\n"
	       "  away                           lat between sides that compute after each send\n"
	       "  passive                        read of a target that makes no calls, with\n"
	       "                                 automatic progress (--progress=auto)\n"
	       "Tests of --btl; " BTL_TESTS " are its default:\n"
	       "  put, get, fetch                one operation and a flush\n"
	       "  puts                           puts, many to a flush\n"
	       "  puts1, puts2                   the same into memory of a process that sleeps, by one\n"
	       "                                 thread, and by two with a context and a core each\n");
}

static void usage_comparison(void)
{
	printf("\n"
	       "Comparison; A has the options above:\n"
	       "      --library=DIR      A uses the libfabric.so.1 in DIR\n"
	       "      --vs-library=DIR   B uses the libfabric.so.1 in DIR; default: as A\n"
	       "      --vs-provider=NAME B uses this provider; default: as A\n"
	       "      --vs-malloc        B has buffers of ordinary memory, in spite of --mem\n"
	       "      --vs-program=FILE  B is measured by FILE, over something else than libfabric\n"
	       "      --restarts=N       start all processes N times; default: %u\n"
	       "      --pairs=N          A and B are N pairs each that run their rounds at the same\n"
	       "                         time on the same two cores; figures are their means\n"
	       "      --fail-if-slower   exit status 1 if A is slower beyond the A/A spread\n"
	       "A, B, and A once more take turns, a round each. The result is the ratio of each\n"
	       "pair of rounds; the difference between the two As is the noise.\n"
	       "\n",
	       DEFAULT_RESTARTS);
}

static void usage(void)
{
	printf("Usage: weft bench [OPTIONS]              two processes on this machine\n"
	       "       weft bench [OPTIONS] --listen     wait for the other side\n"
	       "       weft bench [OPTIONS] HOST         connect to that side on HOST, and measure\n"
	       "\n"
	       "Measures latency, bandwidth and message rate of a libfabric provider over\n"
	       "reliable endpoints. Every figure is the median of many rounds with\n"
	       "the 10th and the 90th percentile; beside it is the raw latency of one cache\n"
	       "line between the two cores, taken right before: it is the floor, and it moves\n"
	       "with the machine.\n"
	       "\n"
	       "  -p, --provider=NAME    provider; default: the first that answers\n"
	       "  -d, --domain=NAME      domain of the provider\n"
	       "  -s, --source=ADDR      local address to use\n"
	       "  -e, --endpoint=TYPE    rdm (default) or msg, which fi_connect connects\n"
	       "  -m, --messages=KIND    tagged (default) or msg\n"
	       "  -S, --sizes=LIST       message sizes, \"8,64k,1M\" or \"8:1M\" for every doubling;\n"
	       "                         default: " DEFAULT_SIZES "\n"
	       "  -t, --tests=LIST       of the tests below; default: " DEFAULT_TESTS
	       ". Each may have\n"
	       "                         sizes of its own: \"lat,rate@8,writebw@64k+1M\"\n"
	       "  -r, --rounds=N         samples per figure; default: %u\n"
	       "  -i, --iterations=N     messages per sample; default: by size\n"
	       "  -c, --check            fill and verify every byte (costs time that is counted)\n"
	       "      --cpus=A,B         the two cores; default: the first two\n"
	       "      --no-inject        never use fi_inject for small messages\n"
	       "      --warm             latency by one buffer in each direction, which the caches keep\n"
	       "      --mem              buffers are registered memory of the provider (weft/mem.h)\n"
	       "      --btl              measure one-sided operations of libweft-btl, over the provider\n"
	       "      --progress=MODE    manual or auto; default: the provider's\n"
	       "      --wait=HOW         poll (default); fd: sleep in poll(2) of the queue's descriptor;\n"
	       "                         sread: in fi_cq_sread. Tests of messages only\n"
	       "      --timeout=SECONDS  for any one message; default: %u\n"
	       "      --realtime         run before all other programs (SCHED_FIFO), so that a busy\n"
	       "                         machine disturbs less; short rounds only, it starves them\n"
	       "      --refuse=CALLS     have the kernel refuse process_vm, that is process_vm_readv\n"
	       "                         and process_vm_writev, to both sides, as containers do\n"
	       "      --json[=FILE]      one JSON object with every sample, instead of the table;\n"
	       "                         with FILE: there, beside the table\n"
	       "      --plot=FILE        draw the figures into FILE, as SVG\n"
	       "  -l, --listen           be the server, on the port below\n"
	       "  -P, --port=PORT        TCP port of the server; default: %u\n"
	       "  -h, --help             this text\n",
	       DEFAULT_ROUNDS, DEFAULT_TIMEOUT, OOB_PORT);
	usage_tests();
	usage_comparison();
	printf("On a terminal one line shows the progress; 'man weft-bench' describes the JSON.\n"
	       "The processes are pinned. From 64 KiB up messages rotate through buffers of\n"
	       "ordinary malloc memory that together exceed the second-level cache. A server has\n"
	       "the options of its client; give it -p, -d, -s only if they differ.\n");
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

/* Where results go. Returns false for other options. */
static bool set_output_option(struct bench_options *opt, int c, const char *arg)
{
	switch (c) {
	case OPT_JSON:
		opt->out.want_json = true;
		opt->out.json_path = arg;
		return true;
	case OPT_PLOT:
		opt->out.plot_path = arg;
		return true;
	default:
		return false;
	}
}

/* Without its libfabric.so.1 the loader would take another one. */
static const char *library_of(const char *arg)
{
	char dir[PATH_MAX];

	argument_library(arg, dir);
	return arg;
}

static void set_compare_option(struct bench_options *opt, int c, const char *arg)
{
	switch (c) {
	case OPT_LIBRARY:
		opt->comparison.library[0] = library_of(arg);
		opt->compare = true;
		break;
	case OPT_VS_LIBRARY:
		opt->comparison.library[1] = library_of(arg);
		opt->compare = true;
		break;
	case OPT_VS_PROVIDER:
		opt->vs_provider = arg;
		opt->compare = true;
		break;
	case OPT_VS_PROGRAM:
		opt->comparison.program = arg;
		opt->compare = true;
		break;
	case OPT_VS_MALLOC:
		opt->vs_malloc = true;
		opt->compare = true;
		break;
	case OPT_RESTARTS:
		opt->comparison.restarts = argument_number(arg, "restarts", 1, 1000);
		break;
	case OPT_PAIRS:
		opt->comparison.pairs = argument_number(arg, "pairs", 1, COMPARE_PAIRS_MAX);
		opt->compare = true;
		break;
	case OPT_FAIL_IF_SLOWER:
		opt->comparison.fail_if_slower = true;
		break;
	case OPT_WORKER:
		opt->is_worker = true;
		opt->worker_b = !strcmp(arg, COMPARE_B);
		break;
	default:
		argument_unknown("bench");
	}
}

static void set_option(struct bench_options *opt, int c, const char *arg)
{
	switch (c) {
	case 'S':
		argument_sizes(arg, &opt->plan.sizes);
		break;
	case 't':
		opt->tests = arg;
		break;
	case 'r':
		opt->plan.rounds = argument_number(arg, "rounds", 1, 1000000);
		break;
	case 'i':
		opt->plan.iterations = argument_number(arg, "iterations", 1, 1000000000);
		break;
	case 'l':
		opt->place.local = false;
		break;
	case OPT_REFUSE:
		opt->refused = arg;
		if (!refuse_is_known(arg))
			errx(WEFT_EXIT_USAGE, "'%s' can be refused, not '%s'",
			     REFUSE_PROCESS_VM, arg);
		break;
	case OPT_NO_INJECT:
		opt->channel.no_inject = true;
		break;
	case OPT_WARM:
		opt->plan.warm = true;
		break;
	case OPT_MEM:
		opt->channel.mem = true;
		break;
	case OPT_BTL:
		opt->btl = true;
		break;
	case OPT_PROGRESS:
		set_progress(opt, arg);
		break;
	case OPT_WAIT:
		opt->plan.wait = argument_wait(arg);
		break;
	case 'h':
		usage();
		exit(EXIT_SUCCESS);
	default:
		if (!argument_take(c, arg, &opt->plan, &opt->place, &opt->channel) &&
		    !set_output_option(opt, c, arg))
			set_compare_option(opt, c, arg);
	}
}

/* Ends the process where options do not go together. */
static void check(const struct bench_options *opt)
{
	bool is_passive = opt->plan.tests & FIGURE_BIT(FIGURE_PASSIVE);
	unsigned others = opt->btl ? ~FIGURES_BTL : FIGURES_BTL;

	if (is_passive && opt->channel.progress != FI_PROGRESS_AUTO)
		errx(WEFT_EXIT_USAGE,
		     "test 'passive' has a target that makes no calls: it needs --progress=auto");
	if (opt->plan.tests & others)
		errx(WEFT_EXIT_USAGE,
		     "tests with --btl are of %s,puts1,puts2, and these need it", BTL_TESTS);
	if (opt->plan.endpoint == PLAN_DGRAM)
		errx(WEFT_EXIT_USAGE,
		     "tests are of endpoints that lose nothing: 'rdm' or 'msg'");
	if (is_passive && opt->place.realtime)
		errx(WEFT_EXIT_USAGE,
		     "test 'passive' has a target that polls, which under --realtime no thread of its provider "
		     "would get the core from");
	if (opt->plan.wait && opt->plan.tests & ~FIGURES_MESSAGES)
		errx(WEFT_EXIT_USAGE,
		     "tests with --wait are of lat,bw,rate,away,cpu: targets of the "
		     "others poll their memory");
	if (opt->compare && (opt->place.host || !opt->place.local))
		errx(WEFT_EXIT_USAGE, "a comparison runs on this machine: no HOST, no --listen");
	if (opt->place.host && !opt->place.local)
		errx(WEFT_EXIT_USAGE, "--listen and HOST exclude each other");
}

static void parse(struct bench_options *opt, int argc, char **argv)
{
	int c;

	opt->place.local = true;
	opt->plan.tagged = true;
	opt->channel.timeout_s = DEFAULT_TIMEOUT;
	opt->plan.rounds = DEFAULT_ROUNDS;
	opt->comparison.restarts = DEFAULT_RESTARTS;
	opt->comparison.pairs = 1;
	opt->place.port = OOB_PORT;
	argument_sizes(DEFAULT_SIZES, &opt->plan.sizes);
	while ((c = getopt_long(argc, argv, "p:d:e:m:s:S:t:r:i:clP:h", longopts, NULL)) != -1)
		set_option(opt, c, optarg);
	if (!opt->tests)
		opt->tests = opt->btl ? BTL_TESTS : DEFAULT_TESTS;
	/* The sizes of a test are known only after both lists were read. */
	if (plan_tests_parse(opt->tests, &opt->plan))
		errx(WEFT_EXIT_USAGE,
		     "'%s' is not a list of lat,bw,rate,write,read,writebw,readbw,atomic,add,rpc,"
		     "register,first,away,cpu,passive,put,get,fetch,puts,puts1,puts2, each with @SIZE[+SIZE...] or without",
		     opt->tests);
	opt->place.host = argument_host(argc, argv, optind);
	check(opt);
	if (opt->worker_b && opt->vs_malloc)
		opt->channel.mem = false;
	if (opt->worker_b && opt->vs_provider)
		argument_provider(opt->vs_provider, &opt->plan);
	opt->comparison.refused = opt->refused;
	opt->comparison.rounds = opt->plan.rounds;
	opt->comparison.interface = opt->plan.tagged ? "tagged" : "msg";
	if (opt->comparison.restarts > opt->plan.rounds)
		opt->comparison.restarts = opt->plan.rounds;
	if (opt->place.host)
		opt->place.local = false;
}

int weft_bench(int argc, char **argv)
{
	struct bench_options opt = { 0 };
	int status;

	/* Before getopt puts them in another order. */
	opt.command = calloc((size_t)argc + 1, sizeof(*opt.command));
	if (!opt.command)
		err(EXIT_FAILURE, "bench");
	memcpy(opt.command, argv, (size_t)argc * sizeof(*argv));
	opt.comparison.command = opt.command;
	opt.comparison.out = &opt.out;
	parse(&opt, argc, argv);
	/* The side that prints is here, unless a comparison or a client does that. */
	if (!opt.is_worker && (opt.place.local || opt.place.host))
		results_outputs_open(&opt.out);
	/* The processes of a comparison are given the option as well. */
	if (opt.refused && (opt.is_worker || !opt.compare) && refuse_calls(opt.refused))
		status = EXIT_FAILURE;
	else if (opt.compare && !opt.is_worker)
		status = compare_run(&opt.comparison);
	else
		status = place_run(&opt.place, bench_side, &opt);
	free(opt.command);
	return status;
}
