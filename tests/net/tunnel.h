/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Two network namespaces, each with a loopback and a TUN device whose packets this process reads
 * and writes. No name of them is visible outside; they end with the processes that use them.
 */
#ifndef WEFT_NET_TUNNEL_H
#define WEFT_NET_TUNNEL_H

#include <stddef.h>

struct tunnel {
	int space; /* descriptor of the network namespace */
	int fd; /* the TUN device there: IP packets without a header before them, non-blocking */
};

/*
 * tunnel_pair - make both; the addresses are 10.77.0.1 and 10.77.0.2
 * Called while the process has one thread. Returns 0, or -1 and in @why which right or
 * device is missing.
 */
int tunnel_pair(struct tunnel tunnels[2], char *why, size_t len);

/* tunnel_enter - this process is in that network namespace from here on. 0 or -1 */
int tunnel_enter(const struct tunnel *tunnel);

#endif
