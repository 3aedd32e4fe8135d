/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The names under which a provider answers, see persona.h. */
#include <strings.h>

#include "persona.h"

bool info_persona_named(const struct info_persona *persona, const char *name)
{
	const char *const *at;

	if (!strcasecmp(persona->name, name))
		return true;
	for (at = persona->spellings; at && *at; at++)
		if (!strcasecmp(*at, name))
			return true;
	return false;
}

const struct info_persona *info_persona_of(const struct info_persona *table,
					   const struct fi_info *hints)
{
	const char *name = hints && hints->fabric_attr ? hints->fabric_attr->prov_name : NULL;
	const struct info_persona *persona;

	for (persona = table; name && persona->name; persona++)
		if (info_persona_named(persona, name))
			return persona;
	return table;
}
