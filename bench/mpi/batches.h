/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What the MPI programs of bench/mpi/compare have in common: a figure is the median of some batches,
 * and the first line of their output names the library.
 */
#ifndef WEFT_BENCH_MPI_BATCHES_H
#define WEFT_BENCH_MPI_BATCHES_H

#include <mpi.h>
#include <stdio.h>
#include <string.h>

#define BATCHES 7

static double median(double *values)
{
	int i, j;
	double one;

	for (i = 1; i < BATCHES; i++) {
		one = values[i];
		for (j = i; j && values[j - 1] > one; j--)
			values[j] = values[j - 1];
		values[j] = one;
	}
	return values[BATCHES / 2];
}

static void print_library(void)
{
	char name[MPI_MAX_LIBRARY_VERSION_STRING];
	int len;

	MPI_Get_library_version(name, &len);
	name[strcspn(name, "\n,")] = '\0';
	printf("library %s\n", name);
}

#endif
