/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Copies of large payload between memory of two processes. Which kind of loads and stores is fastest
 * depends on the processor, on the caches that the two cores share, and on the length; a virtual
 * machine changes the first two while it runs. So the kinds are measured on the payload itself. One
 * object for each connection, on the thread that holds the domain.
 */
#ifndef WEFT_SHM_COPYING_H
#define WEFT_SHM_COPYING_H

#include "platform.h"

/* Bytes from which on copies are measured. */
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

/* Copies of a length class. */
struct pshm_copy_choice {
	enum pshm_copy_kind kind;
	/* copies since another kind was tried */
	uint32_t since;
	/* the kind to try next */
	uint32_t next;
	/* picoseconds for a byte: the last two of each kind; 0: not measured */
	uint32_t cost[PSHM_COPY_KINDS][2];
};

struct pshm_copying {
	/* up to PSHM_COPY_LONG bytes, and longer ones */
	struct pshm_copy_choice choices[2];
};

#define PSHM_COPY_LONG (256u << 10)

/*
 * pshm_copy_to_iov - copy_to_iov() by the kind that is fastest for a payload of @total bytes, of which
 * this is a part
 */
void pshm_copy_to_iov(struct pshm_copying *copying, const struct iovec *iov, size_t cnt,
		      size_t skip, const void *from, size_t len, size_t total);

#endif
