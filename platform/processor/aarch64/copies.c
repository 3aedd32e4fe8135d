/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Copies of aarch64: pairs of 16 bytes, STNP, DC ZVA where the system lets programs have it.
 * ../copies.h has the contract. A store with release orders all of them before itself.
 * Source: Arm ARM, STNP, 'DC ZVA' and DCZID_EL0.
 */
#include "copies.h"

#define BLOCK 64u

void processor_copy_widest(void *to, const void *from, size_t len)
{
	copies_by_16(to, from, len);
}

/* Up to the next boundary of a power of two, by plain stores; returns how much that was. */
static size_t copy_head(char *to, const char *from, size_t len, size_t boundary)
{
	size_t head = -(uintptr_t)to & (boundary - 1);

	head = head < len ? head : len;
	memcpy(to, from, head);
	return head;
}

static inline void store_pair(char *to, copies_16 a, copies_16 b)
{
	__asm__ __volatile__("stnp %q1, %q2, [%0]" : : "r"(to), "w"(a), "w"(b) : "memory");
}

void processor_copy_streaming(void *to, const void *from, size_t len)
{
	size_t head = copy_head(to, from, len, 16);
	const char *f = (const char *)from + head;
	char *t = (char *)to + head;

	for (len -= head; len >= BLOCK; len -= BLOCK, t += BLOCK, f += BLOCK) {
		const copies_16 *four = (const void *)f;
		copies_16 a = four[0], b = four[1], c = four[2], d = four[3];

		store_pair(t, a, b);
		store_pair(t + 32, c, d);
	}
	memcpy(t, f, len);
}

/* Bytes that one DC ZVA makes zero without fetching them; 0: it may not be used. */
static size_t zero_block(void)
{
	uint64_t dczid;

	__asm__("mrs %0, dczid_el0" : "=r"(dczid));
	return dczid & 16 ? 0 : 4u << (dczid & 15);
}

void processor_copy_whole(void *to, const void *from, size_t len)
{
	size_t block = zero_block(), head;
	const char *f = from;
	char *t = to;

	if (block < BLOCK || len < 2 * block) {
		copies_by_16(to, from, len);
		return;
	}
	head = copy_head(t, f, len, block);
	t += head;
	f += head;
	for (len -= head; len >= block; len -= block, t += block, f += block) {
		__asm__ __volatile__("dc zva, %0" : : "r"(t) : "memory");
		copies_by_16(t, f, block);
	}
	memcpy(t, f, len);
}
