/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The members of a directory; members.h has the contract.
 */
#define _GNU_SOURCE
#include "members.h"

#include <errno.h>
#include <string.h>

/* Where the host of a URL begins, or NULL. */
static const char *host_of(const char *url)
{
	if (!strncmp(url, "http://", 7))
		return url + 7;
	return !strncmp(url, "https://", 8) ? url + 8 : NULL;
}

/* A name or number, or an address of IPv6 in brackets. */
static size_t host_len(const char *host)
{
	size_t len;

	if (*host != '[')
		return strspn(
			host,
			"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_");
	len = strspn(host + 1, "0123456789abcdefABCDEF:.");
	return len && host[len + 1] == ']' ? len + 2 : 0;
}

/* Whether a text is a port of a URL, or nothing. */
static bool is_port(const char *text)
{
	size_t digits = *text == ':' ? strspn(text + 1, "0123456789") : 0;

	return !*text || (digits && digits <= 5 && !text[digits + 1]);
}

static int parse_one(const char *text, size_t len, char *url)
{
	const char *host, *port;

	/* People write a path of nothing. */
	if (len && text[len - 1] == '/')
		len--;
	if (len + sizeof(":" MEMBER_PORT) > MEMBER_URL_MAX)
		return -EINVAL;
	memcpy(url, text, len);
	url[len] = 0;
	host = host_of(url);
	if (!host || !host_len(host))
		return -EINVAL;
	port = host + host_len(host);
	if (!is_port(port))
		return -EINVAL;
	if (!*port)
		strcpy(url + len, ":" MEMBER_PORT);
	return 0;
}

int members_parse(struct members *m, const char *urls, uint32_t first)
{
	memset(m, 0, sizeof(*m));
	for (;;) {
		size_t len = strcspn(urls, ",");

		if (m->cnt == MEMBERS_MAX || parse_one(urls, len, m->url[m->cnt]))
			return -EINVAL;
		m->cnt++;
		if (!urls[len])
			break;
		urls += len + 1;
	}
	m->at = first % m->cnt;
	return 0;
}

void members_order(const struct members *m, uint64_t now_ms, uint32_t order[MEMBERS_MAX])
{
	uint32_t i, cnt = 0;
	int out;

	for (out = 0; out <= 1; out++)
		for (i = 0; i < m->cnt; i++) {
			uint32_t member = (m->at + i) % m->cnt;

			if ((m->until[member] > now_ms) == out)
				order[cnt++] = member;
		}
}

void members_answered(struct members *m, uint32_t member)
{
	m->at = member;
	m->until[member] = 0;
}

void members_failed(struct members *m, uint32_t member, uint64_t now_ms)
{
	m->until[member] = now_ms + MEMBER_OUT_MS;
}

bool members_elect(struct members *m, int err, uint64_t began_ms, uint64_t now_ms)
{
	if (err != -EAGAIN && err != -ETIMEDOUT) {
		m->since = 0;
		return false;
	}
	if (!m->since)
		m->since = began_ms;
	return now_ms - m->since < MEMBERS_ELECT_MS;
}
