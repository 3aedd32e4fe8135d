/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The secret of a lease: 128 random bits, which its lender makes, keeps in its journal and tells the borrower alone. As
 * text, in tickets and journals, it has 32 hexadecimal digits, the high half first.
 */
#ifndef WEFT_DEVICES_LEASE_TOKEN_H
#define WEFT_DEVICES_LEASE_TOKEN_H

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/random.h>

#define LEASE_TOKEN_TEXT 33u /* with the zero byte */

/* struct lease_token - all zero: there is none */
struct lease_token {
	uint64_t high;
	uint64_t low;
};

static_assert(sizeof(struct lease_token) == 16, "on a connection");

/* lease_token_make - out: one that is not zero. Returns 0 or a negative errno */
static inline int lease_token_make(struct lease_token *token)
{
	ssize_t n;

	/* A read of so few bytes is whole, or there is none. */
	do
		n = getrandom(token, sizeof(*token), 0);
	while ((n < 0 && errno == EINTR) || (n > 0 && !(token->high | token->low)));
	return n < 0 ? -errno : 0;
}

static inline bool lease_token_is_none(const struct lease_token *token)
{
	return !(token->high | token->low);
}

/* lease_token_same - in the same time wherever they differ: who guesses learns nothing of how near a guess is */
static inline bool lease_token_same(const struct lease_token *a, const struct lease_token *b)
{
	return !((a->high ^ b->high) | (a->low ^ b->low));
}

static inline void lease_token_text(const struct lease_token *token, char text[LEASE_TOKEN_TEXT])
{
	snprintf(text, LEASE_TOKEN_TEXT, "%016" PRIx64 "%016" PRIx64, token->high, token->low);
}

/* lease_token_parse - out: what a text says. Returns 0; -EINVAL: it is not 32 digits in lower case and nothing more */
static inline int lease_token_parse(const char *text, struct lease_token *token)
{
	uint64_t half[2] = { 0 };
	unsigned i;

	for (i = 0; i < LEASE_TOKEN_TEXT - 1; i++) {
		char c = text[i];

		if (c >= '0' && c <= '9')
			half[i / 16] = half[i / 16] << 4 | (uint64_t)(c - '0');
		else if (c >= 'a' && c <= 'f')
			half[i / 16] = half[i / 16] << 4 | (uint64_t)(c - 'a' + 10);
		else
			return -EINVAL;
	}
	if (text[i])
		return -EINVAL;
	*token = (struct lease_token){ half[0], half[1] };
	return 0;
}

#endif
