/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Choosing among copies by trials. All kinds are measured within one trial, one after the other, so that
 * what the machine does besides slows all of them alike; between trials the clock is not read.
 */
#include "copies.h"
#include "copy.h"
#include "copying.h"

/*
 * Copies of each kind in a trial, of which the fastest counts: the first one finds the caches as the kind
 * before it has left them, and one may be interrupted.
 */
#define RUN   3u
#define TRIAL (RUN * PSHM_COPY_KINDS)
/* Copies from the end of the first trial to the next one, which may find less that is touched first */
#define GAP_MIN 16u
/* Most copies between two trials: those of slower kinds then take about a hundredth of the time */
#define GAP_MAX 1024u
/* Another kind is taken if it is faster by more than this part. */
#define MARGIN 16u

static void copy_library(void *to, const void *from, size_t len)
{
	memcpy(to, from, len);
}

static void (*const copies[])(void *to, const void *from, size_t len) = {
	[PSHM_COPY_BULK] = copy_bulk,
	[PSHM_COPY_LIBRARY] = copy_library,
	[PSHM_COPY_WHOLE] = processor_copy_whole,
	[PSHM_COPY_STREAMING] = processor_copy_streaming,
};

/* Takes the fastest kind, and plans the next trial. */
static void trial_end(struct pshm_copy_choice *c)
{
	uint32_t best = 0, last = c->cost[c->kind];

	for (uint32_t kind = 1; kind < PSHM_COPY_KINDS; kind++)
		if (c->cost[kind] < c->cost[best])
			best = kind;
	if (c->cost[best] < last - last / MARGIN)
		c->kind = best;
	c->gap = !c->gap ? GAP_MIN : c->gap < GAP_MAX ? 2 * c->gap : GAP_MAX;
	c->left = c->gap;
	c->tried = 0;
}

/* Makes the next copy of a trial. */
static void try_copy(struct pshm_copy_choice *c, void *to, const void *from, size_t len)
{
	uint32_t kind = c->tried / RUN;
	uint64_t begin = platform_now_ns(), cost;

	copies[kind](to, from, len);
	cost = (platform_now_ns() - begin) * 1000 / len;
	if (cost > UINT32_MAX)
		cost = UINT32_MAX;
	if (c->tried % RUN == 0 || cost < c->cost[kind])
		c->cost[kind] = (uint32_t)cost;
	if (++c->tried == TRIAL)
		trial_end(c);
}

struct pshm_copy_choice *pshm_copy_choice(struct pshm_copying *copying, enum pshm_copy_use use,
					  size_t total)
{
	uint32_t length = (total > 64u << 10) + (total > 256u << 10) + (total > 1u << 20);

	return &copying->choices[use][length];
}

void pshm_copy_to_iov(struct pshm_copy_choice *c, const struct iovec *iov, size_t cnt,
		      size_t skip, const void *from, size_t len)
{
	char *to;

	if (cnt != 1 || skip > iov->iov_len || len > iov->iov_len - skip) {
		copy_to_iov(iov, cnt, skip, from, len);
		return;
	}
	to = (char *)iov->iov_base + skip;
	if (len < PSHM_MEASURED_MIN) {
		copy_bytes(to, from, len);
		return;
	}
	if (unlikely(!c->left)) {
		try_copy(c, to, from, len);
		return;
	}
	c->left--;
	copies[c->kind](to, from, len);
}
