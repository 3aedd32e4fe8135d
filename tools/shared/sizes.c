/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Lists of message sizes; sizes.h has the contract. Used while options are read.
 */
#include "sizes.h"

#include <ctype.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

/* Bits to shift for a unit; moves @text behind it. */
static unsigned take_unit(const char **text)
{
	unsigned shift = 0;

	switch (tolower((unsigned char)**text)) {
	case 'k':
		shift = 10;
		break;
	case 'm':
		shift = 20;
		break;
	case 'g':
		shift = 30;
		break;
	default:
		return 0;
	}
	++*text;
	if (!strncasecmp(*text, "ib", 2))
		*text += 2;
	return shift;
}

static int take_size(const char **text, size_t *len)
{
	unsigned long long value;
	unsigned shift;
	char *end;

	if (!isdigit((unsigned char)**text))
		return -EINVAL;
	errno = 0;
	value = strtoull(*text, &end, 10);
	*text = end;
	if (errno)
		return -ERANGE;
	shift = take_unit(text);
	if (value > SIZE_MAX_BYTES >> shift)
		return -ERANGE;
	*len = (size_t)value << shift;
	return 0;
}

static int append(struct sizes *sizes, size_t len)
{
	if (sizes->cnt == SIZES_MAX)
		return -E2BIG;
	sizes->len[sizes->cnt++] = len;
	return 0;
}

static int append_doubling(struct sizes *sizes, size_t from, size_t to)
{
	int rc;

	if (!from || from > to)
		return -EINVAL;
	for (; from <= to; from *= 2) {
		rc = append(sizes, from);
		if (rc)
			return rc;
	}
	return 0;
}

static int take_entry(const char **text, struct sizes *sizes)
{
	size_t from, to;
	int rc;

	rc = take_size(text, &from);
	if (rc)
		return rc;
	if (**text != ':')
		return append(sizes, from);
	++*text;
	rc = take_size(text, &to);
	return rc ? rc : append_doubling(sizes, from, to);
}

int sizes_parse(const char *text, struct sizes *sizes)
{
	struct sizes got = { 0 };
	int rc;

	for (;;) {
		rc = take_entry(&text, &got);
		if (rc)
			return rc;
		if (!*text)
			break;
		if (*text++ != ',')
			return -EINVAL;
	}
	*sizes = got;
	return 0;
}

char *sizes_format(size_t len, char *room)
{
	if (len >= 1u << 20 && len % (1u << 20) == 0)
		snprintf(room, 24, "%zuM", len >> 20);
	else if (len >= 1u << 10 && len % (1u << 10) == 0)
		snprintf(room, 24, "%zuk", len >> 10);
	else
		snprintf(room, 24, "%zu", len);
	return room;
}
