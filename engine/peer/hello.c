/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The contents of an endpoint's hello when it connects or accepts, and the use of the other side's.
 * Called with the domain held.
 */
#include "auth.h"
#include "endpoint.h"
#include "hello.h"
#include "peers.h"

/* A new peer is granted one of so many parts of the budget that is left */
#define WINDOW_SHARE 16u
/* Bounds of the window of a peer, bytes; the least while the budget has that much */
#define WINDOW_MIN (64u << 10)
#define WINDOW_MAX (1u << 20)

/* Returns the window of a new peer: a part of the budget left, so that many peers get one. */
static uint32_t engine_window(const struct engine_ep *ep)
{
	uint64_t window = ep->budget / WINDOW_SHARE;

	if (window < WINDOW_MIN)
		window = ep->budget < WINDOW_MIN ? ep->budget : WINDOW_MIN;
	if (window > WINDOW_MAX)
		window = WINDOW_MAX;
	return (uint32_t)(window / CREDIT_UNIT * CREDIT_UNIT);
}

void engine_hello_say(struct engine_peer *peer, uint32_t rail, struct hello *hello)
{
	struct engine_ep *ep = peer->ep;

	if (!peer->greeted) {
		peer->greeted = true;
		peer->window = engine_window(ep);
		ep->budget -= peer->window;
	}
	*hello = (struct hello){
		.magic = HELLO_MAGIC,
		.version = HELLO_VERSION,
		.rail = (uint8_t)rail,
		.kind = engine_hello_kind(ep),
		.epoch = ep->epoch,
		.window = peer->window,
		.seq = (uint32_t)peer->tx_seq,
		.incarnation = peer->incarnation,
		.addr = ep->address,
	};
	hello->proof = engine_auth_proof(&ep->auth, hello);
}

bool engine_hello_authorized(const struct engine_ep *ep, const struct hello *hello)
{
	return hello->proof == engine_auth_proof(&ep->auth, hello);
}

int32_t engine_hello_age(const struct engine_peer *peer, const struct hello *hello)
{
	return peer->epoch == hello->epoch
		       ? (int32_t)(hello->incarnation - peer->peer_incarnation)
		       : 1;
}
