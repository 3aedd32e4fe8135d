/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Connection requests of peers: the endpoint answers them at once or later. Called with the domain
 * held: by wires from their poll(), and by the endpoint for its answers.
 *
 * An answer depends on the peer's state at the time of the answer, not of the request: by then the
 * peer may have another conn, or have begun a new incarnation. A conn that is accepted belongs to
 * its peer at once, and ends with it even if it has not come up.
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

	if (ep->only)
		return ep->only;
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

/*
 * Ends the conn that a requested one replaces. Returns 0, or the reason of a refusal: -FI_EALREADY,
 * or -FI_ECONNRESET for an incarnation that the peer has given up.
 */
static int engine_conn_replace(struct engine_peer *peer, uint32_t idx, const struct hello *hello)
{
	struct wire_conn *existing;

	if (engine_hello_age(peer, hello) < 0)
		return -FI_ECONNRESET;
	/* With no conn up, operations queued since the last incarnation are for the new one. */
	if (peer->up_cnt && engine_hello_age(peer, hello) > 0)
		engine_incarnation_end(peer, hello);
	existing = engine_conn_at(peer, idx, hello->rail);
	if (!existing)
		return 0;
	if (existing->ours && peer->ep->epoch < hello->epoch)
		return -FI_EALREADY;
	if (existing->joined)
		engine_conn_broken(peer, -FI_ECONNRESET);
	else
		engine_conn_end(existing);
	return 0;
}

/* Finds the peer that requests, or creates it. Returns 0, or the reason of a refusal. */
static int engine_request_peer(const struct wire *wire, const struct hello *hello,
			       struct engine_peer **peer)
{
	if (!engine_hello_authorized(wire->ep, hello))
		return -FI_EKEYREJECTED;
	*peer = engine_peer_by_hello(wire->ep, hello);
	if (!*peer)
		return -FI_ENOMEM;
	if ((*peer)->self != (wire->idx == wire->ep->wire_cnt - 1))
		return -FI_EINVAL;
	return (*peer)->self ? 0 : engine_conn_replace(*peer, wire->idx, hello);
}

void engine_conn_refuse(struct wire_conn *conn, int err, const struct hello_data *data)
{
	conn->wire->ops->refuse(conn, err, data);
}

int engine_conn_accept(struct wire_conn *conn, const struct hello *hello,
		       const struct hello_data *data)
{
	struct engine_peer *peer;
	struct hello answer;
	int err = engine_request_peer(conn->wire, hello, &peer);

	if (err) {
		engine_conn_refuse(conn, err, NULL);
		return err;
	}
	engine_hello_say(peer, hello->rail, &answer);
	if (data)
		answer.data = *data;
	conn->peer = peer;
	if (!peer->self) /* of the two ends of the loop the sending one is linked */
		engine_conn_link(peer, conn, hello->rail);
	engine_expect(peer->ep, conn->wire->idx);
	if (peer->ep->cm_ops)
		peer->ep->cm_ops->answering(peer, conn);
	conn->wire->ops->accept(conn, &answer);
	return 0;
}

void engine_conn_request(struct wire_conn *conn, const struct hello *hello)
{
	conn->wire->ep->requested(conn, hello);
}
