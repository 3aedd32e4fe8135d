/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The routes that the endpoints of a program reported when they closed. With
 * FI_LINK_REPORT=1 each endpoint writes one line per wire to stderr:
 *
 *   weft-routes: host=H pid=P wire=W peers=N tx_msgs=N tx_bytes=N rx_msgs=N rx_bytes=N
 *
 * Here they are read, summed by host and wire, and printed as a table. One thread.
 */
#ifndef WEFT_TOOLS_ROUTE_REPORT_H
#define WEFT_TOOLS_ROUTE_REPORT_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define ROUTE_MARK     "weft-routes: "
#define ROUTE_NAME_MAX 64
#define ROUTE_LINE_MAX 512

/* One line, or the sum of several. */
struct route_row {
	char host[ROUTE_NAME_MAX];
	char wire[ROUTE_NAME_MAX];
	uint64_t pid;
	uint64_t endpoints;
	uint64_t tx_msgs;
	uint64_t tx_bytes;
	uint64_t rx_msgs;
	uint64_t rx_bytes;
};

struct route_table {
	struct route_row *rows;
	size_t cnt;
	size_t room;
};

/*
 * route_line_parse - parse a report line
 * @line: begins with ROUTE_MARK; ends at @len, without the newline; not trusted
 * Ignores keys that it does not know. Returns 0, or -EINVAL with @row untouched.
 */
int route_line_parse(const char *line, size_t len, struct route_row *row);

/*
 * route_table_add - sum a line into the row of its host and wire
 *
 * Returns 0 or -ENOMEM.
 */
int route_table_add(struct route_table *table, const struct route_row *line);

/*
 * route_table_print - the table, sorted by host and wire, with a total for each wire
 */
void route_table_print(struct route_table *table, FILE *to);

void route_table_fini(struct route_table *table);

#endif
