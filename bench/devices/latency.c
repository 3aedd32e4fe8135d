/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * weft-device-latency - reads of 4 KiB from a borrowed device, one at a time; bench/devices/compare runs several at once
 * and lets one of them at a time do something:
 *
 *	read N		N reads of random places: prints ns of one
 *	floor N		what they can't be faster than: prints ns of a memcpy of 4 KiB, of memory as large as the
 *			device's, and of a cache line from one core to the other
 *
 * Each is a line of standard input, and so is its answer of standard output; the end of the input ends it. With --lend it
 * is the lender too: the device's owner. With --fill it writes all of the device first: memory that was never written to is
 * one page.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <getopt.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <weft/nvme.h>
#include "cacheline.h"
#include "clock.h"
#include "lend.h"
#include "stats.h"

#define READ_BYTES 4096u
#define BUFS	   64u /* that take turns */
#define BATCH	   64u /* reads between two looks at the clock */
#define SAMPLES	   4096u
#define SLOTS	   8u

struct bench {
	const char *socket;
	bool fill;
	struct lend_options lend;
	pthread_t lender_thread;
	int cpus[2];

	struct weft_lender *lender;
	struct weft_device *dev;
	struct weft_nvme *qp;
	struct weft_segment *seg;
	struct weft_window *window;
	uint64_t places;
	uint32_t blocks;
	uint64_t seed;

	/* what reads are compared with */
	char *memory;
	struct cacheline *line;
	pthread_t line_thread;
	int line_pipe[2];
};

static double samples[SAMPLES];

static void fail(const char *what, int err)
{
	fprintf(stderr, "weft-device-latency: %s: %s\n", what, strerror(err < 0 ? -err : err));
	exit(1);
}

static void pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (cpu >= 0 && sched_setaffinity(0, sizeof(set), &set))
		fail("pinning", errno);
}

/* xorshift: which place is next */
static uint64_t next_place(struct bench *b)
{
	b->seed ^= b->seed << 13;
	b->seed ^= b->seed >> 7;
	b->seed ^= b->seed << 17;
	return b->seed % b->places;
}

static void *lend_thread(void *arg)
{
	const struct bench *b = arg;

	if (lend(&b->lend))
		exit(1);
	return NULL;
}

static void be_lender(struct bench *b)
{
	sigset_t set;

	/* lend() takes them; no thread is to end by them. */
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	if (pthread_create(&b->lender_thread, NULL, lend_thread, b))
		fail("a thread", EAGAIN);
}

static void borrow(struct bench *b)
{
	const struct weft_borrow_attr attr = {
		.size = sizeof(attr),
		.device_class = WEFT_CLASS_NVME,
		.flags = WEFT_BORROW_SHARED,
	};
	const uint64_t end = clock_ns() + 5000000000ull;
	struct weft_nvme_namespace ns;
	int err;

	/* A lender in this process may not be there yet. */
	do {
		err = weft_lender_open(b->socket, NULL, &b->lender);
	} while (err && b->lend.slot_cnt && clock_ns() < end && !usleep(1000));
	if (err)
		fail("no lender", err);
	err = weft_device_borrow(b->lender, &attr, &b->dev);
	if (!err)
		err = weft_nvme_namespace(b->dev, 1, &ns);
	if (err)
		fail("borrowing", err);
	err = weft_segment_alloc(NULL, BUFS * READ_BYTES, 0, &b->seg);
	if (!err)
		err = weft_window_open(b->dev, b->seg, WEFT_WINDOW_RW, &b->window);
	if (!err)
		err = weft_nvme_open(b->dev, NULL, &b->qp);
	if (err)
		fail("a queue pair", err);
	b->blocks = READ_BYTES / ns.block_size;
	b->places = ns.blocks / b->blocks;
	memset(weft_segment_mem(b->seg), 1, BUFS * READ_BYTES);
}

static void give_back(struct bench *b)
{
	weft_nvme_close(b->qp);
	weft_window_close(b->window);
	weft_segment_free(b->seg);
	weft_device_return(b->dev);
	weft_lender_close(b->lender);
	if (!b->lend.slot_cnt)
		return;
	kill(getpid(), SIGTERM);
	pthread_join(b->lender_thread, NULL);
}

static char *buf_at(const struct bench *b, uint32_t i)
{
	return (char *)weft_segment_mem(b->seg) + (size_t)(i % BUFS) * READ_BYTES;
}

static void fill(struct bench *b)
{
	uint64_t place;
	int err;

	for (place = 0; place < b->places; place++) {
		err = weft_nvme_write(b->qp, 1, place * b->blocks, b->blocks,
				      buf_at(b, (uint32_t)place));
		if (err)
			fail("a write", err);
	}
}

