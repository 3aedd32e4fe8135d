/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Addresses to text and back. Called by providers where programs hand addresses in and get them;
 * any thread, no state.
 */
#include <rdma/fi_errno.h>
#include "addr_text.h"

#define DIGIT_BITS     6u
#define DIGITS	       "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
#define PID_BITS       22u
#define FD_BITS	       31u
#define LINK_LOCAL_LEN 8u /* of an address in fe80::/64: the other half */

/* What follows the fields that every form has */
enum form {
	FORM_BARE,
	FORM_LOCAL,
	FORM_INET,
	FORM_INET6,
	FORM_LINK_LOCAL,
	FORM_CNT,
	/* FORM_INET and those after it exist with ADDR_PORT_SHARED, too */
	FORM_SHARED = FORM_CNT - FORM_INET,
};

_Static_assert(FORM_LINK_LOCAL + FORM_SHARED < 1 << 3, "forms have three bits");
_Static_assert(ADDR_VERSION < 1 << 3, "versions have three bits");
_Static_assert(ADDR_PID_MAX == (1 << PID_BITS) - 1, "process numbers fit");

static const uint8_t link_local[16 - LINK_LOCAL_LEN] = { 0xfe, 0x80 };

/* Digits on their way in or out. */
struct digits {
	char *out;
	const char *in;
	const char *end;
	/* the lowest @held_cnt bits */
	uint64_t held;
	uint32_t held_cnt;
	/* in: too few, or something else */
	bool wrong;
};

static void digits_put(struct digits *d, uint64_t value, uint32_t bits)
{
	while (bits) {
		uint32_t some = bits < 32 ? bits : 32;

		bits -= some;
		d->held = d->held << some | ((value >> bits) & ((UINT64_C(1) << some) - 1));
		for (d->held_cnt += some; d->held_cnt >= DIGIT_BITS;) {
			d->held_cnt -= DIGIT_BITS;
			*d->out++ = DIGITS[(d->held >> d->held_cnt) & 63];
		}
	}
}

static int digit_value(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	return c == '-' ? 62 : c == '_' ? 63 : -1;
}

static void digits_fetch(struct digits *d)
{
	int value = d->in < d->end ? digit_value(*d->in) : -1;

	d->wrong |= value < 0;
	d->in += value >= 0;
	d->held = d->held << DIGIT_BITS | (uint64_t)(value & 63);
	d->held_cnt += DIGIT_BITS;
}

static uint64_t digits_get(struct digits *d, uint32_t bits)
{
	uint64_t value = 0;

	while (bits) {
		uint32_t some = bits < 32 ? bits : 32;

		while (d->held_cnt < some)
			digits_fetch(d);
		bits -= some;
		d->held_cnt -= some;
		value = value << some | ((d->held >> d->held_cnt) & ((UINT64_C(1) << some) - 1));
	}
	return value;
}

static void digits_put_bytes(struct digits *d, const uint8_t *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++)
		digits_put(d, bytes[i], 8);
}

static void digits_get_bytes(struct digits *d, uint8_t *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++)
		bytes[i] = (uint8_t)digits_get(d, 8);
}

static bool is_link_local(const struct weft_addr *addr)
{
	return addr->scope && !memcmp(addr->ip, link_local, sizeof(link_local));
}

static enum form form_of(const struct weft_addr *addr)
{
	switch (addr->family) {
	case ADDR_FAMILY_LOCAL:
		return FORM_LOCAL;
	case ADDR_FAMILY_INET:
		return FORM_INET;
	case ADDR_FAMILY_INET6:
		return is_link_local(addr) ? FORM_LINK_LOCAL : FORM_INET6;
	default:
		return FORM_BARE;
	}
}

/* How many digits an address of that form has. */
static size_t form_digits(enum form form)
{
	static const uint8_t cnt[FORM_CNT] = {
		[FORM_BARE] = ADDR_TEXT_BARE,	     [FORM_LOCAL] = ADDR_TEXT_BARE,
		[FORM_INET] = ADDR_TEXT_INET,	     [FORM_INET6] = ADDR_TEXT_INET6,
		[FORM_LINK_LOCAL] = ADDR_TEXT_INET6, /* of one length, whatever its interface */
	};

	return cnt[form];
}

