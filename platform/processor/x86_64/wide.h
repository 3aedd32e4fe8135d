/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Sixteen bytes at once on x86-64; ../any/wide.h has the contract. Every processor with AVX has
 * cmpxchg16b, and makes an aligned 16-byte load of the SSE kind in one piece, which cmpxchg16b alone
 * can't do in read-only memory.
 * Source: Intel SDM volume 3, 'Guaranteed Atomic Operations'; AMD APM volume 2, 7.3.2.
 */
#ifndef WEFT_WIDE_H
#define WEFT_WIDE_H

#include "platform.h"

typedef unsigned __int128 wide_word;

static inline bool wide_is_lock_free(void)
{
	return __builtin_cpu_supports("avx");
}

static inline wide_word wide_load(const uint8_t *target)
{
	typedef long long pair __attribute__((vector_size(16)));
	wide_word word;
	pair value;

	__asm__ __volatile__("movdqa %1, %0"
			     : "=x"(value)
			     : "m"(*(const wide_word *)(const void *)target)
			     : "memory");
	memcpy(&word, &value, sizeof(word));
	return word;
}

static inline bool wide_replace(uint8_t *target, wide_word *old, wide_word next)
{
	uint64_t low = (uint64_t)*old, high = (uint64_t)(*old >> 64);
	bool done;

	__asm__ __volatile__("lock cmpxchg16b %1"
			     : "=@ccz"(done), "+m"(*(wide_word *)(void *)target), "+a"(low),
			       "+d"(high)
			     : "b"((uint64_t)next), "c"((uint64_t)(next >> 64))
			     : "memory");
	*old = (wide_word)high << 64 | low;
	return done;
}

#endif
