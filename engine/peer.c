/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Peers and their connections. Called with the domain held: from the op tables' slots, from
 * progress, and by wires from within their poll().
 *
 * A peer has at most one conn per wire. Its route is the conn of the most preferred wire that
 * is up; who connects tries the wires in order of preference, and when a less preferred one
 * brings the peer's full address (a service address names none) tries the better ones again
 * before the first message.
 */
#include "peer.h"
#include "recv.h"
#include "send.h"

#define RETRY_NS 10000000u	   /* between attempts to connect, ns */
#define EALREADY_NS 50000000u	   /* for the other side's conn to come, ns */
#define REFUSED_NS 80000000u	   /* a peer that answered before and refuses so long is gone, ns */
#define CHECKS_IDLE 16u		   /* peers without work pending that a liveness round looks at */

/* Does an address that a program gave name the endpoint with this full address? */
static bool engine_names(const struct weft_addr *given, const struct weft_addr *full)
{
	struct weft_addr service = *full;

	if (given->kind != ADDR_SERVICE)
		return addr_same(given, full);
	addr_to_service(&service);
	return addr_same(given, &service);
}

static struct engine_peer *engine_peer_new(struct engine_ep *ep, const struct weft_addr *address, fi_addr_t addr)
{
	struct engine_peer *peer = platform_alloc(sizeof(*peer));

	if (!peer)
		return NULL;
	peer->ep = ep;
	peer->addr = addr;
	peer->address = *address;
	peer->self = engine_names(address, &ep->address);
	peer->tx_epoch = (uint16_t)ep->epoch;
	list_init(&peer->blocked);
	list_init(&peer->queued);
	list_init(&peer->started);
	list_init(&peer->pushing);
	list_init(&peer->receiving);
	list_init(&peer->arriving);
	list_init(&peer->early);
	list_init(&peer->ctl);
	list_push(&ep->all, &peer->all);
	return peer;
}

static bool engine_peers_room(struct engine_ep *ep, fi_addr_t addr)
{
	struct engine_peer **peers;
	size_t cap = ep->peer_cap ? ep->peer_cap : 64;

	if (addr < ep->peer_cap)
		return true;
	while (cap <= addr)
		cap *= 2;
	peers = platform_alloc(cap * sizeof(struct engine_peer *));
	if (!peers)
		return false;
	if (ep->peer_cap)
		memcpy(peers, ep->peers, ep->peer_cap * sizeof(struct engine_peer *));
	platform_free(ep->peers);
	ep->peers = peers;
	ep->peer_cap = cap;
	return true;
}

struct engine_peer *engine_peer_open(struct engine_ep *ep, fi_addr_t addr)
{
	const struct weft_addr *address;

	if (!ep->enabled || !ep->av)
		return NULL;
	address = av_get(&ep->av->table, addr);
	if (!address || !engine_peers_room(ep, addr))
		return NULL;
	if (!ep->peers[addr])
		ep->peers[addr] = engine_peer_new(ep, address, addr);
	return ep->peers[addr];
}

ssize_t engine_peer_refused(struct engine_ep *ep, fi_addr_t addr)
{
	if (!ep->enabled)
		return -FI_EOPBADSTATE;
	return av_get(&ep->av->table, addr) ? -FI_ENOMEM : -FI_EINVAL;
}

void engine_peer_adopt(struct engine_ep *ep, fi_addr_t addr, const struct weft_addr *address)
{
	struct list *node, *after;

	if (addr < ep->peer_cap && ep->peers[addr])
		return;
	list_for_each(node, after, &ep->all) {
		struct engine_peer *peer = container_of(node, struct engine_peer, all);

		if (peer->addr != FI_ADDR_NOTAVAIL || !engine_names(address, &peer->address))
			continue;
		if (!engine_peers_room(ep, addr))
			return;
		peer->addr = addr;
		ep->peers[addr] = peer;
		return;
	}
}

void engine_peer_orphan(struct engine_ep *ep, fi_addr_t addr)
{
	if (addr >= ep->peer_cap || !ep->peers[addr])
		return;
	ep->peers[addr]->addr = FI_ADDR_NOTAVAIL;
	ep->peers[addr] = NULL;
}

void engine_peer_block(struct engine_peer *peer)
{
	if (list_empty(&peer->blocked))
		list_push(&peer->ep->blocked, &peer->blocked);
}

/* Conns: up to ENGINE_WIRE_MAX of them, by wire. */

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
		peer->conn = NULL;
		peer->wire = NULL;
		peer->ready = 0;
	}
	peer->conns[idx] = NULL;
	peer->ours &= ~(1u << idx);
	peer->up &= ~(1u << idx);
	engine_conn_fold(peer->ep, conn);
}

