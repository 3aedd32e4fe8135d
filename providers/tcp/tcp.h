/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The provider as a whole: its name for log lines, and its settings. Filled once by
 * weft_tcp_ini(), constant afterwards.
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
	/* FI_TCP_PORT_HIGH_RANGE: last port to listen at */
	int port_high;
	/* FI_TCP_SECRET_FILE: peers have to know what is in this file; NULL: anyone may come in */
	const char *secret_file;
	/* FI_TCP_TLS: lanes are encrypted */
	bool tls;
	/* FI_TCP_DEAD_MS: time without any sign of life after which a host is dead, ms */
	int dead_ms;
};

extern struct tcp_settings tcp_settings;

#define TCP_IFACE_VARIABLE "FI_TCP_IFACE"

/* What the engine has there: ENGINE_CAPS or ENGINE_KERNEL_CAPS */
extern const uint64_t tcp_caps;

/* tcp_getinfo - fi_getinfo for this provider, any thread. Source: fi_getinfo(3) */
int tcp_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags,
		const struct fi_info *hints, struct fi_info **info);

/* weft_tcp_identities - the names of the provider; the last entry has none */
extern const struct info_identity weft_tcp_identities[];

/* weft_tcp_ini - returns the provider; registers its wire. Called by the core, once */
struct fi_provider *weft_tcp_ini(void);

#endif
