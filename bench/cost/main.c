/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * weft-cost: messages from one endpoint to another one of the same process, one at a time and each
 * answered, for strace and callgrind to count what they take: what two runs of different length
 * differ by.
 *
 *	strace -fc weft-cost PROVIDER BYTES COUNT
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>
#include "end.h"

/* An endpoint, its peer, and the bytes of its messages. */
struct side {
	struct end end;
	fi_addr_t peer;
	char *in, *out;
};

static void side_open(struct side *s, const char *provider, size_t len)
{
	end_open(&s->end, provider, FI_FORMAT_UNSPEC);
	s->in = calloc(1, len);
	s->out = calloc(1, len);
	CHECK(s->in && s->out);
}

static void side_close(struct side *s)
{
	end_close(&s->end);
	free(s->in);
	free(s->out);
}

/* One message, until both ends have completed it. */
static void pass(struct side *from, struct side *to, size_t len)
{
	uint32_t done = 0;
	ssize_t ret;

	CHECK(!fi_trecv(to->end.ep, to->in, len, NULL, to->peer, 1, 0, NULL));
	while ((ret = fi_tsend(from->end.ep, from->out, len, NULL, from->peer, 1, NULL)) ==
	       -FI_EAGAIN)
		done += end_turn(&from->end);
	CHECK(!ret);
	while (done < 2) {
		done += end_turn(&to->end);
		if (done < 2)
			done += end_turn(&from->end);
	}
}

int main(int argc, char **argv)
{
	struct side a = { 0 }, b = { 0 };
	unsigned long len, cnt;

	if (argc != 4) {
		fprintf(stderr, "usage: weft-cost PROVIDER BYTES COUNT\n");
		return 2;
	}
	len = strtoul(argv[2], NULL, 0);
	cnt = strtoul(argv[3], NULL, 0);
	/* One call, which two runs don't differ by; callgrind takes less than 10 ms for a message. */
	alarm(60 + (unsigned int)(cnt / 100));
	side_open(&a, argv[1], len);
	side_open(&b, argv[1], len);
	a.peer = end_insert(&a.end, &b.end);
	b.peer = end_insert(&b.end, &a.end);
	for (unsigned long i = 0; i < cnt; i++) {
		pass(&a, &b, len);
		pass(&b, &a, len);
	}
	side_close(&a);
	side_close(&b);
	return 0;
}
