/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The checksum of a window; sum.h has the contract. Four lanes, because each step waits for the product of the one
 * before it: so the sum is as fast as memory.
 */
#include "sum.h"

#include <endian.h>
#include <string.h>

#define FNV_OFFSET 0xcbf29ce484222325u
#define FNV_PRIME  0x00000100000001b3u

static inline uint64_t step(uint64_t lane, uint64_t word)
{
	lane = (lane ^ word) * FNV_PRIME;
	return lane << 29 | lane >> 35;
}

static inline uint64_t word_at(const unsigned char *at)
{
	uint64_t word;

	memcpy(&word, at, sizeof(word));
	return le64toh(word);
}

void copy_sum_begin(struct copy_sum *sum)
{
	size_t i;

	for (i = 0; i < COPY_SUM_LANES; i++)
		sum->lanes[i] = FNV_OFFSET + i;
	sum->len = 0;
}

void copy_sum_add(struct copy_sum *sum, const void *bytes, size_t len)
{
	const unsigned char *at = bytes, *end = at + len / COPY_SUM_STEP * COPY_SUM_STEP;
	uint64_t a = sum->lanes[0], b = sum->lanes[1], c = sum->lanes[2], d = sum->lanes[3];
	unsigned char last[COPY_SUM_STEP] = { 0 };

	for (; at < end; at += COPY_SUM_STEP) {
		a = step(a, word_at(at));
		b = step(b, word_at(at + 8));
		c = step(c, word_at(at + 16));
		d = step(d, word_at(at + 24));
	}
	sum->lanes[0] = a;
	sum->lanes[1] = b;
	sum->lanes[2] = c;
	sum->lanes[3] = d;
	sum->len += len / COPY_SUM_STEP * COPY_SUM_STEP;
	if (!(len % COPY_SUM_STEP))
		return;
	memcpy(last, end, len % COPY_SUM_STEP);
	copy_sum_add(sum, last, sizeof(last));
	sum->len += len % COPY_SUM_STEP - COPY_SUM_STEP;
}

uint64_t copy_sum_end(const struct copy_sum *sum)
{
	uint64_t whole = step(FNV_OFFSET, sum->len);
	size_t i;

	for (i = 0; i < COPY_SUM_LANES; i++)
		whole = step(whole, sum->lanes[i]);
	return whole;
}
