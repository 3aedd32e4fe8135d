/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Messages in memory that is allocated for each: rank 0 allocates, fills, sends and frees, rank 1
 * allocates, receives, reads all of it and frees, in turns. bench/mpi/compare builds it with each MPI that
 * is installed. What carries the messages, and where malloc's memory comes from, is not its concern.
 *
 *	fresh SCALE [steady]	SCALE multiplies how many messages there are
 *
 * Rank 0 prints, after the library's name, two lines for each size:
 *
 *	fresh SIZE MICROSECONDS		from one allocation to the next, of both ranks
 *	faults SIZE COUNT		page faults of both ranks' threads that do this, for each message
 *
 * the median of some batches, after one that warms up. Every word of the last message of a batch is
 * checked; one that is wrong ends both ranks with status 1. With 'steady', a rank whose messages
 * map, unmap or advise memory, or register it with a device, is killed once all sizes were warmed up.
 */
#define _GNU_SOURCE
#include <err.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "batches.h"

/* Messages of a batch, by bytes. */
static const struct {
	size_t size;
	unsigned times;
} sizes[] = { { 1 << 20, 100 }, { 4 << 20, 40 }, { 16 << 20, 10 }, { 64 << 20, 3 } };

static int rank, ranks;
static bool wrong;

/* Of this thread: others, such as one that looks at limits of memory from time to time, have theirs. */
static long faults_now(void)
{
	struct rusage usage;

	getrusage(RUSAGE_THREAD, &usage);
	return usage.ru_minflt + usage.ru_majflt;
}

static void fill(uint64_t *words, size_t cnt, uint64_t first)
{
	for (size_t i = 0; i < cnt; i++)
		words[i] = first + i;
}

static void check(const uint64_t *words, size_t cnt, uint64_t first)
{
	uint64_t differs = 0;

	for (size_t i = 0; i < cnt; i++)
		differs |= words[i] ^ (first + i);
	wrong |= differs != 0;
}

static void one(size_t size, uint64_t number)
{
	uint64_t *words = malloc(size);
	char token = 0;

	if (!words)
		err(EXIT_FAILURE, "%zu bytes", size);
	if (!rank) {
		fill(words, size / sizeof(*words), number);
		MPI_Send(words, (int)size, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
		free(words);
		MPI_Recv(&token, 1, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		return;
	}
	MPI_Recv(words, (int)size, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	check(words, size / sizeof(*words), number);
	free(words);
	MPI_Send(&token, 1, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
}

/* Returns microseconds of one. @faults: out: of both ranks, for each message */
static double batch(size_t size, unsigned times, double *faults)
{
	static uint64_t number;
	long before, mine, all;
	double start, took;

	MPI_Barrier(MPI_COMM_WORLD);
	before = faults_now();
	start = MPI_Wtime();
	for (unsigned i = 0; i < times; i++)
		one(size, number++);
	took = (MPI_Wtime() - start) / times * 1e6;
	mine = faults_now() - before;
	MPI_Reduce(&mine, &all, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
	*faults = rank ? 0 : (double)all / times;
	return took;
}

static void measure(size_t size, unsigned times)
{
	double values[BATCHES], faults[BATCHES];

	batch(size, times / 4 + 1, &faults[0]);
	for (int i = 0; i < BATCHES; i++)
		values[i] = batch(size, times, &faults[i]);
	if (rank)
		return;
	printf("fresh %zu %.4f\n", size, median(values));
	printf("faults %zu %.4f\n", size, median(faults));
}

/* From here on, such calls of this thread end the process. */
static void forbid(void)
{
#define KILL(call)                                              \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_##call, 0, 1), \
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)
	static struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		KILL(mmap),
		KILL(munmap),
		KILL(mremap),
		KILL(madvise),
		KILL(mprotect),
		KILL(brk),
		KILL(io_uring_register),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog filter = { sizeof(code) / sizeof(code[0]), code };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter))
		err(EXIT_FAILURE, "no filter of system calls");
}

static void measure_all(double scale)
{
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		measure(sizes[i].size, (unsigned)(sizes[i].times * scale) + 1);
}

struct steady {
	double scale;
	sem_t done;
};

/* A thread of its own, since MPI_Finalize may do what is forbidden; so may the end of a thread. */
static void *measure_steady(void *arg)
{
	struct steady *steady = arg;
	double faults;

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		batch(sizes[i].size, sizes[i].times, &faults);
	if (!rank)
		puts("steady: begins");
	forbid();
	measure_all(steady->scale);
	sem_post(&steady->done);
	for (;;)
		pause();
	return NULL;
}

static void run_steady(double scale)
{
	struct steady steady = { .scale = scale };
	pthread_t thread;

	sem_init(&steady.done, 0, 0);
	if (pthread_create(&thread, NULL, measure_steady, &steady))
		errx(EXIT_FAILURE, "no thread");
	while (sem_wait(&steady.done))
		;
}

int main(int argc, char **argv)
{
	double scale = begin(&argc, &argv, &rank, &ranks);

	if (ranks != 2) {
		warnx("for two ranks");
		MPI_Abort(MPI_COMM_WORLD, 2);
	}
	if (argc > 2 && !strcmp(argv[2], "steady"))
		run_steady(scale);
	else
		measure_all(scale);
	return end(wrong);
}