static void engine_conn_end(struct engine_peer *peer, uint32_t idx)
{
	struct wire_conn *conn = peer->conns[idx];

	engine_conn_drop(peer, idx);
	conn->wire->ops->disconnect(conn);
}

static void engine_hello(struct engine_peer *peer, struct hello *hello)
{
	struct engine_ep *ep = peer->ep;

	if (!peer->window) {
		peer->window = ep->window < ep->budget ? ep->window : (uint32_t)ep->budget;
		ep->budget -= peer->window;
	}
	*hello = (struct hello){
		.magic = HELLO_MAGIC,
		.version = HELLO_VERSION,
		.epoch = ep->epoch,
		.window = peer->window,
		.seq = (uint32_t)peer->tx_seq,
		.life = peer->life,
		.addr = ep->address,
	};
}

static bool engine_work_pending(const struct engine_peer *peer)
{
	return !list_empty(&peer->queued) || !list_empty(&peer->started) || !list_empty(&peer->pushing) ||
	       !list_empty(&peer->receiving) || !list_empty(&peer->ctl);
}

/* Begin over wire @idx. Returns 0, -FI_EHOSTUNREACH or another error. */
static int engine_connect_on(struct engine_peer *peer, uint32_t idx, const struct weft_addr *address)
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
	w->wire->used = true;
	return 0;
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
		later |= ret != -FI_EHOSTUNREACH;
	}
	if (later)
		peer->retry_ns = platform_now_ns() + RETRY_NS;
	else
		engine_peer_fail(peer, -FI_EHOSTUNREACH, false);
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
 * one more conn of the life we are in, above zero when the other side has begun another.
 */
static int32_t engine_hello_age(const struct engine_peer *peer, const struct hello *hello)
{
	return peer->epoch == hello->epoch ? (int32_t)(hello->life - peer->peer_life) : 1;
}

int engine_accept(struct wire *wire, const struct hello *hello, struct engine_peer **out, struct hello *answer)
{
	struct engine_ep *ep = wire->ep;
	uint32_t bit = 1u << wire->idx;
	struct engine_peer *peer;

	peer = engine_peer_by_hello(ep, hello);
	if (!peer)
		return -FI_ENOMEM;
	if (peer->self != (wire->idx == ep->wire_cnt - 1))
		return -FI_EINVAL;
	if (!peer->self) {
		if (engine_hello_age(peer, hello) < 0)
			return -FI_ECONNRESET;
		if (peer->epoch && engine_hello_age(peer, hello) > 0 &&
		    (peer->up || peer->epoch != hello->epoch))
			engine_peer_fail(peer, -FI_ECONNRESET, false);
		if (peer->conns[wire->idx] && peer->ours & bit) {
			if (ep->epoch < hello->epoch)
				return -FI_EALREADY;
			if (!(peer->up & bit))
				engine_conn_end(peer, wire->idx);
		}
		if (peer->conns[wire->idx])
			engine_peer_fail(peer, -FI_ECONNRESET, false);
	}
	engine_hello(peer, answer);
	*out = peer;
	return 0;
}

/* What the first conn of a life brings. */
static void engine_peer_meet(struct engine_peer *peer, const struct hello *hello)
{
	peer->epoch = hello->epoch;
	peer->rx_epoch = (uint16_t)hello->epoch;
	peer->peer_life = hello->life;
	peer->rx_seq = hello->seq;
	peer->credit = hello->window;
	peer->allowed = peer->window;
	peer->owed = 0;
}

/* End a conn that has come up and is not wanted. */
static void engine_conn_forsake(struct engine_peer *peer, struct wire_conn *conn)
{
	if (peer->conns[conn->wire->idx] == conn)
		engine_conn_drop(peer, conn->wire->idx);
	conn->wire->ops->disconnect(conn);
}

/* Try the wires that are better than @idx, by which we have just got there. */
static void engine_peer_upgrade(struct engine_peer *peer, uint32_t idx, const struct weft_addr *full)
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
	if (!peer->self && engine_hello_age(peer, hello) < 0) {
		engine_conn_forsake(peer, conn);
		engine_peer_route(peer);
		engine_peer_flush(peer);
		return;
	}
	if (peer->up && engine_hello_age(peer, hello) > 0) {
		/* What we said on this conn is of the life that ends here: begin anew. */
		engine_conn_forsake(peer, conn);
		engine_peer_fail(peer, -FI_ECONNRESET, false);
		return;
	}
	if (!peer->up)
		engine_peer_meet(peer, hello);
	conn->wire->used = true;
	peer->conns[idx] = conn;
	peer->up |= 1u << idx;
	if (peer->ours & 1u << idx && !peer->self)
		engine_peer_upgrade(peer, idx, &hello->addr);
	engine_peer_route(peer);
	engine_peer_flush(peer);
}

