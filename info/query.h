/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Hints that are compared with an offer, and how a refusal is put in words. Shared by match.c
 * and limits.c, internal to this folder.
 */
#ifndef WEFT_INFO_QUERY_H
#define WEFT_INFO_QUERY_H

#include "info.h"
#include "names.h"

struct info_query {
	const struct fi_provider *prov;
	const struct fi_info *offer;
	const struct fi_info *hints;
	/* of the hints */
	const struct info_layout *layout;
	uint32_t api_version;
	/* NULL: nobody wants to know */
	char *why;
	size_t len;
};

/*
 * query_refuse - give the reason
 * query_refuse_flags - 'asks for A, B, which shm does not offer'
 * query_refuse_mode - 'does not grant A, B, which shm needs'
 * @where: what the flags are of, with a space behind it; or ''
 *
 * Return -FI_ENODATA.
 */
int query_refuse(const struct info_query *q, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
int query_refuse_flags(const struct info_query *q, const char *where,
		       const struct info_name *names, uint64_t missing);
int query_refuse_mode(const struct info_query *q, const char *where,
		      const struct info_name *names, uint64_t missing);

/*
 * query_limits - are all numbers within what the offer says at most?
 *
 * What memory alone bounds is no limit. Returns 0, or -FI_ENODATA with the reason.
 */
int query_limits(const struct info_query *q);

/*
 * query_counts - numbers of objects, which memory alone bounds, into an answer
 * @info: has what the offer says, and gets what was asked for where that is more
 */
void query_counts(const struct info_query *q, struct fi_info *info);

#endif /* WEFT_INFO_QUERY_H */
