/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The link provider: one endpoint that uses shared memory inside the host and the network to other
 * hosts. Shared by the files of this folder.
 */
#ifndef WEFT_LINK_H
#define WEFT_LINK_H

#include "engine.h"
#include "identity.h"

#define LINK_PREFIX   "link:"
#define LINK_ADDR_LEN 64u /* bytes that every address fits into, with its NUL */

extern struct fi_provider link_provider;

/* weft_link_identities - the names of the provider; the last entry has none */
extern const struct info_identity weft_link_identities[];

/* weft_link_ini - returns the provider; called by the core once, when it starts */
struct fi_provider *weft_link_ini(void);

/* Addresses: slots of struct engine_family, documented there. */
int link_addr_read(const void *addr, size_t len, struct weft_addr *out, char *why,
		   size_t why_len);
int link_bind_read(const void *addr, size_t len, struct weft_addr *out, char *why,
		   size_t why_len);
size_t link_addr_write(const struct weft_addr *addr, void *out);
size_t link_addr_str(const void *addr, size_t len, char *buf, size_t buf_len);

/*
 * link_resolve - resolve node and service to a service address: of the endpoint that listens there
 * @node:  NULL: any address of this host (with FI_SOURCE), else this host
 * @flags: FI_SOURCE, FI_NUMERICHOST
 *
 * Returns 0, -FI_ENODATA when it does not resolve, or -FI_EINVAL. May block in the resolver.
 */
int link_resolve(const char *node, const char *service, uint64_t flags, struct weft_addr *out);

#endif
