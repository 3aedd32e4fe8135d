/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What the lines of a ring are: most are packets, and the others move payload and the ring itself. Their
 * producer may write anything: what is in them is loaded once and checked (paths.c, grow.c, help.c).
 */
#ifndef WEFT_SHM_LINES_H
#define WEFT_SHM_LINES_H

#include "region.h"

_Static_assert(sizeof(struct packet) == RING_HEADER, "a line's header is a packet");

/* What a line is: the kind in its note. */
enum pshm_kind {
	PSHM_PACKET,	/* a packet with its payload */
	PSHM_FIRST,	/* a packet whose payload comes in fragments, with the first one */
	PSHM_NEXT,	/* another fragment of the same */
	PSHM_GROW,	/* offers an area: struct pshm_growth in the header */
	PSHM_MOVE,	/* the data of later lines are in that area */
	PSHM_JOIN,	/* help with a transfer: struct pshm_join in the header */
	PSHM_PROBE = 8, /* added to the first three: measure how long reading its data takes */
};

/* In the header of lines of kind PSHM_GROW. */
struct pshm_growth {
	uint32_t fd; /* of the area's memory in the producer; UINT32_MAX: the one in the pair */
	uint32_t zero;
	uint8_t nonce[PSHM_NONCE]; /* of the area */
};

_Static_assert(sizeof(struct pshm_growth) <= RING_HEADER, "layout");

/* In the header of lines of kind PSHM_JOIN. */
struct pshm_join {
	uint32_t slot; /* of pshm_pair.joint, the side's that sends this */
	uint32_t gen;
	uint64_t zero;
};

_Static_assert(sizeof(struct pshm_join) <= RING_HEADER, "layout");

/* In the payload of lines of kind PSHM_FIRST and PSHM_NEXT. */
struct pshm_fragment {
	uint32_t len; /* bytes in the data area */
};

#endif
