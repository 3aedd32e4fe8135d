/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * weft-remote - what a device of another host costs, beside one of this host and beside a round trip of the provider:
 *
 *	weft-remote echo HOST PORT			at the device's host: answers messages (trip.h)
 *	weft-remote run SOCKET LENDER HOST PORT PID	SOCKET is the lender's of this host (the mapped way), LENDER its name
 *							over the network, PID the controller's
 *
 * 'run' does what each line of standard input says, WAY OP DEPTH LEN COUNT, and answers by a line: ns of the median
 * one at depth 1 (else of each), ns of each, of the processor here, and of that of the controller, or the echo's is not
 * counted. WAY is trip, mapped, device or borrower (remote, with queues near the one or the other); OP is read or write,
 * and of a trip message too, which has LEN bytes each way. A trip of the others has what a device would be told and tell.
 * bench/remote/run starts what is needed, and gives the lines. The provider is that of WEFT_FABRIC.
 */
#define _GNU_SOURCE
#include <err.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <weft/nvme.h>

#include "clock.h"
#include "trip.h"

#define DISK	   (32u << 20)
#define DEPTH_MAX  64u
#define LEN_MAX	   (128u << 10)
#define COUNT_MAX  100000u
#define WARM	   32u
#define COMMAND	   80u /* bytes of a command with the head of its message */
#define COMPLETION 32u /* and of a completion with one */

enum op { OP_MESSAGE, OP_READ, OP_WRITE };

/* struct job - what a line asks for */
struct job {
	enum op op;
	uint32_t depth;
	uint32_t len;
	uint32_t count;
};

/* struct side - a device as it is borrowed */
struct side {
	struct weft_lender *lender;
	struct weft_device *dev;
	struct weft_window *window;
};

struct bench {
	struct side local, remote;
	struct trip *trip;
	uint8_t *mem;
	clockid_t device;
	uint64_t seed;
};

static uint64_t samples[COUNT_MAX];

