/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Which wires an endpoint has, in which state, and what went over each of
 * them. Answered by the endpoints of the providers link, shm and tcp; a
 * stock libfabric answers fi_open_ops with an error, and a caller lives with that:
 *
 *	struct weft_routes_ops *ops;
 *	struct weft_route routes[WEFT_ROUTES_MAX];
 *	size_t count = WEFT_ROUTES_MAX;
 *
 *	if (!fi_open_ops(&ep->fid, WEFT_ROUTES_OPS, 0, (void **)&ops, NULL) &&
 *	    !ops->list(&ep->fid, routes, &count))
 *		... routes[0 .. count - 1]
 */
#ifndef WEFT_ROUTES_H
#define WEFT_ROUTES_H

#include <rdma/fabric.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEFT_ROUTES_OPS "weft_routes"

/* More wires than any endpoint has. */
#define WEFT_ROUTES_MAX 16

/*
 * struct weft_route - one wire of an endpoint
 * @wire:   its name: "shm", "tcp"
 * @local:  printable local address where the wire has one ("192.0.2.1:47123"), else ""
 * @state:  "up", or the reason why it can't be used
 * @peers:  peers whose messages take this wire now
 * @tx_msgs, @tx_bytes:  messages sent and their payload, since the endpoint was made
 * @rx_msgs, @rx_bytes:  the same, received
 *
 * A message counts once, on the wire its payload took, however many packets that
 * were; acknowledgements and credits do not count. One-sided operations count as messages of
 * who begins them; what a read or a fetch brings back is payload of who answers. Reads and writes
 * that are done without the target (large ones in shared memory, all in memory that both map) count at
 * who begins them alone.
 * Strings end in a zero byte.
 */
struct weft_route {
	char wire[16];
	char local[64];
	char state[48];
	uint64_t peers;
	uint64_t tx_msgs;
	uint64_t tx_bytes;
	uint64_t rx_msgs;
	uint64_t rx_bytes;
};

/*
 * struct weft_routes_ops - what fi_open_ops(WEFT_ROUTES_OPS) gives
 * @size:  bytes of this table in the library that gave it: a call that lies beyond
 *         is not there. The table only grows at its end.
 * @list:  describe the endpoint's wires.
 *         @count: in: room in @routes; out: wires the endpoint has.
 *         Thread-safe as a data transfer call of the endpoint is; makes no progress.
 *         Returns 0, -FI_ETOOSMALL with @count set when there is no room for all
 *         (nothing written), or -FI_EINVAL for an object that is no such endpoint.
 *
 * The table belongs to the library and lives as long as the endpoint.
 */
struct weft_routes_ops {
	size_t size;
	int (*list)(struct fid *ep, struct weft_route *routes, size_t *count);
};

/* The layout is an ABI: these must never change. */
#ifdef __cplusplus
#define WEFT_ROUTES_ASSERT(cond) static_assert(cond, #cond)
#else
#define WEFT_ROUTES_ASSERT(cond) _Static_assert(cond, #cond)
#endif

WEFT_ROUTES_ASSERT(sizeof(struct weft_route) == 168);
WEFT_ROUTES_ASSERT(__builtin_offsetof(struct weft_route, wire) == 0);
WEFT_ROUTES_ASSERT(__builtin_offsetof(struct weft_route, local) == 16);
WEFT_ROUTES_ASSERT(__builtin_offsetof(struct weft_route, state) == 80);
WEFT_ROUTES_ASSERT(__builtin_offsetof(struct weft_route, peers) == 128);
WEFT_ROUTES_ASSERT(__builtin_offsetof(struct weft_route, tx_msgs) == 136);
WEFT_ROUTES_ASSERT(__builtin_offsetof(struct weft_route, tx_bytes) == 144);
WEFT_ROUTES_ASSERT(__builtin_offsetof(struct weft_route, rx_msgs) == 152);
WEFT_ROUTES_ASSERT(__builtin_offsetof(struct weft_route, rx_bytes) == 160);
WEFT_ROUTES_ASSERT(__builtin_offsetof(struct weft_routes_ops, size) == 0);
WEFT_ROUTES_ASSERT(__builtin_offsetof(struct weft_routes_ops, list) == sizeof(size_t));

#undef WEFT_ROUTES_ASSERT

#ifdef __cplusplus
}
#endif

#endif
