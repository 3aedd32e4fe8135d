/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Sixteen bytes at once on aarch64; ../any/wide.h has the contract. A processor with LSE2 (Armv8.4)
 * makes an aligned LDP in one piece, also of read-only memory, and has CASP; before it there are
 * loads in one piece only together with a store.
 * Source: Arm ARM, B2.2.1 'Requirements for single-copy atomicity', FEAT_LSE2, CASP.
 */
#ifndef WEFT_WIDE_H
#define WEFT_WIDE_H

#include "platform.h"

#include <asm/hwcap.h>
#include <sys/auxv.h>

typedef unsigned __int128 wide_word;

static inline bool wide_is_lock_free(void)
{
	return getauxval(AT_HWCAP) & HWCAP_USCAT;
}

static inline wide_word wide_load(const uint8_t *target)
{
	uint64_t low, high;

	__asm__ __volatile__("dmb ish\n\tldp %0, %1, %2\n\tdmb ish"
			     : "=&r"(low), "=&r"(high)
			     : "Q"(*(const wide_word *)(const void *)target)
			     : "memory");
	return (wide_word)high << 64 | low;
}

static inline bool wide_replace(uint8_t *target, wide_word *old, wide_word next)
{
	/* CASP wants two pairs of neighbours, the first of each even. */
	register uint64_t low __asm__("x2") = (uint64_t)*old;
	register uint64_t high __asm__("x3") = (uint64_t)(*old >> 64);
	register uint64_t next_low __asm__("x4") = (uint64_t)next;
	register uint64_t next_high __asm__("x5") = (uint64_t)(next >> 64);
	wide_word found;
	bool done;

	__asm__ __volatile__(".arch_extension lse\n\tcaspal %0, %1, %3, %4, %2"
			     : "+r"(low), "+r"(high), "+Q"(*(wide_word *)(void *)target)
			     : "r"(next_low), "r"(next_high)
			     : "memory");
	found = (wide_word)high << 64 | low;
	done = found == *old;
	*old = found;
	return done;
}

#endif
