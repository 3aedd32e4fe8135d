/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The peer that a fuzz target plays: it records what the endpoint on the other side has sent, so
 * that its packets are nearly right, and changes some fields of them. One thread.
 */
#ifndef WEFT_FUZZ_LIAR_H
#define WEFT_FUZZ_LIAR_H

#include "fake_ends.h"

#define LIAR_IDS 8

struct liar {
	struct fake_raw *raw;	/* its connection, or NULL */
	struct hello hello;	/* what it says, or said last */
	uint32_t seq;		/* of its next message */
	uint64_t ids[LIAR_IDS]; /* what the endpoint calls its operations */
	uint32_t id_cnt;
};

/* liar_begin - a peer that has not connected yet; everything else is zero */
void liar_begin(struct liar *liar, const struct weft_addr *victim);

/* liar_connected - has it a connection that has not ended */
bool liar_connected(const struct liar *liar);

/* liar_connect - say hello, without giving an earlier connection up */
int liar_connect(struct liar *liar, const struct fake_end *victim);

/*
 * liar_answer - send a hello to the endpoint, which connects to an address where no endpoint is;
 * the same way
 */
int liar_answer(struct liar *liar, const struct fake_end *victim);

/* liar_leave - the connection ends, for the endpoint with @err */
void liar_leave(struct liar *liar, int err);

/* liar_learn - the endpoint has named an operation */
void liar_learn(struct liar *liar, uint64_t id);

/* liar_id - an id from the input: one that the endpoint has sent, or one that is easy to guess */
uint64_t liar_id(const struct liar *liar);

/* liar_distort - give fields of a packet other values: those of which a bit is set in @what */
void liar_distort(struct packet *p, uint8_t what);

#endif
