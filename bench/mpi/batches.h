/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What the MPI programs of bench/mpi/compare have in common: a figure is the median of some batches,
 * the first line of their output names the library, and wrong data ends all ranks with status 1.
 */
#ifndef WEFT_BENCH_MPI_BATCHES_H
#define WEFT_BENCH_MPI_BATCHES_H

#include <err.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BATCHES	    7
#define LARGE	    65536 /* bytes from which on buffers rotate */
#define BUFFERS_MIN 8

/* How many buffers of a size rotate: together they exceed the second-level cache. */
static inline unsigned buffers_for(size_t size)
{
	long cache = sysconf(_SC_LEVEL2_CACHE_SIZE);
	size_t cnt;

	if (size < LARGE)
		return 1;
	cnt = 2 * (cache > 0 ? (size_t)cache : 2u << 20) / size + 1;
	return cnt < BUFFERS_MIN ? BUFFERS_MIN : (unsigned)cnt;
}

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

/* Starts MPI, for one thread at a time, prints the library, and returns the scale: the first argument, 1 without. */
static double begin(int *argc, char ***argv, int *rank, int *ranks)
{
	double scale;
	int level;

	MPI_Init_thread(argc, argv, MPI_THREAD_SERIALIZED, &level);
	MPI_Comm_rank(MPI_COMM_WORLD, rank);
	MPI_Comm_size(MPI_COMM_WORLD, ranks);
	scale = *argc > 1 ? atof((*argv)[1]) : 1;
	if (scale <= 0) {
		warnx("for a scale above 0");
		MPI_Abort(MPI_COMM_WORLD, 2);
	}
	if (!*rank)
		print_library();
	return scale;
}

/* Ends MPI. Returns the status that all ranks end with. */
static int end(bool wrong)
{
	int any = wrong, rank;

	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Allreduce(MPI_IN_PLACE, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
	if (any && !rank)
		warnx("data of a result were wrong");
	MPI_Finalize();
	return any ? EXIT_FAILURE : EXIT_SUCCESS;
}

#endif
