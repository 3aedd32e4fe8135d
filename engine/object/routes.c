/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The wires that the traffic of an endpoint used: fi_open_ops("weft_routes").
 */
#include <rdma/fi_errno.h>
#include <weft/routes.h>
#include "guard.h"
#include "routes.h"

static void copy_text(char *to, size_t len, const char *from)
{
	size_t i = 0;

	for (; i + 1 < len && from[i]; i++)
		to[i] = from[i];
	to[i] = '\0';
}

/* Add the peer and its traffic over the wire @idx. */
static void engine_route_add(const struct engine_peer *peer, uint32_t idx,
			     struct weft_route *route)
{
	const struct wire_conn *conn;

	list_for_each_entry(conn, &peer->conns, link) {
		if (conn->wire->idx != idx)
			continue;
		route->peers += peer->conn == conn;
		route->tx_msgs += conn->tx_msgs;
		route->tx_bytes += conn->tx_bytes;
		route->rx_msgs += conn->rx_msgs;
		route->rx_bytes += conn->rx_bytes;
	}
}

static void engine_route_fill(struct engine_ep *ep, uint32_t idx, struct weft_route *route)
{
	struct engine_wire *w = &ep->wires[idx];
	struct engine_peer *peer;

	*route = (struct weft_route){ .tx_msgs = w->tx_msgs,
				      .tx_bytes = w->tx_bytes,
				      .rx_msgs = w->rx_msgs,
				      .rx_bytes = w->rx_bytes };
	copy_text(route->wire, sizeof(route->wire), w->ops->name);
	copy_text(route->state, sizeof(route->state), w->wire ? "up" : w->why);
	if (w->wire && w->ops->local)
		w->ops->local(w->wire, route->local, sizeof(route->local));
	list_for_each_entry(peer, &ep->all, all)
		engine_route_add(peer, idx, route);
}

int engine_routes(struct engine_ep *ep, struct weft_route *routes, size_t *count)
{
	size_t room = *count;

	*count = ep->wire_cnt;
	if (room < ep->wire_cnt)
		return -FI_ETOOSMALL;
	for (uint32_t i = 0; i < ep->wire_cnt; i++)
		engine_route_fill(ep, i, &routes[i]);
	return 0;
}

static int engine_routes_list(struct fid *fid, struct weft_route *routes, size_t *count)
{
	struct engine_ep *ep;
	int ret;

	if (!fid || (fid->fclass != FI_CLASS_EP && fid->fclass != FI_CLASS_SEP) || !count ||
	    (*count && !routes))
		return -FI_EINVAL;
	ep = container_of(fid, struct engine_ctx, fid.fid)->ep;
	engine_enter(ep->domain);
	ret = engine_routes(ep, routes, count);
	engine_leave(ep->domain);
	return ret;
}

struct weft_routes_ops engine_routes_ops = {
	.size = sizeof(struct weft_routes_ops),
	.list = engine_routes_list,
};
