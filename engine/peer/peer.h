/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Peers: found by fi_addr_t or by their hello. All addresses that name one endpoint lead to one
 * peer.
 *
 * The caller holds the domain.
 */
#ifndef WEFT_PEER_H
#define WEFT_PEER_H

#include "endpoint.h"

/*
 * engine_peer_new - create a peer that is not connected
 * @address: copied
 * @addr:    its place in the address vector, or FI_ADDR_NOTAVAIL
 * Returns the peer, owned by the endpoint until engine_peer_free(), or NULL without memory.
 */
struct engine_peer *engine_peer_new(struct engine_ep *ep, const struct weft_addr *address,
				    fi_addr_t addr);

/*
 * engine_peer_open - get the peer of an address vector entry; creates it on first use
 * Of a MSG endpoint every address is that of its peer. Returns NULL if the endpoint is not enabled
 * or not connected, if there is no such entry, or without memory.
 */
struct engine_peer *engine_peer_open(struct engine_ep *ep, fi_addr_t addr);

/*
 * engine_peer_only - make the one peer of a MSG endpoint, ep->only, or give it another address
 * Returns it, or NULL without memory.
 */
struct engine_peer *engine_peer_only(struct engine_ep *ep, const struct weft_addr *address);

/*
 * engine_only_open - data calls reach ep->only from now on
 * engine_only_close - they are refused from now on
 */
void engine_only_open(struct engine_ep *ep);
void engine_only_close(struct engine_ep *ep);

/*
 * engine_peer_refused - returns the error to report after engine_peer_at() has returned NULL:
 * -FI_EOPBADSTATE, -FI_EINVAL or -FI_ENOMEM
 */
ssize_t engine_peer_refused(struct engine_ep *ep, fi_addr_t addr);

/* engine_peer_lookup - returns the peer of an address vector entry; NULL: none was created yet */
static inline struct engine_peer *engine_peer_lookup(const struct engine_ep *ep, fi_addr_t addr)
{
	return likely(addr < ep->peer_cap) ? ep->peers[addr] : NULL;
}

/* engine_peer_at - engine_peer_open(), inlined for a peer that was used before */
static inline struct engine_peer *engine_peer_at(struct engine_ep *ep, fi_addr_t addr)
{
	struct engine_peer *peer = engine_peer_lookup(ep, addr);

	return likely(peer != NULL) ? peer : engine_peer_open(ep, addr);
}

/*
 * engine_peer_ctx - get the peer of an address that names one of its receive contexts
 * @addr: from fi_rx_addr
 * @idx:  out: index of the receive context; unchanged if NULL is returned
 * Returns NULL if the address names no receive context, or like engine_peer_at().
 * Source: fi_av(3), fi_rx_addr.
 */
struct engine_peer *engine_peer_ctx(struct engine_ep *ep, fi_addr_t addr, uint32_t *idx);

/* engine_peer_named - get the peer by engine_peer_at(), or else by engine_peer_ctx() */
static inline struct engine_peer *engine_peer_named(struct engine_ep *ep, fi_addr_t addr,
						    uint32_t *idx)
{
	struct engine_peer *peer = engine_peer_at(ep, addr);
	uint32_t ctx_idx;

	if (likely(peer != NULL))
		return peer;
	/* a copy: @idx of a caller that this is inlined into may be a register */
	ctx_idx = *idx;
	peer = engine_peer_ctx(ep, addr, &ctx_idx);
	*idx = ctx_idx;
	return peer;
}

/* engine_peer_block - schedule the peer for progress until nothing is queued for it */
void engine_peer_block(struct engine_peer *peer);

/* engine_peer_free - free a peer that no address names and that has nothing under way */
void engine_peer_free(struct engine_peer *peer);

/*
 * engine_peer_adopt - an address was inserted into the address vector
 * @addr:    where
 * @address: the address; a peer that it names, and that was known only by its hello, is at @addr
 *           from now on
 */
void engine_peer_adopt(struct engine_ep *ep, fi_addr_t addr, const struct weft_addr *address);

/* engine_peer_orphan - the address at @addr is removed from the address vector; its peer stays */
void engine_peer_orphan(struct engine_ep *ep, fi_addr_t addr);

/*
 * engine_peer_update_addr - the source that completions report for the address vector entry @addr
 * has changed
 */
void engine_peer_update_addr(struct engine_ep *ep, fi_addr_t addr);

#endif
