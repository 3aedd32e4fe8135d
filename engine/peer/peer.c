/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Peers: found, made on first use, served while something is queued for them, freed when
 * nobody needs them. Called with the domain held: from the op tables' slots, and from progress.
 */
#include "follow.h"
#include "peer.h"
#include "access.h"
#include "control.h"
#include "lost.h"
#include "recv.h"
#include "send.h"
#include "waiting.h"

#define CHECKS_LOOK  128u /* peers that a liveness round looks at, in turn, */
#define CHECKS_IDLE  16u  /* and those of them without work pending that it checks */
#define CHECKS_TIMES 50u  /* more of both, at most, for rounds that were slept through */

/* Does an address that a program gave name the endpoint with this full address? */
static bool engine_names(const struct weft_addr *given, const struct weft_addr *full)
{
	struct weft_addr service = *full;

	if (given->kind != ADDR_SERVICE)
		return addr_same(given, full);
	addr_to_service(&service);
	return addr_same(given, &service);
}

/* The peer stands at @addr of the AV, or nowhere. */
static void engine_peer_place(struct engine_peer *peer, fi_addr_t addr)
{
	bool renamed = peer->addr != addr;

	peer->addr = addr;
	peer->told = peer->ep->av ? av_told(&peer->ep->av->table, addr) : FI_ADDR_NOTAVAIL;
	if (renamed && peer->ep->srx)
		peer->ep->domain->ops->renamed(peer);
}

struct engine_peer *engine_peer_new(struct engine_ep *ep, const struct weft_addr *address,
				    fi_addr_t addr)
{
	struct engine_peer *peer = platform_alloc(sizeof(*peer));

	if (!peer)
		return NULL;
	peer->ep = ep;
	peer->life = ep->life;
	peer->checked = ep->checks - 1; /* not yet */
	engine_peer_place(peer, addr);
	peer->address = *address;
	peer->self = engine_names(address, &ep->address);
	peer->tx_epoch = PACKET_EPOCH(ep->epoch);
	list_init(&peer->blocked);
	list_init(&peer->queued);
	list_init(&peer->started);
	list_init(&peer->pushing);
	list_init(&peer->receiving);
	list_init(&peer->arriving);
	list_init(&peer->filling);
	list_init(&peer->early);
	list_init(&peer->ctl);
	list_init(&peer->unacked);
	list_init(&peer->replies);
	list_init(&peer->replying);
	list_init(&peer->ack_link);
	list_push(&ep->all, &peer->all);
	ep->peer_cnt[address->kind == ADDR_SERVICE]++;
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

static struct engine_peer *engine_peer_put(struct engine_ep *ep, fi_addr_t addr,
					   struct engine_peer *peer)
{
	if (!peer)
		return NULL;
	if (!peer->slots++)
		engine_peer_place(peer, addr);
	ep->peers[addr] = peer;
	return peer;
}

/*
 * The peer that this address names too: one that is known by hello alone, or that stands in the
 * AV under an address of the other kind. Two peers for one endpoint would each count its messages.
 */
static struct engine_peer *engine_peer_known(struct engine_ep *ep,
					     const struct weft_addr *address)
{
	bool service = address->kind == ADDR_SERVICE;
	struct list *node, *after;

	if (!ep->peer_cnt[!service])
		return NULL;
	list_for_each(node, after, &ep->all) {
		struct engine_peer *peer = container_of(node, struct engine_peer, all);

		if (peer->address.kind == address->kind)
			continue;
		if (service ? engine_names(address, &peer->address)
			    : engine_names(&peer->address, address))
			return peer;
	}
	return NULL;
}

struct engine_peer *engine_peer_open(struct engine_ep *ep, fi_addr_t addr)
{
	const struct weft_addr *address;
	struct engine_peer *peer;

	if (!ep->enabled || !ep->av)
		return NULL;
	engine_av_follow(ep->av);
	address = av_get(&ep->av->table, addr);
	if (!address || !engine_peers_room(ep, addr))
		return NULL;
	if (ep->peers[addr])
		return ep->peers[addr];
	peer = engine_peer_known(ep, address);
	return engine_peer_put(ep, addr, peer ? peer : engine_peer_new(ep, address, addr));
}

struct engine_peer *engine_peer_ctx(struct engine_ep *ep, fi_addr_t addr, uint32_t *idx)
{
	uint32_t bits = ep->av ? ep->av->rx_ctx_bits : 0;
	struct engine_peer *peer;
	uint64_t which;

	if (!bits || addr == FI_ADDR_UNSPEC)
		return NULL;
	which = addr >> (64 - bits);
	if (which >= PACKET_RX_MAX)
		return NULL;
	peer = engine_peer_at(ep, addr << bits >> bits);
	if (peer)
		*idx = (uint32_t)which;
	return peer;
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

		if (peer->slots || !engine_names(address, &peer->address))
			continue;
		if (engine_peers_room(ep, addr))
			engine_peer_put(ep, addr, peer);
		return;
	}
}

void engine_peer_orphan(struct engine_ep *ep, fi_addr_t addr)
{
	struct engine_peer *peer;

	if (addr >= ep->peer_cap || !ep->peers[addr])
		return;
	peer = ep->peers[addr];
	ep->peers[addr] = NULL;
	peer->slots--;
	if (peer->addr != addr)
		return;
	engine_peer_place(peer, FI_ADDR_NOTAVAIL);
	for (size_t i = 0; peer->slots && i < ep->peer_cap; i++)
		if (ep->peers[i] == peer)
			engine_peer_place(peer, i);
}

