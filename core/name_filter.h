/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A list of names as in FI_PROVIDER=shm,tcp or FI_PROVIDER=^shm,tcp: only these, or all but
 * these. The log and the choice of providers have one each, which is filled in once and then read on any
 * thread.
 */
#ifndef WEFT_CORE_NAME_FILTER_H
#define WEFT_CORE_NAME_FILTER_H

#include <stdbool.h>
#include <stddef.h>

/* A zeroed filter passes everything. */
struct name_filter {
	bool excludes;
	size_t cnt;
	char **names;
};

/*
 * name_filter_init - parse a list
 * @text: copied; NULL or empty passes everything
 *
 * Without memory the filter passes everything.
 */
void name_filter_init(struct name_filter *filter, const char *text);

/*
 * name_filter_fini - free the names; the filter passes everything again
 */
void name_filter_fini(struct name_filter *filter);

/*
 * name_filter_has - returns true if a name is in the list, ignoring case
 */
bool name_filter_has(const struct name_filter *filter, const char *name);

/*
 * name_filter_passes - returns true if a name passes the filter
 */
bool name_filter_passes(const struct name_filter *filter, const char *name);

#endif /* WEFT_CORE_NAME_FILTER_H */
