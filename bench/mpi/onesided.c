/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * One-sided operations of MPI between two ranks: rank 0 puts, gets and adds in a window of rank 1's, which
 * waits in a barrier meanwhile. bench/mpi/compare builds and runs it.
 *
 *	onesided SCALE		SCALE multiplies how often each operation is done
 *
 * Rank 0 prints, after the library's name, a line for each figure:
 *
 *	library NAME
 *	fabric PATH		of the libfabric.so.1 that is in the process, if any is
 *	put SIZE MICROSECONDS	MPI_Put and MPI_Win_flush
 *	get SIZE MICROSECONDS	MPI_Get and MPI_Win_flush
 *	fetch 8 MICROSECONDS	MPI_Fetch_and_op and MPI_Win_flush
 *	puts SIZE MILLIONS	puts per second, of which some are flushed together
 *	init 0 MICROSECONDS	MPI_Init_thread and MPI_Finalize
 *
 * each but the last the median of some batches, after one that warms up. The window is MPI_Win_create's: the
 * one of MPI_Win_allocate would be shared memory of Open MPI's own. From 64 KiB on operations rotate through
 * buffers of malloc memory that together exceed the second-level cache. Every byte of the first put and get
 * of each buffer is checked, the words at both ends of the last, and each result of an addition; what is wrong
 * ends both ranks with status 1.
 */
#define _GNU_SOURCE
#include <err.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "batches.h"
#include "pin.h"

#define LINE	  64
#define TIMES_MIN 16

/* Operations of a batch, by size, and puts that are flushed together. */
static const struct {
	size_t size;
	unsigned times;
	unsigned flushed;
} sizes[] = {
	{ 8, 5000, 64 },     { 64, 5000, 0 },	 { 1024, 4000, 0 },
	{ 4096, 2000, 0 },   { 16384, 1000, 0 }, { 65536, 400, 0 },
	{ 262144, 100, 16 }, { 1048576, 40, 0 }, { 4194304, 16, 0 },
};

static int rank;
static bool wrong;

/* A side's memory of one size: slots of a line's alignment, as many as are used in turn. */
struct slots {
	size_t size;
	unsigned cnt;
	char *mem;
	MPI_Win win;
};

static double now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static size_t stride(const struct slots *slots)
{
	return (slots->size + LINE - 1) / LINE * LINE;
}

static char *slot(const struct slots *slots, uint32_t number)
{
	return slots->mem + number % slots->cnt * stride(slots);
}

static void open_slots(struct slots *slots, size_t size)
{
	size_t len;

	*slots = (struct slots){ .size = size, .cnt = buffers_for(size) };
	len = slots->cnt * stride(slots);
	if (posix_memalign((void **)&slots->mem, LINE, len))
		errx(EXIT_FAILURE, "no memory for %zu bytes", len);
	memset(slots->mem, 0x5a, len);
	MPI_Win_create(slots->mem, (MPI_Aint)len, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &slots->win);
	MPI_Win_lock_all(MPI_MODE_NOCHECK, slots->win);
}

static void close_slots(struct slots *slots)
{
	MPI_Win_unlock_all(slots->win);
	MPI_Win_free(&slots->win);
	free(slots->mem);
}

/* Both ranks: what was done before is over, and seen in the window. */
static void meet(const struct slots *slots)
{
	MPI_Win_sync(slots->win);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_sync(slots->win);
}

static void put(const struct slots *slots, uint32_t number)
{
	char *from = slot(slots, number);

	MPI_Put(from, (int)slots->size, MPI_BYTE, 1, from - slots->mem, (int)slots->size,
		MPI_BYTE, slots->win);
}

static void get(const struct slots *slots, uint32_t number)
{
	char *into = slot(slots, number);

	MPI_Get(into, (int)slots->size, MPI_BYTE, 1, into - slots->mem, (int)slots->size,
		MPI_BYTE, slots->win);
}

static char byte_of(uint32_t number, size_t at)
{
	return (char)((number + 1) * 37 + at % 251);
}

static void fill(const struct slots *slots, uint32_t number)
{
	char *bytes = slot(slots, number);

	for (size_t at = 0; at < slots->size; at++)
		bytes[at] = byte_of(number, at);
}

static void check(const struct slots *slots, uint32_t number)
{
	const char *bytes = slot(slots, number);

	for (size_t at = 0; at < slots->size; at++)
		if (bytes[at] != byte_of(number, at))
			wrong = true;
}

/* Every byte of every slot there and back. */
static void verify(const struct slots *slots)
{
	uint32_t i;

	for (i = 0; i < slots->cnt && !rank; i++) {
		fill(slots, i);
		put(slots, i);
		MPI_Win_flush(1, slots->win);
	}
	meet(slots);
	for (i = 0; i < slots->cnt && rank; i++)
		check(slots, i);
	meet(slots);
	if (rank)
		return;
	memset(slots->mem, 0, slots->cnt * stride(slots));
	for (i = 0; i < slots->cnt; i++)
		get(slots, i);
	MPI_Win_flush(1, slots->win);
	for (i = 0; i < slots->cnt; i++)
		check(slots, i);
}

static void mark(const struct slots *slots, uint32_t number)
{
	char *bytes = slot(slots, number);

	memcpy(bytes, &number, sizeof(number));
	memcpy(bytes + slots->size - sizeof(number), &number, sizeof(number));
}

