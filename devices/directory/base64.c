/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Bytes as text; base64.h has the contract.
 */
#define _GNU_SOURCE
#include "base64.h"

#include <errno.h>
#include <stdint.h>

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void base64_encode(const void *data, size_t len, char *text)
{
	const uint8_t *from = data;

	for (; len >= 3; len -= 3, from += 3) {
		*text++ = digits[from[0] >> 2];
		*text++ = digits[(from[0] & 3) << 4 | from[1] >> 4];
		*text++ = digits[(from[1] & 15) << 2 | from[2] >> 6];
		*text++ = digits[from[2] & 63];
	}
	if (len) {
		uint8_t second = len > 1 ? from[1] : 0;

		*text++ = digits[from[0] >> 2];
		*text++ = digits[(from[0] & 3) << 4 | second >> 4];
		*text++ = len > 1 ? digits[(second & 15) << 2] : '=';
		*text++ = '=';
	}
	*text = 0;
}

/* -1: no digit */
static int digit_value(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	return c == '+' ? 62 : c == '/' ? 63 : -1;
}

ssize_t base64_decode(const char *text, size_t len, void *data, size_t room)
{
	size_t pad = 0, cnt, i;
	uint8_t *to = data;
	uint32_t bits = 0;

	if (len % 4)
		return -EILSEQ;
	while (pad < 2 && pad < len && text[len - 1 - pad] == '=')
		pad++;
	cnt = len / 4 * 3 - pad;
	if (cnt > room)
		return -EMSGSIZE;
	for (i = 0; i < len - pad; i++) {
		int value = digit_value(text[i]);

		if (value < 0)
			return -EILSEQ;
		bits = bits << 6 | (uint32_t)value;
		/* Each character but the first of four ends a byte. */
		if (i % 4)
			*to++ = (uint8_t)(bits >> (6 - 2 * (i % 4)));
	}
	/* What the last character has beyond the last byte is zero: a value has one text. */
	if (pad && bits & (pad == 1 ? 3 : 15))
		return -EILSEQ;
	return (ssize_t)cnt;
}