/* Will this peer refuse us for ever: it speaks another version, or nothing that we know? */
static bool engine_never(int err)
{
	return err == -FI_ENOPROTOOPT || err == -FI_EINVAL;
}

/* A conn that never came up is gone. */
static void engine_connect_failed(struct engine_peer *peer, uint32_t idx, int err)
{
	uint64_t now = platform_now_ns();

	if (err == -FI_EHOSTUNREACH || peer->up)
		peer->unreachable |= 1u << idx;
	if (peer->up) {
		engine_peer_route(peer);
		engine_peer_flush(peer);
		return;
	}
	if (err == -FI_EHOSTUNREACH) {
		peer->retry_ns = 0;
		engine_peer_connect(peer);
		return;
	}
	if (engine_never(err) || (err != -FI_EALREADY && peer->epoch && now - peer->since_ns > REFUSED_NS)) {
		engine_peer_fail(peer, err ? err : -FI_ECONNRESET, false);
		return;
	}
	peer->retry_ns = now + (err == -FI_EALREADY ? EALREADY_NS : RETRY_NS);
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
	if (was_up)
		engine_peer_fail(peer, err ? err : -FI_ECONNRESET, !err);
	else
		engine_connect_failed(peer, idx, err);
}

/* Failing everything that was under way. */

static void engine_fail_sends(struct list *sends, int err)
{
	struct list *node;

	while ((node = list_pop(sends)))
		engine_tx_end(container_of(node, struct engine_tx, link), err);
}

static void engine_lose(struct engine_peer *peer, struct engine_held *held)
{
	if (held->peer != peer)
		return;
	/* The next connection begins with a whole window, whatever of the last one is still here. */
	held->counted = false;
	if (held->packet.op == PACKET_RTS)
		held->lost = true;
}

static void engine_lose_stored(struct engine_peer *peer, struct match *m)
{
	struct match_msg *msg = NULL;

	while ((msg = match_next_msg(m, msg)))
		engine_lose(peer, container_of(msg, struct engine_held, match));
}

/* Messages of a peer whose payload will not come. */
static void engine_fail_held(struct engine_peer *peer)
{
	struct engine_ep *ep = peer->ep;
	struct engine_held *held;
	struct list *node, *after;

	while ((node = list_pop(&peer->early))) {
		held = container_of(node, struct engine_held, link);
		list_remove(&held->arriving);
		engine_held_free(ep, held);
	}
	peer->early_cnt = 0;
	while ((node = list_pop(&peer->arriving))) {
		held = container_of(node, struct engine_held, arriving);
		if (held->state == HELD_MATCHED) {
			engine_held_free(ep, held);
		} else {
			held->whole = true;
			held->lost = true;
		}
	}
	engine_lose_stored(peer, ep->tagged);
	engine_lose_stored(peer, ep->msg);
	list_for_each(node, after, &ep->claimed)
		engine_lose(peer, container_of(node, struct engine_held, link));
}

static void engine_fail_directed(struct engine_peer *peer, struct match *m, int err)
{
	struct match_recv *recv;
	struct engine_rx *rx;

	while ((recv = match_recv_from(m, (uintptr_t)peer))) {
		match_cancel(m, recv);
		rx = container_of(recv, struct engine_rx, match);
		list_remove(&rx->link);
		rx->peer = peer;
		engine_recv_error(peer->ep, rx, err);
	}
}

void engine_peer_fail(struct engine_peer *peer, int err, bool keep_directed)
{
	struct engine_ep *ep = peer->ep;
	struct list *node;

	for (uint32_t i = 0; i < ep->wire_cnt; i++)
		if (peer->conns[i])
			engine_conn_end(peer, i);
	peer->state = PEER_IDLE;
	peer->life++;
	peer->ready = 0;
	peer->unreachable = 0;
	ep->budget += peer->window;
	peer->window = 0;
	list_remove(&peer->blocked);
	while ((node = list_pop(&peer->ctl)))
		pool_put(&ep->ctl_pool, container_of(node, struct engine_ctl, link));
	engine_fail_held(peer);
	engine_fail_sends(&peer->started, err);
	engine_fail_sends(&peer->pushing, err);
	engine_fail_sends(&peer->queued, err);
	while ((node = list_pop(&peer->receiving)))
		engine_recv_error(ep, container_of(node, struct engine_rx, link), err);
	if (!keep_directed) {
		engine_fail_directed(peer, ep->tagged, err);
		engine_fail_directed(peer, ep->msg, err);
	}
}

