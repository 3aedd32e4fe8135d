/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The names under which a provider answers, see identity.h. */
#include <strings.h>

#include "identity.h"

bool info_identity_named(const struct info_identity *identity, const char *name)
{
	const char *const *at;

	if (!strcasecmp(identity->name, name))
		return true;
	for (at = identity->spellings; at && *at; at++)
		if (!strcasecmp(*at, name))
			return true;
	return false;
}

const struct info_identity *info_identity_of(const struct info_identity *table,
					     const struct fi_info *hints)
{
	const char *name = hints && hints->fabric_attr ? hints->fabric_attr->prov_name : NULL;
	const struct info_identity *identity;

	for (identity = table; name && identity->name; identity++)
		if (info_identity_named(identity, name))
			return identity;
	return table;
}
