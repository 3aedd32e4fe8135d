/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The wording of refusals: for the comparison of hints (query.h) and for the log (info.h). Any thread. */
#include <stdarg.h>
#include <stdio.h>

#include <rdma/fi_errno.h>
#include <rdma/providers/fi_log.h>

#include "query.h"

int query_refuse(const struct info_query *q, const char *fmt, ...)
{
	va_list args;

	if (q->why && q->len) {
		va_start(args, fmt);
		vsnprintf(q->why, q->len, fmt, args);
		va_end(args);
	}
	return -FI_ENODATA;
}

/* 'the hints ask for A, B, which shm does not offer'; flags without a name are given in hex. */
int query_refuse_flags(const struct info_query *q, const char *where,
		       const struct info_name *names, uint64_t missing)
{
	char text[160];

	info_flags_print(text, sizeof(text), names, missing);
	if (!text[0])
		snprintf(text, sizeof(text), "0x%llx", (unsigned long long)missing);
	return query_refuse(q, "the hints ask for %s%s, which %s does not offer", where, text,
			    q->prov->name);
}

int query_refuse_mode(const struct info_query *q, const char *where,
		      const struct info_name *names, uint64_t missing)
{
	char text[160];

	info_flags_print(text, sizeof(text), names, missing);
	return query_refuse(q, "the hints do not grant %s%s, which %s needs", where, text,
			    q->prov->name);
}

int info_refuse(const struct fi_provider *prov, const char *fmt, ...)
{
	char why[INFO_REASON_MAX];
	va_list args;

	if (fi_log_enabled(prov, FI_LOG_INFO, FI_LOG_CORE)) {
		va_start(args, fmt);
		vsnprintf(why, sizeof(why), fmt, args);
		va_end(args);
		fi_log(prov, FI_LOG_INFO, FI_LOG_CORE, __func__, __LINE__, "%s\n", why);
	}
	return -FI_ENODATA;
}
