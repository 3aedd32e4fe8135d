/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Lists of names, see name_filter.h. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "name_filter.h"

void name_filter_init(struct name_filter *filter, const char *text)
{
	char *copy, *rest, *name;
	size_t commas = 0;
	const char *c;

	memset(filter, 0, sizeof(*filter));
	if (!text || !*text)
		return;
	filter->excludes = *text == '^';
	text += filter->excludes;
	for (c = text; *c; c++)
		commas += *c == ',';
	copy = strdup(text);
	filter->names = calloc(commas + 1, sizeof(*filter->names));
	if (!copy || !filter->names)
		goto out_free;
	for (rest = copy; (name = strsep(&rest, ","));) {
		name += strspn(name, " \t");
		name[strcspn(name, " \t")] = '\0';
		if (!*name)
			continue;
		filter->names[filter->cnt] = strdup(name);
		if (!filter->names[filter->cnt])
			goto out_free;
		filter->cnt++;
	}
	free(copy);
	return;

out_free:
	free(copy);
	name_filter_fini(filter);
}

void name_filter_fini(struct name_filter *filter)
{
	size_t i;

	for (i = 0; i < filter->cnt; i++)
		free(filter->names[i]);
	free(filter->names);
	memset(filter, 0, sizeof(*filter));
}

bool name_filter_has(const struct name_filter *filter, const char *name)
{
	size_t i;

	for (i = 0; i < filter->cnt; i++)
		if (!strcasecmp(filter->names[i], name))
			return true;
	return false;
}

bool name_filter_passes(const struct name_filter *filter, const char *name)
{
	return !filter->cnt || name_filter_has(filter, name) != filter->excludes;
}
