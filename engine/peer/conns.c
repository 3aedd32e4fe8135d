/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The connections of peers: who is reached over which wire, and how that is settled when both
 * sides begin, when a better wire is found, and when one of them restarts. Called with the
 * domain held: from sends, from progress, and by wires from within their poll().
 *
 * A peer has at most one conn per wire. Its route is the conn of the most preferred wire that
 * is up; who connects tries the wires in order of preference, and when a less preferred one
 * brings the peer's full address (a service address names none) tries the better ones again
 * before the first message.
 */
#include "conns.h"
#include "auth.h"
#include "follow.h"
#include "lost.h"
#include "peer.h"
#include "unanswered.h"

#define RETRY_NS     10000000u	 /* between attempts to connect, ns */
#define EALREADY_NS  50000000u	 /* for the other side's conn to come, ns */
#define REFUSED_NS   80000000u	 /* a peer that was there and refuses so long is gone, ns */
#define UNMET_NS     1000000000u /* so long nobody may be there before the log says it, ns */
#define WINDOW_SHARE 16u	 /* part of what is left of the budget that a new peer gets */
#define WINDOW_MIN   (64u << 10) /* ... and at least that many bytes, while there are any */
#define WINDOW_MAX   (1u << 20)

static void engine_conn_fold(struct engine_ep *ep, const struct wire_conn *conn)
{
	struct engine_wire *w = &ep->wires[conn->wire->idx];

	w->tx_msgs += conn->tx_msgs;
	w->tx_bytes += conn->tx_bytes;
	w->rx_msgs += conn->rx_msgs;
	w->rx_bytes += conn->rx_bytes;
}

/* Forget a conn; the wire frees it. */
static void engine_conn_drop(struct engine_peer *peer, uint32_t idx)
{
	struct wire_conn *conn = peer->conns[idx];

	if (peer->conn == conn) {
		peer->ep->domain->ops->route_lost(peer);
		peer->conn = NULL;
		peer->wire = NULL;
		peer->ready = 0;
	}
	peer->conns[idx] = NULL;
	peer->ours &= ~(1u << idx);
	peer->up &= ~(1u << idx);
	engine_conn_fold(peer->ep, conn);
}

void engine_conn_end(struct engine_peer *peer, uint32_t idx)
{
	struct wire_conn *conn = peer->conns[idx];

	engine_conn_drop(peer, idx);
	conn->wire->ops->disconnect(conn);
}

void engine_conn_broken(struct engine_peer *peer, int err)
{
	engine_peer_lost(peer, err, false);
}

/* What a new peer may send ahead: less and less of the budget, so that there is some for many. */
static uint32_t engine_window(const struct engine_ep *ep)
{
	uint64_t window = ep->budget / WINDOW_SHARE;

	if (window < WINDOW_MIN)
		window = ep->budget < WINDOW_MIN ? ep->budget : WINDOW_MIN;
	if (window > WINDOW_MAX)
		window = WINDOW_MAX;
	return (uint32_t)(window / CREDIT_UNIT * CREDIT_UNIT);
}

static void engine_hello(struct engine_peer *peer, struct hello *hello)
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
		.epoch = ep->epoch,
		.window = peer->window,
		.seq = (uint32_t)peer->tx_seq,
		.incarnation = peer->incarnation,
		.addr = ep->address,
	};
	hello->proof = engine_auth_proof(&ep->auth, hello);
}

/* Does who said this hello have our authorization key, or none as we do? */
static bool engine_hello_fits(const struct engine_ep *ep, const struct hello *hello)
{
	return hello->proof == engine_auth_proof(&ep->auth, hello);
}

