/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * 'weft bench' with something else in the place of libfabric, for comparisons (weft bench
 * --vs-program=...): weft-ucx, weft-pipe and weft-socket. The same command line, patterns and tables.
 */
#define _GNU_SOURCE
#include "weft.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
	if (argc < 2 || strcmp(argv[1], "bench")) {
		fprintf(stderr, "Usage: %s bench [OPTIONS]\n", program_invocation_short_name);
		return WEFT_EXIT_USAGE;
	}
	return weft_bench(argc - 1, argv + 1);
}
