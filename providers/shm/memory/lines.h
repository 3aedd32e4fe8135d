/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The kinds of lines in a ring: packets, fragments of payload, and lines that change the ring's
 * data area. The producer may write anything: consumers load each field once and check it (paths.c,
 * grow.c, coop_write.c).
 */
#ifndef WEFT_SHM_LINES_H
#define WEFT_SHM_LINES_H

#include "region.h"

_Static_assert(sizeof(struct packet) == RING_HEADER, "a line's header is a packet");

/* The kind of a line, in its note. */
enum pshm_kind {
	/* a packet with its payload */
	PSHM_PACKET,
	/* packet whose payload is sent in fragments, with the first one */
	PSHM_FIRST,
	/* the next fragment of the same payload */
	PSHM_NEXT,
	/* offers an area: struct pshm_growth in the header */
	PSHM_GROW,
	/* the data of later lines are in that area */
	PSHM_MOVE,
	/* invites the peer to a cooperative copy: struct pshm_coop_invite in the header */
	PSHM_COOP_COPY,
	/* a packet whose payload is in the producer's arena: struct pshm_place in the payload */
	PSHM_PLACE,
	/* flag of the first three: the consumer has to measure how long reading the data takes */
	PSHM_PROBE = 8,
};

/* In the header of lines of kind PSHM_GROW. */
struct pshm_growth {
	/* descriptor of the area's memory in the producer; UINT32_MAX: the area in the pair */
	uint32_t fd;
	uint32_t zero;
	/* of the area */
	uint8_t nonce[PSHM_NONCE];
};

_Static_assert(sizeof(struct pshm_growth) <= RING_HEADER, "layout");

/* In the header of lines of kind PSHM_COOP_COPY. */
struct pshm_coop_invite {
	/* index in pshm_pair.coop_copies of the side that sends this */
	uint32_t slot;
	uint32_t gen;
	uint64_t zero;
};

_Static_assert(sizeof(struct pshm_coop_invite) <= RING_HEADER, "layout");

/* In the payload of lines of kind PSHM_PLACE. The producer's memory is lent until the line is taken. */
struct pshm_place {
	/* of the producer's arena, and the lower half of its serial; the consumer has mapped it */
	uint32_t chunk;
	uint32_t serial;
	/* bytes from the beginning of the chunk */
	uint64_t offset;
};

_Static_assert(sizeof(struct pshm_place) <= RING_INLINE, "layout");

/* In the payload of lines of kind PSHM_FIRST and PSHM_NEXT. */
struct pshm_fragment {
	/* bytes in the data area */
	uint32_t len;
};

#endif
