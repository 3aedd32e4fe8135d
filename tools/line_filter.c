/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Taking reports out of a stream; line_filter.h has the contract. Called by
 * 'weft run --report' with what the program writes.
 */
#define _GNU_SOURCE
#include "line_filter.h"

#include <string.h>

#define TAG_END "<stderr>:"

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

/* Length of the launcher's tag that ends where the report begins, else 0. */
static size_t tag_before(const char *line, size_t len)
{
	const size_t end = strlen(TAG_END);

	if (len >= end && !memcmp(line + len - end, TAG_END, end))
		return len;
	return 0;
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
	/* mid_line: what precedes on this line is out already, no tag of ours. */
	if (filter->mid_line || !tag_before(line, before))
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

/* Whether an unfinished line is, so far, a launcher's tag or a part of one. */
static bool may_be_tag(const char *line, size_t len)
{
	const char *angle;

	/* "[1,0]<stderr>:" or "Mon Nov 20 17:00:00 2026<stderr>:" */
	angle = memchr(line, '<', len);
	if (!angle)
		return line[0] == '[' && len < 32 && !memchr(line, ']', len - 1);
	len -= (size_t)(angle - line);
	return len <= strlen(TAG_END) && !memcmp(angle, TAG_END, len);
}

/* How many bytes at the end of an unfinished line must wait for more. */
static size_t must_wait(const struct line_filter *filter, const char *line, size_t len)
{
	const char *mark = find_mark(line, len);
	size_t before;

	if (mark) {
		before = (size_t)(mark - line);
		if (!filter->mid_line && tag_before(line, before))
			before = 0;
		return len - before;
	}
	if (!filter->mid_line && may_be_tag(line, len))
		return len;
	len = partial_mark(line, len);
	return len;
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
