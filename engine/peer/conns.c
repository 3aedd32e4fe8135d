/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The connections of peers: which wire reaches a peer, and what happens when both sides connect at
 * once, when a more preferred wire is found, and when a peer restarts. Called with the domain held:
 * by sends, by progress, and by wires from their poll().
 *
 * A peer has at most one conn for each wire and rail. Its route is the first conn that is up, of
 * the most preferred wire that has one. A conn that fails takes the peer with it, unless it has
 * carried nothing and another one stands. The side that connects tries the wires in order of
 * preference. A service address names only host and port: once a less preferred wire has brought
 * the peer's full address, the more preferred ones are tried again before the first message.
 */
#include "conns.h"
#include "hello.h"
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

/* Add the traffic of a conn that ends to that of its wire. */
static void engine_conn_add_traffic(struct engine_ep *ep, const struct wire_conn *conn)
{
	struct engine_wire *w = &ep->wires[conn->wire->idx];

	w->tx_msgs += conn->tx_msgs;
	w->tx_bytes += conn->tx_bytes;
	w->rx_msgs += conn->rx_msgs;
	w->rx_bytes += conn->rx_bytes;
}

struct wire_conn *engine_conn_at(const struct engine_peer *peer, uint32_t idx, uint32_t rail)
{
	const struct list *node;

	for (node = peer->conns.next; node != &peer->conns; node = node->next) {
		struct wire_conn *conn = container_of(node, struct wire_conn, link);

		if (conn->wire->idx == idx && conn->rail == rail)
			return conn;
	}
	return NULL;
}

void engine_conn_link(struct engine_peer *peer, struct wire_conn *conn, uint32_t rail)
{
	struct list *before = peer->conns.prev;

	while (before != &peer->conns &&
	       container_of(before, struct wire_conn, link)->wire->idx > conn->wire->idx)
		before = before->prev;
	conn->rail = (uint16_t)rail;
	conn->access = conn->wire->ops->access;
	list_insert_after(before, &conn->link);
}

/* Remove a conn from its peer; the wire frees it. */
static void engine_conn_drop(struct engine_peer *peer, struct wire_conn *conn)
{
	if (peer->conn == conn) {
		peer->ep->domain->ops->route_lost(peer);
		peer->conn = NULL;
		peer->wire = NULL;
		peer->ready = 0;
	}
	list_remove(&conn->link);
	peer->up_cnt -= conn->joined;
	conn->joined = false;
	engine_conn_add_traffic(peer->ep, conn);
}

void engine_conn_end(struct wire_conn *conn)
{
	engine_conn_drop(conn->peer, conn);
	conn->wire->ops->disconnect(conn);
}

void engine_conns_leave(struct engine_peer *peer)
{
	while (!list_empty(&peer->conns))
		engine_conn_drop(peer, container_of(peer->conns.next, struct wire_conn, link));
}

void engine_conn_broken(struct engine_peer *peer, int err)
{
	engine_peer_lost(peer, err, false);
}

/*
 * Start to connect over the wire @idx. @data: NULL: none. Returns 0, -FI_EHOSTUNREACH: it can't
 * reach the peer, or another -FI_E*.
 */
static int engine_connect_on(struct engine_peer *peer, uint32_t idx,
			     const struct weft_addr *address, const struct hello_data *data)
{
	struct engine_ep *ep = peer->ep;
	struct engine_wire *w = &ep->wires[idx];
	struct wire_conn *conn;
	struct hello hello;
	int ret;

	if (!w->wire || peer->self != (idx == ep->wire_cnt - 1) || peer->unreachable & 1u << idx)
		return -FI_EHOSTUNREACH;
	engine_hello_say(peer, 0, &hello);
	if (data)
		hello.data = *data;
	ret = w->ops->connect(w->wire, peer, address, &hello, &conn);
	if (ret) {
		if (ret == -FI_EHOSTUNREACH)
			peer->unreachable |= 1u << idx;
		return ret;
	}
	conn->ours = true;
	engine_conn_link(peer, conn, 0);
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
		"no endpoint answers at %s yet: messages to it wait, and are tried again. Is the program "
		"running there, and is this its address? Logged once for each endpoint\n",
		name);
}

/* The attempts to connect end in vain. */
static void engine_peer_give_up(struct engine_peer *peer, int err)
{
	peer->unreached = true;
	engine_peer_lost(peer, err, false);
}

