/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A namespace in anonymous memory of the controller. Every piece ends within start(): it is a copy. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "nvme/spec.h"
#include "segments.h"

/* A round of other queues passes between two slices of one: as long as a few small commands. */
#define SLICE  (16u * 1024)
#define ZEROES (256u * 1024)

struct memory {
	struct backend b;
	uint8_t *bytes;
};

/* Whole pages are given back to the system; they are zeros when they are touched again. */
static void deallocate(uint8_t *at, uint64_t len)
{
	uint64_t head = -(uintptr_t)at & (NVME_PAGE - 1);
	uint64_t pages;

	if (head > len)
		head = len;
	memset(at, 0, head);
	pages = (len - head) & ~(uint64_t)(NVME_PAGE - 1);
	if (pages && madvise(at + head, pages, MADV_DONTNEED))
		memset(at + head, 0, pages);
	memset(at + head + pages, 0, len - head - pages);
}

static bool memory_start(struct backend *b, struct piece *p)
{
	uint8_t *at = ((struct memory *)b)->bytes + p->offset;

	p->status = NVME_SC_SUCCESS;
	switch (p->op) {
	case PIECE_READ:
		segments_scatter(p, at);
		break;
	case PIECE_WRITE:
		segments_gather(p, at);
		break;
	case PIECE_COMPARE:
		p->status = segments_compare(p, at);
		break;
	case PIECE_ZERO:
		memset(at, 0, p->len);
		break;
	case PIECE_DEALLOCATE:
	case PIECE_DISCARD:
		deallocate(at, p->len);
		break;
	case PIECE_FLUSH:
		break;
	}
	return true;
}

static void memory_submit(struct backend *b)
{
}

static uint32_t memory_reap(struct backend *b, void (*done)(void *, struct piece *), void *arg)
{
	return 0;
}

static int memory_event(struct backend *b)
{
	return -1;
}

static void memory_close(struct backend *b)
{
	struct memory *m = (struct memory *)b;

	munmap(m->bytes, m->b.len);
	free(m);
}

static const struct backend_ops memory_ops = {
	.slice = SLICE,
	.zeroes = ZEROES,
	.start = memory_start,
	.submit = memory_submit,
	.reap = memory_reap,
	.event = memory_event,
	.close = memory_close,
};

int backend_memory_open(uint64_t len, struct backend **b)
{
	struct memory *m = calloc(1, sizeof(*m));
	int ret;

	if (!m)
		return -ENOMEM;
	m->b = (struct backend){ .ops = &memory_ops, .len = len, .how = "memory" };
	m->bytes = mmap(NULL, len, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (m->bytes == MAP_FAILED) {
		ret = -errno;
		free(m);
		return ret;
	}
	/* Fewer misses of the TLB; what is deallocated in the middle of one splits it. */
	madvise(m->bytes, len, MADV_HUGEPAGE);
	*b = &m->b;
	return 0;
}
