/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What is offered, bit by bit and number by number: each is asked for and used by a call, or
 * refused. Proofs get a surface that was opened with what they are for.
 */
#ifndef WEFT_SURFACE_OFFER_H
#define WEFT_SURFACE_OFFER_H

#include "surface.h"

/* A bit that may be offered, and what works because of it. */
struct offered {
	const char *name;
	uint64_t bit;
	void (*proof)(struct surface *s);
};

#define OFFERED(which, works)                                \
	{                                                    \
		.name = #which, .bit = which, .proof = works \
	}

/* Bits of struct fi_info.caps; of op_flags of either context; of msg_order. */
#define CAPS_CNT      25
#define TX_FLAGS_CNT  8
#define RX_FLAGS_CNT  8
#define MSG_ORDER_CNT 17
extern const struct offered caps_offered[CAPS_CNT], tx_flags_offered[TX_FLAGS_CNT],
	rx_flags_offered[RX_FLAGS_CNT], msg_order_offered[MSG_ORDER_CNT];

/* A number that is offered: where it is in a struct fi_info, and what works up to it. */
struct limit {
	const char *name;
	size_t part; /* of the pointer to the attributes */
	size_t at;   /* of the number in them */
	size_t len;  /* its bytes */
	void (*proof)(struct surface *s, uint64_t max);
	bool open; /* memory alone bounds it, or nothing is asked for by it: more is not refused */
	uint64_t more; /* open: number granted to a query for them; 0: as before */
};

#define LIMITS_CNT 30
extern const struct limit limits_offered[LIMITS_CNT];

/* proof_patterns - the same for what is offered and is no limit */
void proof_patterns(struct surface *s);

/* proof_slot - the call of this name works between near and far */
void proof_slot(struct surface *s, const struct slot *slots, size_t cnt, const char *name);

/* proof_order - two operations of near, the bytes of which are @len; @order is one FI_ORDER_* */
void proof_order(struct surface *s, uint64_t order, size_t len);

#endif
