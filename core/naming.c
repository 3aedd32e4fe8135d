/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Which provider a name means, see naming.h. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <rdma/fi_errno.h>

#include "naming.h"

/* Names of providers of past and present libfabrics, which settings may contain on any machine. */
static const char *const elsewhere[] = {
	"bgq",	   "cxi",     "efa", "gni",  "lnx",  "lpp",   "mlx",   "mrail", "net",
	"netdir",  "opx",     "psm", "psm2", "psm3", "rxd",   "rxm",   "shm",	"sm2",
	"sockets", "rstream", "tcp", "ucx",  "udp",  "usnic", "verbs",
};

static bool is_layer_name(const char *name)
{
	return !strncasecmp(name, "ofi_", 4);
}

/* The part that decides which provider is queried: the last one, or the layer of two parts. */
static const char *deciding_part(const struct naming *naming)
{
	if (naming->cnt == 2 && is_layer_name(naming->parts[0]) &&
	    !is_layer_name(naming->parts[1]))
		return naming->parts[0];
	return naming->parts[naming->cnt - 1];
}

/* Returns true if a provider with the deciding part's name is registered; then no identity replaces it. */
static bool is_taken(const struct naming *naming)
{
	const char *part = deciding_part(naming);

	return registry_has(part, strlen(part));
}

static void find_identity(struct naming *naming)
{
	struct registry_entry *entry;

	if (is_taken(naming))
		return;
	entry = registry_find_identity(naming->text, &naming->identity);
	if (!entry)
		return;
	naming->alias = entry->prov->name;
	registry_put(entry);
}

int naming_init(struct naming *naming, const char *text)
{
	char *rest, *part;

	memset(naming, 0, sizeof(*naming));
	naming->text = text;
	if (!text || !*text)
		return 0;
	naming->copy = strdup(text);
	if (!naming->copy)
		return -FI_ENOMEM;
	for (rest = naming->copy; (part = strsep(&rest, ";"));) {
		bool excluded = *part == '^';
		size_t *cnt = excluded ? &naming->excluded_cnt : &naming->cnt;

		if (!*part)
			continue;
		if (*cnt == NAMING_PARTS_MAX) {
			naming_fini(naming);
			return -FI_ENODATA;
		}
		(excluded ? naming->excluded : naming->parts)[(*cnt)++] = part + excluded;
	}
	if (naming->cnt)
		find_identity(naming);
	return 0;
}

void naming_fini(struct naming *naming)
{
	free(naming->copy);
	naming->copy = NULL;
	naming->cnt = 0;
	naming->excluded_cnt = 0;
	naming->identity = NULL;
	naming->alias = NULL;
}

bool naming_means(const struct naming *naming, const struct fi_provider *prov)
{
	size_t i;

	for (i = 0; i < naming->excluded_cnt; i++)
		if (!strcasecmp(naming->excluded[i], prov->name))
			return false;
	if (!naming->cnt)
		return true;
	if (naming->identity)
		return false;
	if (naming->cnt == 1 && registry_kind_of(prov) == REGISTRY_LAYER &&
	    !is_layer_name(naming->parts[0]))
		return true;
	return !strcasecmp(deciding_part(naming), prov->name);
}

/* 'tcp' of 'tcp;ofi_rxm'. */
static bool is_beneath(const char *name, const struct info_identity *identity)
{
	size_t len = strlen(name);

	return !strncasecmp(identity->name, name, len) && identity->name[len] == ';';
}

bool naming_means_identity(const struct naming *naming, const struct info_identity *identity)
{
	struct naming own;
	bool means = true;
	size_t i, k;

	if (naming_init(&own, identity->name))
		return false;
	for (i = 0; i < naming->excluded_cnt; i++)
		for (k = 0; k < own.cnt; k++)
			means = means && strcasecmp(naming->excluded[i], own.parts[k]);
	if (naming->cnt)
		means = means && (naming->identity == identity ||
				  (naming->cnt == 1 && is_beneath(naming->parts[0], identity)));
	means = means && !is_taken(&own);
	naming_fini(&own);
	return means;
}

struct registry_entry *naming_target(const struct naming *naming)
{
	const char *name = naming->alias;

	if (!naming->cnt)
		return NULL;
	if (!name)
		name = naming->parts[naming->cnt - 1];
	return registry_find(name, strlen(name));
}

bool naming_allows(const struct name_filter *filter, const struct fi_provider *prov)
{
	size_t i, len = strlen(prov->name);

	if (!filter->cnt)
		return true;
	if (filter->excludes)
		return !name_filter_has(filter, prov->name);
	if (registry_kind_of(prov) != REGISTRY_CORE || name_filter_has(filter, prov->name))
		return true;
	for (i = 0; i < filter->cnt; i++)
		if (!strncasecmp(filter->names[i], prov->name, len) &&
		    filter->names[i][len] == ';')
			return true;
	return false;
}

static bool is_elsewhere(const char *name)
{
	size_t i;

	for (i = 0; i < sizeof(elsewhere) / sizeof(elsewhere[0]); i++)
		if (!strcasecmp(elsewhere[i], name))
			return true;
	return is_layer_name(name) || !strncasecmp(name, "off_", 4);
}

bool naming_is_known(const char *name)
{
	struct naming naming;
	bool known = true, layered = false;
	size_t i;

	if (naming_init(&naming, name))
		return false;
	for (i = 0; i < naming.cnt; i++) {
		const char *part = naming.parts[i];

		layered = layered || is_layer_name(part);
		known = known && (is_elsewhere(part) || registry_has(part, strlen(part)));
	}
	/* In a name with several parts, one must be able to work over another. */
	known = known && naming.cnt && !naming.excluded_cnt &&
		(naming.cnt == 1 || layered || naming.identity);
	naming_fini(&naming);
	return known;
}

/* Returns true if a part of a layered name is in the list. */
static bool names_a_part(const struct name_filter *filter, const char *name)
{
	struct naming naming;
	bool named = false;
	size_t i;

	if (naming_init(&naming, name))
		return false;
	for (i = 0; i < naming.cnt; i++)
		named = named || name_filter_has(filter, naming.parts[i]);
	naming_fini(&naming);
	return named;
}

bool naming_allows_answer(const struct name_filter *filter, const char *name)
{
	size_t i, len;

	if (!filter->cnt)
		return true;
	if (filter->excludes)
		return !name_filter_has(filter, name) && !names_a_part(filter, name);
	for (i = 0; i < filter->cnt; i++) {
		len = strlen(filter->names[i]);
		if (!strncasecmp(filter->names[i], name, len) &&
		    (!name[len] || name[len] == ';'))
			return true;
	}
	return false;
}

bool naming_allows_identity(const struct name_filter *filter,
			    const struct info_identity *identity)
{
	size_t i;

	if (naming_allows_answer(filter, identity->name))
		return true;
	for (i = 0; !filter->excludes && i < filter->cnt; i++)
		if (info_identity_named(identity, filter->names[i]))
			return true;
	return false;
}
