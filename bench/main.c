/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * weft-ucx: 'weft bench' with UCX in the place of libfabric, for comparisons
 * (weft bench --vs-program=...). The same command line, patterns and tables; a provider is a list
 * of UCX transports.
 */
#include "weft.h"

#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
	if (argc < 2 || strcmp(argv[1], "bench")) {
		fprintf(stderr, "Usage: weft-ucx bench [OPTIONS]\n");
		return WEFT_EXIT_USAGE;
	}
	return weft_bench(argc - 1, argv + 1);
}
