/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Services: names by which an shm endpoint is found before its address is known, from the node and
 * service of fi_getinfo. The node is this host, so the service is the name. The address is in shared
 * memory of that name (shared_name.h). Any thread.
 */
#ifndef WEFT_SHM_SERVICE_H
#define WEFT_SHM_SERVICE_H

#include "addr.h"
#include "shared_name.h"

/*
 * pshm_service_named_addr - make the address of a service; without a name, of an endpoint that has
 * yet to get one
 * @name: @len characters
 * Up to 15 letters, digits, - . _ are stored as they are, other names as a hash.
 */
void pshm_service_named_addr(const char *name, size_t len, struct weft_addr *out);

/* pshm_service_spelled - returns true if the name has no characters but letters, digits, - . _ : */
bool pshm_service_spelled(const char *name, size_t len);

/*
 * pshm_service_addr - the same, of what fi_getinfo calls a service: a port, where it is a number
 * @service: NULL for none
 * Returns 0 or -FI_EINVAL.
 */
int pshm_service_addr(const char *service, struct weft_addr *out);

/* pshm_service_named - returns true if this address names a service of shared memory */
static inline bool pshm_service_named(const struct weft_addr *addr)
{
	return addr->family == ADDR_FAMILY_LOCAL && addr->ip[0];
}

/*
 * pshm_service_bindable - returns true if an endpoint can be bound to this address: a service, or
 * none
 */
bool pshm_service_bindable(const struct weft_addr *addr);

/* pshm_service_node - returns 0, or -FI_ENODATA when @node is not this host */
int pshm_service_node(const char *node);

/*
 * pshm_service_publish - let an endpoint be found by its service
 * @addr: its full address, with the service
 * Returns 0 and a handle, owned; -FI_EADDRINUSE if another endpoint has the service; or another
 * -FI_E*.
 */
int pshm_service_publish(const struct weft_addr *addr, struct sys_shared **out);

/*
 * pshm_service_find - look up the full address of a service. Returns 0, -FI_EAGAIN if no endpoint
 * has it, or another -FI_E*
 */
int pshm_service_find(const struct weft_addr *service, struct weft_addr *out);

#endif
