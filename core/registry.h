/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The providers of this process. Filled while the core starts (builtin.c, loader.c), read by
 * every fi_getinfo and fi_fabric, on any thread.
 *
 * An entry is reference-counted. The registry itself, each query that calls the provider and each open
 * fabric hold a reference. When the last one is released, the provider's cleanup is called and its library
 * closed. The registry has one lock, which is not held while a provider is called.
 */
#ifndef WEFT_CORE_REGISTRY_H
#define WEFT_CORE_REGISTRY_H

#include <stdbool.h>
#include <stddef.h>

#include <rdma/fabric.h>
#include <rdma/providers/fi_prov.h>

#include "identity.h"

struct registry_entry {
	struct registry_entry *next;
	struct fi_provider *prov;
	/* handle of dlopen, or NULL */
	void *library;
	/* its identities, the one with its own name first; NULL: it has only that name */
	const struct info_identity *identities;
	bool preferred;
	unsigned int refs;
};

/* The kind of a provider, which follows from its name by libfabric's naming rules. */
enum registry_kind {
	REGISTRY_CORE,	  /* talks to a network or memory by itself */
	REGISTRY_LAYER,	  /* ofi_NAME: works over others, named 'tcp;ofi_NAME' */
	REGISTRY_OFFLOAD, /* off_NAME: serves other providers, never programs */
	REGISTRY_HOOK,	  /* has no getinfo */
};

/*
 * registry_add - register a provider
 * @prov:      valid until its cleanup; NULL is refused
 * @library:   takes the handle; closed at once if the provider is refused
 * @preferred: used instead of others of its name, whatever their versions
 *
 * Of several providers with one name (ignoring case) only one is visible: a preferred one,
 * else the one with the highest version, else the first. link, shm and tcp come first in the order of
 * answers, then the others in the order in which they were added.
 * Returns 0, -FI_EINVAL for a structure without a name or a fabric function, -FI_ENOSYS for a provider
 * older than API 1.3, or -FI_ENOMEM; a refused provider is cleaned up and logged.
 */
int registry_add(struct fi_provider *prov, void *library, bool preferred);

/*
 * registry_add_named - register a provider that answers under several names
 * @identities: a constant table (info/identity.h) that outlives the provider
 *
 * Returns as registry_add().
 */
int registry_add_named(struct fi_provider *prov, const struct info_identity *identities);

/*
 * registry_remove - remove a provider; the next one with its name becomes visible
 *
 * Queries and fabrics that use it keep it. Returns 0, or -FI_ENOENT.
 */
int registry_remove(struct fi_provider *prov);

/*
 * registry_keep_order - if @keep, ignore versions from now on: the first provider of a name stays visible
 */
void registry_keep_order(bool keep);

/*
 * registry_find - the visible provider with a name
 * @len: bytes of @name to compare
 *
 * Returns a reference for registry_put, or NULL.
 */
struct registry_entry *registry_find(const char *name, size_t len);

/*
 * registry_has - returns true if a provider with this name is registered
 */
bool registry_has(const char *name, size_t len);

/*
 * registry_find_identity - the visible provider that has an identity with this name, other than its own
 * @identity: receives that identity
 *
 * Returns a reference for registry_put, or NULL.
 */
struct registry_entry *registry_find_identity(const char *name,
					      const struct info_identity **identity);

/*
 * registry_identity_next - iterate over the identities of an entry, without its own name
 * @identity: the previous one, or NULL to begin
 *
 * Returns the next, or NULL.
 */
const struct info_identity *registry_identity_next(const struct registry_entry *entry,
						   const struct info_identity *identity);

/*
 * registry_by_name_alone - returns true for a provider that no query asks which does not name it
 */
bool registry_by_name_alone(const struct registry_entry *entry);

/*
 * registry_put - release a reference
 */
void registry_put(struct registry_entry *entry);

/*
 * registry_list - all visible providers, in the order of answers
 * @cnt: receives their number
 *
 * Returns an owned array of references for registry_list_free, or NULL without memory.
 */
struct registry_entry **registry_list(size_t *cnt);
void registry_list_free(struct registry_entry **list, size_t cnt);

/*
 * registry_kind_of - the kind of a provider
 */
enum registry_kind registry_kind_of(const struct fi_provider *prov);

/*
 * registry_clear - remove all providers
 *
 * Returns the number of providers that are still referenced.
 */
size_t registry_clear(void);

/*
 * registry_hold, registry_release - take and give back the lock, around a fork
 */
void registry_hold(void);
void registry_release(void);

#endif /* WEFT_CORE_REGISTRY_H */
