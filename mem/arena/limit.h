/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How much memory this process may use, and how much of that nobody uses yet: of the machine, and of its
 * control group and all those above it. What an arena has is shared memory to the kernel, which counts
 * against the same limits as any other, but is not reclaimed by dropping it. Any thread, also one with a small
 * stack; it allocates nothing.
 */
#ifndef WEFT_MEM_LIMIT_H
#define WEFT_MEM_LIMIT_H

#include <stddef.h>

/* Bytes; SIZE_MAX: there is no limit that can be read. */
struct limit {
	/* that may be used at most */
	size_t most;
	/* that are not used, or only by files that the kernel can drop */
	size_t room;
};

/*
 * limit_groups - the limits of a control group and of those above it; each member is the least
 * @groups: a file as /proc/self/cgroup
 * @root:   where the hierarchies are mounted: /sys/fs/cgroup
 * Where there is no memory to read them with, they are 0.
 * Source: cgroups(7); Linux Documentation/admin-guide/cgroup-v2.rst (memory.max, memory.high, memory.stat),
 * cgroup-v1/memory.rst.
 */
void limit_groups(const char *groups, const char *root, struct limit *limit);

/* limit_process - the limits of this process: those of its control groups, and the machine's */
void limit_process(struct limit *limit);

/*
 * limit_group_file - the path of a file of this process's control group of the second version
 * @groups, @root: as above
 * Returns 0, or -1: it is in none, or @path has no @room.
 */
int limit_group_file(const char *groups, const char *root, const char *name, char *path,
		     size_t room);

#endif
