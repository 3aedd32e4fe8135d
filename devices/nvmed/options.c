/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The command line of weft-nvmed */
#define _GNU_SOURCE
#include "options.h"
#include "fnv.h"

#include <ctype.h>
#include <err.h>
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXIT_USAGE	    2
#define DEFAULT_QUEUES	    64u
#define DEFAULT_GRANULE	    (64u * 1024)
#define DEFAULT_BLOCK	    512u
#define DEFAULT_SPIN_US	    100u
#define DEFAULT_DEADLINE_MS 4000u

enum {
	OPT_SLOT = 256,
	OPT_MEMORY,
	OPT_FILE,
	OPT_VFIO,
	OPT_DEADLINE,
	OPT_DIRECT,
	OPT_SERIAL,
	OPT_QUEUES,
	OPT_CMB,
	OPT_GRANULE,
	OPT_BLOCK,
	OPT_READ_ONLY,
	OPT_SPIN,
	OPT_FABRIC,
	OPT_ADDRESS,
	OPT_BRIDGE,
};

static const struct option longopts[] = {
	{ "slot", required_argument, NULL, OPT_SLOT },
	{ "memory", required_argument, NULL, OPT_MEMORY },
	{ "file", required_argument, NULL, OPT_FILE },
	{ "vfio", required_argument, NULL, OPT_VFIO },
	{ "deadline", required_argument, NULL, OPT_DEADLINE },
	{ "direct", no_argument, NULL, OPT_DIRECT },
	{ "serial", required_argument, NULL, OPT_SERIAL },
	{ "queues", required_argument, NULL, OPT_QUEUES },
	{ "cmb", required_argument, NULL, OPT_CMB },
	{ "granule", required_argument, NULL, OPT_GRANULE },
	{ "block", required_argument, NULL, OPT_BLOCK },
	{ "read-only", no_argument, NULL, OPT_READ_ONLY },
	{ "spin", required_argument, NULL, OPT_SPIN },
	{ "fabric", optional_argument, NULL, OPT_FABRIC },
	{ "address", required_argument, NULL, OPT_ADDRESS },
	{ "bridge", required_argument, NULL, OPT_BRIDGE },
	{ "help", no_argument, NULL, 'h' },
	{ 0 },
};

static void usage(void)
{
	printf("Usage: weft-nvmed [OPTIONS] --slot=PATH --memory=SIZE     a namespace in memory\n"
	       "       weft-nvmed [OPTIONS] --slot=PATH --file=FILE       a namespace in a file\n"
	       "       weft-nvmed [OPTIONS] --slot=PATH --vfio=ADDRESS    that of a real controller\n"
	       "\n"
	       "Is an NVMe controller, in software and a process of its own.\n"
	       "\n"
	       "      --slot=PATH       socket at which its owner, a lender, attaches\n"
	       "      --memory=SIZE     bytes of the namespace, as in 64M or 1G\n"
	       "      --file=FILE       a file or block device that is the namespace\n"
	       "      --vfio=ADDRESS    a PCI function that is with vfio-pci, as in 0000:01:00.0\n"
	       "      --deadline=MSEC   how long a command of that may take, until it is reset;\n"
	       "                        default: %u\n"
	       "      --direct          borrowers, of this user alone, have queue pairs of that one itself,\n"
	       "                        and could do anything to it\n"
	       "      --serial=TEXT     serial number; default: one made of the file's or slot's path,\n"
	       "                        or that of the real controller\n"
	       "      --queues=NUMBER   queue pairs, 1 to %u; default: %u\n"
	       "      --cmb=SIZE        controller memory (CMB); default: none\n"
	       "      --granule=SIZE    in which pieces this can be lent; default: %uK\n"
	       "      --block=SIZE      bytes of a block, 512 or 4096; default: %u\n"
	       "      --read-only       refuse to write\n"
	       "      --spin=USEC       how long it looks for doorbells at most before it sleeps; default: %u\n"
	       "      --fabric[=PROVIDER]  serve borrowers of other hosts, over this OFI provider;\n"
	       "                        default: tcp. Whoever reaches it can talk to it\n"
	       "      --address=HOST    at which it does; default: any\n"
	       "      --bridge=ADDRESS  serve borrowers of another machine by memory that both have: a PCI\n"
	       "                        function (ivshmem), as in 0000:00:04.0, or a file that has it\n"
	       "  -h, --help            this text\n"
	       "\n"
	       "SIGTERM and SIGINT end it.\n"
	       "Exit status: 0 when a signal ended it, 1 when it can't begin.\n",
	       DEFAULT_DEADLINE_MS, NVMED_QUEUES_MAX, DEFAULT_QUEUES, DEFAULT_GRANULE / 1024,
	       DEFAULT_BLOCK, DEFAULT_SPIN_US);
}

