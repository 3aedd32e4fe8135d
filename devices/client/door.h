/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Connections to lenders of other hosts, over any OFI provider.
 */
#ifndef WEFT_DEVICES_CLIENT_DOOR_H
#define WEFT_DEVICES_CLIENT_DOOR_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

/* struct doors - the connections that are not closed yet, of which each has a thread; @lock: of @cnt; @closed: it is 0 */
struct doors {
	pthread_mutex_t lock;
	pthread_cond_t closed;
	uint32_t cnt;
};

/* doors_init - none is open */
void doors_init(struct doors *doors);

/*
 * doors_wait - wait until all are closed, and nothing is left of them
 * Their descriptors are closed. Providers wait for what they have sent, 1 s at most.
 */
void doors_wait(struct doors *doors);

/*
 * door_connect - connect to the lender at a host
 * @doors:    counts the connection, until its thread has closed it; has to stay until then
 * @name:     HOST or HOST:PORT
 * @provider: if WEFT_FABRIC names none; "": the default one
 * Returns a descriptor, owned, to which requests are written and from which answers are read as from one of this host
 * (packet.h); or -errno: -EHOSTUNREACH: there is no such host, or no such provider. Whether a lender is there is not known
 * yet: the connection ends when there is none.
 */
int door_connect(struct doors *doors, const char *name, const char *provider);

/*
 * door_split - the parts of such a name
 * @host: out; @service: out: the default one, or in @name
 * Returns 0 or -EINVAL.
 */
int door_split(const char *name, char *host, size_t room, const char **service);

#endif
