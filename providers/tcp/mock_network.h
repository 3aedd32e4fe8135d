/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A network of the test's process alone, whose loopback interface it may cut. */
#ifndef WEFT_TCP_MOCK_NETWORK_H
#define WEFT_TCP_MOCK_NETWORK_H

#include <stdbool.h>
#include <net/if.h>

/* mock_network - leave the host's, at the first call. Returns false, which is told, where that is not permitted */
bool mock_network(void);

/* mock_network_set - cut it, or mend it */
void mock_network_set(bool up);

/* mock_network_request - ioctl(2) @what of interface @name: netdevice(7). Returns what that returns */
int mock_network_request(const char *name, unsigned long what, struct ifreq *req);

#endif