void engine_peer_free(struct engine_peer *peer)
{
	list_remove(&peer->all);
	list_remove(&peer->blocked);
	platform_free(peer);
}

/* Queued work. */

static bool engine_ctl_claim(struct engine_peer *peer, uint8_t op, uint64_t tag, uint64_t data,
			     const struct packet_cts *cts)
{
	uint32_t len = cts ? sizeof(*cts) : 0;
	struct packet *packet;
	void *payload;

	if (!peer->conn)
		return false;
	packet = peer->wire->claim(peer->conn, len, &payload);
	if (!packet)
		return false;
	engine_header(peer, packet, op, 0, len);
	packet->tag = tag;
	packet->data = data;
	if (cts)
		memcpy(payload, cts, len);
	peer->wire->publish(peer->conn, packet, false);
	return true;
}

void engine_ctl(struct engine_peer *peer, uint8_t op, uint64_t tag, uint64_t data, const struct packet_cts *cts)
{
	struct engine_ctl *ctl;

	if (list_empty(&peer->ctl) && engine_ctl_claim(peer, op, tag, data, cts))
		return;
	if (op == PACKET_CREDIT && !list_empty(&peer->ctl))
		return; /* the credits go with what is queued */
	ctl = pool_get(&peer->ep->ctl_pool);
	if (!ctl) {
		engine_peer_fail(peer, -FI_ENOMEM, false);
		return;
	}
	ctl->packet = (struct packet){ .op = op, .tag = tag, .data = data };
	ctl->with_cts = cts != NULL;
	if (cts)
		ctl->cts = *cts;
	list_push(&peer->ctl, &ctl->link);
	engine_peer_block(peer);
}

static bool engine_flush_ctl(struct engine_peer *peer)
{
	while (!list_empty(&peer->ctl)) {
		struct engine_ctl *ctl = container_of(peer->ctl.next, struct engine_ctl, link);

		if (!engine_ctl_claim(peer, ctl->packet.op, ctl->packet.tag, ctl->packet.data,
				      ctl->with_cts ? &ctl->cts : NULL))
			return false;
		list_remove(&ctl->link);
		pool_put(&peer->ep->ctl_pool, ctl);
	}
	return true;
}

void engine_peer_flush(struct engine_peer *peer)
{
	if (peer->state != PEER_UP || !engine_flush_ctl(peer))
		return;
	while (!list_empty(&peer->pushing))
		if (!engine_rndv_push(container_of(peer->pushing.next, struct engine_tx, link)))
			break;
	while (!list_empty(&peer->queued))
		if (engine_tx_start(peer, container_of(peer->queued.next, struct engine_tx, link)))
			break;
	peer->ready = list_empty(&peer->queued);
	if (peer->ready && list_empty(&peer->pushing))
		list_remove(&peer->blocked);
}

void engine_peers_service(struct engine_ep *ep)
{
	struct list turn, *node;

	/* Flushing may block or unblock any peer: take them one by one from a list of our own. */
	list_init(&turn);
	while ((node = list_pop(&ep->blocked)))
		list_push(&turn, node);
	while ((node = list_pop(&turn))) {
		struct engine_peer *peer = container_of(node, struct engine_peer, blocked);

		engine_peer_block(peer);
		if (peer->state == PEER_UP)
			engine_peer_flush(peer);
		else if (engine_work_pending(peer))
			engine_peer_connect(peer);
		else if (!peer->up)
			list_remove(&peer->blocked);
	}
}

static void engine_peer_check(struct engine_peer *peer)
{
	for (uint32_t i = 0; i < peer->ep->wire_cnt; i++) {
		struct wire_conn *conn = peer->conns[i];
		int err = conn && peer->up & 1u << i ? conn->wire->ops->check(conn) : 0;

		if (err) {
			engine_peer_fail(peer, err, false);
			return;
		}
	}
}

void engine_peers_check(struct engine_ep *ep)
{
	uint32_t idle = CHECKS_IDLE;
	struct list *node, *after;

	list_for_each(node, after, &ep->all) {
		struct engine_peer *peer = container_of(node, struct engine_peer, all);

		if (!engine_work_pending(peer)) {
			if (!idle)
				continue;
			idle--;
			/* To the end, so that the next round begins with others. */
			if (after != &ep->all) {
				list_remove(node);
				list_push(&ep->all, node);
			}
		}
		engine_peer_check(peer);
	}
}
