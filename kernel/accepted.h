/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How many connections others may have here: nothing but the machine's memory bounds them in the kernel. For providers,
 * whose parameter accepted_max says otherwise.
 */
#ifndef KOFI_ACCEPTED_H
#define KOFI_ACCEPTED_H

#include <linux/atomic.h>
#include <linux/mm.h>

/*
 * kofi_accepted_full - returns true while there is room for no more of them
 * @max:  the parameter; 0: one for each @each bytes of the machine's memory
 * @each: a multiple of PAGE_SIZE
 * Those who look at the same time may be one too many each.
 */
static inline bool kofi_accepted_full(const atomic_t *cnt, unsigned long max, unsigned long each)
{
	if (!max)
		max = totalram_pages() / (each / PAGE_SIZE);
	return atomic_read(cnt) >= max;
}

#endif
