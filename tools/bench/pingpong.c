/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * 'weft pingpong': the first thing to run on a new machine. Two processes
 * exchange messages of every size and say how long that took: on two hosts as
 * server and client, or both here with --fork.
 */
#define _GNU_SOURCE
#include "arguments.h"
#include "datagrams.h"
#include "traffic.h"
#include "weft.h"

#include <err.h>
#include <getopt.h>
#include <rdma/fi_errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_SIZES	   "64,256,1k,4k,64k,1M"
#define ALL_SIZES	   "0,1:4M"
#define DEFAULT_ITERATIONS 100
#define DEFAULT_TIMEOUT	   30

struct pingpong_options {
	struct plan plan;
	struct place place;
	struct channel_options channel;
};

enum {
	OPT_FORK = 256,
};

static const struct option longopts[] = {
	ARGUMENT_OPTIONS,
	{ "sizes", required_argument, NULL, 'S' },
	{ "iterations", required_argument, NULL, 'I' },
	{ "fork", no_argument, NULL, OPT_FORK },
	{ "help", no_argument, NULL, 'h' },
	{ 0 },
};

static void usage(void)
{
	printf("Usage: weft pingpong [OPTIONS]           wait for a client\n"
	       "       weft pingpong [OPTIONS] HOST      connect to the server on HOST\n"
	       "       weft pingpong [OPTIONS] --fork    both sides on this machine\n"
	       "\n"
	       "Bounces messages between two processes and prints the time per message.\n"
	       "\n"
	       "  -p, --provider=NAME   provider; default: the first that answers\n"
	       "  -d, --domain=NAME     domain of the provider\n"
	       "  -s, --source=ADDR     local address to use\n"
	       "  -e, --endpoint=TYPE   rdm (default), msg, which fi_connect connects, or dgram,\n"
	       "                        whose messages are sent again when they are lost\n"
	       "  -m, --messages=KIND   msg (default) or tagged\n"
	       "  -S, --sizes=LIST      message sizes, \"8,64k,1M\", \"8:1M\" for every doubling,\n"
	       "                        or \"all\"; default: " DEFAULT_SIZES "\n"
	       "  -I, --iterations=N    round trips per size; default: %u\n"
	       "  -c, --check           verify every byte\n"
	       "  -P, --port=PORT       TCP port of the server; default: %u\n"
	       "      --fork            run both sides here, each on a core of its own\n"
	       "      --cpus=A,B        the two cores for --fork; default: the first two\n"
	       "      --timeout=SECONDS for any one message; default: %u\n"
	       "  -h, --help            this text\n"
	       "\n"
	       "The client's -e, -m, -S, -I and -c apply; its -p too, unless the server has its own.\n"
	       "Exit status: 0 when every message arrived (and, with -c, was right).\n",
	       DEFAULT_ITERATIONS, OOB_PORT, DEFAULT_TIMEOUT);
}

static void set_option(struct pingpong_options *opt, int c, const char *arg)
{
	switch (c) {
	case 'S':
		argument_sizes(strcmp(arg, "all") ? arg : ALL_SIZES, &opt->plan.sizes);
		break;
	case 'I':
		opt->plan.iterations = argument_number(arg, "iterations", 1, 1000000000);
		break;
	case OPT_FORK:
		opt->place.local = true;
		break;
	case 'h':
		usage();
		exit(EXIT_SUCCESS);
	default:
		if (!argument_take(c, arg, &opt->plan, &opt->place, &opt->channel))
			argument_unknown("pingpong");
	}
}

static void parse(struct pingpong_options *opt, int argc, char **argv)
{
	int c;

	opt->plan.rounds = 1;
	opt->plan.iterations = DEFAULT_ITERATIONS;
	opt->place.port = OOB_PORT;
	opt->channel.timeout_s = DEFAULT_TIMEOUT;
	argument_sizes(DEFAULT_SIZES, &opt->plan.sizes);
	while ((c = getopt_long(argc, argv, "p:d:e:m:s:S:I:cP:h", longopts, NULL)) != -1)
		set_option(opt, c, optarg);
	opt->place.host = argument_host(argc, argv, optind);
	if (opt->place.host && opt->place.local)
		errx(WEFT_EXIT_USAGE, "--fork and HOST exclude each other");
}

