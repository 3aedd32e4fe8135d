/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * One line per wire on standard error when an endpoint ends: what `weft run --report`
 * collects. Called by the engine on the thread that closes the endpoint.
 */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
#include <rdma/providers/fi_prov.h>
#include <weft/routes.h>
#include "report.h"

void report_define(const struct fi_provider *provider)
{
	fi_param_define(
		provider, "report", FI_PARAM_BOOL,
		"Print the traffic of each wire when an endpoint is closed (default: no)");
}

void report_routes(struct fi_provider *provider, const struct weft_route *routes, size_t cnt)
{
	char host[256] = "?";
	int wanted = 0, cancel;

	fi_param_get_bool(provider, "report", &wanted);
	if (!wanted)
		return;
	gethostname(host, sizeof(host) - 1);
	/* the engine holds locks: a thread that is cancelled ends later */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	for (size_t i = 0; i < cnt; i++)
		fprintf(stderr,
			"weft-routes: host=%s pid=%d wire=%s peers=%llu tx_msgs=%llu tx_bytes=%llu rx_msgs=%llu "
			"rx_bytes=%llu\n",
			host, (int)getpid(), routes[i].wire, (unsigned long long)routes[i].peers,
			(unsigned long long)routes[i].tx_msgs,
			(unsigned long long)routes[i].tx_bytes,
			(unsigned long long)routes[i].rx_msgs,
			(unsigned long long)routes[i].rx_bytes);
	pthread_setcancelstate(cancel, NULL);
}
