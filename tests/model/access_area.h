/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Two sides that access each other's memory over a real provider, as threads and as processes. What
 * is not as it should be ends the test.
 */
#ifndef WEFT_ACCESS_AREA_H
#define WEFT_ACCESS_AREA_H

#include <setjmp.h>
#include <stdarg.h>
#include <rdma/fi_rma.h>
#include "pair_run.h"
#include <cmocka.h>

#define REGION	 (4u << 20)
#define KEY	 7
#define KEY_READ 8 /* of the same memory: may be read only */
#define KEY_ALL	 9 /* all memory */

/* The provider under test, which main() sets. */
extern const char *provider;
/* The memory of both sides is in the arena (weft/mem.h); main() sets it */
extern bool in_arena;
/* access_begin - set both from a program's arguments, PROVIDER [arena]. Returns 0, or the status to exit with */
int access_begin(int argc, char **argv);
/* Contexts of operations. */
extern struct fi_context2 contexts[8];
/* Lengths around every limit, ascending. */
#define SIZES 21
extern const size_t sizes[SIZES];

/* Memory of one side: target of the other one's operations, and its own buffers. */
struct area {
	uint8_t *region, *buf, *copy;
	struct fid_mr *mr, *read_only, *all;
};

/* next_random - the next number of a sequence; fill - write such numbers */
uint32_t next_random(uint64_t *seed);
void fill(uint8_t *at, size_t len, uint64_t seed);

/* area_open - register what the other side accesses; area_close - once that side is done as well */
void area_open(struct pair_side *s, struct area *a);
void area_close(struct pair_side *s, struct area *a);

/* passive - a side that is accessed, and does nothing itself */
void passive(struct pair_side *s);

/* read_back - read the other side's memory, which has to be as a->buf */
void read_back(struct pair_side *s, struct area *a, size_t at, size_t len);

/* both - run two sides as processes, and as threads. @order: of pair_attr */
void both(pair_role first, pair_role second, uint64_t order);

/* Call again while there is no room. */
#define POST(s, call)                                   \
	do {                                            \
		ssize_t posted;                         \
		while ((posted = (call)) == -FI_EAGAIN) \
			fi_cq_read((s)->cq, NULL, 0);   \
		PAIR_CHECK(s, !posted);                 \
	} while (0)

#endif
