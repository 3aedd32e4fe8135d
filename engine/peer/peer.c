/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Peers: found, created on first use, freed when nothing refers to them. Called with the domain
 * held: by slots of op tables, and by progress.
 */
#include "follow.h"
#include "peer.h"
#include "waiting.h"

/* Returns true if an address that a program gave names the endpoint with the address @full. */
static bool engine_address_names(const struct weft_addr *given, const struct weft_addr *full)
{
	struct weft_addr service = *full;

	if (given->kind != ADDR_SERVICE)
		return addr_same(given, full);
	addr_to_service(&service);
	return addr_same(given, &service);
}

/* Set the peer's place in the address vector; FI_ADDR_NOTAVAIL: it has none. */
static void engine_peer_set_addr(struct engine_peer *peer, fi_addr_t addr)
{
	bool renamed = peer->addr != addr;

	peer->addr = addr;
	peer->cq_addr = peer->ep->av ? av_cq_addr(&peer->ep->av->table, addr) : FI_ADDR_NOTAVAIL;
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
	peer->incarnation = ep->incarnation;
	peer->checked = ep->checks - 1; /* not checked yet in this pass */
	engine_peer_set_addr(peer, addr);
	peer->address = *address;
	peer->self = engine_address_names(address, &ep->address);
	peer->tx_epoch = PACKET_EPOCH(ep->epoch);
	list_init(&peer->conns);
	list_init(&peer->blocked);
	list_init(&peer->queued);
	list_init(&peer->started);
	list_init(&peer->pushing);
	list_init(&peer->tx_order);
	list_init(&peer->rx_order);
	list_init(&peer->receiving);
	list_init(&peer->arriving);
	list_init(&peer->filling);
	list_init(&peer->ctl);
	list_init(&peer->unacked);
	list_init(&peer->replies);
	list_init(&peer->replying);
	list_init(&peer->ack_link);
	list_add_tail(&ep->all, &peer->all);
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
		engine_peer_set_addr(peer, addr);
	ep->peers[addr] = peer;
	return peer;
}

/*
 * Returns the peer that @address names and that has an address of the other kind, from its hello or
 * from the address vector; or NULL. Two peers for one endpoint would each count its messages.
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
		if (service ? engine_address_names(address, &peer->address)
			    : engine_address_names(&peer->address, address))
			return peer;
	}
	return NULL;
}

struct engine_peer *engine_peer_open(struct engine_ep *ep, fi_addr_t addr)
{
	const struct weft_addr *address;
	struct engine_peer *peer;

	if (ep->connected)
		return ep->only;
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

struct engine_peer *engine_peer_only(struct engine_ep *ep, const struct weft_addr *address)
{
	struct engine_peer *peer = ep->only;

	if (!peer) {
		peer = engine_peer_new(ep, address, FI_ADDR_NOTAVAIL);
		if (!peer)
			return NULL;
		peer->slots = 1; /* until the endpoint is closed */
		peer->self = false;
		ep->only = peer;
	}
	peer->address = *address;
	return peer;
}

/* The fast paths look up address 0, which programs of such endpoints often pass. */
void engine_only_open(struct engine_ep *ep)
{
	if (engine_peers_room(ep, 0))
		ep->peers[0] = ep->only;
	ep->connected = true;
}

void engine_only_close(struct engine_ep *ep)
{
	if (ep->peer_cap)
		ep->peers[0] = NULL;
	ep->connected = false;
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
	if (!ep->enabled || ep->cm_ops)
		return -FI_EOPBADSTATE;
	return av_get(&ep->av->table, addr) ? -FI_ENOMEM : -FI_EINVAL;
}

void engine_peer_adopt(struct engine_ep *ep, fi_addr_t addr, const struct weft_addr *address)
{
	struct list *node, *after;

	if (engine_peer_lookup(ep, addr))
		return;
	list_for_each(node, after, &ep->all) {
		struct engine_peer *peer = container_of(node, struct engine_peer, all);

		if (peer->slots || !engine_address_names(address, &peer->address))
			continue;
		if (engine_peers_room(ep, addr))
			engine_peer_put(ep, addr, peer);
		return;
	}
}

void engine_peer_orphan(struct engine_ep *ep, fi_addr_t addr)
{
	struct engine_peer *peer = engine_peer_lookup(ep, addr);

	if (!peer)
		return;
	ep->peers[addr] = NULL;
	peer->slots--;
	if (peer->addr != addr)
		return;
	engine_peer_set_addr(peer, FI_ADDR_NOTAVAIL);
	for (size_t i = 0; peer->slots && i < ep->peer_cap; i++)
		if (ep->peers[i] == peer)
			engine_peer_set_addr(peer, i);
}

void engine_peer_update_addr(struct engine_ep *ep, fi_addr_t addr)
{
	struct engine_peer *peer = engine_peer_lookup(ep, addr);

	if (peer && peer->addr == addr)
		engine_peer_set_addr(peer, addr);
}

void engine_peer_block(struct engine_peer *peer)
{
	if (!list_empty(&peer->blocked))
		return;
	list_add_tail(&peer->ep->blocked, &peer->blocked);
	peer->ep->domain->pending = true;
	engine_wake(peer->ep->domain);
}

void engine_peer_free(struct engine_peer *peer)
{
	peer->ep->peer_cnt[peer->address.kind == ADDR_SERVICE]--;
	peer->ep->budget += peer->window; /* granted by a hello whose conn did not come up */
	list_remove(&peer->all);
	list_remove(&peer->blocked);
	list_remove(&peer->ack_link);
	platform_free(peer->reorder.bins);
	platform_free(peer);
}
