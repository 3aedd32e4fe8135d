/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What the files of this folder know of the provider as a whole: its name for log lines and
 * its settings. Filled once by weft_tcp_ini(), constant afterwards.
 */
#ifndef WEFT_TCP_H
#define WEFT_TCP_H

#include <rdma/fabric.h>
#include <rdma/providers/fi_log.h>
#include <rdma/providers/fi_prov.h>

#include "identity.h"

extern struct fi_provider tcp_provider;

struct tcp_settings {
	/* FI_TCP_IFACE: use this interface alone; NULL: any */
	const char *iface;
	/* FI_TCP_PORT_LOW_RANGE: first port to listen at; 0: the kernel chooses */
	int port_low;
	/* FI_TCP_PORT_HIGH_RANGE: last one */
	int port_high;
	/* FI_TCP_DEAD_MS: a host without any sign of life for so long is dead */
	int dead_ms;
};

extern struct tcp_settings tcp_settings;

/* tcp_getinfo - fi_getinfo for this provider, any thread. Source: fi_getinfo(3) */
int tcp_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags,
		const struct fi_info *hints, struct fi_info **info);

/* weft_tcp_identities - the names that it answers to; ends with one without a name (getinfo.c) */
extern const struct info_identity weft_tcp_identities[];

/* weft_tcp_ini - the provider; registers its wire. Called by the core, once */
struct fi_provider *weft_tcp_ini(void);

#endif
