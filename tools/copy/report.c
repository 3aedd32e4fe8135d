/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What is printed of a copy; report.h has the contract, weft-copy(1) the members of the object.
 */
#include "json_names.h"
#include "report.h"
#include "message.h"

#include <err.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#define REAL_DIGITS 9

static double rate(uint64_t bytes, uint64_t ns)
{
	return ns ? (double)bytes * 1e3 / (double)ns : 0;
}

void report_init(struct report *report, bool json)
{
	*report = (struct report){ .files = json ? json_array() : NULL };
}

void report_fini(struct report *report)
{
	json_decref(report->files);
	report->files = NULL;
}

void report_copied(struct report *report, const char *name, uint64_t bytes, uint64_t ns)
{
	report->copied++;
	report->bytes += bytes;
	report->ns += ns;
	json_array_append_new(report->files,
			      json_pack("{s:o, s:I, s:f, s:n}", "name", json_name(name),
					"bytes", (json_int_t)bytes, "seconds", (double)ns / 1e9,
					"error"));
}

void report_failed(struct report *report, const char *name, const char *why)
{
	report->failed++;
	warnx("%s: %s", name, why);
	json_array_append_new(report->files, json_pack("{s:o, s:o}", "name", json_name(name),
						       "error", json_name(why)));
}

/* The wires by which bytes went, as "shm, tcp", or "" where that is not known. */
static void name_wires(const struct report_route *route, char *text, size_t room)
{
	size_t i, len = 0;

	text[0] = '\0';
	for (i = 0; i < route->cnt; i++)
		if (route->routes[i].tx_bytes && len < room)
			len += (size_t)snprintf(text + len, room - len, "%s%s",
						len ? ", " : " by ", route->routes[i].wire);
}

static void print_line(const struct report *report, const char *role,
		       const struct report_route *route)
{
	char wires[128];

	name_wires(route, wires, sizeof(wires));
	printf("%s %u file%s, %llu bytes in %.3f s: %.1f MB/s over %s%s\n", role,
	       report->copied, report->copied == 1 ? "" : "s",
	       (unsigned long long)report->bytes, (double)report->ns / 1e9,
	       rate(report->bytes, report->ns), route->provider ? route->provider : "?", wires);
	fflush(stdout);
}

static void print_json(const struct report *report, const char *role,
		       const struct report_route *route, bool complete)
{
	json_t *wires = json_array(), *whole;
	size_t i;

	for (i = 0; i < route->cnt; i++)
		if (route->routes[i].tx_bytes)
			json_array_append_new(
				wires, json_pack("{s:o, s:I}", "wire",
						 json_name(route->routes[i].wire), "bytes",
						 (json_int_t)route->routes[i].tx_bytes));
	whole = json_pack("{s:s, s:i, s:s, s:b, s:o, s:O, s:I, s:f, s:f, s:o}", "format",
			  "weft-copy", "version", 1, "role", role, "complete", complete,
			  "provider", route->provider ? json_name(route->provider) : json_null(),
			  "files", report->files, "bytes", (json_int_t)report->bytes, "seconds",
			  (double)report->ns / 1e9, "mb_per_s", rate(report->bytes, report->ns),
			  "routes", wires);
	if (!whole || json_dumpf(whole, stdout, JSON_COMPACT | JSON_REAL_PRECISION(REAL_DIGITS)))
		warnx("cannot write the JSON");
	putchar('\n');
	fflush(stdout);
	json_decref(whole);
}

void report_print(const struct report *report, const char *role,
		  const struct report_route *route, bool complete)
{
	if (report->files)
		print_json(report, role, route, complete);
	else if (report->copied || complete)
		print_line(report, role, route);
}
