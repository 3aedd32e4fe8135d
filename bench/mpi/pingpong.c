/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Ping-pong of two MPI ranks, and how many small messages one sends the other. bench/mpi/compare
 * builds it with each MPI that is installed. What carries the messages is not its concern.
 *
 *	pingpong SCALE		SCALE multiplies how often each message is sent
 *
 * Rank 0 prints, after the library's name, a line for each figure:
 *
 *	library NAME
 *	latency SIZE MICROSECONDS	half a round trip
 *	rate 8 MILLIONS			messages per second, one way
 *
 * each the median of some batches, after one that warms up. From 64 KiB on messages rotate through
 * buffers of malloc memory that together exceed the second-level cache. The words at both ends of
 * every message are checked; one that is wrong ends both ranks with status 1.
 */
#define _GNU_SOURCE
#include <err.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "batches.h"
#include "pin.h"

#define WINDOW	   64
#define WINDOWS	   1000 /* of a batch */
#define TRIPS_MIN  16
#define SMALL_SIZE 8
#define TAG_THERE  1
#define TAG_BACK   2

/* Round trips of a batch, by size. */
static const struct {
	size_t size;
	unsigned trips;
} sizes[] = {
	{ 8, 5000 },	{ 1024, 5000 },	 { 4096, 2000 },  { 16384, 1000 },
	{ 65536, 400 }, { 262144, 100 }, { 1048576, 40 }, { 4194304, 16 },
};

static int rank;
static bool wrong;

static void mark(char *buf, size_t size, uint32_t number)
{
	memcpy(buf, &number, sizeof(number));
	memcpy(buf + size - sizeof(number), &number, sizeof(number));
}

static void check(const char *buf, size_t size, uint32_t number)
{
	if (memcmp(buf, &number, sizeof(number)) ||
	    memcmp(buf + size - sizeof(number), &number, sizeof(number)))
		wrong = true;
}

static void send(char *buf, size_t size, int tag, uint32_t number)
{
	mark(buf, size, number);
	MPI_Send(buf, (int)size, MPI_BYTE, !rank, tag, MPI_COMM_WORLD);
}

static void receive(char *buf, size_t size, int tag, uint32_t number)
{
	MPI_Recv(buf, (int)size, MPI_BYTE, !rank, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	check(buf, size, number);
}

/* Buffers to send from, and as many to receive into. */
struct bufs {
	size_t size;
	unsigned cnt;
	char **out;
	char **in;
};

static char **create_bufs(size_t size, unsigned cnt)
{
	char **bufs = calloc(cnt, sizeof(*bufs));
	unsigned i;

	for (i = 0; bufs && i < cnt; i++) {
		bufs[i] = malloc(size);
		if (!bufs[i])
			break;
		memset(bufs[i], 0x5a, size);
	}
	if (!bufs || i < cnt)
		err(EXIT_FAILURE, "%u buffers of %zu bytes", cnt, size);
	return bufs;
}

static void destroy_bufs(char **bufs, unsigned cnt)
{
	while (cnt--)
		free(bufs[cnt]);
	free(bufs);
}

/* Returns microseconds one way. */
static double pingpong(const struct bufs *bufs, unsigned trips)
{
	static uint32_t number;
	double start;
	unsigned i;

	MPI_Barrier(MPI_COMM_WORLD);
	start = MPI_Wtime();
	for (i = 0; i < trips; i++) {
		number++;
		if (!rank)
			send(bufs->out[i % bufs->cnt], bufs->size, TAG_THERE, number);
		receive(bufs->in[i % bufs->cnt], bufs->size, rank ? TAG_THERE : TAG_BACK,
			rank ? number : ~number);
		if (rank)
			send(bufs->out[i % bufs->cnt], bufs->size, TAG_BACK, ~number);
	}
	return (MPI_Wtime() - start) / trips / 2 * 1e6;
}

static void measure_latency(size_t size, unsigned trips)
{
	struct bufs bufs = { .size = size, .cnt = buffers_for(size) };
	double values[BATCHES];
	int i;

	if (trips < TRIPS_MIN)
		trips = TRIPS_MIN;
	bufs.out = create_bufs(size, bufs.cnt);
	bufs.in = create_bufs(size, bufs.cnt);
	/* Once through all buffers at least. */
	pingpong(&bufs, bufs.cnt > trips / 4 ? bufs.cnt : trips / 4);
	for (i = 0; i < BATCHES; i++)
		values[i] = pingpong(&bufs, trips);
	if (!rank)
		printf("latency %zu %.4f\n", size, median(values));
	destroy_bufs(bufs.out, bufs.cnt);
	destroy_bufs(bufs.in, bufs.cnt);
}

static void send_window(uint32_t window)
{
	static char bufs[WINDOW][SMALL_SIZE];
	MPI_Request requests[WINDOW];
	char reply[SMALL_SIZE];
	unsigned i;

	for (i = 0; i < WINDOW; i++) {
		mark(bufs[i], SMALL_SIZE, window * WINDOW + i);
		MPI_Isend(bufs[i], SMALL_SIZE, MPI_BYTE, 1, TAG_THERE, MPI_COMM_WORLD,
			  &requests[i]);
	}
	MPI_Waitall(WINDOW, requests, MPI_STATUSES_IGNORE);
	receive(reply, SMALL_SIZE, TAG_BACK, window);
}

static void receive_window(uint32_t window)
{
	static char bufs[WINDOW][SMALL_SIZE];
	MPI_Request requests[WINDOW];
	char reply[SMALL_SIZE];
	unsigned i;

	for (i = 0; i < WINDOW; i++)
		MPI_Irecv(bufs[i], SMALL_SIZE, MPI_BYTE, 0, TAG_THERE, MPI_COMM_WORLD,
			  &requests[i]);
	MPI_Waitall(WINDOW, requests, MPI_STATUSES_IGNORE);
	for (i = 0; i < WINDOW; i++)
		check(bufs[i], SMALL_SIZE, window * WINDOW + i);
	send(reply, SMALL_SIZE, TAG_BACK, window);
}

/* Returns million messages per second. */
static double stream(unsigned windows)
{
	double start;
	unsigned i;

	MPI_Barrier(MPI_COMM_WORLD);
	start = MPI_Wtime();
	for (i = 0; i < windows; i++) {
		if (rank)
			receive_window(i);
		else
			send_window(i);
	}
	return (double)windows * WINDOW / (MPI_Wtime() - start) / 1e6;
}

static void measure_rate(unsigned windows)
{
	double values[BATCHES];
	int i;

	stream(windows / 4 + 1);
	for (i = 0; i < BATCHES; i++)
		values[i] = stream(windows);
	if (!rank)
		printf("rate %d %.5f\n", SMALL_SIZE, median(values));
}

int main(int argc, char **argv)
{
	int ranks;
	double scale = begin(&argc, &argv, &rank, &ranks);

	if (ranks != 2) {
		warnx("for two ranks");
		MPI_Abort(MPI_COMM_WORLD, 2);
	}
	pin(rank);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		measure_latency(sizes[i].size, (unsigned)(sizes[i].trips * scale));
	measure_rate((unsigned)(WINDOWS * scale) + 1);
	return end(wrong);
}
