/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Copies in C alone: of a processor that has no folder of its own, and of the kernel, which may not
 * touch vector registers. ../copies.h has the contract.
 */
#include "copies.h"

void processor_copy_widest(void *to, const void *from, size_t len)
{
	copies_by_16(to, from, len);
}

void processor_copy_streaming(void *to, const void *from, size_t len)
{
	copies_by_16(to, from, len);
}

void processor_copy_whole(void *to, const void *from, size_t len)
{
	copies_by_16(to, from, len);
}
