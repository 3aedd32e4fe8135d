/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Taking reports out of a stream; line_filter.h has the contract. Called by
 * 'weft run --report' with what the program writes.
 */
#define _GNU_SOURCE
#include "line_filter.h"

#include <ctype.h>
#include <string.h>

#define TAG_END "<stderr>:"
#define TAG_MAX 64

void line_filter_init(struct line_filter *filter, struct route_table *table,
		      void (*pass)(void *arg, const char *data, size_t len), void *arg)
{
	memset(filter, 0, sizeof(*filter));
	filter->table = table;
	filter->pass = pass;
	filter->arg = arg;
}

static void pass_on(struct line_filter *filter, const char *data, size_t len)
{
	if (!len)
		return;
	filter->pass(filter->arg, data, len);
	filter->mid_line = data[len - 1] != '\n';
}

static const char *find_mark(const char *data, size_t len)
{
	return memmem(data, len, ROUTE_MARK, strlen(ROUTE_MARK));
}

/* How much of a line's beginning may be the part of a tag before TAG_END. */
static size_t tag_span(const char *line, size_t len)
{
	size_t n = 0;

	/* "[1,0]" or "Mon Nov 20 17:00:00 2026[1,0]" */
	while (n < len && line[n] &&
	       (isalnum((unsigned char)line[n]) || strchr(" :,[]", line[n])))
		n++;
	return n;
}

/* Length of the launcher's tag that a line begins with, else 0. */
static size_t tag_len(const char *line, size_t len)
{
	const size_t end = strlen(TAG_END), n = tag_span(line, len);

	if (n > TAG_MAX || len - n < end || memcmp(line + n, TAG_END, end))
		return 0;
	return n + end;
}

/* Whether an unfinished line may still turn out to begin with a tag. */
static bool may_become_tag(const char *line, size_t len)
{
	const size_t n = tag_span(line, len);

	return n <= TAG_MAX && len - n < strlen(TAG_END) && !memcmp(line + n, TAG_END, len - n);
}

/* A whole line, its newline included. */
static void take_line(struct line_filter *filter, const char *line, size_t len)
{
	const char *mark = find_mark(line, len);
	struct route_row row;
	size_t before;

	if (!mark) {
		pass_on(filter, line, len);
		return;
	}
	before = (size_t)(mark - line);
	if (route_line_parse(mark, len - before - 1, &row) ||
	    route_table_add(filter->table, &row)) {
		pass_on(filter, line, len);
		return;
	}
	/*
	 * mid_line: the beginning of this line was passed on already, and is not the tag of a
	 * report.
	 */
	if (filter->mid_line || tag_len(line, before) != before)
		pass_on(filter, line, before);
}

/* Whether the end of an unfinished line may be the beginning of a mark. */
static size_t partial_mark(const char *data, size_t len)
{
	size_t part = strlen(ROUTE_MARK) - 1;

	for (; part; part--)
		if (part <= len && !memcmp(data + len - part, ROUTE_MARK, part))
			return part;
	return 0;
}

/* How many bytes at the end of an unfinished line must wait for more. */
static size_t must_wait(const struct line_filter *filter, const char *line, size_t len)
{
	const char *mark = find_mark(line, len);
	size_t before, tag;

	if (mark) {
		before = (size_t)(mark - line);
		if (!filter->mid_line && tag_len(line, before) == before)
			before = 0;
		return len - before;
	}
	if (!filter->mid_line) {
		tag = tag_len(line, len);
		if (tag ? partial_mark(line + tag, len - tag) == len - tag
			: may_become_tag(line, len))
			return len;
	}
	return partial_mark(line, len);
}

/* An unfinished line: pass what can't belong to a report, keep the rest. */
static void keep_rest(struct line_filter *filter, const char *line, size_t len)
{
	size_t wait = len ? must_wait(filter, line, len) : 0;

	if (wait > ROUTE_LINE_MAX)
		wait = 0;
	pass_on(filter, line, len - wait);
	memmove(filter->held, line + len - wait, wait);
	filter->held_len = wait;
}

static void consume(struct line_filter *filter, const char *data, size_t len)
{
	const char *newline;
	size_t line;

	while ((newline = memchr(data, '\n', len))) {
		line = (size_t)(newline - data) + 1;
		take_line(filter, data, line);
		/* The line is over, also when all of it was a report. */
		filter->mid_line = false;
		data += line;
		len -= line;
	}
	keep_rest(filter, data, len);
}

void line_filter_feed(struct line_filter *filter, const char *data, size_t len)
{
	char joined[sizeof(filter->held)];
	size_t room, part;

	/* Join with what is held, as much at a time as fits. */
	while (filter->held_len && len) {
		room = sizeof(joined) - filter->held_len;
		part = len < room ? len : room;
		memcpy(joined, filter->held, filter->held_len);
		memcpy(joined + filter->held_len, data, part);
		part += filter->held_len;
		room = part - filter->held_len;
		filter->held_len = 0;
		consume(filter, joined, part);
		data += room;
		len -= room;
	}
	if (len)
		consume(filter, data, len);
}

bool line_filter_holds(const struct line_filter *filter)
{
	return filter->held_len && !find_mark(filter->held, filter->held_len);
}

void line_filter_tick(struct line_filter *filter)
{
	if (line_filter_holds(filter))
		line_filter_finish(filter);
}

void line_filter_finish(struct line_filter *filter)
{
	pass_on(filter, filter->held, filter->held_len);
	filter->held_len = 0;
}