void engine_peer_tell(struct engine_ep *ep, fi_addr_t addr)
{
	if (addr < ep->peer_cap && ep->peers[addr] && ep->peers[addr]->addr == addr)
		engine_peer_place(ep->peers[addr], addr);
}

void engine_peer_block(struct engine_peer *peer)
{
	if (!list_empty(&peer->blocked))
		return;
	list_push(&peer->ep->blocked, &peer->blocked);
	engine_rouse(peer->ep->domain);
}

void engine_peer_free(struct engine_peer *peer)
{
	peer->ep->peer_cnt[peer->address.kind == ADDR_SERVICE]--;
	list_remove(&peer->all);
	list_remove(&peer->blocked);
	list_remove(&peer->ack_link);
	platform_free(peer);
}

/* Does a posted receive name this peer? A shared queue knows no peers, only addresses. */
static bool engine_peer_named_in(const struct engine_rxq *q, const struct engine_peer *peer)
{
	const struct list *node;

	if (!q || q->shared)
		return false;
	for (node = q->posted.next; node != &q->posted; node = node->next)
		if (container_of(node, struct engine_rx, link)->match.source == (uintptr_t)peer)
			return true;
	return false;
}

/* Is there nothing that leads to this peer, and nothing left of what it sent? */
static bool engine_peer_gone(struct engine_peer *peer)
{
	struct engine_ep *ep = peer->ep;

	if (peer->slots || peer->state != PEER_IDLE || peer->up || peer->held_cnt ||
	    !list_empty(&peer->blocked))
		return false;
	for (uint32_t i = 0; i <= ep->rx_cnt; i++)
		if (engine_peer_named_in(engine_rxq_at(ep, i), peer))
			return false;
	return true;
}

void engine_peer_flush(struct engine_peer *peer)
{
	bool replied;

	if (peer->state != PEER_UP || !engine_flush_ctl(peer))
		return;
	replied = engine_replies_push(peer);
	while (!list_empty(&peer->pushing))
		if (!engine_rndv_push(container_of(peer->pushing.next, struct engine_tx, link)))
			break;
	while (!list_empty(&peer->queued))
		if (engine_tx_start(peer,
				    container_of(peer->queued.next, struct engine_tx, link)))
			break;
	peer->ready = list_empty(&peer->queued);
	if (peer->ready && replied && list_empty(&peer->pushing))
		list_remove(&peer->blocked);
}

/* Nothing is to be sent any more to a peer that was being connected. */
static void engine_peer_rest(struct engine_peer *peer)
{
	list_remove(&peer->blocked);
	for (uint32_t i = 0; i < peer->ep->wire_cnt; i++)
		if (peer->conns[i])
			return;
	peer->state = PEER_IDLE;
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

		list_push(&ep->blocked, &peer->blocked);
		if (peer->state == PEER_UP)
			engine_peer_flush(peer);
		else if (engine_work_pending(peer))
			engine_peer_connect(peer);
		else if (!peer->up)
			engine_peer_rest(peer);
	}
}

static void engine_peer_check(struct engine_peer *peer)
{
	for (uint32_t i = 0; i < peer->ep->wire_cnt; i++) {
		struct wire_conn *conn = peer->conns[i];
		int err = conn && peer->up & 1u << i ? conn->wire->ops->check(conn) : 0;

		if (err) {
			engine_peer_lost(peer, err, false);
			return;
		}
	}
}

/* All peers have been looked at once more. */
static void engine_checks_lap(struct engine_ep *ep)
{
	ep->checks += !ep->checks_skipped;
	ep->checks_skipped = false;
	ep->checks_left = ep->peer_cnt[0] + ep->peer_cnt[1];
}

/* Is it the turn of a peer without work pending? Each has one, then all of them the next. */
static bool engine_check_turn(struct engine_peer *peer, uint32_t *idle)
{
	struct engine_ep *ep = peer->ep;

	if (peer->checked == ep->checks)
		return false;
	if (!*idle) {
		ep->checks_skipped = true;
		return false;
	}
	--*idle;
	peer->checked = ep->checks;
	return true;
}

void engine_peers_check(struct engine_ep *ep, uint64_t rounds)
{
	uint32_t times = rounds < CHECKS_TIMES ? (uint32_t)rounds : CHECKS_TIMES;
	uint32_t looks = times * CHECKS_LOOK, idle = times * CHECKS_IDLE;
	struct list *node = NULL, *last = ep->all.prev;

	if (ep->av)
		engine_av_follow(ep->av);
	while (looks-- && node != last && !list_empty(&ep->all)) {
		struct engine_peer *peer;

		if (!ep->checks_left)
			engine_checks_lap(ep);
		ep->checks_left--;
		/* To the end, so that the next round begins with others. */
		node = list_pop(&ep->all);
		list_push(&ep->all, node);
		peer = container_of(node, struct engine_peer, all);
		if (!engine_work_pending(peer) && !engine_check_turn(peer, &idle))
			continue;
		if (engine_peer_gone(peer))
			engine_peer_free(peer);
		else
			engine_peer_check(peer);
	}
}
