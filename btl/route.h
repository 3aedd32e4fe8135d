/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A context's ways to its peers: by which devices a peer is reached, and which of them work. The
 * context's thread's.
 */
#ifndef BTL_ROUTE_H
#define BTL_ROUTE_H

#include "transport.h"

/*
 * struct btl_route
 * @serial:    the peer's; 0: no peer's
 * @addr:      by device
 * @server:    by device: who serves what it is asked for
 * @serves:    bit i: there is one
 * @reaches:   bit i: device i reaches the peer
 * @broken:    bit i: an operation by device i has failed as when its connection breaks
 * @broken_ns: when the first of @broken did; after a while they are tried again
 * @turn:      the device of the last piece of a transfer over several
 * @under_way: operations that have begun and not ended
 * @lost:      operations were cancelled: a device may have them for ever, and the addresses stay
 * @requests:  slots that requests to the peer take
 */
struct btl_route {
	uint64_t serial;
	fi_addr_t addr[WEFT_BTL_DEVICES_MAX], server[WEFT_BTL_DEVICES_MAX];
	uint32_t reaches, serves, broken;
	uint64_t broken_ns;
	uint32_t turn;
	size_t under_way;
	bool lost;
	uint32_t requests;
};

/*
 * btl_route_get - the way to a peer
 * @idx: out: index in ctx->routes, valid as long as the peer is open
 * Returns 0 or -FI_E*.
 */
int btl_route_get(struct weft_btl_ctx *ctx, const struct weft_btl_peer *peer, size_t *idx);

/*
 * btl_route_device - the device of everything that is not a piece of a larger transfer: the first
 * that works
 * All contexts of all processes have the devices in one order, so that the atomics on a value meet
 * in one device.
 */
uint32_t btl_route_device(struct btl_route *route);

/* btl_route_next_device - the device of the next piece of a transfer: those that work, in turns */
uint32_t btl_route_next_device(struct btl_route *route);

/*
 * btl_route_reaches_several - Returns whether more than one device reaches the peer, broken or not
 */
static inline bool btl_route_reaches_several(const struct btl_route *route)
{
	return route->reaches & (route->reaches - 1);
}

/* btl_route_works_by_several - Returns whether more than one device works */
bool btl_route_works_by_several(const struct btl_route *route);

/*
 * btl_route_replace - a part of an operation has failed with @status
 * @tried:  in, out: bit i: device i has failed at it
 * @device: in: the one that has failed; out: another one, if there is one
 * Returns whether it is the device's connection that has failed, and another one is to carry the
 * part out.
 */
bool btl_route_replace(struct btl_route *route, int status, uint32_t *tried, uint32_t *device);

#endif
