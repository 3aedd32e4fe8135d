/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What a provider says of itself to the engine, and the fabric that it opens.
 */
#ifndef WEFT_ENGINE_FAMILY_H
#define WEFT_ENGINE_FAMILY_H

#include <rdma/fabric.h>
#include <rdma/fi_eq.h>
#include <rdma/providers/fi_log.h>
#include <rdma/providers/fi_prov.h>
#include "bounds.h"

struct engine_peps;
struct weft_route;

/*
 * What a provider is to the engine: a name, a way to write addresses, and the wires that its
 * endpoints use. Constant, one per provider.
 */
struct engine_family {
	/* for log lines and names */
	struct fi_provider *provider;
	/* in order of preference, NULL ends */
	const char *wires[ENGINE_WIRE_MAX];
	/* FI_ADDR_STR: printable, without spaces, with a NUL (ep_names.h) */
	uint32_t addr_format;
	/* bytes of an address in that format; of a string at most, with its NUL */
	size_t addr_len;
	/* it has the nonce, by which peers know the endpoint */
	bool by_nonce;
	/*
	 * Closing a fabric is refused with -FI_EBUSY while anything is open in it: what is behind this struct may
	 * be gone afterwards. Else its objects keep it.
	 */
	bool closes_last;
	/*
	 * addr_read - one address of the caller's format
	 * @len: bytes that are there: engine_name_len(); 0 where a string should be and is not
	 * Returns 0, or -FI_EINVAL and one sentence in @why for bytes that are none.
	 */
	int (*addr_read)(const void *addr, size_t len, struct weft_addr *out, char *why,
			 size_t why_len);
	/*
	 * bind_read - the address at which an endpoint has to listen: like addr_read, but port 0
	 * and the address of any interface are allowed. NULL: the provider chooses by itself.
	 */
	int (*bind_read)(const void *addr, size_t len, struct weft_addr *out, char *why,
			 size_t why_len);
	/*
	 * addr_write - the same back; returns its bytes, of a string with the NUL: at most
	 * addr_len
	 */
	size_t (*addr_write)(const struct weft_addr *addr, void *out);
	/*
	 * addr_str - printable form, as fi_av_straddr wants it
	 * @len: as for addr_read
	 * Returns the length it needs with its NUL.
	 */
	size_t (*addr_str)(const void *addr, size_t len, char *buf, size_t buf_len);
	/* resolve - node and service to an address. Returns 0 or -FI_E* */
	int (*resolve)(const char *node, const char *service, uint64_t flags,
		       struct weft_addr *out);
	/*
	 * The op tables of an endpoint, for callers that serialize (FI_THREAD_DOMAIN); those of
	 * FI_THREAD_SAFE take the lock around these.
	 */
	struct fi_ops_msg *msg;
	struct fi_ops_tagged *tagged;
	/* ops_open - fi_open_ops() of a fabric or domain; NULL: -FI_ENOSYS. Any thread */
	int (*ops_open)(const char *name, uint64_t flags, void **ops);
	/*
	 * NULL, both: the provider has no MSG endpoints, and its wire none of their operations.
	 *
	 * info_copy - a deep copy of an fi_info of the provider, without its handle
	 * @src, @dest: addresses of the copy; NULL: those of @info
	 * Returns owned memory for info_free or fi_freeinfo, or NULL without memory.
	 */
	struct fi_info *(*info_copy)(const struct fi_info *info, const struct weft_addr *src,
				     const struct weft_addr *dest);
	void (*info_free)(struct fi_info *info);
	/* closing - NULL, or called with what went over an enabled endpoint's wires before it ends */
	void (*closing)(struct fi_provider *provider, const struct weft_route *routes,
			size_t cnt);
};

struct engine_fabric {
	struct fid_fabric fid;
	const struct engine_family *family;
	/* the program's, until it closes it, and of what is open in it */
	_Atomic int refs;
	/* fi_trywait permits to sleep on an event queue that has events (info/identity.h) */
	bool sleeps_on_events;
	/* Its passive endpoints; NULL if the provider has none. Owned */
	struct engine_peps *peps;
	/* The child of a fork lacks who was in an event queue or wait set of it (forked.h) */
	bool left;
};

#endif
