/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Hellos: the first bytes in each direction of a conn (wire/packet.h).
 *
 * The caller holds the domain.
 */
#ifndef WEFT_HELLO_H
#define WEFT_HELLO_H

#include "endpoint.h"

/* engine_hello_kind - returns which kind of endpoint (enum hello_kind) @ep says that it is */
static inline uint8_t engine_hello_kind(const struct engine_ep *ep)
{
	return ep->kind == ENGINE_EP_RDM ? HELLO_RDM : HELLO_MSG;
}

/* engine_hello_say - fill the hello to the peer; the first one of an incarnation grants its window */
void engine_hello_say(struct engine_peer *peer, uint32_t rail, struct hello *hello);

/*
 * engine_hello_authorized - returns true if the sender of the hello has the authorization key of
 * @ep, or if neither has one
 */
bool engine_hello_authorized(const struct engine_ep *ep, const struct hello *hello);

/*
 * engine_hello_age - compare a hello with the present incarnation
 * Both sides give up all conns when one breaks, but not at the same time: a hello of an old conn
 * may come after that of a new conn.
 *
 * Returns a negative number for an incarnation that the other side has given up, 0 for the present
 * one, and a positive number for a new one.
 */
int32_t engine_hello_age(const struct engine_peer *peer, const struct hello *hello);

#endif
