/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * mem/shown/shown.h in the kernel: the counts of each part are shown in debugfs, as sums. Process
 * context; one part by one thread at a time.
 */
#ifndef KOFI_SHOWN_H
#define KOFI_SHOWN_H

#include <weft/mem_stats.h>

static inline void mem_shown_start(void)
{
}

/* mem_part_open - returns a part of the caller's, all zero, or NULL: there is no memory */
struct weft_mem_part *mem_part_open(enum weft_mem_part_kind kind);
void mem_part_show(struct weft_mem_part *part, const uint64_t *counts, uint32_t cnt);
/* mem_part_close - what it has counted stays in the sums, what is not any more does not */
void mem_part_close(struct weft_mem_part *part);

#endif
