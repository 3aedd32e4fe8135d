/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The routes of an endpoint, as the program reads them (routes.c). */
#ifndef WEFT_ENGINE_ROUTES_H
#define WEFT_ENGINE_ROUTES_H

#include <weft/routes.h>
#include "engine.h"

/* engine_routes - fill @routes as weft_routes_ops.list documents; the caller holds the domain */
int engine_routes(struct engine_ep *ep, struct weft_route *routes, size_t *count);

/* engine_routes_ops - the table that fi_open_ops("weft_routes") returns */
extern struct weft_routes_ops engine_routes_ops;

#endif
