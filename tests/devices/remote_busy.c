/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * remote_busy LENDER [MS] - have commands under way until something ends that
 *
 * Borrows for MS and again and again, says 'busy', and reads and writes at depth 16. At the end nothing is under way, and
 * nothing is written to its memory any more: it says 'ended'.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <weft/nvme.h>

#define DEPTH 16u
#define LEN   65536u

static void fail(const char *what, long err)
{
	printf("%s: %ld\n", what, err);
	exit(1);
}

static void must(const char *what, int err)
{
	if (err)
		fail(what, err);
}

static struct weft_nvme_command command_of(uint8_t *mem, uintptr_t i, uint32_t round)
{
	return (struct weft_nvme_command){
		.opcode = (i + round) % 2 ? WEFT_NVME_READ : WEFT_NVME_WRITE,
		.nsid = 1,
		.lba = i * LEN / 512,
		.blocks = (round % 3 ? 4096 : LEN) / 512,
		.buf = mem + i * LEN,
		.arg = (void *)i,
	};
}

int main(int argc, char **argv)
{
	struct weft_borrow_attr borrow = { .size = sizeof(borrow),
					   .flags = WEFT_BORROW_SHARED,
					   .ms = argc > 2 ? (uint32_t)atoi(argv[2]) : 0 };
	struct weft_nvme_attr attr = { .size = sizeof(attr), .depth = DEPTH };
	struct weft_nvme_completion done[DEPTH];
	uint32_t under_way = 0, round = 0, cancelled = 0;
	struct weft_lender *lender;
	struct weft_device *dev;
	struct weft_segment *seg;
	struct weft_window *window;
	struct weft_nvme *qp;
	uint8_t *mem;
	ssize_t n;
	size_t k;

	must("open", weft_lender_open(argv[1], NULL, &lender));
	must("borrow", weft_device_borrow(lender, &borrow, &dev));
	must("queue pair", weft_nvme_open(dev, &attr, &qp));
	must("segment", weft_segment_alloc(NULL, (size_t)DEPTH * LEN, 0, &seg));
	must("window", weft_window_open(dev, seg, WEFT_WINDOW_RW, &window));
	mem = weft_segment_mem(seg);
	for (uintptr_t i = 0; i < DEPTH; i++) {
		struct weft_nvme_command c = command_of(mem, i, round);

		n = weft_nvme_submit(qp, &c, 1);
		if (n != 1)
			fail("submit", n);
		under_way++;
	}
	while (under_way) {
		n = weft_nvme_wait(qp, done, DEPTH, 60000);
		if (n <= 0)
			fail("wait", n);
		if (++round == 100) {
			printf("busy\n");
			fflush(stdout);
		}
		under_way -= (uint32_t)n;
		for (ssize_t i = 0; i < n; i++) {
			struct weft_nvme_command c = command_of(mem, (uintptr_t)done[i].arg,
								round + (uint32_t)i);

			cancelled += done[i].status == -ECANCELED;
			if (done[i].status && done[i].status != -ECANCELED)
				fail("a command", done[i].status);
			if (done[i].status || cancelled)
				continue;
			if (weft_nvme_submit(qp, &c, 1) == 1)
				under_way++;
		}
	}
	memset(mem, 0x77, (size_t)DEPTH * LEN);
	n = weft_nvme_poll(qp, done, DEPTH);
	if (n >= 0)
		fail("poll", n);
	usleep(100000);
	weft_nvme_poll(qp, done, DEPTH);
	for (k = 0; k < (size_t)DEPTH * LEN; k++)
		if (mem[k] != 0x77)
			fail("memory that is the program's again was written at", (long)k);
	must("close", weft_window_close(window));
	must("free", weft_segment_free(seg));
	weft_nvme_close(qp);
	weft_device_return(dev);
	printf("ended: %u cancelled, %zd\n", cancelled, n);
	return weft_lender_close(lender) != 0;
}
