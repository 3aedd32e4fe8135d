/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Connections to lenders of other hosts, over any OFI provider.
 */
#ifndef WEFT_DEVICES_CLIENT_DOOR_H
#define WEFT_DEVICES_CLIENT_DOOR_H

#include <stddef.h>

/*
 * door_connect - connect to the lender at a host
 * @name: HOST or HOST:PORT; the provider is that which WEFT_FABRIC names, else the default one
 * Returns a descriptor, owned, to which requests are written and from which answers are read as from one of this host
 * (packet.h); or -errno: -EHOSTUNREACH: there is no such host, or no such provider. Whether a lender is there is not known
 * yet: the connection ends when there is none.
 */
int door_connect(const char *name);

/*
 * door_split - the parts of such a name
 * @host: out; @service: out: the default one, or in @name
 * Returns 0 or -EINVAL.
 */
int door_split(const char *name, char *host, size_t room, const char **service);

#endif