static uint64_t read_clock(clockid_t id)
{
	struct timespec t;

	if (clock_gettime(id, &t))
		errx(1, "the controller is gone");
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static void side_open(struct side *s, const char *lender, struct weft_segment *seg)
{
	struct weft_borrow_attr attr = { .size = sizeof(attr), .flags = WEFT_BORROW_SHARED };
	int ret = weft_lender_open(lender, NULL, &s->lender);

	if (!ret)
		ret = weft_device_borrow(s->lender, &attr, &s->dev);
	if (!ret)
		ret = weft_window_open(s->dev, seg, WEFT_WINDOW_RW, &s->window);
	if (ret)
		errx(1, "%s: %s", lender, strerror(-ret));
}

static struct weft_nvme *pair_open(struct side *s, uint32_t depth, uint32_t flags)
{
	struct weft_nvme_attr attr = { .size = sizeof(attr), .depth = depth, .flags = flags };
	struct weft_nvme *qp;
	int ret = weft_nvme_open(s->dev, &attr, &qp);

	if (ret)
		errx(1, "a queue pair: %s", strerror(-ret));
	return qp;
}

static void go_trips(struct bench *b, const struct job *job)
{
	size_t there = job->op == OP_MESSAGE ? job->len : COMMAND;
	size_t back = job->op == OP_MESSAGE ? job->len : COMPLETION;

	if (job->op == OP_READ)
		back = 16 + job->len;
	if (job->op == OP_WRITE)
		there += job->len;
	for (uint32_t i = 0; i < job->count; i++) {
		uint64_t begin = clock_ns();

		trip_go(b->trip, there, back);
		samples[i] = clock_ns() - begin;
	}
}

static struct weft_nvme_command any_command(struct bench *b, const struct job *job, uint32_t i)
{
	uint32_t blocks = job->len / 512;

	b->seed = b->seed * 6364136223846793005ULL + 1;
	return (struct weft_nvme_command){
		.opcode = job->op == OP_READ ? WEFT_NVME_READ : WEFT_NVME_WRITE,
		.nsid = 1,
		.lba = (b->seed >> 33) % (DISK / job->len) * blocks,
		.blocks = blocks,
		.buf = b->mem + (size_t)i * job->len,
		.arg = (void *)(uintptr_t)i,
	};
}

static void go_one_by_one(struct bench *b, struct weft_nvme *qp, const struct job *job)
{
	for (uint32_t i = 0; i < job->count; i++) {
		struct weft_nvme_command c = any_command(b, job, 0);
		struct weft_nvme_completion done = { 0 };
		uint64_t begin = clock_ns();

		if (weft_nvme_submit(qp, &c, 1) != 1 || weft_nvme_wait(qp, &done, 1, -1) != 1 ||
		    done.status)
			errx(1, "a command: %s", strerror(-done.status));
		samples[i] = clock_ns() - begin;
	}
}

static void go_deep(struct bench *b, struct weft_nvme *qp, const struct job *job)
{
	struct weft_nvme_command commands[DEPTH_MAX];
	struct weft_nvme_completion done[DEPTH_MAX];
	uint32_t begun = 0, ended = 0, n = job->depth;
	ssize_t ret;

	for (uint32_t i = 0; i < n; i++)
		commands[i] = any_command(b, job, i);
	while (ended < job->count) {
		n = job->count - begun < n ? job->count - begun : n;
		if (n && weft_nvme_submit(qp, commands, n) != n)
			errx(1, "can't submit");
		begun += n;
		ret = weft_nvme_wait(qp, done, DEPTH_MAX, -1);
		if (ret < 0)
			errx(1, "can't wait: %s", strerror((int)-ret));
		for (n = 0; n < ret; n++) {
			if (done[n].status)
				errx(1, "a command: %s", strerror(-done[n].status));
			commands[n] = any_command(b, job, (uint32_t)(uintptr_t)done[n].arg);
		}
		ended += n;
	}
}

static void go(struct bench *b, struct weft_nvme *qp, const struct job *job)
{
	if (!qp)
		go_trips(b, job);
	else if (job->depth == 1)
		go_one_by_one(b, qp, job);
	else
		go_deep(b, qp, job);
}

static void measure(struct bench *b, struct weft_nvme *qp, const struct job *job)
{
	struct job warm = *job;
	uint64_t own, device, begin, each;

	warm.count = WARM;
	go(b, qp, &warm);
	own = read_clock(CLOCK_PROCESS_CPUTIME_ID);
	device = read_clock(b->device);
	begin = clock_ns();
	go(b, qp, job);
	each = (clock_ns() - begin) / job->count;
	own = (read_clock(CLOCK_PROCESS_CPUTIME_ID) - own) / job->count;
	device = (read_clock(b->device) - device) / job->count;
	if (job->depth == 1)
		qsort(samples, job->count, sizeof(*samples), by_value);
	printf("%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n",
	       job->depth == 1 ? samples[job->count / 2] : each, each, own, device);
	fflush(stdout);
}

/* Returns whether the line asks for something that there is. */
static bool parse(const char *line, char way[16], struct job *job)
{
	char op[16];

	if (sscanf(line, "%15s %15s %" SCNu32 " %" SCNu32 " %" SCNu32, way, op, &job->depth,
		   &job->len, &job->count) != 5)
		return false;
	job->op = !strcmp(op, "read") ? OP_READ : !strcmp(op, "write") ? OP_WRITE : OP_MESSAGE;
	return job->depth && job->depth <= DEPTH_MAX && job->len <= LEN_MAX && job->count &&
	       job->count <= COUNT_MAX &&
	       (job->op == OP_MESSAGE ? job->len >= 4 : job->len && job->len % 512 == 0);
}

static void obey(struct bench *b, const char *line)
{
	struct weft_nvme *qp = NULL;
	struct job job;
	char way[16];

	if (!parse(line, way, &job))
		errx(2, "no such line: %s", line);
	if (!strcmp(way, "mapped"))
		qp = pair_open(&b->local, job.depth, 0);
	else if (!strcmp(way, "device"))
		qp = pair_open(&b->remote, job.depth, 0);
	else if (!strcmp(way, "borrower"))
		qp = pair_open(&b->remote, job.depth, WEFT_NVME_NEAR_BORROWER);
	measure(b, qp, &job);
	if (qp)
		weft_nvme_close(qp);
}

/* Each block is written, so that it has memory. */
static void fill(struct bench *b)
{
	struct weft_nvme *qp = pair_open(&b->local, 1, 0);

	for (uint32_t lba = 0; lba < DISK / 512; lba += LEN_MAX / 512)
		if (weft_nvme_write(qp, 1, lba, LEN_MAX / 512, b->mem))
			errx(1, "can't write");
	weft_nvme_close(qp);
}

static void run(char **arg)
{
	static struct bench b = { .seed = 1 };
	struct weft_segment *seg;
	char line[128];

	if (weft_segment_alloc(NULL, (size_t)DEPTH_MAX * LEN_MAX, 0, &seg))
		errx(1, "no memory");
	b.mem = weft_segment_mem(seg);
	memset(b.mem, 7, (size_t)DEPTH_MAX * LEN_MAX);
	if (clock_getcpuclockid(atoi(arg[4]), &b.device))
		errx(1, "no process %s", arg[4]);
	side_open(&b.local, arg[0], seg);
	side_open(&b.remote, arg[1], seg);
	fill(&b);
	b.trip = trip_open(arg[2], arg[3]);
	printf("ready\n");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin))
		obey(&b, line);
	weft_device_return(b.local.dev);
	weft_device_return(b.remote.dev);
}

int main(int argc, char **argv)
{
	if (argc == 4 && !strcmp(argv[1], "echo"))
		trip_echo(argv[2], argv[3]);
	else if (argc == 7 && !strcmp(argv[1], "run"))
		run(argv + 2);
	else
		errx(2, "usage: %s echo HOST PORT, or run SOCKET LENDER HOST PORT PID", argv[0]);
	return 0;
}
