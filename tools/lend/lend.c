/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * 'weft lend': the options of a lender; devices/lender/ is what it does.
 */
#define _GNU_SOURCE
#include "arguments.h"
#include "lend.h"
#include "message.h"
#include "place.h"
#include "weft.h"

#include <err.h>
#include <getopt.h>
#include <libgen.h>
#include <string.h>
#include <sys/stat.h>

enum {
	OPT_SOCKET = 256,
	OPT_STATE,
	OPT_MODE,
	OPT_FABRIC,
	OPT_ADDRESS,
	OPT_PORT,
	OPT_DIRECTORY,
};

static const struct option longopts[] = {
	{ "socket", required_argument, NULL, OPT_SOCKET },
	{ "state", required_argument, NULL, OPT_STATE },
	{ "mode", required_argument, NULL, OPT_MODE },
	{ "fabric", optional_argument, NULL, OPT_FABRIC },
	{ "address", required_argument, NULL, OPT_ADDRESS },
	{ "port", required_argument, NULL, OPT_PORT },
	{ "directory", required_argument, NULL, OPT_DIRECTORY },
	{ "help", no_argument, NULL, 'h' },
	{ 0 },
};

static void usage(void)
{
	printf("Usage: weft lend [OPTIONS] SLOT...\n"
	       "\n"
	       "Owns the NVMe controllers at SLOTs (weft-nvmed --slot=SLOT) and lends them to other\n"
	       "processes, which use them without its help ('weft devices', weft/device.h).\n"
	       "\n"
	       "      --socket=PATH  where borrowers connect; default: %s for root, else\n"
	       "                     weft/lender in $XDG_RUNTIME_DIR\n"
	       "      --mode=OCTAL   permissions of the socket: who may write it may borrow;\n"
	       "                     default: 0600\n"
	       "      --state=DIR    where leases are kept in mind; default: %s for root,\n"
	       "                     else weft in $XDG_STATE_HOME or ~/.local/state\n"
	       "      --fabric[=PROVIDER]  lend to other hosts too, over this OFI provider; default:\n"
	       "                     tcp. Whoever reaches it may borrow\n"
	       "      --address=HOST  where it does; default: any\n"
	       "      --port=NUMBER  and at which port; default: " LEASE_PORT "\n"
	       "      --directory=URLS\n"
	       "                     members of a directory (etcd) at which it registers:\n"
	       "                     http://HOST[:PORT], with commas between\n"
	       "  -h, --help         this text\n"
	       "\n"
	       "Leases go on when it ends, until their time runs out; the next 'weft lend' of the\n"
	       "same controllers and DIR has them.\n",
	       LEASE_SYSTEM_SOCKET, LEASE_SYSTEM_STATE);
}

static mode_t argument_mode(const char *text)
{
	char *end;
	unsigned long mode = strtoul(text, &end, 8);

	if (!*text || *end || mode > 0777)
		errx(WEFT_EXIT_USAGE, "--mode takes permissions like 0660, not '%s'", text);
	return (mode_t)mode;
}

/* The folder of a socket that nobody has named. */
static void make_folder_of(const char *path)
{
	char folder[4096];

	snprintf(folder, sizeof(folder), "%s", path);
	mkdir(dirname(folder), 0755);
}

static void parse(struct lend_options *opt, int argc, char **argv)
{
	int c;

	while ((c = getopt_long(argc, argv, "h", longopts, NULL)) != -1) {
		switch (c) {
		case OPT_SOCKET:
			opt->socket = optarg;
			break;
		case OPT_STATE:
			opt->state = optarg;
			break;
		case OPT_MODE:
			opt->mode = argument_mode(optarg);
			break;
		case OPT_FABRIC:
			opt->door = true;
			opt->provider = optarg;
			break;
		case OPT_ADDRESS:
			opt->address = optarg;
			break;
		case OPT_PORT:
			opt->service = optarg;
			break;
		case OPT_DIRECTORY:
			opt->directory = optarg;
			break;
		case 'h':
			usage();
			exit(EXIT_SUCCESS);
		default:
			argument_unknown("lend");
		}
	}
	if (optind == argc)
		errx(WEFT_EXIT_USAGE, "needs a SLOT: the socket of a controller");
	if ((opt->address || opt->service) && !opt->door)
		errx(WEFT_EXIT_USAGE, "--address and --port are of --fabric");
	opt->slots = (const char *const *)argv + optind;
	opt->slot_cnt = (uint32_t)(argc - optind);
}

/* Where nobody has said */
static void take_own_places(struct lend_options *opt)
{
	static char own_socket[4096], own_state[4096];

	if (!opt->socket) {
		if (lease_own_socket(own_socket, sizeof(own_socket)))
			errx(EXIT_FAILURE, "XDG_RUNTIME_DIR is not set: name a --socket");
		make_folder_of(own_socket);
		opt->socket = own_socket;
	}
	if (!opt->state) {
		if (lease_own_state(own_state, sizeof(own_state)))
			errx(EXIT_FAILURE, "HOME is not set: name a --state");
		opt->state = own_state;
	}
}

int weft_lend(int argc, char **argv)
{
	struct lend_options opt = { .mode = 0600 };

	parse(&opt, argc, argv);
	take_own_places(&opt);
	return lend(&opt);
}
