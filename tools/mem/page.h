/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A page of counters (weft/mem_stats.h) of another process. Nothing in it is trusted: it is read, not
 * mapped, and every member is checked. One thread.
 */
#ifndef WEFT_TOOLS_PAGE_H
#define WEFT_TOOLS_PAGE_H

#include "sample.h"

/* More than any counter has: what devices and processes have together stays below 2^63. */
#define PAGE_COUNT_MAX (1ull << 48)

/*
 * page_take - add what a page says to a sample
 * @fd:  of a regular file, for reading
 * @pid: the process as it is numbered where it runs
 * @why: out, on an error: the reason in words
 *
 * Returns 0, also if the page is not finished yet or is another process's; -EPROTO with nothing added; -errno.
 */
int page_take(int fd, pid_t pid, struct sample *sample, char why[128]);

#endif
