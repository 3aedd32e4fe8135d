/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Copies of memory for the child of a fork, where the memory itself must stay the parent's: a device
 * has its pages, so that they can't be shared and copied by the kernel when one of the two stores to them. The
 * parent takes the copies before fork(2), and the child puts them where the memory was, which it lacks.
 *
 * Used by mem/arena around a fork, by one thread. Nothing is allocated but mappings.
 */
#ifndef WEFT_SYS_SNAPSHOT_H
#define WEFT_SYS_SNAPSHOT_H

#include <stdbool.h>
#include <stddef.h>
#include "memfd.h"

struct sys_snapshot_part;

/* Zeroed: it has nothing. */
struct sys_snapshot {
	struct sys_snapshot_part *parts;
	/* a descriptor of the process's memory, from the first part to shut */
	int memory;
	bool open;
};

/*
 * sys_snapshot_add - make room for what is mapped of a memfd in a range, shared; zeros so far
 * Mappings of others between are left out: the child has those. Returns 0 or -FI_E*: -FI_ENOENT without /proc,
 * -FI_EMFILE, -FI_ENOMEM.
 */
int sys_snapshot_add(struct sys_snapshot *s, void *addr, size_t len,
		     const struct sys_memfd_id *id);

/*
 * sys_snapshot_copy - copy those parts of a range that were added, whatever protects them; guard pages as zeros
 * What another thread or a device stores meanwhile may be in the copy or not, byte by byte.
 * Returns 0 or -FI_E*.
 */
int sys_snapshot_copy(struct sys_snapshot *s, void *addr, size_t len);

/* sys_snapshot_shut - all is copied: the descriptor is closed, before the child gets one too */
void sys_snapshot_shut(struct sys_snapshot *s);

/*
 * sys_snapshot_put - in the child: the copies become the memory, as protected as it was
 * Returns 0 or -FI_E*: parts are missing. There is no snapshot any more.
 */
int sys_snapshot_put(struct sys_snapshot *s);

/* sys_snapshot_drop - in the parent: the copies were the child's */
void sys_snapshot_drop(struct sys_snapshot *s);

#endif
