/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * First messages; first.h has the contract. Called by 'weft bench' on both sides.
 */
#define _GNU_SOURCE
#include "first.h"
#include "clock.h"

#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

#define SMALL	  8
#define SMALL_CNT 8 /* in each direction, before the one that is timed */

struct first {
	struct channel ch;
	struct channel_buf in[SMALL_CNT + 1];
	struct channel_buf out;
	char *mem;
	size_t size;
};

static size_t len_of(const struct first *f, unsigned i)
{
	return i < SMALL_CNT ? SMALL : f->size;
}

/* All receives are there before the first message, in the order of the messages. */
static int prepare(struct first *f)
{
	size_t room = f->size + SMALL;
	unsigned i;
	int rc;

	f->mem = calloc(SMALL_CNT + 2, room);
	if (!f->mem)
		return fabric_complain("messages", -FI_ENOMEM);
	memset(f->mem, 1, (SMALL_CNT + 2) * room);
	rc = channel_buf_init(&f->ch, &f->out, f->mem, room, 0);
	for (i = 0; i <= SMALL_CNT && !rc; i++) {
		rc = channel_buf_init(&f->ch, &f->in[i], f->mem + (i + 1) * room, room, i);
		if (!rc)
			rc = channel_recv(&f->ch, &f->in[i], room);
	}
	return rc;
}

static int send_one(struct first *f, unsigned i)
{
	int rc = channel_wait_op(&f->ch, &f->out.op);

	return rc ? rc : channel_send(&f->ch, &f->out, len_of(f, i));
}

static int bounce(struct first *f, uint64_t *taken)
{
	bool serves = f->ch.side->rank == 0;
	uint64_t start = 0;
	unsigned i;
	int rc = 0;

	for (i = 0; i <= SMALL_CNT && !rc; i++) {
		start = clock_ns();
		if (serves)
			rc = send_one(f, i);
		if (!rc)
			rc = channel_wait_op(&f->ch, &f->in[i].op);
		if (!rc && !serves)
			rc = send_one(f, i);
	}
	*taken = clock_ns() - start;
	return rc ? rc : channel_wait_op(&f->ch, &f->out.op);
}

int first_run(const struct plan *plan, const struct channel_options *opt, struct side *side,
	      size_t size, uint64_t *taken)
{
	struct first f = { .size = size };
	unsigned i;
	int rc;

	*taken = 0;
	rc = channel_open(&f.ch, plan, opt, side);
	if (rc)
		return rc;
	rc = prepare(&f);
	if (oob_barrier(&side->oob, rc) && !rc)
		rc = -FI_ECONNABORTED;
	if (!rc)
		rc = bounce(&f, taken);
	/* Neither closes before the other has its message. */
	if (oob_barrier(&side->oob, rc) && !rc)
		rc = -FI_ECONNABORTED;
	for (i = 0; i <= SMALL_CNT; i++)
		channel_buf_fini(&f.in[i]);
	channel_buf_fini(&f.out);
	channel_close(&f.ch);
	free(f.mem);
	return rc;
}