static void put_network(struct digits *d, const struct weft_addr *addr, enum form form)
{
	if (form < FORM_INET)
		return;
	digits_put(d, addr->port, 16);
	if (form == FORM_LINK_LOCAL) {
		digits_put_bytes(d, addr->ip + sizeof(link_local), LINK_LOCAL_LEN);
		digits_put(d, addr->scope, 32);
	} else {
		digits_put_bytes(d, addr->ip, form == FORM_INET ? 4 : 16);
	}
}

size_t addr_text_write(const struct weft_addr *addr, char *text)
{
	struct digits d = { .out = text };
	enum form form = form_of(addr);
	size_t len;

	digits_put(&d, ADDR_VERSION, 3);
	digits_put(&d, addr->flags & ADDR_PORT_SHARED ? form + FORM_SHARED : form, 3);
	digits_put_bytes(&d, addr->nonce, sizeof(addr->nonce));
	digits_put(&d, addr->pid, PID_BITS);
	digits_put(&d, addr->fd, FD_BITS);
	digits_put(&d, addr->ns_hash, 32);
	put_network(&d, addr, form);
	while ((size_t)(d.out - text) < form_digits(form))
		digits_put(&d, 0, DIGIT_BITS - d.held_cnt);
	if (form != FORM_LOCAL)
		return (size_t)(d.out - text);
	*d.out++ = '/';
	for (len = 0; len < sizeof(addr->ip) && addr->ip[len]; len++)
		*d.out++ = (char)addr->ip[len];
	return (size_t)(d.out - text);
}

static void get_network(struct digits *d, struct weft_addr *addr, enum form form)
{
	if (form < FORM_INET)
		return;
	addr->family = form == FORM_INET ? ADDR_FAMILY_INET : ADDR_FAMILY_INET6;
	addr->port = (uint16_t)digits_get(d, 16);
	if (form == FORM_LINK_LOCAL) {
		memcpy(addr->ip, link_local, sizeof(link_local));
		digits_get_bytes(d, addr->ip + sizeof(link_local), LINK_LOCAL_LEN);
		addr->scope = (uint32_t)digits_get(d, 32);
		d->wrong |= !addr->scope; /* that is the other form */
	} else {
		digits_get_bytes(d, addr->ip, form == FORM_INET ? 4 : 16);
	}
}

/* The name of a service, all that is left. Returns 0 or -FI_EINVAL */
static int get_service(const char *text, size_t len, struct weft_addr *addr)
{
	if (len < 2 || *text != '/' || len > sizeof(addr->ip))
		return -FI_EINVAL;
	for (size_t i = 1; i < len; i++)
		if (text[i] <= ' ' || text[i] > '~')
			return -FI_EINVAL;
	addr->family = ADDR_FAMILY_LOCAL;
	memcpy(addr->ip, text + 1, len - 1);
	return 0;
}

int addr_text_version(const char *text, size_t len)
{
	int head = len < ADDR_TEXT_BARE ? -1 : digit_value(text[0]);

	for (size_t i = 1; i < ADDR_TEXT_BARE && head >= 0; i++)
		if (digit_value(text[i]) < 0)
			return -1;
	return head < 0 ? -1 : head >> 3;
}

int addr_text_read(const char *text, size_t len, struct weft_addr *out)
{
	struct digits d = { .in = text, .end = text + len };
	struct weft_addr addr = { .version = ADDR_VERSION, .kind = ADDR_NONCE };
	uint32_t form;

	if (addr_text_version(text, len) != ADDR_VERSION)
		return -FI_EINVAL;
	digits_get(&d, 3);
	form = (uint32_t)digits_get(&d, 3);
	if (form >= FORM_CNT) {
		form -= FORM_SHARED;
		addr.flags = ADDR_PORT_SHARED;
	}
	digits_get_bytes(&d, addr.nonce, sizeof(addr.nonce));
	addr.pid = (uint32_t)digits_get(&d, PID_BITS);
	addr.fd = (uint32_t)digits_get(&d, FD_BITS);
	addr.ns_hash = (uint32_t)digits_get(&d, 32);
	get_network(&d, &addr, form);
	while ((size_t)(d.in - text) < form_digits(form) && !d.wrong)
		d.wrong |= digits_get(&d, d.held_cnt + DIGIT_BITS) != 0;
	if (d.wrong || digits_get(&d, d.held_cnt))
		return -FI_EINVAL;
	len -= (size_t)(d.in - text);
	if (form == FORM_LOCAL ? get_service(d.in, len, &addr) : len != 0)
		return -FI_EINVAL;
	if (!addr_valid(&addr))
		return -FI_EINVAL;
	*out = addr;
	return 0;
}
