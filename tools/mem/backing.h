/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What the kernel has of a process's arena: /proc/PID/smaps, whose entries name the chunks. One thread.
 */
#ifndef WEFT_TOOLS_BACKING_H
#define WEFT_TOOLS_BACKING_H

#include <stdio.h>

#include "sample.h"

/*
 * backing_read - read it
 * The kernel walks the page tables of the whole process for it.
 * Returns 0, -ESRCH: the process has ended, or another -errno.
 */
int backing_read(pid_t pid, struct backing *backing);

/* backing_parse - the same from the text of an smaps file. Source: proc(5), /proc/PID/smaps */
int backing_parse(FILE *from, struct backing *backing);

#endif
