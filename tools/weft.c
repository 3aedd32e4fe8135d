/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * main of the weft command: finds the subcommand and calls it.
 */
#define _GNU_SOURCE
#include "weft.h"
#include "libfabric.h"
#include "standard.h"

#include <err.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *what;
} commands[] = {
	{ "info", weft_info, "what fi_getinfo offers, and why the rest is missing" },
	{ "pingpong", weft_pingpong,
	  "check that two processes reach each other, here or on two hosts" },
	{ "bench", weft_bench, "latency, bandwidth and message rate; comparisons" },
	{ "scale", weft_scale, "what many endpoints and many peers cost" },
	{ "run", weft_run, "run a program, or mpirun, on this library" },
	{ "mem", weft_mem, "the registered memory of running programs" },
	{ "tcp", weft_tcp, "the connections over tcp of running programs" },
	{ "copy", weft_copy, "copy files into the memory of a peer, over any provider" },
	{ "lend", weft_lend, "lend NVMe controllers to other processes" },
	{ "devices", weft_devices, "show, borrow and return what others lend" },
};

static void usage(FILE *to)
{
	size_t i;

	fprintf(to, "Usage: weft COMMAND [OPTIONS]\n"
		    "\n"
		    "Commands:\n");
	for (i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		fprintf(to, "  %-10s %s\n", commands[i].name, commands[i].what);
	fprintf(to, "\n"
		    "'weft COMMAND --help' describes a command.\n"
		    "'weft --version' prints the versions of weft and of its libfabric.\n");
}

static int print_version(void)
{
	uint32_t version = fi_version();

	printf("weft %s\n", WEFT_VERSION);
	printf("libfabric interface %u.%u, %s\n", FI_MAJOR(version), FI_MINOR(version),
	       fabric_library_path());
	return EXIT_SUCCESS;
}

static int run_command(size_t idx, int argc, char **argv)
{
	char name[32];

	/* Messages of getopt and err.h begin with this name. */
	snprintf(name, sizeof(name), "weft %s", commands[idx].name);
	argv[0] = name;
	program_invocation_name = name;
	program_invocation_short_name = name;
	return commands[idx].run(argc, argv);
}

int main(int argc, char **argv)
{
	size_t i;

	standard_open();
	/* Where the parent ignores it, nothing would tell how processes that are started here have ended. */
	signal(SIGCHLD, SIG_DFL);
	if (argc < 2) {
		usage(stderr);
		return WEFT_EXIT_USAGE;
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help")) {
		usage(stdout);
		return EXIT_SUCCESS;
	}
	if (!strcmp(argv[1], "--version"))
		return print_version();
	for (i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		if (!strcmp(argv[1], commands[i].name))
			return run_command(i, argc - 1, argv + 1);
	warnx("no command '%s'; 'weft --help' lists them", argv[1]);
	return WEFT_EXIT_USAGE;
}
