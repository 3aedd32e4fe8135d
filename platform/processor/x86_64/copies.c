/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Copies of x86-64: AVX where the processor has it, MOVNTDQ, REP MOVSB. ../copies.h has the contract.
 * Source: Intel SDM volume 1, 'Non-temporal stores' and 'Fast-String Operation'.
 */
#include "copies.h"

#include <emmintrin.h>

typedef long long copies_32 __attribute__((vector_size(32), aligned(1), may_alias));

__attribute__((target("avx"))) static void copy_by_32(void *to, const void *from, size_t len)
{
	copies_32 *t = to;
	const copies_32 *f = from;

	for (; len >= 128; len -= 128, t += 4, f += 4) {
		copies_32 a = f[0], b = f[1], c = f[2], d = f[3];

		t[0] = a;
		t[1] = b;
		t[2] = c;
		t[3] = d;
	}
	memcpy(t, f, len);
}

void processor_copy_widest(void *to, const void *from, size_t len)
{
	if (likely(__builtin_cpu_supports("avx")))
		copy_by_32(to, from, len);
	else
		copies_by_16(to, from, len);
}

void processor_copy_streaming(void *to, const void *from, size_t len)
{
	size_t head = -(uintptr_t)to & 15;
	const char *f = from;
	char *t = to;

	head = head < len ? head : len;
	memcpy(t, f, head);
	t += head;
	f += head;
	for (len -= head; len >= 64; len -= 64, t += 64, f += 64) {
		__m128i a = _mm_loadu_si128((const void *)f);
		__m128i b = _mm_loadu_si128((const void *)(f + 16));
		__m128i c = _mm_loadu_si128((const void *)(f + 32));
		__m128i d = _mm_loadu_si128((const void *)(f + 48));

		_mm_stream_si128((void *)t, a);
		_mm_stream_si128((void *)(t + 16), b);
		_mm_stream_si128((void *)(t + 32), c);
		_mm_stream_si128((void *)(t + 48), d);
	}
	memcpy(t, f, len);
	/* they are not ordered with the store that publishes them */
	_mm_sfence();
}

/* Its stores are ordered with those that follow. */
void processor_copy_whole(void *to, const void *from, size_t len)
{
	__asm__ __volatile__("rep movsb" : "+D"(to), "+S"(from), "+c"(len) : : "memory");
}
