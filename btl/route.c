/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Finding the way to a peer, and another one. */
#include <stdlib.h>
#include <string.h>
#include "clock.h"
#include "ctx.h"
#include "route.h"

/* A broken device is tried again after so long. */
#define BROKEN_NS 1000000000u

static_assert(WEFT_BTL_DEVICES_MAX <= 32, "a bit for each device");

/* Makes room for the routes of @cnt peers. */
static int routes_grow(struct weft_btl_ctx *ctx, size_t cnt)
{
	struct btl_route *more;

	if (cnt <= ctx->route_cnt)
		return 0;
	cnt = cnt > 2 * ctx->route_cnt ? cnt : 2 * ctx->route_cnt;
	more = realloc(ctx->routes, cnt * sizeof(*more));
	if (!more)
		return -FI_ENOMEM;
	memset(more + ctx->route_cnt, 0, (cnt - ctx->route_cnt) * sizeof(*more));
	ctx->routes = more;
	ctx->route_cnt = cnt;
	return 0;
}

/* Takes the addresses of a peer that was closed out of the address vectors. */
static void route_forget(struct weft_btl_ctx *ctx, struct btl_route *route)
{
	for (uint32_t i = 0; i < ctx->btl->device_cnt && !route->lost; i++) {
		if (route->reaches & 1u << i)
			fi_av_remove(ctx->lanes[i].av, &route->addr[i], 1, 0);
		if (route->serves & 1u << i)
			fi_av_remove(ctx->lanes[i].av, &route->server[i], 1, 0);
	}
	*route = (struct btl_route){ 0 };
}

int btl_route_get(struct weft_btl_ctx *ctx, const struct weft_btl_peer *peer, size_t *idx)
{
	struct weft_btl *btl = ctx->btl;
	struct btl_route *route;
	int ret;

	*idx = peer->idx;
	if (peer->idx < ctx->route_cnt && ctx->routes[peer->idx].serial == peer->serial)
		return 0;
	ret = routes_grow(ctx, peer->idx + 1);
	if (ret)
		return ret;
	route = &ctx->routes[peer->idx];
	route_forget(ctx, route);
	for (uint32_t i = 0; i < btl->device_cnt && i < peer->name.cnt; i++) {
		const struct btl_name_device *device = &peer->name.devices[i];

		if (btl_name_device_fits(&btl->devices[i], device) &&
		    fi_av_insert(ctx->lanes[i].av, device->addr, 1, &route->addr[i], 0, NULL) ==
			    1)
			route->reaches |= 1u << i;
		if (route->reaches & 1u << i && btl_device_needs_server(&btl->devices[i]) &&
		    btl_device_takes(&btl->devices[i], device->server, device->server_len) &&
		    fi_av_insert(ctx->lanes[i].av, device->server, 1, &route->server[i], 0,
				 NULL) == 1)
			route->serves |= 1u << i;
	}
	if (!route->reaches)
		return -FI_EHOSTUNREACH;
	route->serial = peer->serial;
	return 0;
}

/* The devices that are to be used; all, if none works. */
static uint32_t working(struct btl_route *route)
{
	if (!route->broken)
		return route->reaches;
	if (!(route->reaches & ~route->broken) || clock_ns() - route->broken_ns > BROKEN_NS)
		route->broken = 0;
	return route->reaches & ~route->broken;
}

uint32_t btl_route_device(struct btl_route *route)
{
	return (uint32_t)__builtin_ctz(working(route));
}

uint32_t btl_route_next_device(struct btl_route *route)
{
	uint32_t all = working(route), later = all & ~((2u << route->turn) - 1);

	route->turn = (uint32_t)__builtin_ctz(later ? later : all);
	return route->turn;
}

bool btl_route_works_by_several(const struct btl_route *route)
{
	uint32_t all = route->reaches & ~route->broken;

	return all & (all - 1);
}

/* Whether an error is one of the connection, and not of what was asked for. */
static bool is_of_connection(int status)
{
	switch (-status) {
	case FI_EIO:
	case FI_ECONNRESET:
	case FI_ECONNABORTED:
	case FI_ECONNREFUSED:
	case FI_ENOTCONN:
	case FI_ESHUTDOWN:
	case FI_EHOSTUNREACH:
	case FI_EHOSTDOWN:
	case FI_ENETUNREACH:
	case FI_ENETDOWN:
	case FI_ETIMEDOUT:
	case FI_ENODEV:
		return true;
	default:
		return false;
	}
}

bool btl_route_replace(struct btl_route *route, int status, uint32_t *tried, uint32_t *device)
{
	uint32_t left;

	if (!is_of_connection(status))
		return false;
	if (!route->broken)
		route->broken_ns = clock_ns();
	route->broken |= 1u << *device;
	*tried |= 1u << *device;
	left = route->reaches & ~*tried;
	if (!left)
		return false;
	/* one that has been broken for others may work again */
	*device = (uint32_t)__builtin_ctz(left & ~route->broken ? left & ~route->broken : left);
	return true;
}
