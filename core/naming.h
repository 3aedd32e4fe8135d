/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Which provider a name means: names of layers such as 'tcp;ofi_rxm', names that programs
 * know from elsewhere and that one of ours answers, exclusions. Used by fi_getinfo for the
 * name in the hints and by fi_fabric for the name in the attributes, on any thread.
 */
#ifndef WEFT_CORE_NAMING_H
#define WEFT_CORE_NAMING_H

#include <stdbool.h>
#include <stddef.h>

#include <rdma/providers/fi_prov.h>

#include "name_filter.h"
#include "registry.h"

#define NAMING_PARTS_MAX 8

/* A name taken apart at its ';'. */
struct naming {
	/* as asked for; the caller's */
	const char *text;
	char *copy;
	/* parts, without exclusions */
	size_t cnt;
	const char *parts[NAMING_PARTS_MAX];
	size_t excluded_cnt;
	/* from '^NAME' at the end */
	const char *excluded[NAMING_PARTS_MAX];
	/* a further name of a provider, or NULL */
	const struct info_identity *identity;
	/* that provider's own name, or NULL */
	const char *alias;
};

/*
 * naming_init - take a name apart
 * @text: borrowed until naming_fini; NULL or empty means any provider
 *
 * A further name of a provider is one only as long as no provider of that very name is registered.
 * Returns 0, -FI_ENOMEM, or -FI_ENODATA for more than NAMING_PARTS_MAX parts.
 */
int naming_init(struct naming *naming, const char *text);
void naming_fini(struct naming *naming);

/*
 * naming_means - is a provider meant by its own name, alone or as a layer over others?
 *
 * A layer (ofi_NAME) is also meant by the bare name of what it can work over.
 */
bool naming_means(const struct naming *naming, const struct fi_provider *prov);

/*
 * naming_means_identity - is a further name of a provider meant?
 *
 * A layered one ('tcp;ofi_rxm') is also meant by the bare name of what it works over, as a layer is.
 * None is while a provider of that very name is registered.
 */
bool naming_means_identity(const struct naming *naming, const struct info_identity *identity);

/*
 * naming_target - the provider that answers for a name, for fi_fabric
 *
 * The last part names it, or a further name of its. Returns a reference for registry_put, or NULL.
 */
struct registry_entry *naming_target(const struct naming *naming);

/*
 * naming_allows - does FI_PROVIDER let a provider be asked by its own name?
 *
 * A list of names lets through each provider that it names, alone or as the first part of a
 * layered name, and every layer. A list of exclusions takes its names literally: '^sockets'
 * does not exclude tcp.
 */
bool naming_allows(const struct name_filter *filter, const struct fi_provider *prov);

/*
 * naming_allows_identity - does FI_PROVIDER let a provider be asked by a further name?
 *
 * A list has to name it in one of its spellings, or what it works over; a list of exclusions
 * excludes it by each part of it.
 */
bool naming_allows_identity(const struct name_filter *filter,
			    const struct info_identity *identity);

/*
 * naming_allows_answer - does FI_PROVIDER let an answer of this full name through?
 *
 * 'tcp' in a list also lets 'tcp;ofi_rxm' through. A list of exclusions excludes every
 * answer of which it names a layer: both '^tcp' and '^ofi_rxm' exclude 'tcp;ofi_rxm'.
 */
bool naming_allows_answer(const struct name_filter *filter, const char *name);

/*
 * naming_is_known - can a name of a list such as FI_PROVIDER mean anything?
 *
 * Yes for registered providers, aliases, layers over others, and for providers of the
 * stock libfabric that are not here: settings are written for more machines than this one.
 * No for what can only be a slip of the pen: 'shmm', '^tcp' behind a comma, 'shm;link'.
 */
bool naming_is_known(const char *name);

#endif /* WEFT_CORE_NAMING_H */
