/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * bridge - what a device takes over a bridge, or without one, in machines
 *
 * usage: bridge LENDER
 *
 * Prints how long a doorbell takes through the relay and back, where the device is another machine's, and what commands
 * take, one at a time and eight. The blocks that are read are checked to be the same each time.
 */
#define _GNU_SOURCE
#include <err.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bridge.h"
#include "nvme.h"

#define NSID	 1u
#define DEPTH	 8u
#define LONG_LEN 65536u
#define SHORT	 4096u
#define BLOCK	 512u
#define PINGS	 500u
#define COMMANDS 400u
#define LATE_S	 60

/* struct use - what is borrowed */
struct use {
	struct weft_lender *lender;
	struct weft_device *dev;
	struct weft_segment *seg;
	struct weft_window *window;
	struct weft_nvme *qp;
	uint8_t *memory;
};

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void must(int ret, const char *what)
{
	if (ret)
		errx(1, "%s: %s", what, strerror(-ret));
}

static void use_begin(struct use *u, const char *lender)
{
	struct weft_borrow_attr attr = { .size = sizeof(attr),
					 .flags = WEFT_BORROW_SHARED,
					 .ms = 60000 };
	struct weft_nvme_attr pair = { .size = sizeof(pair), .depth = DEPTH };

	must(weft_lender_open(lender, NULL, &u->lender), "the lender");
	must(weft_device_borrow(u->lender, &attr, &u->dev), "borrowing");
	must(weft_segment_alloc(NULL, (size_t)DEPTH * LONG_LEN, 0, &u->seg), "a segment");
	must(weft_window_open(u->dev, u->seg, WEFT_WINDOW_RW, &u->window), "a window");
	must(weft_nvme_open(u->dev, &pair, &u->qp), "a queue pair");
	u->memory = weft_segment_mem(u->seg);
}

static int by_time(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static double median(double *times, unsigned cnt)
{
	qsort(times, cnt, sizeof(*times), by_time);
	return times[cnt / 2];
}

/* A word to the process at the device and back: twice what a doorbell waits for the relay */
static void ping(struct weft_nvme *qp)
{
	struct bridge_words *words = (struct bridge_words *)(void *)qp->sq_bell;
	static double times[PINGS];

	for (uint32_t i = 1; i <= PINGS; i++) {
		double since = now_s();

		__atomic_store_n(&words->ping, i, __ATOMIC_RELEASE);
		while (__atomic_load_n(&words->pong, __ATOMIC_ACQUIRE) != i) {
			if (now_s() - since > LATE_S)
				errx(1, "no answer of the relay");
			sched_yield();
		}
		times[i - 1] = now_s() - since;
	}
	printf("a word to the relay and back: %.1f us\n", median(times, PINGS) * 1e6);
}

static void one_at_a_time(struct use *u)
{
	static double times[COMMANDS];
	static uint8_t first[SHORT];

	for (unsigned i = 0; i < COMMANDS; i++) {
		double since = now_s();

		must(weft_nvme_read(u->qp, NSID, 0, SHORT / BLOCK, u->memory), "a read");
		times[i] = now_s() - since;
		if (!i)
			memcpy(first, u->memory, SHORT);
		else if (memcmp(first, u->memory, SHORT))
			errx(1, "what is read is not the same again");
	}
	printf("a read of 4 KiB: %.1f us\n", median(times, COMMANDS) * 1e6);
}

static void some_at_a_time(struct use *u)
{
	struct weft_nvme_completion done[DEPTH];
	unsigned begun = 0, ended = 0;
	double since = now_s();

	while (ended < COMMANDS) {
		ssize_t n;

		while (begun < COMMANDS && begun - ended < DEPTH) {
			struct weft_nvme_command c = {
				.opcode = WEFT_NVME_READ,
				.nsid = NSID,
				.lba = begun * (uint64_t)(LONG_LEN / BLOCK) % 8192,
				.blocks = LONG_LEN / BLOCK,
				.buf = u->memory + begun % DEPTH * (size_t)LONG_LEN,
			};

			n = weft_nvme_submit(u->qp, &c, 1);
			if (n != 1)
				errx(1, "a read: %s", strerror((int)-n));
			begun++;
		}
		n = weft_nvme_wait(u->qp, done, DEPTH, LATE_S * 1000);
		if (n <= 0)
			errx(1, "no completion");
		for (ssize_t i = 0; i < n; i++)
			must(done[i].status, "a read");
		ended += (unsigned)n;
	}
	printf("reads of 64 KiB, %u at a time: %.1f us each\n", DEPTH,
	       (now_s() - since) / COMMANDS * 1e6);
}

int main(int argc, char **argv)
{
	struct use u;

	if (argc != 2)
		errx(2, "usage: bridge LENDER");
	use_begin(&u, argv[1]);
	if (u.qp->bridge)
		ping(u.qp);
	one_at_a_time(&u);
	some_at_a_time(&u);
	must(weft_device_return(u.dev), "returning");
	return 0;
}