/* Begin over wire @idx. Returns 0, -FI_EHOSTUNREACH or another error. */
static int engine_connect_on(struct engine_peer *peer, uint32_t idx,
			     const struct weft_addr *address)
{
	struct engine_ep *ep = peer->ep;
	struct engine_wire *w = &ep->wires[idx];
	struct wire_conn *conn;
	struct hello hello;
	int ret;

	if (!w->wire || peer->self != (idx == ep->wire_cnt - 1) ||
	    peer->unreachable & 1u << idx)
		return -FI_EHOSTUNREACH;
	engine_hello(peer, &hello);
	ret = w->ops->connect(w->wire, peer, address, &hello, &conn);
	if (ret) {
		if (ret == -FI_EHOSTUNREACH)
			peer->unreachable |= 1u << idx;
		return ret;
	}
	peer->conns[idx] = conn;
	peer->ours |= 1u << idx;
	engine_expect(peer->ep, idx);
	return 0;
}

/*
 * A wire that is short of descriptors for now is waited for: the less preferred ones take more of them,
 * and keep them for as long as they are connected.
 */
static bool engine_short(int err)
{
	return err == -FI_EAGAIN || err == -FI_EMFILE;
}

/* Nobody is at an address yet: what is for it waits, as long as it takes. Who waits for nobody reads it. */
static void engine_peer_unmet(struct engine_peer *peer, uint64_t now)
{
	const struct engine_family *family = peer->ep->family;
	char bytes[ENGINE_NAME_MAX], name[ENGINE_NAME_MAX + 32];

	if (peer->ep->unmet_logged || now - peer->since_ns < UNMET_NS)
		return;
	peer->ep->unmet_logged = true;
	family->addr_str(bytes, family->addr_write(&peer->address, bytes), name, sizeof(name));
	FI_WARN(family->provider, FI_LOG_EP_CTRL,
		"nobody answers at %s yet: what is for it waits, and is tried again. Is the program there "
		"running, and is this its address? Logged once for each endpoint\n",
		name);
}

void engine_peer_connect(struct engine_peer *peer)
{
	struct engine_ep *ep = peer->ep;
	bool later = false;
	int ret;

	if (peer->state == PEER_UP)
		return;
	for (uint32_t i = 0; i < ep->wire_cnt; i++)
		if (peer->conns[i])
			return;
	if (peer->state == PEER_IDLE)
		peer->since_ns = platform_now_ns();
	else if (platform_now_ns() < peer->retry_ns)
		return;
	peer->state = PEER_CONNECTING;
	for (uint32_t i = 0; i < ep->wire_cnt; i++) {
		ret = engine_connect_on(peer, i, &peer->address);
		if (!ret)
			return;
		if (ret == -FI_ECONNREFUSED)
			peer->gone = true;
		else
			later |= ret != -FI_EHOSTUNREACH;
		if (engine_short(ret))
			break;
	}
	if (later) {
		peer->retry_ns = platform_now_ns() + RETRY_NS;
		if (peer->address.kind == ADDR_SERVICE)
			engine_peer_unmet(peer, platform_now_ns());
	} else {
		engine_peer_lost(peer, peer->gone ? -FI_ECONNREFUSED : -FI_EHOSTUNREACH, false);
	}
}

/* Settle on the best conn that is up; wait when a better one is under way. */
static void engine_peer_route(struct engine_peer *peer)
{
	struct engine_ep *ep = peer->ep;
	bool pending = false;

	for (uint32_t i = 0; i < ep->wire_cnt; i++) {
		if (!peer->conns[i])
			continue;
		if (!(peer->up & 1u << i)) {
			pending = true;
			continue;
		}
		peer->conn = peer->conns[i];
		peer->wire = ep->wires[i].ops;
		if (pending && peer->state != PEER_UP)
			return;
		peer->state = PEER_UP;
		peer->ready = list_empty(&peer->queued);
		if (engine_work_pending(peer))
			engine_peer_block(peer);
		return;
	}
}

/* The peer that said hello: in the AV, or known by an earlier hello, or new. */
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

/*
 * Both sides give up all conns of a peer when one breaks, but not at the same time, and what a
 * wire still brings of an old conn may come after what another wire brings of a new one.
 *
 * Returns a number below zero for a hello of a past that the other side has given up, zero for
 * one more conn of the incarnation we are in, above zero when the other side has begun another.
 */
