/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Copies of which each processor has its own: platform/processor/NAME/copies.c. What a processor has
 * is looked up while it runs; where there is nothing of the kind, a copy is one by 16 bytes. They are
 * memcpy() in what they do, called on any thread. The engine and shm choose among them.
 */
#ifndef WEFT_COPIES_H
#define WEFT_COPIES_H

#include "platform.h"

/* Sixteen bytes in one register of most processors, at any address. */
typedef long long copies_16 __attribute__((vector_size(16), aligned(1), may_alias));

/* copies_by_16 - by plain loads and stores, four at a time */
static inline void copies_by_16(void *to, const void *from, size_t len)
{
	copies_16 *t = to;
	const copies_16 *f = from;

	for (; len >= 64; len -= 64, t += 4, f += 4) {
		copies_16 a = f[0], b = f[1], c = f[2], d = f[3];

		t[0] = a;
		t[1] = b;
		t[2] = c;
		t[3] = d;
	}
	memcpy(t, f, len);
}

/* processor_copy_widest - by the widest plain loads and stores that it has */
void processor_copy_widest(void *to, const void *from, size_t len);

/*
 * processor_copy_streaming - by stores that bypass the caches
 * processor_copy_whole - by stores that fetch no line which they write whole
 * What is published after them is seen after what they have stored.
 */
void processor_copy_streaming(void *to, const void *from, size_t len);
void processor_copy_whole(void *to, const void *from, size_t len);

#endif
