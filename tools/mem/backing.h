/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What the kernel has of a process's arenas, in /proc/PID/smaps. Peers map chunks of each other under the
 * same name: it is the address that tells whose a chunk is. One thread.
 */
#ifndef WEFT_TOOLS_BACKING_H
#define WEFT_TOOLS_BACKING_H

#include <stdio.h>

#include "sample.h"

/*
 * backing_read - read it, into a sample that has its arenas
 * The kernel walks the page tables of the whole process for it.
 * Returns 0, -ESRCH: the process has ended, or another -errno.
 */
int backing_read(pid_t pid, struct sample *sample);

/* backing_parse - the same from the text of an smaps file. Source: proc(5), /proc/PID/smaps */
int backing_parse(FILE *from, struct sample *sample);

#endif