static int32_t engine_hello_age(const struct engine_peer *peer, const struct hello *hello)
{
	return peer->epoch == hello->epoch
		       ? (int32_t)(hello->incarnation - peer->peer_incarnation)
		       : 1;
}

/* The other side is in another incarnation: it is another program, or has given up the conns of the last one. */
static void engine_incarnation_over(struct engine_peer *peer, const struct hello *hello)
{
	if (peer->epoch != hello->epoch)
		engine_peer_lost(peer, -FI_ECONNRESET, false);
	else
		engine_conn_broken(peer, -FI_ECONNRESET);
}

int engine_accept(struct wire *wire, const struct hello *hello, struct engine_peer **out,
		  struct hello *answer)
{
	struct engine_ep *ep = wire->ep;
	uint32_t bit = 1u << wire->idx;
	struct engine_peer *peer;

	if (!engine_hello_fits(ep, hello))
		return -FI_EKEYREJECTED;
	peer = engine_peer_by_hello(ep, hello);
	if (!peer)
		return -FI_ENOMEM;
	if (peer->self != (wire->idx == ep->wire_cnt - 1))
		return -FI_EINVAL;
	if (!peer->self) {
		if (engine_hello_age(peer, hello) < 0)
			return -FI_ECONNRESET;
		/* With nothing up, what was queued since the end of the last incarnation is for this one. */
		if (peer->up && engine_hello_age(peer, hello) > 0)
			engine_incarnation_over(peer, hello);
		if (peer->conns[wire->idx] && peer->ours & bit) {
			if (ep->epoch < hello->epoch)
				return -FI_EALREADY;
			if (!(peer->up & bit))
				engine_conn_end(peer, wire->idx);
		}
		if (peer->conns[wire->idx])
			engine_conn_broken(peer, -FI_ECONNRESET);
	}
	engine_hello(peer, answer);
	*out = peer;
	return 0;
}

/* What the first conn of an incarnation brings. */
static void engine_peer_meet(struct engine_peer *peer, const struct hello *hello)
{
	peer->gone = false;
	peer->epoch = hello->epoch;
	peer->rx_epoch = PACKET_EPOCH(hello->epoch);
	peer->peer_incarnation = hello->incarnation;
	peer->rx_seq = hello->seq;
	peer->credit = peer->credit_max = hello->window;
	peer->rx_window = peer->window;
	peer->credit_due = 0;
	peer->acked = peer->lane_seq = peer->asks_seq = (uint32_t)peer->tx_seq;
	peer->ack_tx_seq = peer->tx_seq;
	peer->ack_sent = hello->seq;
	peer->naks_sent = peer->naks_heard = 0;
	peer->ack_waits = false;
	engine_quiet_begin(peer);
	peer->several = false;
}

/* End a conn that has come up and is not wanted. */
static void engine_conn_forsake(struct engine_peer *peer, struct wire_conn *conn)
{
	if (peer->conns[conn->wire->idx] == conn)
		engine_conn_drop(peer, conn->wire->idx);
	conn->wire->ops->disconnect(conn);
}

/* Try the wires that are better than @idx, by which we have just got there. */
static void engine_peer_upgrade(struct engine_peer *peer, uint32_t idx,
				const struct weft_addr *full)
{
	/* They may have refused the service address, which says nothing of them. */
	if (peer->address.kind == ADDR_SERVICE)
		peer->unreachable = 0;
	for (uint32_t i = 0; i < idx; i++)
		if (!peer->conns[i])
			engine_connect_on(peer, i, full);
}

