/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Choosing among copies by measuring them. */
#include "copies.h"
#include "copy.h"
#include "copying.h"

/* Copies of the fastest kind between two of another one. */
#define TRY_EVERY 32u

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

/* The less of the last two: the other one may have been interrupted. */
static uint32_t least(const struct pshm_copy_choice *c, uint32_t kind)
{
	return c->cost[kind][0] < c->cost[kind][1] ? c->cost[kind][0] : c->cost[kind][1];
}

static void choose(struct pshm_copy_choice *c)
{
	uint32_t best = PSHM_COPY_BULK;

	for (uint32_t kind = 0; kind < PSHM_COPY_KINDS; kind++)
		if (least(c, kind) && least(c, kind) < least(c, best))
			best = kind;
	c->kind = best;
}

/* Returns the kind of the next copy: the fastest one, but now and then another one, to measure it. */
static enum pshm_copy_kind next_kind(struct pshm_copy_choice *c)
{
	if (likely(++c->since < TRY_EVERY && least(c, c->next)))
		return c->kind;
	c->since = 0;
	c->next = (c->next + 1) % PSHM_COPY_KINDS;
	return c->next;
}

static void measured(struct pshm_copy_choice *c, enum pshm_copy_kind kind, uint64_t ns,
		     size_t len)
{
	uint64_t cost = ns * 1000 / len;

	c->cost[kind][1] = c->cost[kind][0];
	c->cost[kind][0] = cost ? (cost < UINT32_MAX ? (uint32_t)cost : UINT32_MAX) : 1;
	choose(c);
}

void pshm_copy_to_iov(struct pshm_copying *copying, const struct iovec *iov, size_t cnt,
		      size_t skip, const void *from, size_t len, size_t total)
{
	struct pshm_copy_choice *c = &copying->choices[total > PSHM_COPY_LONG];
	enum pshm_copy_kind kind;
	uint64_t begin;

	if (cnt != 1 || skip > iov->iov_len || len > iov->iov_len - skip) {
		copy_to_iov(iov, cnt, skip, from, len);
		return;
	}
	if (len < PSHM_MEASURED_MIN) {
		copy_bytes((char *)iov->iov_base + skip, from, len);
		return;
	}
	kind = next_kind(c);
	begin = platform_now_ns();
	copies[kind]((char *)iov->iov_base + skip, from, len);
	measured(c, kind, platform_now_ns() - begin, len);
}
