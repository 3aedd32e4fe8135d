/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The names under which a provider answers, each with what programs expect of that name. A
 * provider has a table of them: its own name first, then those of providers of libfabric whose
 * place it takes. It gives the table to the core when it registers, which asks it under each
 * name by that name in the hints; a core that knows nothing of it asks by the first.
 *
 * Constant data, read on any thread.
 */
#ifndef WEFT_INFO_IDENTITY_H
#define WEFT_INFO_IDENTITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rdma/fabric.h>

struct info_identity {
	/* as it is answered; NULL ends a table */
	const char *name;
	/* other names that mean it, NULL at the end; or NULL */
	const char *const *spellings;
	uint32_t protocol;
	uint32_t protocol_version;
	/* where none is asked for; unspecified: manual */
	enum fi_progress control;
	enum fi_progress data;
	/* contexts of an endpoint, of each kind, where none are asked for */
	size_t ctx_cnt;
	/* of contexts, of each kind, where none is asked for; 0: as offered */
	size_t size;
};

/*
 * info_identity_named - is that what this name means, ignoring case?
 */
bool info_identity_named(const struct info_identity *identity, const char *name);

/*
 * info_identity_of - under which name of its table a provider is asked
 *
 * Returns the entry that the provider's name in the hints means, or else the first.
 */
const struct info_identity *info_identity_of(const struct info_identity *table,
					     const struct fi_info *hints);

#endif /* WEFT_INFO_IDENTITY_H */
