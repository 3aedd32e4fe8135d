/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * 'weft devices': its options, and which of its commands is meant.
 */
#define _GNU_SOURCE
#include "arguments.h"
#include "devices.h"
#include "weft.h"

#include <err.h>
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

enum {
	OPT_LENDER = 256,
	OPT_SHARED,
	OPT_FOR,
	OPT_CLASS,
	OPT_VENDOR,
	OPT_JSON,
	OPT_PLOT,
	OPT_DIRECTORY,
	OPT_WATCH,
	OPT_DISK,
	OPT_FAIL,
};

static const struct option longopts[] = {
	{ "lender", required_argument, NULL, OPT_LENDER },
	{ "shared", no_argument, NULL, OPT_SHARED },
	{ "for", required_argument, NULL, OPT_FOR },
	{ "class", required_argument, NULL, OPT_CLASS },
	{ "vendor", required_argument, NULL, OPT_VENDOR },
	{ "json", no_argument, NULL, OPT_JSON },
	{ "plot", required_argument, NULL, OPT_PLOT },
	{ "directory", required_argument, NULL, OPT_DIRECTORY },
	{ "watch", no_argument, NULL, OPT_WATCH },
	{ "disk", no_argument, NULL, OPT_DISK },
	{ "fail", required_argument, NULL, OPT_FAIL },
	{ "help", no_argument, NULL, 'h' },
	{ 0 },
};

static const struct {
	const char *name;
	int min, max;
	const char *operands;
	int (*run)(const struct devices_options *opt);
	bool by_ticket; /* its first operand is one */
} commands[] = {
	{ "list", 0, 0, "", devices_list, false },
	{ "leases", 0, 1, " [DEVICE]", devices_leases, false },
	{ "borrow", 0, 1, " [DEVICE] [-- COMMAND [ARGUMENTS]]", devices_borrow, false },
	{ "return", 1, 1, " TICKET", devices_return, true },
	{ "renew", 1, 1, " TICKET", devices_renew, true },
	{ "share", 1, 1, " TICKET", devices_share, true },
	{ "revoke", 2, 2, " DEVICE LEASE", devices_revoke, false },
	{ "id-ctrl", 1, 1, " DEVICE", devices_id_ctrl, false },
	{ "id-ns", 1, 2, " DEVICE [NAMESPACE]", devices_id_ns, false },
	{ "smart-log", 1, 1, " DEVICE", devices_smart_log, false },
	{ "error-log", 1, 1, " DEVICE", devices_error_log, false },
};

#define COMMANDS (sizeof(commands) / sizeof(commands[0]))

static void usage(void)
{
	printf("Usage: weft devices [OPTIONS] [list]\n"
	       "       weft devices [OPTIONS] leases [DEVICE]\n"
	       "       weft devices [OPTIONS] borrow [DEVICE] [-- COMMAND [ARGUMENTS]]\n"
	       "       weft devices [OPTIONS] borrow --disk [DEVICE]\n"
	       "       weft devices [OPTIONS] return|renew|share TICKET\n"
	       "       weft devices [OPTIONS] revoke DEVICE LEASE\n"
	       "       weft devices [OPTIONS] id-ctrl|smart-log|error-log DEVICE\n"
	       "       weft devices [OPTIONS] id-ns DEVICE [NAMESPACE]\n"
	       "\n"
	       "Shows, borrows and returns the devices of a lender ('weft lend').\n"
	       "\n"
	       "      --lender=NAME   socket of the lender, or its HOST[:PORT]; default: $WEFT_LENDER,\n"
	       "                      the lenders of $WEFT_DIRECTORY, this user's, or the system's\n"
	       "      --directory=URLS\n"
	       "                      all lenders of a directory (etcd), by the URLs of its members:\n"
	       "                      http://HOST[:PORT], with commas between\n"
	       "      --shared        borrow so that others may too\n"
	       "      --disk          make a disk of this machine of what is borrowed, of another host\n"
	       "                      (kernel module kofi_blk), until a signal\n"
	       "      --fail=SECONDS  how long its requests wait for a lender that is gone; default: 60\n"
	       "      --for=SECONDS   how long a lease runs; default: 600\n"
	       "      --class=CLASS   devices of a class only: nvme\n"
	       "      --vendor=HEX    devices of a vendor only\n"
	       "      --json          JSON in place of the text\n"
	       "      --plot=FILE     'list' as a drawing (SVG): who holds what\n"
	       "      --watch         'list', and then a line for whatever happens to devices and\n"
	       "                      lenders, until a signal\n"
	       "  -h, --help          this text\n"
	       "\n"
	       "'borrow' prints a ticket, by which programs use the lease until it ends. A COMMAND\n"
	       "has it in WEFT_TICKET, and its lender in WEFT_LENDER; the lease ends with it. A\n"
	       "DEVICE is a name, the beginning of one, or an id.\n");
}