/* The median of @cnt batches, that each are of BATCH, in ns of one */
static double median_of(size_t cnt)
{
	return stats_of(samples, cnt).median / BATCH;
}

static size_t batches(unsigned cnt)
{
	size_t n = cnt / BATCH;

	return n < 1 ? 1 : n > SAMPLES ? SAMPLES : n;
}

static double measure_reads(struct bench *b, unsigned cnt)
{
	const size_t n = batches(cnt);
	uint64_t start;
	uint32_t i;
	size_t k;
	int err;

	for (k = 0; k < n; k++) {
		start = clock_ns();
		for (i = 0; i < BATCH; i++) {
			err = weft_nvme_read(b->qp, 1, next_place(b) * b->blocks, b->blocks,
					     buf_at(b, i));
			if (err)
				fail("a read", err);
		}
		samples[k] = (double)(clock_ns() - start);
	}
	return median_of(n);
}

static double measure_copies(struct bench *b, unsigned cnt)
{
	const size_t n = batches(cnt);
	uint64_t start;
	uint32_t i;
	size_t k;

	if (!b->memory) {
		b->memory = malloc(b->places * READ_BYTES);
		if (!b->memory)
			fail("memory", ENOMEM);
		memset(b->memory, 1, b->places * READ_BYTES);
	}
	for (k = 0; k < n; k++) {
		start = clock_ns();
		for (i = 0; i < BATCH; i++) {
			memcpy(buf_at(b, i), b->memory + next_place(b) * READ_BYTES, READ_BYTES);
			__asm__ volatile("" ::: "memory");
		}
		samples[k] = (double)(clock_ns() - start);
	}
	return median_of(n);
}

/* The other end of the line, on the other core: a round for each byte. */
static void *line_thread(void *arg)
{
	struct bench *b = arg;
	char byte;

	while (read(b->line_pipe[0], &byte, 1) == 1)
		cacheline_measure(b->line, 1);
	return NULL;
}

/* The thread is on its core from the beginning: on this one, which is ahead of it, it would never run. */
static void line_open(struct bench *b)
{
	pthread_attr_t attr;
	cpu_set_t set;
	int err;

	CPU_ZERO(&set);
	CPU_SET(b->cpus[1], &set);
	pthread_attr_init(&attr);
	if (b->cpus[1] >= 0)
		pthread_attr_setaffinity_np(&attr, sizeof(set), &set);
	b->line = cacheline_create();
	if (!b->line || pipe(b->line_pipe))
		fail("a cache line", ENOMEM);
	err = pthread_create(&b->line_thread, &attr, line_thread, b);
	if (err)
		fail("a thread", err);
	pthread_attr_destroy(&attr);
}

static double measure_line(struct bench *b)
{
	if (!b->line)
		line_open(b);
	if (write(b->line_pipe[1], "", 1) != 1)
		fail("a cache line", errno);
	return cacheline_measure(b->line, 0);
}

static void serve(struct bench *b)
{
	char what[16];
	unsigned cnt;

	printf("ready\n");
	fflush(stdout);
	while (scanf("%15s %u", what, &cnt) == 2) {
		if (!strcmp(what, "read")) {
			printf("%.2f\n", measure_reads(b, cnt));
		} else if (!strcmp(what, "floor")) {
			const double copy = measure_copies(b, cnt);

			printf("%.2f %.2f\n", copy, measure_line(b));
		} else {
			fail(what, EINVAL);
		}
		fflush(stdout);
	}
}

static const struct option options[] = {
	{ "lender", required_argument, NULL, 'l' }, { "lend", required_argument, NULL, 'o' },
	{ "state", required_argument, NULL, 's' },  { "cpus", required_argument, NULL, 'c' },
	{ "fill", no_argument, NULL, 'f' },	    { NULL, 0, NULL, 0 },
};

int main(int argc, char **argv)
{
	static const char *slots[SLOTS];
	struct bench b = { .cpus = { -1, -1 }, .seed = 88172645463325252u };
	int c;

	b.lend.slots = slots;
	b.lend.mode = 0600;
	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (c == 'l')
			b.socket = b.lend.socket = optarg;
		else if (c == 'o' && b.lend.slot_cnt < SLOTS)
			slots[b.lend.slot_cnt++] = optarg;
		else if (c == 's')
			b.lend.state = optarg;
		else if (c == 'f')
			b.fill = true;
		else if (c != 'c' || sscanf(optarg, "%d,%d", &b.cpus[0], &b.cpus[1]) != 2)
			return 2;
	}
	if (b.lend.slot_cnt)
		be_lender(&b);
	borrow(&b);
	pin(b.cpus[0]);
	if (b.fill)
		fill(&b);
	serve(&b);
	give_back(&b);
	return 0;
}