/* A number with an optional k, m, g or t, powers of 1024. Returns 0 or -EINVAL */
static int size_parse(const char *text, uint64_t *len)
{
	static const char units[] = "kmgt";
	unsigned long long number;
	const char *unit;
	unsigned shift = 0;
	char *end;

	if (!isdigit((unsigned char)*text))
		return -EINVAL;
	errno = 0;
	number = strtoull(text, &end, 10);
	if (errno)
		return -EINVAL;
	if (*end) {
		unit = strchr(units, tolower((unsigned char)*end));
		if (!unit || !*unit || end[1])
			return -EINVAL;
		shift = 10 * (unsigned)(unit - units + 1);
	}
	if (number > (uint64_t)INT64_MAX >> shift)
		return -EINVAL;
	*len = (uint64_t)number << shift;
	return 0;
}

static uint64_t size_of(const char *text, const char *what, uint64_t multiple)
{
	uint64_t len;

	if (size_parse(text, &len))
		errx(EXIT_USAGE, "%s: a size, as in 64M or 1G, not '%s'", what, text);
	if (!len || len % multiple)
		errx(EXIT_USAGE, "%s: a multiple of %llu, not '%s'", what,
		     (unsigned long long)multiple, text);
	return len;
}

static uint32_t number_of(const char *text, const char *what, uint32_t min, uint32_t max)
{
	unsigned long number;
	char *end;

	errno = 0;
	number = strtoul(text, &end, 10);
	if (errno || !isdigit((unsigned char)*text) || *end || number < min || number > max)
		errx(EXIT_USAGE, "%s: a number from %u to %u, not '%s'", what, min, max, text);
	return (uint32_t)number;
}

static void take_serial(struct options *opt, const char *text)
{
	if (!*text || strlen(text) >= sizeof(opt->config.serial))
		errx(EXIT_USAGE, "--serial: 1 to %zu characters, not '%s'",
		     sizeof(opt->config.serial) - 1, text);
	for (const char *at = text; *at; at++)
		if (*at < ' ' || *at > '~')
			errx(EXIT_USAGE, "--serial: ASCII alone, not '%s'", text);
	strcpy(opt->config.serial, text);
}

/* The same in each run: of this host, and what names the namespace there */
static void make_serial(struct options *opt)
{
	char host[256] = "", *path = realpath(opt->file ? opt->file : opt->slot, NULL);
	const char *at = path ? path : opt->slot;
	uint64_t hash;

	gethostname(host, sizeof(host) - 1);
	hash = fnv_add(FNV_START, host, strlen(host));
	hash = fnv_add(hash, at, strlen(at));
	free(path);
	snprintf(opt->config.serial, sizeof(opt->config.serial), "WEFT%016llX",
		 (unsigned long long)hash);
}

