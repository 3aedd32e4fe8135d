/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The connections of peers: which wire reaches a peer, and what happens when both sides connect at
 * once, when a more preferred wire is found, and when a peer restarts. Called with the domain held:
 * by sends, by progress, and by wires from their poll().
 *
 * A peer has at most one conn per wire. Its route is the conn of the most preferred wire that is
 * up. The side that connects tries the wires in order of preference. A service address names only
 * host and port: once a less preferred wire has brought the peer's full address, the more preferred
 * ones are tried again before the first message.
 */
#include "conns.h"
#include "auth.h"
#include "follow.h"
#include "lost.h"
#include "peer.h"
#include "unanswered.h"

/* Time between attempts to connect */
#define RETRY_NS 10000000u
/* Time that the conn of the other side has to come up after a simultaneous open */
#define EALREADY_NS 50000000u
/* A peer that has existed and then refuses for this long has ended */
#define REFUSED_NS 80000000u
/* Time after which it is logged that no endpoint answers at an address */
#define UNMET_NS 1000000000u
/* A new peer is granted one of so many parts of the budget that is left */
#define WINDOW_SHARE 16u
/* Bounds of the window of a peer, bytes; the least while the budget has that much */
#define WINDOW_MIN (64u << 10)
#define WINDOW_MAX (1u << 20)

/* Add the traffic of a conn that ends to that of its wire. */
static void engine_conn_add_traffic(struct engine_ep *ep, const struct wire_conn *conn)
{
	struct engine_wire *w = &ep->wires[conn->wire->idx];

	w->tx_msgs += conn->tx_msgs;
	w->tx_bytes += conn->tx_bytes;
	w->rx_msgs += conn->rx_msgs;
	w->rx_bytes += conn->rx_bytes;
}

/* Remove a conn from its peer; the wire frees it. */
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
	engine_conn_add_traffic(peer->ep, conn);
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

/*
 * Returns true if the sender of the hello has the authorization key of @ep, or if neither has one.
 */
static bool engine_hello_authorized(const struct engine_ep *ep, const struct hello *hello)
{
	return hello->proof == engine_auth_proof(&ep->auth, hello);
}

/*
 * Start to connect over the wire @idx. Returns 0, -FI_EHOSTUNREACH: it can't reach the peer, or
 * another -FI_E*.
 */
static int engine_connect_on(struct engine_peer *peer, uint32_t idx,
			     const struct weft_addr *address)
{
	struct engine_ep *ep = peer->ep;
	struct engine_wire *w = &ep->wires[idx];
	struct wire_conn *conn;
	struct hello hello;
	int ret;

	if (!w->wire || peer->self != (idx == ep->wire_cnt - 1) || peer->unreachable & 1u << idx)
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
 * Returns true if the wire has no descriptors left for now. The engine waits for it then: less
 * preferred wires need more descriptors, and keep them while they are connected.
 */
static bool engine_wire_exhausted(int err)
{
	return err == -FI_EAGAIN || err == -FI_EMFILE;
}

/*
 * Operations wait for a peer that does not exist yet, without limit: log it, in case the address is
 * wrong.
 */
static void engine_peer_log_unmet(struct engine_peer *peer, uint64_t now)
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
		if (engine_wire_exhausted(ret))
			break;
	}
	if (later) {
		peer->retry_ns = platform_now_ns() + RETRY_NS;
		if (peer->address.kind == ADDR_SERVICE)
			engine_peer_log_unmet(peer, platform_now_ns());
	} else {
		engine_peer_lost(peer, peer->gone ? -FI_ECONNREFUSED : -FI_EHOSTUNREACH, false);
	}
}

/*
 * Choose the most preferred conn that is up as the route, unless a more preferred one is under way.
 */
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

/*
 * Compare a hello with the present incarnation. Both sides give up all conns when one breaks, but
 * not at the same time: a hello of an old conn on one wire may come after that of a new conn on
 * another.
 *
 * Returns a negative number for an incarnation that the other side has given up, 0 for the present
 * one, and a positive number for a new one.
 */
static int32_t engine_hello_age(const struct engine_peer *peer, const struct hello *hello)
{
	return peer->epoch == hello->epoch
		       ? (int32_t)(hello->incarnation - peer->peer_incarnation)
		       : 1;
}

/*
 * The other side has begun a new incarnation: it restarted, or gave up the conns of the last one.
 */
static void engine_incarnation_end(struct engine_peer *peer, const struct hello *hello)
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
		if (peer->up && engine_hello_age(peer, hello) > 0)
			engine_incarnation_end(peer, hello);
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

