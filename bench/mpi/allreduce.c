/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * MPI_Allreduce of floats among all ranks, which may be more than cores. bench/mpi/compare builds it
 * with each MPI that is installed. What carries the messages is not its concern.
 *
 *	allreduce SCALE		SCALE multiplies how often each is repeated
 *
 * Rank 0 prints, after the library's name, a line for each size:
 *
 *	latency SIZE MICROSECONDS	time of one MPI_Allreduce; SIZE in bytes
 *
 * the median of some batches, after one that warms up. Every element of the last result of a batch
 * is checked; one that is wrong ends all ranks with status 1.
 */
#include <err.h>
#include <stdbool.h>
#include <stdlib.h>

#include "batches.h"

/* Repetitions of a batch, by bytes. */
static const struct {
	size_t size;
	unsigned times;
} sizes[] = { { 8, 400 }, { 65536, 100 }, { 1048576, 16 }, { 16777216, 2 } };

static int rank, ranks;
static bool wrong;

static float value_of(int who, size_t i)
{
	return (float)(who + (int)(i % 64));
}

/* Returns microseconds of one. */
static double batch(const float *in, float *out, size_t cnt, unsigned times)
{
	double start, took;
	unsigned i;

	MPI_Barrier(MPI_COMM_WORLD);
	start = MPI_Wtime();
	for (i = 0; i < times; i++)
		MPI_Allreduce(in, out, (int)cnt, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
	took = (MPI_Wtime() - start) / times * 1e6;
	for (size_t at = 0; at < cnt; at++) {
		float sum = (float)(ranks * (ranks - 1) / 2 + ranks * (int)(at % 64));

		wrong |= out[at] < sum || out[at] > sum;
	}
	return took;
}

static void measure(size_t size, unsigned times)
{
	size_t cnt = size / sizeof(float);
	float *in = malloc(size), *out = malloc(size);
	double values[BATCHES];
	int i;

	if (!in || !out)
		err(EXIT_FAILURE, "two buffers of %zu bytes", size);
	for (size_t at = 0; at < cnt; at++)
		in[at] = value_of(rank, at);
	batch(in, out, cnt, times / 4 + 1);
	for (i = 0; i < BATCHES; i++)
		values[i] = batch(in, out, cnt, times);
	if (!rank)
		printf("latency %zu %.4f\n", size, median(values));
	free(in);
	free(out);
}

int main(int argc, char **argv)
{
	double scale = argc > 1 ? atof(argv[1]) : 1;
	int any;
	size_t i;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	if (scale <= 0) {
		warnx("for a scale above 0");
		MPI_Abort(MPI_COMM_WORLD, 2);
	}
	if (!rank)
		print_library();
	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		measure(sizes[i].size, (unsigned)(sizes[i].times * scale) + 1);
	any = wrong;
	MPI_Allreduce(MPI_IN_PLACE, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
	if (any && !rank)
		warnx("an element of a result was wrong");
	MPI_Finalize();
	return any ? EXIT_FAILURE : EXIT_SUCCESS;
}