void devices_fail(const char *what, int err)
{
	if (err == -ESTALE)
		errx(EXIT_FAILURE, "%s: the lease has ended", what);
	if (err == -ECONNREFUSED)
		errx(EXIT_FAILURE, "%s: there is no lender (see weft lend --help)", what);
	if (err == -ENOPROTOOPT)
		errx(EXIT_FAILURE, "%s: the lender is of another version", what);
	errx(EXIT_FAILURE, "%s: %s", what, strerror(-err));
}

void devices_fail_directory(const char *urls, int err)
{
	if (err == -EINVAL)
		errx(WEFT_EXIT_USAGE,
		     "a directory is http://HOST[:PORT] or https://HOST[:PORT] of each member, "
		     "with commas between, not '%s'",
		     urls);
	if (err == -EOPNOTSUPP)
		errx(EXIT_FAILURE,
		     "%s: there is no libweft-directory.so: this Weft was built "
		     "without libcurl",
		     urls);
	if (err == -ECONNREFUSED)
		errx(EXIT_FAILURE, "%s: no member of the directory is there", urls);
	if (err == -ETIMEDOUT)
		errx(EXIT_FAILURE, "%s: no member of the directory answers", urls);
	if (err == -EAGAIN)
		errx(EXIT_FAILURE,
		     "%s: the directory has no majority of its members (--lender asks a lender "
		     "itself)",
		     urls);
	if (err == -EACCES)
		errx(EXIT_FAILURE,
		     "%s: the directory refuses, or is not trusted (ETCDCTL_CACERT, ETCDCTL_CERT, "
		     "ETCDCTL_KEY)",
		     urls);
	errx(EXIT_FAILURE, "%s: %s", urls, strerror(-err));
}

static unsigned argument_vendor(const char *text)
{
	char *end;
	unsigned long vendor = strtoul(text, &end, 16);

	if (!*text || *end || !vendor || vendor > 0xffff)
		errx(WEFT_EXIT_USAGE, "--vendor takes a hexadecimal number of PCI, not '%s'",
		     text);
	return (unsigned)vendor;
}

static const char *parse(struct devices_options *opt, int argc, char **argv)
{
	const char *lender = NULL, *directory = NULL;
	int c;

	while ((c = getopt_long(argc, argv, "h", longopts, NULL)) != -1) {
		switch (c) {
		case OPT_LENDER:
			lender = optarg;
			break;
		case OPT_DIRECTORY:
			directory = optarg;
			break;
		case OPT_WATCH:
			opt->watch = true;
			break;
		case OPT_DISK:
			opt->disk = true;
			break;
		case OPT_FAIL:
			opt->fail_seconds = argument_number(optarg, "time", 1,
							    WEFT_LEASE_MS_MAX / 1000);
			break;
		case OPT_SHARED:
			opt->shared = true;
			break;
		case OPT_FOR:
			opt->seconds = argument_number(optarg, "time", 1,
						       WEFT_LEASE_MS_MAX / 1000);
			break;
		case OPT_CLASS:
			if (strcmp(optarg, "nvme"))
				errx(WEFT_EXIT_USAGE, "--class takes nvme, not '%s'", optarg);
			opt->device_class = WEFT_CLASS_NVME;
			break;
		case OPT_VENDOR:
			opt->vendor = argument_vendor(optarg);
			break;
		case OPT_PLOT:
			opt->plot = optarg;
			break;
		case OPT_JSON:
			opt->json = true;
			break;
		case 'h':
			usage();
			exit(EXIT_SUCCESS);
		default:
			argument_unknown("devices");
		}
	}
	if (lender && directory)
		errx(WEFT_EXIT_USAGE, "--lender and --directory are one or the other");
	if (directory && strncmp(directory, "http", 4))
		devices_fail_directory(directory, -EINVAL);
	return directory ? directory : lender;
}

