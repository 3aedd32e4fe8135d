/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Which provider a name means: names of layered providers such as 'tcp;ofi_rxm', names of libfabric's
 * providers that one of Weft's answers (info/identity.h), and exclusions. fi_getinfo uses it for the name in
 * the hints, fi_fabric for the name in the attributes, on any thread.
 */
#ifndef WEFT_CORE_NAMING_H
#define WEFT_CORE_NAMING_H

#include <stdbool.h>
#include <stddef.h>

#include <rdma/providers/fi_prov.h>

#include "name_filter.h"
#include "registry.h"

#define NAMING_PARTS_MAX 8

/* A name, split at its ';'. */
struct naming {
	/* the name as it was passed in; the caller's */
	const char *text;
	char *copy;
	/* number of parts, without exclusions */
	size_t cnt;
	const char *parts[NAMING_PARTS_MAX];
	size_t excluded_cnt;
	/* names from '^NAME' at the end */
	const char *excluded[NAMING_PARTS_MAX];
	/* the identity, other than its provider's own name, that the name means; or NULL */
	const struct info_identity *identity;
	/* the own name of the provider with that identity, or NULL */
	const char *alias;
};

/*
 * naming_init - parse a name
 * @text: borrowed until naming_fini; NULL or empty means any provider
 *
 * An identity of a provider is meant only while no provider with that very name is registered.
 * Returns 0, -FI_ENOMEM, or -FI_ENODATA for more than NAMING_PARTS_MAX parts.
 */
int naming_init(struct naming *naming, const char *text);
void naming_fini(struct naming *naming);

/*
 * naming_means - returns true if the name means a provider by its own name, alone or as a layer
 *
 * A layer (ofi_NAME) is also meant by the bare name of a provider that it can work over.
 */
bool naming_means(const struct naming *naming, const struct fi_provider *prov);

/*
 * naming_means_identity - returns true if the name means an identity of a provider
 *
 * A layered identity ('tcp;ofi_rxm') is also meant by the bare name of the provider that it works over.
 * None is meant while a provider with that very name is registered.
 */
bool naming_means_identity(const struct naming *naming, const struct info_identity *identity);

/*
 * naming_target - the provider that a name leads fi_fabric to
 *
 * The last part of the name is its own name or one of its identities. Returns a reference for registry_put,
 * or NULL.
 */
struct registry_entry *naming_target(const struct naming *naming);

/*
 * naming_allows - returns true if FI_PROVIDER allows to query a provider by its own name
 *
 * A list of names allows each provider that it names, alone or as the first part of a
 * layered name, and every layer. A list of exclusions takes its names literally: '^sockets'
 * does not exclude tcp.
 */
bool naming_allows(const struct name_filter *filter, const struct fi_provider *prov);

/*
 * naming_allows_identity - returns true if FI_PROVIDER allows to query a provider under an identity
 *
 * A list of names allows it by one of its spellings or by the provider that it works over. A list of
 * exclusions excludes it by any of its parts.
 */
bool naming_allows_identity(const struct name_filter *filter,
			    const struct info_identity *identity);

/*
 * naming_allows_answer - returns true if FI_PROVIDER allows an answer with this full name
 *
 * 'tcp' in a list also allows 'tcp;ofi_rxm'. A list of exclusions excludes every
 * answer of which it names a layer: both '^tcp' and '^ofi_rxm' exclude 'tcp;ofi_rxm'.
 */
bool naming_allows_answer(const struct name_filter *filter, const char *name);

/*
 * naming_is_known - returns true if a name in a list such as FI_PROVIDER can mean a provider
 *
 * True for registered providers and their identities, for layers over others, and for providers of
 * the stock libfabric that Weft does not have, since settings are shared between machines. False for
 * mistakes: 'shmm', '^tcp' after a comma, 'shm;link'.
 */
bool naming_is_known(const char *name);

#endif /* WEFT_CORE_NAMING_H */
