/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The provider as a whole: its name for log lines, and its settings. Filled once by weft_udp_ini(),
 * constant afterwards.
 */
#ifndef WEFT_UDP_H
#define WEFT_UDP_H

#include <rdma/fabric.h>
#include <rdma/providers/fi_log.h>
#include <rdma/providers/fi_prov.h>

#include "identity.h"

/*
 * What an IPv4 datagram of a network with an MTU of 1500 carries; libfabric's udp has the same
 * bound
 */
#define UDP_MSG_MAX   1472
#define UDP_MSG_LEAST 512
#define UDP_MSG_MOST  65507
#define UDP_CTX_SIZE  1024
#define UDP_IOV_MAX   4

extern struct fi_provider udp_provider;

struct udp_settings {
	/* FI_UDP_IFACE: use this interface alone; NULL: any */
	const char *iface;
	/* FI_UDP_MAX_MSG_SIZE: longest message, bytes */
	int msg_max;
	/*
	 * FI_UDP_RECV_BUF: datagrams that the kernel keeps for an endpoint, bytes with its overhead
	 */
	int recv_buf;
	/* FI_UDP_MULTICAST_HOPS: routers that a datagram to a group passes, plus 1 */
	int hops;
	/* FI_UDP_MULTICAST_LOOP: members of this host get it too */
	int loop;
};

extern struct udp_settings udp_settings;

#define UDP_IFACE_VARIABLE "FI_UDP_IFACE"

/* udp_getinfo - fi_getinfo for this provider, any thread. Source: fi_getinfo(3) */
int udp_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags,
		const struct fi_info *hints, struct fi_info **info);

/* weft_udp_identities - the names of the provider; the last entry has none (getinfo.c) */
extern const struct info_identity weft_udp_identities[];

/* weft_udp_ini - returns the provider. Called by the core, once */
struct fi_provider *weft_udp_ini(void);

/*
 * udp_refuse - log that a call is refused since the program made a mistake
 * @err: -FI_E*
 * @why: one sentence without a full stop
 * Returns @err.
 */
int udp_refuse(enum fi_log_subsys subsys, int err, const char *call, const char *why);

#endif
