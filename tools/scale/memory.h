/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How much memory processes use, read from /proc: what they have to themselves, and the files
 * of shared memory that they map, each counted once however many map it. One thread.
 */
#ifndef WEFT_TOOLS_MEMORY_H
#define WEFT_TOOLS_MEMORY_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct memory {
	/* resident anonymous memory */
	uint64_t private_bytes;
	/*
	 * memory of memfds and other files that are mapped shared: all their blocks, or the pages that
	 * these processes touched if the kernel does not let this process open a mapped file
	 */
	uint64_t shared_bytes;
};

/*
 * memory_read - memory of several processes
 * @pids:  @cnt process ids, of this user
 *
 * The processes should be stopped or idle. Prints the reason of a failure. Returns 0 or -errno.
 */
int memory_read(const pid_t *pids, size_t cnt, struct memory *memory);

/*
 * memory_growth - growth between two readings, divided by @cnt
 *
 * Returns bytes; 0 if the memory shrank.
 */
struct memory memory_growth(const struct memory *before, const struct memory *after, size_t cnt);

#endif
