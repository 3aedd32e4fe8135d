/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A checksum of what one window of a file holds. It is against accidents, and not against a peer: whoever changes the
 * bytes on purpose can change the sum too. Any thread.
 */
#ifndef WEFT_TOOLS_COPY_SUM_H
#define WEFT_TOOLS_COPY_SUM_H

#include <stddef.h>
#include <stdint.h>

#define COPY_SUM_LANES 4
/* all pieces of a window but the last have a multiple of this */
#define COPY_SUM_STEP (COPY_SUM_LANES * sizeof(uint64_t))

/* struct copy_sum - a sum under way; zeroed by copy_sum_begin */
struct copy_sum {
	uint64_t lanes[COPY_SUM_LANES];
	uint64_t len;
};

void copy_sum_begin(struct copy_sum *sum);

/*
 * copy_sum_add - the next bytes
 * @len: a multiple of COPY_SUM_STEP, but for the last call
 */
void copy_sum_add(struct copy_sum *sum, const void *bytes, size_t len);

/*
 * copy_sum_end - the sum of all bytes
 *
 * It differs wherever bytes of one aligned word of eight differ, and else with a chance of 2^-64.
 * Source: the steps of FNV-1a (draft-eastlake-fnv), on words of eight bytes in four lanes, rotated so
 * that every bit of a word reaches every bit of its lane.
 */
uint64_t copy_sum_end(const struct copy_sum *sum);

#endif
