/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The page on which this process shows tools what memory it has registered (include/weft/mem_stats.h). The
 * arena, what a device has of it, and each cache have a part of it, into which they copy their own
 * numbers; nothing here ever reads those back. Any thread; there is no lock, so a part may be opened
 * and written under any.
 */
#ifndef WEFT_MEM_SHOWN_H
#define WEFT_MEM_SHOWN_H

#include <stdbool.h>
#include <weft/mem_stats.h>

/*
 * mem_shown_start - the child of each later fork shows nothing of its parent's, until it opens a part
 * Called before mem_part_open(), without a lock that is taken around forks.
 */
void mem_shown_start(void);

/*
 * mem_part_open - returns a part for the caller, all zero, or NULL: there is no memory or descriptor for the
 * page, or no part left. The functions below then do nothing.
 */
struct weft_mem_part *mem_part_open(enum weft_mem_part_kind kind);

/*
 * mem_part_show - show numbers; the caller keeps two threads from doing so for one part
 * @counts: the first @cnt of the part
 */
void mem_part_show(struct weft_mem_part *part, const uint64_t *counts, uint32_t cnt);

/* mem_part_close - its place may be taken by another one */
void mem_part_close(struct weft_mem_part *part);

#endif
