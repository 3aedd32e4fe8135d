/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Wires of an endpoint; links.h has the contract. Speaks <weft/routes.h>.
 */
#include "links.h"
#include "endpoint.h"

#include <stddef.h>
#include <stdio.h>

#include <rdma/fi_errno.h>
#include <weft/routes.h>

static void print_route(const struct weft_route *route)
{
	/* Strings that a foreign library may have filled in, so their length is bounded. */
	printf("    wire: %.*s\n", (int)sizeof(route->wire), route->wire);
	printf("        state: %.*s\n", (int)sizeof(route->state), route->state);
	if (route->local[0])
		printf("        local: %.*s\n", (int)sizeof(route->local), route->local);
	if (route->peers || route->tx_msgs || route->rx_msgs)
		printf("        peers: %llu, sent %llu (%llu bytes), received %llu (%llu bytes)\n",
		       (unsigned long long)route->peers, (unsigned long long)route->tx_msgs,
		       (unsigned long long)route->tx_bytes, (unsigned long long)route->rx_msgs,
		       (unsigned long long)route->rx_bytes);
}

static int print_routes(struct fid *ep)
{
	struct weft_route routes[WEFT_ROUTES_MAX];
	struct weft_routes_ops *ops = NULL;
	size_t cnt = WEFT_ROUTES_MAX, i;
	int rc;

	rc = fi_open_ops(ep, WEFT_ROUTES_OPS, 0, (void **)&ops, NULL);
	if (rc || !ops ||
	    ops->size < offsetof(struct weft_routes_ops, list) + sizeof(ops->list)) {
		printf("    its endpoints do not report their wires: not a provider of weft\n");
		return 0;
	}
	rc = ops->list(ep, routes, &cnt);
	if (rc)
		return fabric_complain("listing the wires", rc);
	for (i = 0; i < cnt && i < WEFT_ROUTES_MAX; i++)
		print_route(&routes[i]);
	return 0;
}

int links_print(struct fi_info *info)
{
	struct endpoint end;
	int rc;

	rc = endpoint_open(&end, info, FI_WAIT_NONE);
	if (rc)
		return rc;
	printf("provider: %s\n    domain: %s\n", info->fabric_attr->prov_name,
	       info->domain_attr->name);
	rc = print_routes(&end.ep->fid);
	endpoint_close(&end);
	return rc;
}
