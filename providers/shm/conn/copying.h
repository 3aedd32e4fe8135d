/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Copies of large payload between memory of two processes. Which kind of loads and stores is fastest
 * depends on the processor, on the caches that the two cores share, on the length, and on which side's
 * memory is stored to; a virtual machine changes the first two while it runs. So the kinds are compared
 * on the payload itself, in trials: soon after the beginning, then at growing distances. One object for
 * each connection, on the thread that holds the domain.
 */
#ifndef WEFT_SHM_COPYING_H
#define WEFT_SHM_COPYING_H

#include "platform.h"

/* Bytes from which on copies are compared. */
#define PSHM_MEASURED_MIN 16384u

enum pshm_copy_kind {
	/* by 16 bytes */
	PSHM_COPY_BULK,
	/* the C library's */
	PSHM_COPY_LIBRARY,
	/* stores that fetch no line which they write whole */
	PSHM_COPY_WHOLE,
	/* stores that bypass the caches */
	PSHM_COPY_STREAMING,
	PSHM_COPY_KINDS,
};

/* What is copied: the caches that have it, and those that are stored to, are not the same. */
enum pshm_copy_use {
	/* payload of a message, which its sender has just written */
	PSHM_COPY_MESSAGE,
	/* a peer's region, to our memory */
	PSHM_COPY_READ,
	/* our memory, to a peer's region */
	PSHM_COPY_WRITE,
	PSHM_COPY_USES,
};

/* Classes of lengths: up to 64 KiB, 256 KiB, 1 MiB, and longer. */
#define PSHM_COPY_LENGTHS 4u

/* Copies of a use and a class of lengths. */
struct pshm_copy_choice {
	/* the fastest kind of the last trial */
	enum pshm_copy_kind kind;
	/* copies before the next trial; 0: one is under way */
	uint32_t left;
	/* copies between the last trial and the next one */
	uint32_t gap;
	/* copies of the trial so far */
	uint32_t tried;
	/* picoseconds for a byte: the least of each kind in the trial */
	uint32_t cost[PSHM_COPY_KINDS];
};

struct pshm_copying {
	struct pshm_copy_choice choices[PSHM_COPY_USES][PSHM_COPY_LENGTHS];
};

/* pshm_copy_choice - returns the choice for a payload of @total bytes, of which parts are copied */
struct pshm_copy_choice *pshm_copy_choice(struct pshm_copying *copying, enum pshm_copy_use use,
					  size_t total);

/* pshm_copy_to_iov - copy_to_iov() by the kind that is fastest for @choice, or on trial */
void pshm_copy_to_iov(struct pshm_copy_choice *choice, const struct iovec *iov, size_t cnt,
		      size_t skip, const void *from, size_t len);

#endif