void engine_peer_connect(struct engine_peer *peer)
{
	struct engine_ep *ep = peer->ep;
	bool later = false;
	int ret;

	if (peer->state == PEER_UP)
		return;
	if (!list_empty(&peer->conns))
		return;
	if (ep->cm_ops) { /* something is queued behind the end of the connection */
		engine_peer_lost(peer, -FI_ENOTCONN, false);
		return;
	}
	if (peer->state == PEER_IDLE)
		peer->since_ns = platform_now_ns();
	else if (platform_now_ns() < peer->retry_ns)
		return;
	peer->state = PEER_CONNECTING;
	for (uint32_t i = 0; i < ep->wire_cnt; i++) {
		ret = engine_connect_on(peer, i, &peer->address, NULL);
		if (!ret)
			return;
		if (ret == -FI_ECONNREFUSED)
			peer->dead = true;
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
		engine_peer_give_up(peer, peer->dead ? -FI_ECONNREFUSED : -FI_EHOSTUNREACH);
	}
}

int engine_peer_dial(struct engine_peer *peer, const struct hello_data *data)
{
	int ret = engine_connect_on(peer, 0, &peer->address, data);

	if (!ret)
		peer->state = PEER_CONNECTING;
	return ret;
}

bool engine_inject_early(struct engine_peer *peer)
{
	struct engine_ep *ep = peer->ep;
	struct engine_domain *domain = ep->domain;
	fi_addr_t addr = peer->addr;

	if (peer->state == PEER_UP || peer->unreached ||
	    platform_thread_runs(&domain->progress.thread))
		return false;
	peer->wanted = true;
	engine_peer_block(peer);
	engine_peer_connect(peer);
	domain->ops->progress(domain);
	/* The round may have given the domain up, and the peer may be gone. */
	return engine_peer_lookup(ep, addr) != peer || peer->state != PEER_UP;
}

/*
 * Choose the first conn that is up as the route, unless one of a more preferred wire is under way.
 */
static void engine_peer_route(struct engine_peer *peer)
{
	const struct wire_conn *pending = NULL;
	struct list *node;

	for (node = peer->conns.next; node != &peer->conns; node = node->next) {
		struct wire_conn *conn = container_of(node, struct wire_conn, link);

		if (!conn->joined) {
			pending = pending ? pending : conn;
			continue;
		}
		conn->routed = true;
		peer->conn = conn;
		peer->wire = conn->wire->ops;
		if (pending && pending->wire != conn->wire && peer->state != PEER_UP)
			return;
		peer->state = PEER_UP;
		peer->wanted = peer->unreached = false;
		peer->ready = list_empty(&peer->queued) && list_empty(&peer->tx_order);
		if (engine_work_pending(peer))
			engine_peer_block(peer);
		return;
	}
}

void engine_incarnation_end(struct engine_peer *peer, const struct hello *hello)
{
	if (peer->epoch != hello->epoch)
		engine_peer_lost(peer, -FI_ECONNRESET, false);
	else
		engine_conn_broken(peer, -FI_ECONNRESET);
}

/* Take over the state that the first conn of an incarnation brings. */
static void engine_incarnation_begin(struct engine_peer *peer, const struct hello *hello)
{
	peer->dead = false;
	peer->epoch = hello->epoch;
	peer->rx_epoch = PACKET_EPOCH(hello->epoch);
	engine_rx_head_set(peer);
	peer->peer_incarnation = hello->incarnation;
	peer->rx_seq = hello->seq;
	peer->credit = peer->credit_max = hello->window;
	peer->rx_window = peer->window;
	peer->credit_due = 0;
	peer->acked = peer->lane_seq = peer->ack_request_seq = (uint32_t)peer->tx_seq;
	peer->ack_tx_seq = peer->tx_seq;
	peer->ack_sent = hello->seq;
	peer->naks_sent = peer->naks_received = 0;
	peer->ack_waits = false;
	engine_quiet_begin(peer);
	peer->multi_conn = false;
}

/* Disconnect a conn that has come up and is of no use. */
static void engine_conn_reject(struct engine_peer *peer, struct wire_conn *conn)
{
	if (engine_conn_linked(conn))
		engine_conn_drop(peer, conn);
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
		if (!engine_conn_at(peer, i, 0))
			engine_connect_on(peer, i, full, NULL);
}

/* Returns 0, or why the peer is given up for its hello. */
static int engine_hello_refused(const struct wire_conn *conn, const struct hello *hello)
{
	if (!engine_hello_authorized(conn->peer->ep, hello))
		return -FI_EKEYREJECTED;
	if (hello->kind != engine_hello_kind(conn->peer->ep))
		return -FI_EINVAL;
	return conn->ours && hello->rail != conn->rail ? -FI_EINVAL : 0;
}

