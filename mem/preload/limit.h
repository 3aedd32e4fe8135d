/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How much of the machine's memory the heap may have. What it takes is shared memory to the
 * kernel, which counts against the same limits as any other. Any thread; it allocates nothing.
 */
#ifndef WEFT_MEM_LIMIT_H
#define WEFT_MEM_LIMIT_H

#include <stddef.h>

/* limit_bytes - returns half of the memory that the machine has, or that the process's cgroup may use */
size_t limit_bytes(void);

/*
 * limit_cgroup - the least memory limit of a control group and of those above it
 * @groups: a file as /proc/self/cgroup
 * @root:   where the hierarchies are mounted: /sys/fs/cgroup
 * Returns it in bytes, or SIZE_MAX: there is none that can be read.
 * Source: cgroups(7); Linux Documentation/admin-guide/cgroup-v2.rst (memory.max).
 */
size_t limit_cgroup(const char *groups, const char *root);

#endif