/* What stands behind "--" is another program's: its options are not looked at. */
static char **cut_program(int *argc, char **argv)
{
	int i;

	for (i = 1; i < *argc; i++)
		if (!strcmp(argv[i], "--")) {
			*argc = i;
			argv[i] = NULL;
			return argv + i + 1;
		}
	return NULL;
}

/* What nobody has named is what WEFT_LENDER or WEFT_DIRECTORY says. */
static const char *who_is_asked(const char *name)
{
	const char *lender = getenv("WEFT_LENDER"), *directory = getenv("WEFT_DIRECTORY");

	if (name)
		return name;
	if (lender && *lender)
		return lender;
	return directory && *directory ? directory : "this user's lender, and the system's";
}

/* @ticket: of the lease that the command is about, or NULL */
static void open_lender(struct devices_options *opt, const char *ticket)
{
	struct weft_lender_attr attr = { .size = sizeof(attr) };
	const char *name = opt->lender_name;
	int err;

	if (opt->watch)
		opt->eq = devices_eq();
	attr.eq = opt->eq;
	if (ticket)
		err = weft_lender_open_ticket(name, ticket, &attr, &opt->lender);
	else
		err = weft_lender_open(name, &attr, &opt->lender);
	if (err == -EBADMSG)
		errx(WEFT_EXIT_USAGE, "'%s' is no ticket", ticket);
	name = who_is_asked(name);
	if (err && strstr(name, "://"))
		devices_fail_directory(name, err);
	if (err == -EHOSTUNREACH)
		errx(EXIT_FAILURE,
		     "%s: there is no such host, or no way to it over the provider (WEFT_FABRIC; tcp)",
		     name);
	if (err)
		devices_fail(name, err);
}

int weft_devices(int argc, char **argv)
{
	struct devices_options opt = { .program = cut_program(&argc, argv) };
	const char *name;
	size_t i;
	int status;

	opt.lender_name = parse(&opt, argc, argv);
	name = optind < argc ? argv[optind++] : "list";
	opt.operands = argv + optind;
	opt.operand_cnt = argc - optind;
	for (i = 0; i < COMMANDS && strcmp(name, commands[i].name); i++)
		;
	if (i == COMMANDS)
		errx(WEFT_EXIT_USAGE, "no command '%s'", name);
	if (opt.program && (commands[i].run != devices_borrow || !*opt.program))
		errx(WEFT_EXIT_USAGE, "'--' stands before the COMMAND of 'borrow'");
	if (opt.operand_cnt < commands[i].min || opt.operand_cnt > commands[i].max)
		errx(WEFT_EXIT_USAGE, "usage: weft devices [OPTIONS] %s%s", name,
		     commands[i].operands);
	if (opt.plot && commands[i].run != devices_list)
		errx(WEFT_EXIT_USAGE, "--plot draws what 'list' shows");
	if ((opt.disk && (opt.program || commands[i].run != devices_borrow)) ||
	    (opt.fail_seconds && !opt.disk))
		errx(WEFT_EXIT_USAGE,
		     "--disk is for 'borrow' without a COMMAND, and --fail for --disk");
	if (opt.watch && (opt.plot || commands[i].run != devices_list))
		errx(WEFT_EXIT_USAGE, "--watch follows what 'list' shows");
	open_lender(&opt, commands[i].by_ticket ? opt.operands[0] : NULL);
	if (opt.watch)
		return devices_watch(&opt);
	status = opt.plot ? devices_plot(&opt, opt.plot) : commands[i].run(&opt);
	if ((fflush(stdout) || ferror(stdout)) && !status)
		err(EXIT_FAILURE, "standard output");
	return status;
}
