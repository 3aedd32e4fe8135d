/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Accepting a connection that a peer opens. Called by wires from their poll(), with the domain
 * held.
 */
#include "conns.h"
#include "follow.h"
#include "hello.h"
#include "peer.h"

/*
 * Returns the peer that sent the hello: in the address vector, known by an earlier hello, or new.
 */
static struct engine_peer *engine_peer_by_hello(struct engine_ep *ep, const struct hello *hello)
{
	struct weft_addr service = hello->addr;
	struct list *node, *after;
	fi_addr_t addr = FI_ADDR_NOTAVAIL;

	if (ep->av) {
		engine_av_follow(ep->av);
		addr = av_find(&ep->av->table, &hello->addr);
		if (addr == FI_ADDR_NOTAVAIL && hello->addr.family != ADDR_FAMILY_NONE) {
			addr_to_service(&service);
			addr = av_find(&ep->av->table, &service);
		}
	}
	if (addr != FI_ADDR_NOTAVAIL)
		return engine_peer_open(ep, addr);
	list_for_each(node, after, &ep->all) {
		struct engine_peer *peer = container_of(node, struct engine_peer, all);

		if (addr_same(&peer->address, &hello->addr))
			return peer;
	}
	return engine_peer_new(ep, &hello->addr, FI_ADDR_NOTAVAIL);
}

int engine_accept(struct wire *wire, const struct hello *hello, struct engine_peer **out,
		  struct hello *answer)
{
	struct engine_ep *ep = wire->ep;
	struct engine_peer *peer;
	struct wire_conn *existing;

	if (!engine_hello_authorized(ep, hello))
		return -FI_EKEYREJECTED;
	peer = engine_peer_by_hello(ep, hello);
	if (!peer)
		return -FI_ENOMEM;
	if (peer->self != (wire->idx == ep->wire_cnt - 1))
		return -FI_EINVAL;
	if (!peer->self) {
		if (engine_hello_age(peer, hello) < 0)
			return -FI_ECONNRESET;
		/*
		 * With no conn up, operations queued since the last incarnation are for the new
		 * one.
		 */
		if (peer->up_cnt && engine_hello_age(peer, hello) > 0)
			engine_incarnation_end(peer, hello);
		existing = engine_conn_at(peer, wire->idx, hello->rail);
		if (existing && existing->ours) {
			if (ep->epoch < hello->epoch)
				return -FI_EALREADY;
			if (!existing->joined) {
				engine_conn_end(existing);
				existing = NULL;
			}
		}
		if (existing)
			engine_conn_broken(peer, -FI_ECONNRESET);
	}
	engine_hello_say(peer, hello->rail, answer);
	*out = peer;
	return 0;
}
