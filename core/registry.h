/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The providers of this process. Filled while the core starts (builtin.c, loader.c), read by
 * every fi_getinfo and fi_fabric, on any thread.
 *
 * An entry lives as long as someone refers to it: the registry itself, a query that asks the
 * provider, an open fabric. When the last one lets go, the provider's cleanup is called and
 * its library closed. One lock inside; no provider is called with it held.
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
	/* from dlopen, or NULL */
	void *library;
	/* its names, its own first; NULL: that alone */
	const struct info_identity *identities;
	bool preferred;
	unsigned int refs;
};

/* What a provider is, which follows from its name as upstream's naming rules say. */
enum registry_kind {
	REGISTRY_CORE,	  /* talks to a network or memory by itself */
	REGISTRY_LAYER,	  /* ofi_NAME: works over others, named 'tcp;ofi_NAME' */
	REGISTRY_OFFLOAD, /* off_NAME: serves other providers, never programs */
	REGISTRY_HOOK,	  /* has no getinfo */
};

/*
 * registry_add - register a provider
 * @prov:      stays valid until its cleanup; NULL is refused
 * @library:   takes the handle; closed at once if the provider is refused
 * @preferred: goes before others of its name, whatever their versions
 *
 * Of several providers of one name (ignoring case) only one is visible: a preferred one,
 * else the newest version, else the first. link, shm and tcp come first in the order of
 * answers, others as they were added.
 * Returns 0, -FI_EINVAL for a structure without name or fabric, -FI_ENOSYS for a provider
 * from before API 1.3, or -FI_ENOMEM; a refused provider is cleaned up and logged.
 */
int registry_add(struct fi_provider *prov, void *library, bool preferred);

/*
 * registry_add_named - register a provider that answers under several names
 * @identities: a constant table of them, see info/identity.h, which outlives the process's providers
 *
 * Returns what registry_add() does.
 */
int registry_add_named(struct fi_provider *prov, const struct info_identity *identities);

/*
 * registry_remove - take a provider out; the next of its name becomes visible
 *
 * Queries and fabrics that use it go on. Returns 0, or -FI_ENOENT.
 */
int registry_remove(struct fi_provider *prov);

/*
 * registry_keep_order - ignore versions from now on: the first of a name stays visible
 */
void registry_keep_order(bool keep);

/*
 * registry_find - the visible provider of a name
 * @len: bytes of @name that count
 *
 * Returns a reference for registry_put, or NULL.
 */
struct registry_entry *registry_find(const char *name, size_t len);

/*
 * registry_has - is there a provider of this name?
 */
bool registry_has(const char *name, size_t len);

/*
 * registry_find_identity - the visible provider of which this is a further name
 * @identity: receives what that name stands for
 *
 * Returns a reference for registry_put, or NULL.
 */
struct registry_entry *registry_find_identity(const char *name,
					      const struct info_identity **identity);

/*
 * registry_identity_next - the names of an entry after its own, one by one
 * @identity: the last one, or NULL to begin
 *
 * Returns the next, or NULL.
 */
const struct info_identity *registry_identity_next(const struct registry_entry *entry,
						   const struct info_identity *identity);

/*
 * registry_put - let go of a reference
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
 * registry_kind_of - what a provider is
 */
enum registry_kind registry_kind_of(const struct fi_provider *prov);

/*
 * registry_clear - remove all
 *
 * Returns how many providers live on because someone refers to them.
 */
size_t registry_clear(void);

#endif /* WEFT_CORE_REGISTRY_H */
