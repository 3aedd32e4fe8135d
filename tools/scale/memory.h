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
	/* anonymous memory that is there */
	uint64_t private_bytes;
	/*
	 * of memfds and other files that are mapped shared: all that they hold, or what these
	 * processes touched of it where the kernel does not let us look at a mapped file
	 */
	uint64_t shared_bytes;
};

/*
 * memory_read - look at processes
 * @pids:  @cnt of them; ours, or those of our user
 *
 * They should stand still. Prints the reason of a failure. Returns 0 or -errno.
 */
int memory_read(const pid_t *pids, size_t cnt, struct memory *memory);

/*
 * memory_growth - what came to be between two looks, by one of @cnt
 *
 * Returns bytes, 0 where it became less.
 */
struct memory memory_growth(const struct memory *before, const struct memory *after, size_t cnt);

#endif
