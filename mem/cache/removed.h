/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Addresses whose pages were removed (MADV_DONTNEED and the like) since they were mapped: none of them is
 * cached. It may hold more addresses than it was given, never fewer: its memory is bounded. The caller
 * serializes.
 */
#ifndef WEFT_MEM_REMOVED_H
#define WEFT_MEM_REMOVED_H

#include "interval.h"

#define REMOVED_MAX 512u /* ranges that are kept apart */

struct removed {
	struct intervals ranges;
	struct interval nodes[REMOVED_MAX];
	/* those that are not in use, linked by left */
	struct interval *free;
};

void removed_init(struct removed *removed);

/* removed_add - pages of a range were removed */
void removed_add(struct removed *removed, uintptr_t start, uintptr_t end);

/* removed_drop - a range was unmapped */
void removed_drop(struct removed *removed, uintptr_t start, uintptr_t end);

/* removed_has - returns true if any address of a range is there */
bool removed_has(const struct removed *removed, uintptr_t start, uintptr_t end);

#endif
