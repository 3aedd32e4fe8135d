/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Reads blocks of a borrowed NVMe controller, by libweft-device alone:
 *	cc nvme.c $(pkg-config --cflags --libs weft-device)
 * First one block at a time, then all of them at once by a single doorbell; both have to give the same bytes. Nothing is
 * written. Without an argument it asks the lender that WEFT_LENDER names; the argument is a lender's socket or host. With
 * a ticket in WEFT_TICKET, as 'weft devices borrow -- ./a.out' has it there, it uses that lease instead of one of its own.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <weft/nvme.h>

enum { READS = 32 };

static void check(const char *what, ssize_t ret)
{
	if (ret >= 0)
		return;
	fprintf(stderr, "%s: %s\n", what, strerror((int)-ret));
	exit(1);
}

static double now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

/* Memory that the device may write to. Windows are closed by weft_device_leave(). */
static struct weft_segment *memory(struct weft_device *dev, size_t len)
{
	struct weft_segment *seg;
	struct weft_window *window;

	check("memory", weft_segment_alloc(NULL, len, 0, &seg));
	check("a window of the device", weft_window_open(dev, seg, WEFT_WINDOW_WRITE, &window));
	return seg;
}

/* A lease of one's own, or what the ticket is for. */
static struct weft_device *device(const char *name, const char *ticket,
				  struct weft_lender **lender)
{
	struct weft_device *dev;

	if (ticket) {
		check("a lender", weft_lender_open_ticket(name, ticket, NULL, lender));
		check("the lease", weft_device_attach(*lender, ticket, &dev));
	} else {
		check("a lender", weft_lender_open(name, NULL, lender));
		check("a device", weft_device_borrow(*lender, NULL, &dev));
	}
	return dev;
}

/* Begins a read of each block, and waits until all have ended. */
static void read_at_once(struct weft_nvme *qp, char *mem, uint32_t block_size)
{
	struct weft_nvme_command commands[READS] = { 0 };
	struct weft_nvme_completion done[READS];
	ssize_t begun = 0, ended = 0, ret;

	for (uint32_t i = 0; i < READS; i++) {
		commands[i].opcode = WEFT_NVME_READ;
		commands[i].nsid = 1;
		commands[i].lba = i;
		commands[i].blocks = 1;
		commands[i].buf = mem + i * block_size;
	}
	while (ended < READS) {
		ret = begun < READS
			      ? weft_nvme_submit(qp, commands + begun, (size_t)(READS - begun))
			      : 0;
		check("submit", ret == -EAGAIN ? 0 : ret);
		begun += ret > 0 ? ret : 0;
		ret = weft_nvme_wait(qp, done, READS, -1);
		check("wait", ret);
		for (ssize_t i = 0; i < ret; i++)
			check("read", done[i].status);
		ended += ret;
	}
}

int main(int argc, char **argv)
{
	struct weft_nvme_namespace ns;
	struct weft_lender *lender;
	struct weft_segment *seg;
	struct weft_device *dev;
	struct weft_nvme *qp;
	double one, all;
	char *mem;
	bool same;

	dev = device(argc > 1 ? argv[1] : NULL, getenv("WEFT_TICKET"), &lender);
	check("a queue pair", weft_nvme_open(dev, NULL, &qp));
	check("namespace 1", weft_nvme_namespace(dev, 1, &ns));
	if (ns.blocks < READS)
		check("namespace 1", -ENOSPC);
	seg = memory(dev, 2 * READS * (size_t)ns.block_size);
	mem = weft_segment_mem(seg);

	one = now_us();
	for (uint32_t i = 0; i < READS; i++)
		check("read", weft_nvme_read(qp, 1, i, 1, mem + i * ns.block_size));
	all = now_us();
	one = all - one;
	read_at_once(qp, mem + READS * ns.block_size, ns.block_size);
	all = now_us() - all;
	same = !memcmp(mem, mem + READS * ns.block_size, READS * ns.block_size);
	printf("%s: %d blocks of %u bytes, one at a time: %.1f us, at once: %.1f us; %s\n",
	       weft_device_info(dev)->name, READS, ns.block_size, one, all,
	       same ? "the same bytes" : "other bytes");

	weft_device_leave(dev);
	weft_segment_free(seg);
	weft_lender_close(lender);
	return same ? 0 : 1;
}
