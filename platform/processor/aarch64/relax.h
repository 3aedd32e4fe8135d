/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * processor_relax - a turn of a loop that waits for another core: ISB
 * YIELD is a NOP on most processors; ISB takes about as long as PAUSE of x86-64.
 */
#ifndef WEFT_RELAX_H
#define WEFT_RELAX_H

static inline void processor_relax(void)
{
	__asm__ __volatile__("isb" : : : "memory");
}

#endif
