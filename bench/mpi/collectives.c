/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * MPI_Allreduce of floats and MPI_Alltoall among all ranks, which may be more than cores, in memory of
 * malloc. bench/mpi/compare builds it with each MPI that is installed. What carries the messages, and
 * where malloc's memory comes from, is not its concern.
 *
 *	collectives SCALE [OPERATION]	SCALE multiplies how often each is repeated
 *
 * Rank 0 prints, after the library's name, a line for each operation, or for OPERATION alone, and size:
 *
 *	allreduce SIZE MICROSECONDS	time of one; SIZE in bytes
 *	alltoall SIZE MICROSECONDS	SIZE bytes to each rank
 *
 * the median of some batches, after one that warms up. Elements of the last result of a batch are
 * checked; one that is wrong ends all ranks with status 1.
 */
#include <err.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "batches.h"

/* Repetitions of a batch, by bytes. */
static const struct {
	size_t size;
	unsigned times;
} sizes[] = { { 8, 2000 },     { 4096, 1000 },	{ 65536, 400 }, { 262144, 100 },
	      { 1048576, 40 }, { 4194304, 10 }, { 16777216, 2 } };

enum operation {
	ALLREDUCE,
	ALLTOALL,
	OPERATIONS,
};

static const char *const names[] = { "allreduce", "alltoall" };

static int rank, ranks;
static bool wrong;

static float value_of(int who, size_t i)
{
	return (float)(who + (int)(i % 64));
}

static bool differs(float a, float b)
{
	return a < b || a > b;
}

static void check(enum operation operation, const float *out, size_t cnt)
{
	for (size_t at = 0; at < cnt; at++) {
		int all = ranks * (ranks - 1) / 2 + ranks * (int)(at % 64);

		if (operation == ALLREDUCE)
			wrong |= differs(out[at], (float)all);
		else
			for (int who = 0; who < ranks; who++)
				wrong |= differs(out[(size_t)who * cnt + at],
						 value_of(who, (size_t)rank * cnt + at));
	}
}

/* Returns microseconds of one. */
static double batch(enum operation operation, const float *in, float *out, size_t cnt,
		    unsigned times)
{
	double start, took;
	unsigned i;

	MPI_Barrier(MPI_COMM_WORLD);
	start = MPI_Wtime();
	for (i = 0; i < times; i++) {
		if (operation == ALLREDUCE)
			MPI_Allreduce(in, out, (int)cnt, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
		else
			MPI_Alltoall(in, (int)cnt, MPI_FLOAT, out, (int)cnt, MPI_FLOAT,
				     MPI_COMM_WORLD);
	}
	took = (MPI_Wtime() - start) / times * 1e6;
	check(operation, out, cnt);
	return took;
}

static void measure(enum operation operation, size_t size, unsigned times)
{
	size_t cnt = size / sizeof(float), all = cnt * (size_t)ranks;
	float *in = malloc(all * sizeof(float)), *out = malloc(all * sizeof(float));
	double values[BATCHES];
	int i;

	if (!in || !out)
		err(EXIT_FAILURE, "two buffers of %zu bytes", all * sizeof(float));
	for (size_t at = 0; at < all; at++)
		in[at] = value_of(rank, at);
	batch(operation, in, out, cnt, times / 4 + 1);
	for (i = 0; i < BATCHES; i++)
		values[i] = batch(operation, in, out, cnt, times);
	if (!rank)
		printf("%s %zu %.4f\n", names[operation], size, median(values));
	free(in);
	free(out);
}

static void measure_all(const char *operation, double scale)
{
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		for (enum operation op = ALLREDUCE; op < OPERATIONS; op++)
			if (!operation || !strcmp(operation, names[op]))
				measure(op, sizes[i].size,
					(unsigned)(sizes[i].times * scale) + 1);
}

int main(int argc, char **argv)
{
	double scale = begin(&argc, &argv, &rank, &ranks);

	measure_all(argc > 2 ? argv[2] : NULL, scale);
	return end(wrong);
}