void engine_conn_up(struct wire_conn *conn, const struct hello *hello)
{
	struct engine_peer *peer = conn->peer;
	uint32_t idx = conn->wire->idx;

	if (peer->self) {
		engine_peer_meet(peer, hello);
		if (peer->conns[idx] != conn)
			return; /* the end of the loop that only receives */
	}
	if (!engine_hello_fits(peer->ep, hello)) {
		engine_conn_forsake(peer, conn);
		engine_peer_lost(peer, -FI_EKEYREJECTED, false);
		return;
	}
	if (!peer->self && engine_hello_age(peer, hello) < 0) {
		engine_conn_forsake(peer, conn);
		engine_peer_route(peer);
		peer->ep->domain->ops->flush(peer);
		return;
	}
	if (peer->up && engine_hello_age(peer, hello) > 0) {
		/* What we said on this conn is of the incarnation that ends here: begin anew. */
		engine_conn_forsake(peer, conn);
		engine_incarnation_over(peer, hello);
		return;
	}
	if (!peer->up)
		engine_peer_meet(peer, hello);
	engine_expect(peer->ep, idx);
	peer->conns[idx] = conn;
	peer->several |= peer->up != 0;
	peer->up |= 1u << idx;
	if (peer->ours & 1u << idx && !peer->self)
		engine_peer_upgrade(peer, idx, &hello->addr);
	engine_peer_route(peer);
	peer->ep->domain->ops->flush(peer);
}

/* Will this peer refuse us for ever: it speaks another version, or nothing that we know? */
static bool engine_never(int err)
{
	return err == -FI_ENOPROTOOPT || err == -FI_EINVAL || err == -FI_EKEYREJECTED;
}

/* Was it there once? Nobody else answers to an address that names one endpoint, and it had one. */
static bool engine_was_there(const struct engine_peer *peer, int err)
{
	return peer->epoch || peer->gone ||
	       (err == -FI_ECONNREFUSED && peer->address.kind == ADDR_NONCE);
}

/*
 * When a peer that refuses has done so for long enough. At once where one wire knows that its process
 * is gone and this one leads to nobody either: no other will come under the same address.
 */
static uint64_t engine_gone_ns(const struct engine_peer *peer, int err)
{
	if (err == -FI_EALREADY || !engine_was_there(peer, err))
		return UINT64_MAX;
	if (peer->gone && err == -FI_ECONNREFUSED && peer->address.kind == ADDR_NONCE)
		return peer->since_ns;
	return peer->since_ns + REFUSED_NS;
}

/* A conn that never came up is gone. */
static void engine_connect_failed(struct engine_peer *peer, uint32_t idx, int err)
{
	uint64_t now = platform_now_ns(), gone_ns;

	if (err == -FI_EHOSTUNREACH || peer->up)
		peer->unreachable |= 1u << idx;
	if (peer->up) {
		engine_peer_route(peer);
		peer->ep->domain->ops->flush(peer);
		return;
	}
	if (err == -FI_EHOSTUNREACH) {
		peer->retry_ns = 0;
		engine_peer_connect(peer);
		return;
	}
	gone_ns = engine_gone_ns(peer, err);
	if (engine_never(err) || now >= gone_ns) {
		engine_peer_lost(peer, err ? err : -FI_ECONNRESET, false);
		return;
	}
	if (err == -FI_ECONNREFUSED)
		engine_peer_unmet(peer, now);
	peer->retry_ns = now + (err == -FI_EALREADY ? EALREADY_NS : RETRY_NS);
	if (peer->retry_ns > gone_ns) /* the answer to the last attempt is late enough */
		peer->retry_ns = gone_ns;
	engine_peer_block(peer);
}

void engine_conn_down(struct wire_conn *conn, int err)
{
	struct engine_peer *peer = conn->peer;
	uint32_t idx = conn->wire->idx;
	bool was_up;

	if (!peer)
		return;
	if (peer->conns[idx] != conn) {
		engine_conn_fold(peer->ep, conn);
		return;
	}
	was_up = peer->up & 1u << idx;
	engine_conn_drop(peer, idx);
	if (was_up && !err && peer->up) /* another wire may have something to deliver still */
		engine_peer_route(peer);
	else if (was_up && err)
		engine_conn_broken(peer, err);
	else if (was_up)
		engine_peer_lost(peer, -FI_ECONNRESET, true);
	else
		engine_connect_failed(peer, idx, err);
}