static void check_mark(const struct slots *slots, uint32_t number)
{
	const char *bytes = slot(slots, number);

	if (memcmp(bytes, &number, sizeof(number)) ||
	    memcmp(bytes + slots->size - sizeof(number), &number, sizeof(number)))
		wrong = true;
}

/* @flushed: puts between two flushes. Returns microseconds a put, on rank 0. */
static double batch_of_puts(const struct slots *slots, unsigned times, unsigned flushed)
{
	static uint32_t number;
	uint32_t first = number;
	double taken = 0;
	unsigned i;

	number += times;
	meet(slots);
	if (!rank) {
		taken = now_us();
		for (i = 1; i <= times; i++) {
			/* What is under way has its bytes until the flush. */
			if (flushed == 1 || i % flushed == 0)
				mark(slots, first + i);
			put(slots, first + i);
			if (i % flushed == 0)
				MPI_Win_flush(1, slots->win);
		}
		MPI_Win_flush(1, slots->win);
		taken = now_us() - taken;
	}
	meet(slots);
	if (rank)
		check_mark(slots, number);
	return taken / times;
}

static double batch_of_gets(const struct slots *slots, unsigned times)
{
	static uint32_t number;
	double taken = 0;
	unsigned i;

	if (rank)
		for (i = 1; i <= slots->cnt; i++)
			mark(slots, number + i);
	meet(slots);
	if (!rank) {
		taken = now_us();
		for (i = 0; i < times; i++) {
			get(slots, i);
			MPI_Win_flush(1, slots->win);
		}
		taken = now_us() - taken;
		for (i = 1; i <= slots->cnt && slots->cnt <= times; i++)
			check_mark(slots, number + i);
	}
	number += slots->cnt;
	meet(slots);
	return taken / times;
}

/* Adds 1 to the first word of the window. */
static double batch_of_adds(const struct slots *slots, unsigned times)
{
	static uint64_t sum;
	uint64_t one = 1, found = UINT64_MAX;
	double taken = 0;
	unsigned i;

	if (rank && !sum)
		memset(slots->mem, 0, sizeof(sum));
	meet(slots);
	if (!rank) {
		taken = now_us();
		for (i = 0; i < times; i++) {
			MPI_Fetch_and_op(&one, &found, MPI_UINT64_T, 1, 0, MPI_SUM, slots->win);
			MPI_Win_flush(1, slots->win);
			wrong |= found != sum + i;
		}
		taken = now_us() - taken;
	}
	sum += times;
	meet(slots);
	if (rank && memcmp(slots->mem, &sum, sizeof(sum)))
		wrong = true;
	return taken / times;
}

static unsigned scaled(unsigned times, double scale)
{
	times = (unsigned)(times * scale);
	return times < TIMES_MIN ? TIMES_MIN : times;
}

static void measure_puts(const struct slots *slots, unsigned times, unsigned flushed)
{
	double values[BATCHES];
	int i;

	times = (times + flushed - 1) / flushed * flushed;
	batch_of_puts(slots, times / 4 / flushed * flushed + flushed, flushed);
	for (i = 0; i < BATCHES; i++)
		values[i] = batch_of_puts(slots, times, flushed);
	if (rank)
		return;
	if (flushed == 1)
		printf("put %zu %.4f\n", slots->size, median(values));
	else
		printf("puts %zu %.6f\n", slots->size, 1 / median(values));
}

static void measure_gets(const struct slots *slots, unsigned times)
{
	double values[BATCHES];
	int i;

	batch_of_gets(slots, times / 4 + 1);
	for (i = 0; i < BATCHES; i++)
		values[i] = batch_of_gets(slots, times);
	if (!rank)
		printf("get %zu %.4f\n", slots->size, median(values));
}

static void measure_adds(const struct slots *slots, unsigned times)
{
	double values[BATCHES];
	int i;

	batch_of_adds(slots, times / 4 + 1);
	for (i = 0; i < BATCHES; i++)
		values[i] = batch_of_adds(slots, times);
	if (!rank)
		printf("fetch %zu %.4f\n", sizeof(uint64_t), median(values));
}

static void measure(double scale)
{
	struct slots slots;

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		open_slots(&slots, sizes[i].size);
		verify(&slots);
		measure_puts(&slots, scaled(sizes[i].times, scale), 1);
		measure_gets(&slots, scaled(sizes[i].times, scale));
		if (sizes[i].flushed)
			measure_puts(&slots, scaled(sizes[i].times, scale), sizes[i].flushed);
		if (sizes[i].size == sizeof(uint64_t))
			measure_adds(&slots, scaled(sizes[i].times, scale));
		close_slots(&slots);
	}
}

/* The library that this Open MPI has loaded in the end, whatever was asked for. */
static void print_fabric(void)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[4096], *path;

	while (maps && fgets(line, sizeof(line), maps)) {
		path = strchr(line, '/');
		if (!path || !strstr(path, "/libfabric.so.1"))
			continue;
		printf("fabric %s", path);
		break;
	}
	if (maps)
		fclose(maps);
}

int main(int argc, char **argv)
{
	double begun = now_us(), init, scale;
	int ranks, status;

	scale = begin(&argc, &argv, &rank, &ranks);
	init = now_us() - begun;
	if (ranks != 2) {
		warnx("for two ranks");
		MPI_Abort(MPI_COMM_WORLD, 2);
	}
	pin(rank);
	if (!rank)
		print_fabric();
	measure(scale);
	begun = now_us();
	status = end(wrong);
	if (!rank)
		printf("init 0 %.0f\n", init + now_us() - begun);
	return status;
}
