/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Addresses of the shm provider as programs see them; see address.h. */
#include <stdio.h>
#include <rdma/fi_errno.h>
#include "addr_text.h"
#include "address.h"
#include "service.h"

#define NAMED_PREFIX "fi_ns://" /* libfabric's, of a service: then "node:", if there is one */

_Static_assert(sizeof(PSHM_PREFIX) + ADDR_TEXT_BARE <= 48, "programs keep it in 48 bytes");
_Static_assert(sizeof(PSHM_PREFIX) + ADDR_TEXT_BARE + sizeof(((struct weft_addr *)0)->ip) <= 56,
	       "... with a service in 56");

static bool begins(const char *text, size_t len, const char *with)
{
	return len >= strlen(with) && !memcmp(text, with, strlen(with));
}

/* Returns the text behind the prefix, if there is one. */
static const char *body_of(const char *text, size_t *len)
{
	size_t skip = 0;

	if (begins(text, *len, PSHM_PREFIX)) {
		skip = strlen(PSHM_PREFIX);
	} else if (begins(text, *len, NAMED_PREFIX)) {
		for (skip = *len; text[skip - 1] != ':' && text[skip - 1] != '/'; skip--)
			;
	}
	*len -= skip;
	return text + skip;
}

/* Any address, also the wish for one. */
static int any_read(const void *addr, size_t len, struct weft_addr *out, char *why,
		    size_t why_len)
{
	const char *body;
	int version;

	if (!len) {
		snprintf(why, why_len, "not a string of printable characters (FI_ADDR_STR)");
		return -FI_EINVAL;
	}
	body = body_of(addr, &len);
	version = addr_text_version(body, len);
	if (version < 0 && pshm_service_spelled(body, len)) {
		pshm_service_named_addr(body, len, out);
		return 0;
	}
	if (!addr_text_read(body, len, out))
		return 0;
	if (version >= 0 && version != ADDR_VERSION)
		snprintf(why, why_len, "an address of another version of Weft (%d, this is %u)",
			 version, ADDR_VERSION);
	else
		snprintf(why, why_len, "not an address from fi_getname of an endpoint");
	return -FI_EINVAL;
}

/* "1234:1000:0", process, user and endpoint: what libfabric's own shm calls an endpoint. */
static bool is_foreign(const char *text, size_t len)
{
	const char *body = body_of(text, &len), *digits = body;
	int numbers = 0;

	for (size_t i = 0; i <= len; i++) {
		if (i < len && body[i] >= '0' && body[i] <= '9')
			continue;
		if ((i < len && body[i] != ':') || digits == body + i)
			return false;
		digits = body + i + 1;
		numbers++;
	}
	return numbers == 3;
}

int pshm_addr_read(const void *addr, size_t len, struct weft_addr *out, char *why,
		   size_t why_len)
{
	struct weft_addr read;
	int ret = any_read(addr, len, &read, why, why_len);

	if (!ret && is_foreign(addr, len)) {
		snprintf(why, why_len,
			 "'%.*s' is an address of libfabric's own shm: both processes have to use Weft",
			 (int)len, (const char *)addr);
		ret = -FI_EINVAL;
	}
	if (ret)
		return ret;
	if (!(read.kind == ADDR_NONCE && read.pid) && !pshm_service_named(&read)) {
		snprintf(why, why_len,
			 "an address without a process or a service: shm can't reach it");
		return -FI_EINVAL;
	}
	*out = read;
	return 0;
}

int pshm_bind_read(const void *addr, size_t len, struct weft_addr *out, char *why,
		   size_t why_len)
{
	struct weft_addr read;
	int ret = any_read(addr, len, &read, why, why_len);

	if (ret)
		return ret;
	if (!pshm_service_bindable(&read)) {
		snprintf(why, why_len, "not what an endpoint can be asked to have: a service");
		return -FI_EINVAL;
	}
	*out = read;
	return 0;
}

size_t pshm_addr_write(const struct weft_addr *addr, void *out)
{
	char *text = out;
	size_t at = sizeof(PSHM_PREFIX) - 1, len;

	memcpy(text, PSHM_PREFIX, at);
	if (addr->kind == ADDR_NONCE) {
		at += addr_text_write(addr, text + at);
	} else {
		len = strnlen((const char *)addr->ip, sizeof(addr->ip));
		memcpy(text + at, addr->ip, len);
		at += len;
	}
	text[at] = '\0';
	return at + 1;
}

size_t pshm_addr_str(const void *addr, size_t len, char *buf, size_t buf_len)
{
	char text[PSHM_ADDR_LEN] = PSHM_PREFIX "?";
	struct weft_addr read;
	int n;

	if (!any_read(addr, len, &read, NULL, 0))
		pshm_addr_write(&read, text);
	n = snprintf(buf, buf_len, "%s", text);
	return n < 0 ? 0 : (size_t)n + 1;
}

bool pshm_addr_given(const char *node, bool str)
{
	size_t len = strlen(node);

	return begins(node, len, PSHM_PREFIX) || begins(node, len, NAMED_PREFIX) ||
	       (str && addr_text_version(node, len) >= 0);
}
