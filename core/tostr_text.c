/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Lines of text of fi_tostr; tostr_text.h has the contract.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include <rdma/fi_endpoint.h>

#include "tostr_text.h"

void text_put(struct text *text, const char *fmt, ...)
{
	size_t room = text->len - text->used;
	va_list args;
	int n;

	va_start(args, fmt);
	n = vsnprintf(text->buf + text->used, room, fmt, args);
	va_end(args);
	if (n > 0)
		text->used += (size_t)n < room ? (size_t)n : room - 1;
}

void text_put_string(struct text *text, const char *key, const char *value)
{
	text_put(text, "%s: %s\n", key, value ? value : "(null)");
}

/* C libraries differ in what %p prints for NULL. */
void text_put_pointer(struct text *text, const char *key, const void *value)
{
	if (value)
		text_put(text, "%s: %p\n", key, value);
	else
		text_put(text, "%s: (nil)\n", key);
}

void text_put_flags(struct text *text, const struct info_name *names, uint64_t flags)
{
	info_flags_print(text->buf + text->used, text->len - text->used, names, flags);
	text->used += strlen(text->buf + text->used);
}

void text_put_flags_line(struct text *text, const char *prefix, const char *key,
			 const struct info_name *names, uint64_t flags)
{
	text_put(text, "%s%s: [ ", prefix, key);
	text_put_flags(text, names, flags);
	text_put(text, " ]\n");
}

void text_put_value_line(struct text *text, const char *prefix, const char *key,
			 const struct info_name *names, uint64_t value)
{
	text_put(text, "%s%s: %s\n", prefix, key, info_name_of(names, value));
}

static void put_hex(struct text *text, const void *addr, size_t len)
{
	const uint8_t *byte = addr;
	size_t i;

	for (i = 0; i < len; i++)
		text_put(text, "%s%02x", i ? "" : "0x", byte[i]);
}

static void put_in(struct text *text, const void *addr, size_t len)
{
	struct sockaddr_in sin;
	char ip[INET_ADDRSTRLEN];

	if (len < sizeof(sin)) {
		put_hex(text, addr, len);
		return;
	}
	memcpy(&sin, addr, sizeof(sin));
	inet_ntop(AF_INET, &sin.sin_addr, ip, sizeof(ip));
	text_put(text, "fi_sockaddr_in://%s:%u", ip, ntohs(sin.sin_port));
}

static void put_in6(struct text *text, const void *addr, size_t len)
{
	struct sockaddr_in6 sin6;
	char ip[INET6_ADDRSTRLEN];

	if (len < sizeof(sin6)) {
		put_hex(text, addr, len);
		return;
	}
	memcpy(&sin6, addr, sizeof(sin6));
	inet_ntop(AF_INET6, &sin6.sin6_addr, ip, sizeof(ip));
	text_put(text, "fi_sockaddr_in6://[%s]:%u", ip, ntohs(sin6.sin6_port));
}

/* An address of a format that only its provider knows is shown byte by byte. */
void text_put_addr(struct text *text, uint32_t format, const void *addr, size_t len)
{
	sa_family_t family = AF_UNSPEC;

	if (!addr) {
		text_put(text, "(null)");
		return;
	}
	if (len >= sizeof(family))
		memcpy(&family, addr, sizeof(family));
	if (format == FI_SOCKADDR_IN)
		family = AF_INET;
	else if (format == FI_SOCKADDR_IN6)
		family = AF_INET6;
	else if (format != FI_SOCKADDR && format != FI_SOCKADDR_IP)
		family = AF_UNSPEC;

	if (format == FI_ADDR_STR)
		text_put(text, "%.*s", (int)strnlen(addr, len), (const char *)addr);
	else if (family == AF_INET)
		put_in(text, addr, len);
	else if (family == AF_INET6)
		put_in6(text, addr, len);
	else
		put_hex(text, addr, len);
}

/* Prints an object by its own tostr operation, if it has one. */
void text_put_fid(struct text *text, const char *key, const struct fid *fid)
{
	if (!fid || !FI_CHECK_OP(fid->ops, struct fi_ops, tostr)) {
		text_put_pointer(text, key, fid);
		return;
	}
	fid->ops->tostr(fid, text->buf, text->len);
	text->used = strnlen(text->buf, text->len);
	if (text->used == text->len)
		text->buf[--text->used] = '\0';
}

bool text_put_head(struct text *text, const char *prefix, const char *name, const void *attr)
{
	text_put(text, attr ? "%s%s:\n" : "%s%s: (null)\n", prefix, name);
	return attr;
}

void text_put_size(struct text *text, const char *prefix, const char *key, size_t value)
{
	text_put(text, "%s%s: %zu\n", prefix, key, value);
}