/* Take over the state that the first conn of an incarnation brings. */
static void engine_incarnation_begin(struct engine_peer *peer, const struct hello *hello)
{
	peer->gone = false;
	peer->epoch = hello->epoch;
	peer->rx_epoch = PACKET_EPOCH(hello->epoch);
	engine_rx_head_set(peer);
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

/* Disconnect a conn that has come up and is of no use. */
static void engine_conn_reject(struct engine_peer *peer, struct wire_conn *conn)
{
	if (peer->conns[conn->wire->idx] == conn)
		engine_conn_drop(peer, conn->wire->idx);
	conn->wire->ops->disconnect(conn);
}

/*
 * Connect over the wires that are preferred to @idx, over which the peer was reached; @full: its
 * address.
 */
static void engine_peer_upgrade(struct engine_peer *peer, uint32_t idx,
				const struct weft_addr *full)
{
	/* A wire that does not reach the service address may reach the full one. */
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
		engine_incarnation_begin(peer, hello);
		if (peer->conns[idx] != conn)
			return; /* the receiving end of the loop */
	}
	if (!engine_hello_authorized(peer->ep, hello)) {
		engine_conn_reject(peer, conn);
		engine_peer_lost(peer, -FI_EKEYREJECTED, false);
		return;
	}
	if (!peer->self && engine_hello_age(peer, hello) < 0) {
		engine_conn_reject(peer, conn);
		engine_peer_route(peer);
		peer->ep->domain->ops->flush(peer);
		return;
	}
	if (peer->up && engine_hello_age(peer, hello) > 0) {
		/*
		 * The hello sent on this conn belongs to the incarnation that ends: connect again.
		 */
		engine_conn_reject(peer, conn);
		engine_incarnation_end(peer, hello);
		return;
	}
	if (!peer->up)
		engine_incarnation_begin(peer, hello);
	engine_expect(peer->ep, idx);
	peer->conns[idx] = conn;
	peer->several |= peer->up != 0;
	peer->up |= 1u << idx;
	if (peer->ours & 1u << idx && !peer->self)
		engine_peer_upgrade(peer, idx, &hello->addr);
	engine_peer_route(peer);
	peer->ep->domain->ops->flush(peer);
}

/* Returns true for an error that every attempt will end with: another version, format or key. */
static bool engine_error_is_final(int err)
{
	return err == -FI_ENOPROTOOPT || err == -FI_EINVAL || err == -FI_EKEYREJECTED;
}

/*
 * Returns true if the peer has existed: it was connected, or refuses at an address with a nonce,
 * which only an endpoint that existed can have had.
 */
static bool engine_peer_existed(const struct engine_peer *peer, int err)
{
	return peer->epoch || peer->gone ||
	       (err == -FI_ECONNREFUSED && peer->address.kind == ADDR_NONCE);
}

/*
 * Returns the time from which on a peer that refuses has ended. That is at once if one wire knows
 * that its process has exited and this wire is refused too: no other endpoint will have its nonce.
 */
static uint64_t engine_gone_ns(const struct engine_peer *peer, int err)
{
	if (err == -FI_EALREADY || !engine_peer_existed(peer, err))
		return UINT64_MAX;
	if (peer->gone && err == -FI_ECONNREFUSED && peer->address.kind == ADDR_NONCE)
		return peer->since_ns;
	return peer->since_ns + REFUSED_NS;
}

/* A conn has ended before it came up. */
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
	if (engine_error_is_final(err) || now >= gone_ns) {
		engine_peer_lost(peer, err ? err : -FI_ECONNRESET, false);
		return;
	}
	if (err == -FI_ECONNREFUSED)
		engine_peer_log_unmet(peer, now);
	peer->retry_ns = now + (err == -FI_EALREADY ? EALREADY_NS : RETRY_NS);
	if (peer->retry_ns > gone_ns) /* the last attempt, whose answer decides */
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
		engine_conn_add_traffic(peer->ep, conn);
		return;
	}
	was_up = peer->up & 1u << idx;
	engine_conn_drop(peer, idx);
	if (was_up && !err && peer->up) /* another wire may still have packets to deliver */
		engine_peer_route(peer);
	else if (was_up && err)
		engine_conn_broken(peer, err);
	else if (was_up)
		engine_peer_lost(peer, -FI_ECONNRESET, true);
	else
		engine_connect_failed(peer, idx, err);
}
