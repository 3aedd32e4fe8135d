/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * 'weft copy': files of this host to another one, written straight into the pages of the files there by one-sided
 * operations of libweft-btl.
 */
#define _GNU_SOURCE
#include "arguments.h"
#include "copy.h"
#include "weft.h"

#include <err.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#define DEFAULT_TIMEOUT 30

enum {
	OPT_LISTEN = 256,
	OPT_KEEP,
	OPT_JSON,
	OPT_TIMEOUT,
};

static const struct option longopts[] = {
	{ "listen", required_argument, NULL, OPT_LISTEN },
	{ "keep", no_argument, NULL, OPT_KEEP },
	{ "provider", required_argument, NULL, 'p' },
	{ "domain", required_argument, NULL, 'd' },
	{ "port", required_argument, NULL, 'P' },
	{ "timeout", required_argument, NULL, OPT_TIMEOUT },
	{ "json", no_argument, NULL, OPT_JSON },
	{ "help", no_argument, NULL, 'h' },
	{ 0 },
};

static void usage(void)
{
	printf("Usage: weft copy [OPTIONS] --listen DIR      receive files into DIR\n"
	       "       weft copy [OPTIONS] FILE... HOST      send files to the receiver on HOST\n"
	       "\n"
	       "Copies files into the memory of a peer, which is the file there.\n"
	       "\n"
	       "      --listen=DIR      be the receiver: the files of one sender arrive in DIR\n"
	       "      --keep            go on with the next sender\n"
	       "  -p, --provider=NAME   provider; default: the first that answers\n"
	       "  -d, --domain=NAME     domain of the provider\n"
	       "  -P, --port=PORT       TCP port of the receiver; default: %u\n"
	       "      --timeout=SECONDS how long the other side may do nothing; default: %u\n"
	       "      --json            print an object in place of the last line\n"
	       "  -h, --help            this text\n"
	       "\n"
	       "The sender's -p applies to both sides, unless the receiver has its own. Whoever reaches\n"
	       "the port may write files into DIR.\n"
	       "Exit status: 0 when every file has arrived, 1 otherwise.\n",
	       OOB_PORT, DEFAULT_TIMEOUT);
}

/* The operands of a sender: files, and the host at their end. */
static void take_operands(struct copy_options *opt, int argc, char **argv)
{
	if (opt->dir) {
		if (optind < argc)
			errx(WEFT_EXIT_USAGE, "--listen takes no files, not also '%s'",
			     argv[optind]);
		return;
	}
	if (opt->keep)
		errx(WEFT_EXIT_USAGE, "--keep is the receiver's, with --listen");
	if (argc - optind < 2)
		errx(WEFT_EXIT_USAGE, "needs FILE... HOST, or --listen DIR");
	opt->files = argv + optind;
	opt->file_cnt = argc - optind - 1;
	opt->host = argv[argc - 1];
}

static void parse(struct copy_options *opt, int argc, char **argv)
{
	struct plan plan = { 0 };
	int c;

	while ((c = getopt_long(argc, argv, "p:d:P:h", longopts, NULL)) != -1) {
		switch (c) {
		case OPT_LISTEN:
			opt->dir = optarg;
			break;
		case OPT_KEEP:
			opt->keep = true;
			break;
		case 'p':
			argument_provider(optarg, &plan);
			opt->provider = optarg;
			break;
		case 'd':
			opt->domain = optarg;
			break;
		case 'P':
			opt->port = argument_number(optarg, "port", 1, 65535);
			break;
		case OPT_TIMEOUT:
			opt->timeout_s = argument_number(optarg, "timeout", 1, 86400);
			break;
		case OPT_JSON:
			opt->json = true;
			break;
		case 'h':
			usage();
			exit(EXIT_SUCCESS);
		default:
			argument_unknown("copy");
		}
	}
	take_operands(opt, argc, argv);
}

int weft_copy(int argc, char **argv)
{
	struct copy_options opt = { .port = OOB_PORT, .timeout_s = DEFAULT_TIMEOUT };

	parse(&opt, argc, argv);
	return opt.dir ? copy_receive(&opt) : copy_send(&opt);
}
