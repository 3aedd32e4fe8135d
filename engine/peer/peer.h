/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Peers: found by fi_addr_t or by who said hello, and known under whatever addresses name them.
 *
 * The caller holds the domain.
 */
#ifndef WEFT_PEER_H
#define WEFT_PEER_H

#include "endpoint.h"

/* engine_peer_new - a peer known by its address alone; NULL without memory */
struct engine_peer *engine_peer_new(struct engine_ep *ep, const struct weft_addr *address,
				    fi_addr_t addr);

/* engine_peer_open - the peer of an AV entry, made on first use; NULL: no such entry or no memory */
struct engine_peer *engine_peer_open(struct engine_ep *ep, fi_addr_t addr);

/* engine_peer_refused - why engine_peer_at() has nothing: -FI_EOPBADSTATE, -FI_EINVAL, -FI_ENOMEM */
ssize_t engine_peer_refused(struct engine_ep *ep, fi_addr_t addr);

static inline struct engine_peer *engine_peer_at(struct engine_ep *ep, fi_addr_t addr)
{
	if (likely(addr < ep->peer_cap && ep->peers[addr]))
		return ep->peers[addr];
	return engine_peer_open(ep, addr);
}

/*
 * engine_peer_ctx - like engine_peer_at() for an address that names one of the peer's receive contexts
 * @idx: out: which; untouched for an address that names none
 * Source: fi_av(3), fi_rx_addr.
 */
struct engine_peer *engine_peer_ctx(struct engine_ep *ep, fi_addr_t addr, uint32_t *idx);

/* engine_peer_named - engine_peer_at(), or engine_peer_ctx() */
static inline struct engine_peer *engine_peer_named(struct engine_ep *ep, fi_addr_t addr,
						    uint32_t *idx)
{
	struct engine_peer *peer = engine_peer_at(ep, addr);

	return likely(peer != NULL) ? peer : engine_peer_ctx(ep, addr, idx);
}

/* engine_peer_block - have progress look at this peer until nothing is queued for it */
void engine_peer_block(struct engine_peer *peer);

/* engine_peer_free - takes a peer that nothing leads to and that has nothing under way */
void engine_peer_free(struct engine_peer *peer);

/* engine_peer_adopt - an address was inserted at @addr: a peer that is known by hello alone takes it */
void engine_peer_adopt(struct engine_ep *ep, fi_addr_t addr, const struct weft_addr *address);

/* engine_peer_orphan - the address at @addr was removed */
void engine_peer_orphan(struct engine_ep *ep, fi_addr_t addr);

/* engine_peer_tell - what completions are to say of the AV entry @addr has changed */
void engine_peer_tell(struct engine_ep *ep, fi_addr_t addr);

#endif