static void print_line(size_t size, unsigned iterations, uint64_t ns, uint32_t again)
{
	double us = (double)ns / 1000 / (2.0 * iterations);
	char text[24];

	printf("%8s %10u %12.3f %14.2f %14.2f", sizes_format(size, text), iterations,
	       (double)ns / 1e6, us, us > 0 ? (double)size / us : 0);
	if (again)
		printf("  %u sent again", again);
	putchar('\n');
	fflush(stdout);
}

static int play(struct channel *ch, const struct plan *plan, size_t size)
{
	struct traffic tr;
	uint64_t ns;
	int rc;

	rc = traffic_init(&tr, ch, size, plan->verify);
	/* Both sides have to be ready before either sends. */
	if (oob_barrier(&ch->side->oob, rc) && !rc)
		rc = -FI_ECONNABORTED;
	if (!rc)
		rc = traffic_pingpong(&tr, plan->iterations, 0, &ns);
	if (!rc && !ch->side->rank)
		print_line(size, plan->iterations, ns, 0);
	traffic_fini(&tr);
	return rc;
}

static int play_all(struct channel *ch, const struct plan *plan)
{
	int rc = 0;

	for (size_t i = 0; i < plan->sizes.cnt && !rc; i++)
		if (plan->sizes.len[i] <= ch->limits.max_message)
			rc = play(ch, plan, plan->sizes.len[i]);
	return rc;
}

/* Bytes of the longest message of the plan that the provider can send. */
static size_t longest(const struct channel *ch, const struct plan *plan)
{
	size_t room = 0;

	for (size_t i = 0; i < plan->sizes.cnt; i++)
		if (plan->sizes.len[i] <= ch->limits.max_message && plan->sizes.len[i] > room)
			room = plan->sizes.len[i];
	return room;
}

static int play_datagrams(struct channel *ch, const struct plan *plan)
{
	struct datagrams d;
	uint32_t again;
	uint64_t ns;
	int rc;

	rc = datagrams_open(&d, ch, longest(ch, plan), plan->verify);
	if (oob_barrier(&ch->side->oob, rc) && !rc) {
		datagrams_close(&d);
		rc = -FI_ECONNABORTED;
	}
	if (rc)
		return rc;
	for (size_t i = 0; i < plan->sizes.cnt && !rc; i++) {
		size_t size = plan->sizes.len[i];

		if (size > ch->limits.max_message)
			continue;
		rc = datagrams_bounce(&d, size, plan->iterations, &ns, &again);
		if (!rc && !ch->side->rank)
			print_line(size, plan->iterations, ns, again);
	}
	datagrams_close(&d);
	return rc;
}

static int pingpong_side(struct side *side, void *arg)
{
	struct pingpong_options *opt = arg;
	struct plan plan = opt->plan;
	struct channel ch;
	int rc;

	rc = plan_agree(side, &plan);
	if (!rc)
		rc = channel_open(&ch, &plan, &opt->channel, side);
	if (rc)
		return EXIT_FAILURE;
	if (!side->rank)
		printf("provider %s, domain %s, %s messages%s\n%8s %10s %12s %14s %14s\n",
		       ch.limits.provider, ch.info->domain_attr->name,
		       plan.tagged ? "tagged" : "plain", plan.verify ? ", verified" : "",
		       "size", "trips", "total ms", "us one way", "MB/s");
	rc = plan.endpoint == PLAN_DGRAM ? play_datagrams(&ch, &plan) : play_all(&ch, &plan);
	channel_close(&ch);
	return rc ? EXIT_FAILURE : EXIT_SUCCESS;
}

int weft_pingpong(int argc, char **argv)
{
	struct pingpong_options opt = { 0 };

	parse(&opt, argc, argv);
	return place_run(&opt.place, pingpong_side, &opt);
}
