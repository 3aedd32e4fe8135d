/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Reported routes; route_report.h has the contract. Called by 'weft run' for each line that it
 * reads.
 */
#include "route_report.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static int take_number(const char *text, size_t len, uint64_t *value)
{
	uint64_t got = 0;
	size_t i;

	if (!len)
		return -EINVAL;
	for (i = 0; i < len; i++) {
		if (text[i] < '0' || text[i] > '9')
			return -EINVAL;
		if (__builtin_mul_overflow(got, 10, &got) ||
		    __builtin_add_overflow(got, (uint64_t)(text[i] - '0'), &got))
			return -EINVAL;
	}
	*value = got;
	return 0;
}

static int take_name(const char *text, size_t len, char *name)
{
	if (!len || len >= ROUTE_NAME_MAX)
		return -EINVAL;
	memcpy(name, text, len);
	name[len] = '\0';
	return 0;
}

enum { HAS_HOST = 1, HAS_WIRE = 2, HAS_COUNTS = 4 + 8 + 16 + 32 };

static int take_pair(struct route_row *row, const char *word, size_t len, unsigned *seen)
{
	const struct {
		const char *key;
		uint64_t *value;
		unsigned bit;
	} numbers[] = {
		{ "pid", &row->pid, 0 },
		{ "tx_msgs", &row->tx_msgs, 4 },
		{ "tx_bytes", &row->tx_bytes, 8 },
		{ "rx_msgs", &row->rx_msgs, 16 },
		{ "rx_bytes", &row->rx_bytes, 32 },
	};
	const char *equals = memchr(word, '=', len);
	size_t key_len, i;

	if (!equals)
		return -EINVAL;
	key_len = (size_t)(equals - word);
	len -= key_len + 1;
	if (key_len == 4 && !memcmp(word, "host", 4)) {
		*seen |= HAS_HOST;
		return take_name(equals + 1, len, row->host);
	}
	if (key_len == 4 && !memcmp(word, "wire", 4)) {
		*seen |= HAS_WIRE;
		return take_name(equals + 1, len, row->wire);
	}
	for (i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		if (strlen(numbers[i].key) != key_len || memcmp(word, numbers[i].key, key_len))
			continue;
		*seen |= numbers[i].bit;
		return take_number(equals + 1, len, numbers[i].value);
	}
	return 0;
}

int route_line_parse(const char *line, size_t len, struct route_row *row)
{
	struct route_row got = { .endpoints = 1 };
	const size_t mark = strlen(ROUTE_MARK);
	const char *end = line + len, *word;
	unsigned seen = 0;

	if (len <= mark || memcmp(line, ROUTE_MARK, mark))
		return -EINVAL;
	for (line += mark; line < end; line = word + 1) {
		word = memchr(line, ' ', (size_t)(end - line));
		if (!word)
			word = end;
		if (take_pair(&got, line, (size_t)(word - line), &seen))
			return -EINVAL;
	}
	if (seen != (HAS_HOST | HAS_WIRE | HAS_COUNTS))
		return -EINVAL;
	*row = got;
	return 0;
}

static struct route_row *row_for(struct route_table *table, const char *host, const char *wire)
{
	struct route_row *grown;
	size_t i, room;

	for (i = 0; i < table->cnt; i++)
		if (!strcmp(table->rows[i].host, host) && !strcmp(table->rows[i].wire, wire))
			return &table->rows[i];
	if (table->cnt == table->room) {
		room = table->room ? 2 * table->room : 16;
		grown = realloc(table->rows, room * sizeof(*grown));
		if (!grown)
			return NULL;
		table->rows = grown;
		table->room = room;
	}
	grown = &table->rows[table->cnt++];
	memset(grown, 0, sizeof(*grown));
	strcpy(grown->host, host);
	strcpy(grown->wire, wire);
	return grown;
}

static void sum(struct route_row *to, const struct route_row *from)
{
	to->endpoints += from->endpoints;
	to->tx_msgs += from->tx_msgs;
	to->tx_bytes += from->tx_bytes;
	to->rx_msgs += from->rx_msgs;
	to->rx_bytes += from->rx_bytes;
}

int route_table_add(struct route_table *table, const struct route_row *line)
{
	struct route_row *row = row_for(table, line->host, line->wire);

	if (!row)
		return -ENOMEM;
	sum(row, line);
	return 0;
}

static int by_host_and_wire(const void *a, const void *b)
{
	const struct route_row *x = a, *y = b;
	int order = strcmp(x->host, y->host);

	return order ? order : strcmp(x->wire, y->wire);
}

static void print_row(FILE *to, const char *host, const struct route_row *row)
{
	fprintf(to, "%-20s %-6s %9llu %12llu %16llu %12llu %16llu\n", host, row->wire,
		(unsigned long long)row->endpoints, (unsigned long long)row->tx_msgs,
		(unsigned long long)row->tx_bytes, (unsigned long long)row->rx_msgs,
		(unsigned long long)row->rx_bytes);
}

/* One more line per wire, where it was used on several hosts. */
static void print_totals(struct route_table *table, FILE *to)
{
	struct route_row total;
	size_t i, j, hosts;

	for (i = 0; i < table->cnt; i++) {
		bool seen = false;

		for (j = 0; j < i && !seen; j++)
			seen = !strcmp(table->rows[j].wire, table->rows[i].wire);
		if (seen)
			continue;
		total = table->rows[i];
		for (hosts = 1, j = i + 1; j < table->cnt; j++) {
			if (strcmp(table->rows[j].wire, total.wire))
				continue;
			sum(&total, &table->rows[j]);
			hosts++;
		}
		if (hosts > 1)
			print_row(to, "(all hosts)", &total);
	}
}

void route_table_print(struct route_table *table, FILE *to)
{
	size_t i;

	if (!table->cnt) {
		fprintf(to,
			"weft run: no endpoint reported its routes; did the program use libfabric (Open MPI: "
			"--mca pml cm --mca mtl ofi), and close what it opened?\n");
		return;
	}
	qsort(table->rows, table->cnt, sizeof(table->rows[0]), by_host_and_wire);
	fprintf(to, "%-20s %-6s %9s %12s %16s %12s %16s\n", "host", "wire", "endpoints",
		"sent msgs", "sent bytes", "recv msgs", "recv bytes");
	for (i = 0; i < table->cnt; i++)
		print_row(to, table->rows[i].host, &table->rows[i]);
	print_totals(table, to);
}

void route_table_fini(struct route_table *table)
{
	free(table->rows);
	memset(table, 0, sizeof(*table));
}
