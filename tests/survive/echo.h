/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Conversations: one process sends a message whose bytes are known and gets another back, the other
 * one checks and answers. For the tests that watch honest traffic while something else goes wrong.
 */
#ifndef WEFT_ECHO_H
#define WEFT_ECHO_H

#include "node.h"

#define ECHO_MAX (4u << 20) /* bytes of the largest message */

/* A talk with one peer; its buffers are its own. */
struct echo {
	struct node *node;
	fi_addr_t peer;
	uint64_t tag; /* bits of all messages' tags, above a count */
	bool answers;
	uint64_t cnt; /* messages there and back so far */
	size_t len;   /* of the one under way */
	uint8_t *out, *in;
	bool sent, received; /* the one under way is */
	int err;	     /* FI_E* of an operation that failed; the talk is over */
};

/* echo_open - @tag: bits that no other talk of these two has; the low 32 are the count */
void echo_open(struct echo *e, struct node *node, fi_addr_t peer, uint64_t tag);
void echo_close(struct echo *e);

/* echo_ask - send the next message, of @len bytes, and expect its answer */
void echo_ask(struct echo *e, size_t len);

/* echo_expect - expect the next message, to be answered by echo_took() */
void echo_expect(struct echo *e);

/*
 * echo_took - returns true if the completion of node_turn() belongs to this conversation
 * Checks the bytes that arrived and, where a message was expected, answers and expects the next.
 */
bool echo_took(struct echo *e, ssize_t turn);

/* echo_over - returns true if the answer of echo_ask() has arrived, or an operation failed */
static inline bool echo_over(const struct echo *e)
{
	return e->err || (e->sent && e->received);
}

/* echo_sizes - one after the other, of every way that messages take; 0 ends */
extern const size_t echo_sizes[];

#endif