static void take(struct options *opt, int c, const char *arg)
{
	switch (c) {
	case OPT_SLOT:
		opt->slot = arg;
		break;
	case OPT_MEMORY:
		opt->memory = size_of(arg, "--memory", NVME_PAGE);
		break;
	case OPT_FILE:
		opt->file = arg;
		break;
	case OPT_VFIO:
		opt->vfio = arg;
		break;
	case OPT_DEADLINE:
		opt->deadline_ms = number_of(arg, "--deadline", 1, 3600000);
		break;
	case OPT_DIRECT:
		opt->direct = true;
		break;
	case OPT_SERIAL:
		take_serial(opt, arg);
		break;
	case OPT_QUEUES:
		opt->config.queue_cnt = number_of(arg, "--queues", 1, NVMED_QUEUES_MAX);
		break;
	case OPT_CMB:
		opt->config.cmb_len = size_of(arg, "--cmb", NVME_PAGE);
		break;
	case OPT_GRANULE:
		opt->config.granule = size_of(arg, "--granule", NVME_PAGE);
		break;
	case OPT_BLOCK:
		opt->config.block = number_of(arg, "--block", 512, 4096);
		if (opt->config.block != 512 && opt->config.block != 4096)
			errx(EXIT_USAGE, "--block: 512 or 4096, not '%s'", arg);
		break;
	case OPT_READ_ONLY:
		opt->config.read_only = true;
		break;
	case OPT_SPIN:
		opt->config.spin_ns = number_of(arg, "--spin", 0, 1000000) * 1000ull;
		break;
	case OPT_FABRIC:
		opt->fabric = true;
		opt->provider = arg;
		break;
	case OPT_ADDRESS:
		opt->address = arg;
		break;
	case OPT_BRIDGE:
		opt->bridge = arg;
		break;
	case 'h':
		usage();
		exit(EXIT_SUCCESS);
	default:
		fprintf(stderr, "'weft-nvmed --help' lists the options.\n");
		exit(EXIT_USAGE);
	}
}

static void check(const struct options *opt)
{
	const struct nvmed_config *config = &opt->config;

	if (!opt->slot)
		errx(EXIT_USAGE, "needs --slot=PATH");
	if (!!opt->memory + !!opt->file + !!opt->vfio != 1)
		errx(EXIT_USAGE, "needs one of --memory=SIZE, --file=FILE and --vfio=ADDRESS");
	if (opt->vfio && config->cmb_len)
		errx(EXIT_USAGE, "--cmb: not with --vfio");
	if (opt->vfio && config->block)
		errx(EXIT_USAGE, "--block: not with --vfio");
	if (opt->deadline_ms && !opt->vfio)
		errx(EXIT_USAGE, "--deadline: with --vfio alone");
	if (opt->direct && !opt->vfio)
		errx(EXIT_USAGE, "--direct: with --vfio alone");
	if (opt->direct && opt->fabric)
		errx(EXIT_USAGE, "--direct: not with --fabric");
	if (opt->bridge && (opt->direct || opt->fabric || opt->file))
		errx(EXIT_USAGE, "--bridge: not with --direct, --fabric or --file");
	if (opt->address && !opt->fabric)
		errx(EXIT_USAGE, "--address is of --fabric");
	if (config->cmb_len % config->granule)
		errx(EXIT_USAGE, "--cmb: a multiple of --granule, %llu",
		     (unsigned long long)config->granule);
	if (config->cmb_len / config->granule > CMB_GRANULES_MAX)
		errx(EXIT_USAGE, "--cmb: at most %u times --granule", CMB_GRANULES_MAX);
}

/* What nobody has said, and a real controller does not say */
static void complete(struct options *opt)
{
	if (!opt->deadline_ms)
		opt->deadline_ms = DEFAULT_DEADLINE_MS;
	if (!opt->config.block)
		opt->config.block = DEFAULT_BLOCK;
	if (!*opt->config.serial && !opt->vfio)
		make_serial(opt);
}

void options_parse(struct options *opt, int argc, char **argv)
{
	int c;

	*opt = (struct options){ .config = { .queue_cnt = DEFAULT_QUEUES,
					     .granule = DEFAULT_GRANULE,
					     .spin_ns = DEFAULT_SPIN_US * 1000ull } };
	while ((c = getopt_long(argc, argv, "h", longopts, NULL)) != -1)
		take(opt, c, optarg);
	if (optind < argc)
		errx(EXIT_USAGE, "takes no '%s'", argv[optind]);
	check(opt);
	complete(opt);
}