void engine_conn_up(struct wire_conn *conn, const struct hello *hello)
{
	struct engine_peer *peer = conn->peer;
	uint32_t idx = conn->wire->idx;
	int err;

	if (peer->self) {
		engine_incarnation_begin(peer, hello);
		if (!engine_conn_linked(conn))
			return; /* the receiving end of the loop */
	}
	err = engine_hello_refused(conn, hello);
	if (err) {
		engine_conn_reject(peer, conn);
		engine_peer_give_up(peer, err);
		return;
	}
	if (!peer->self && engine_hello_age(peer, hello) < 0) {
		engine_conn_reject(peer, conn);
		engine_peer_route(peer);
		peer->ep->domain->ops->flush(peer);
		return;
	}
	if (peer->up_cnt && engine_hello_age(peer, hello) > 0) {
		/*
		 * The hello sent on this conn belongs to the incarnation that ends: connect again.
		 */
		engine_conn_reject(peer, conn);
		engine_incarnation_end(peer, hello);
		return;
	}
	if (!peer->up_cnt)
		engine_incarnation_begin(peer, hello);
	engine_expect(peer->ep, idx);
	conn->joined = true;
	peer->multi_conn |= peer->up_cnt++ != 0;
	if (conn->ours && !peer->self)
		engine_peer_upgrade(peer, idx, &hello->addr);
	engine_peer_route(peer);
	if (peer->ep->cm_ops) {
		err = peer->ep->cm_ops->up(peer, hello);
		if (err) {
			engine_peer_lost(peer, err, false);
			return;
		}
	}
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
	return peer->epoch || peer->dead ||
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
	if (peer->dead && err == -FI_ECONNREFUSED && peer->address.kind == ADDR_NONCE)
		return peer->since_ns;
	return peer->since_ns + REFUSED_NS;
}

/* A conn has ended before it came up. */
static void engine_connect_failed(struct engine_peer *peer, uint32_t idx, int err)
{
	uint64_t now = platform_now_ns(), gone_ns;

	if (err == -FI_EHOSTUNREACH || peer->up_cnt)
		peer->unreachable |= 1u << idx;
	if (peer->up_cnt) {
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
		engine_peer_give_up(peer, err ? err : -FI_ECONNRESET);
		return;
	}
	if (err == -FI_ECONNREFUSED)
		engine_peer_log_unmet(peer, now);
	peer->retry_ns = now + (err == -FI_EALREADY ? EALREADY_NS : RETRY_NS);
	if (peer->retry_ns > gone_ns) /* the last attempt, whose answer decides */
		peer->retry_ns = gone_ns;
	engine_peer_block(peer);
}

/*
 * Returns true if nothing is lost with a conn that has ended or failed: it has carried nothing, and
 * others stand. What the peer has sent over it is lost to the peer, which knows.
 */
static bool engine_conn_spare(const struct engine_peer *peer, const struct wire_conn *conn)
{
	return !conn->routed && !conn->rx_msgs && peer->up_cnt > conn->joined;
}

void engine_conn_failed(struct wire_conn *conn, int err)
{
	struct engine_peer *peer = conn->peer;

	if (engine_conn_spare(peer, conn))
		engine_conn_end(conn);
	else
		engine_conn_broken(peer, err);
}

/* An accepted conn has ended before it came up: the requester has given up. */
static void engine_accept_failed(struct engine_peer *peer)
{
	if (peer->up_cnt) {
		engine_peer_route(peer);
		peer->ep->domain->ops->flush(peer);
	} else if (engine_work_pending(peer)) {
		engine_peer_block(peer);
	}
}

void engine_conn_refused(struct wire_conn *conn, int err, const struct hello_data *data)
{
	struct engine_peer *peer = conn->peer;

	/* Only the program of a MSG endpoint sees conns: for others the data is dropped. */
	if (peer && peer->ep->cm_ops && engine_conn_linked(conn))
		peer->ep->cm_ops->refused(peer, err, data);
	engine_conn_down(conn, err);
}

void engine_conn_down(struct wire_conn *conn, int err)
{
	struct engine_peer *peer = conn->peer;
	bool joined = conn->joined;

	if (!peer)
		return;
	if (!engine_conn_linked(conn)) { /* its peer may have been freed */
		engine_conn_add_traffic(conn->wire->ep, conn);
		return;
	}
	engine_conn_drop(peer, conn);
	if (peer->ep->cm_ops)
		engine_peer_lost(peer, err ? err : -FI_ECONNRESET, !err);
	else if (!joined && !conn->ours)
		engine_accept_failed(peer);
	else if (!joined)
		engine_connect_failed(peer, conn->wire->idx, err);
	else if (peer->up_cnt && !err) /* another conn may still have packets to deliver */
		engine_peer_route(peer);
	else if (err && !engine_conn_spare(peer, conn))
		engine_conn_broken(peer, err);
	else if (!err)
		engine_peer_lost(peer, -FI_ECONNRESET, true);
}
