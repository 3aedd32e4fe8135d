/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What has become of the files of a session: lines while it goes on, and a last line or a JSON object at its end. One
 * thread.
 */
#ifndef WEFT_TOOLS_COPY_REPORT_H
#define WEFT_TOOLS_COPY_REPORT_H

#include <stdbool.h>
#include <stdint.h>

#include <weft/routes.h>

struct report {
	/* an array of objects; NULL unless JSON is wanted */
	struct json_t *files;
	unsigned copied;
	unsigned failed;
	uint64_t bytes;
	/* of the files, without what comes before and after them */
	uint64_t ns;
};

/* struct report_route - how the bytes went; @cnt 0: not known */
struct report_route {
	const char *provider;
	struct weft_route routes[WEFT_ROUTES_MAX];
	size_t cnt;
};

void report_init(struct report *report, bool json);
void report_fini(struct report *report);

/*
 * report_copied, report_failed - a file has ended
 * @name, @why: printable
 * A failure is printed at once, whatever else is.
 */
void report_copied(struct report *report, const char *name, uint64_t bytes, uint64_t ns);
void report_failed(struct report *report, const char *name, const char *why);

/*
 * report_print - the session has ended
 * @role: "sent" or "received"
 * @complete: no side was lost
 */
void report_print(const struct report *report, const char *role,
		  const struct report_route *route, bool complete);

#endif
