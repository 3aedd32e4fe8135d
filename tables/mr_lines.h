/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What the owner of a key table (mr.c) and its readers (mr_reader.c) share: where its lines are, and
 * the orderings of their fields. A line's and the header's seq are seqlocks without fences: every
 * covered field is stored with release after the odd seq and loaded with acquire before seq is
 * loaded again, so that a reader that got any new field sees at least the odd seq.
 */
#ifndef WEFT_MR_LINES_H
#define WEFT_MR_LINES_H

#include "mr.h"

#define MR_CAP_MAX (1u << MR_SLOT_BITS)

/* Slab that holds a line. */
static inline uint32_t mr_slab_of(uint32_t index)
{
	if (index < MR_SLAB_FIRST)
		return 0;
	return 32u - (uint32_t)__builtin_clz(index / MR_SLAB_FIRST);
}

/* First line of a slab. */
static inline uint32_t mr_slab_base(uint32_t slab)
{
	return slab ? MR_SLAB_FIRST << (slab - 1) : 0;
}

/* Does a range end at or before the last address? */
static inline bool mr_fits(uint64_t base, uint64_t len)
{
	return !len || len - 1 <= UINT64_MAX - base;
}

#endif
