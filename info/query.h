/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Comparison of hints with an offer, and the wording of a refusal. Shared by match.c and limits.c, internal
 * to this folder.
 */
#ifndef WEFT_INFO_QUERY_H
#define WEFT_INFO_QUERY_H

#include "info.h"
#include "names.h"

struct info_query {
	const struct fi_provider *prov;
	const struct fi_info *offer;
	const struct fi_info *hints;
	/* layout of the hints */
	const struct info_layout *layout;
	uint32_t api_version;
	/* receives the reason; NULL if it is not wanted */
	char *why;
	size_t len;
};

/*
 * query_refuse - write the reason into q->why
 * query_refuse_flags - 'asks for A, B, which shm does not offer'
 * query_refuse_mode - 'does not grant A, B, which shm needs'
 * @where: the structure of the flags, followed by a space; or ''
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
 * query_limits - compare the numbers in the hints with the maxima of the offer
 *
 * Numbers that only memory limits are not compared. Returns 0, or -FI_ENODATA with the reason.
 */
int query_limits(const struct info_query *q);

/*
 * query_counts - raise numbers of objects that only memory limits to what the hints ask for
 * @info: the answer; has the offer's numbers
 */
void query_counts(const struct info_query *q, struct fi_info *info);

#endif /* WEFT_INFO_QUERY_H */
