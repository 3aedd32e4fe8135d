/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Checks and comparison of endpoint addresses. Called by address tables, the engine and
 * providers on any thread; no state.
 */
#include <rdma/fi_types.h>
#include "addr.h"

static bool all_zero(const uint8_t *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if (bytes[i])
			return false;
	}
	return true;
}

static bool has_nonce(const struct weft_addr *addr)
{
	return addr->kind == ADDR_NONCE;
}

static bool network_valid(const struct weft_addr *a)
{
	bool no_ip = all_zero(a->ip, sizeof(a->ip));

	switch (a->family) {
	case ADDR_FAMILY_NONE:
		return !a->port && !a->scope && no_ip;
	case ADDR_FAMILY_LOCAL:
		return !a->port && !a->scope && a->ip[0] && !a->ip[sizeof(a->ip) - 1];
	case ADDR_FAMILY_INET:
		return a->port && !a->scope && !no_ip && all_zero(a->ip + 4, sizeof(a->ip) - 4);
	case ADDR_FAMILY_INET6:
		return a->port && !no_ip;
	default:
		return false;
	}
}

static bool flags_valid(const struct weft_addr *a)
{
	return !a->flags || (a->flags == ADDR_PORT_SHARED && has_nonce(a) && a->port);
}

bool addr_valid(const struct weft_addr *addr)
{
	struct weft_addr a;
	bool no_nonce;

	memcpy(&a, addr, sizeof(a));
	if (a.version != ADDR_VERSION || !flags_valid(&a) || !network_valid(&a))
		return false;

	no_nonce = all_zero(a.nonce, sizeof(a.nonce));
	switch (a.kind) {
	case ADDR_NONCE:
		if (no_nonce)
			return false;
		/* Descriptors are ints that are not negative. */
		if (a.pid)
			return a.pid <= ADDR_PID_MAX && a.fd <= INT32_MAX;
		return !a.fd && !a.ns_hash;
	case ADDR_SERVICE:
		return no_nonce && a.family && !a.pid && !a.fd;
	default:
		return false;
	}
}

/*
 * The scope selects a link of the host. Only link-local addresses have one; it is ignored in
 * others.
 */
static uint32_t scope_meant(const struct weft_addr *addr)
{
	bool local = addr->family == ADDR_FAMILY_INET6 && addr->ip[0] == 0xfe &&
		     (addr->ip[1] & 0xc0) == 0x80;

	return local ? addr->scope : 0;
}

bool addr_same(const struct weft_addr *a, const struct weft_addr *b)
{
	if (has_nonce(a) && has_nonce(b))
		return !memcmp(a->nonce, b->nonce, sizeof(a->nonce));
	if ((a->flags | b->flags) & ADDR_PORT_SHARED)
		return false;
	return a->family && a->family == b->family && a->port == b->port &&
	       scope_meant(a) == scope_meant(b) && !memcmp(a->ip, b->ip, sizeof(a->ip));
}

static uint64_t mix(uint64_t h, uint64_t value)
{
	h = (h ^ value) * 0x9e3779b97f4a7c15ull;
	return h ^ h >> 32;
}

static uint64_t mix_bytes(uint64_t h, const uint8_t *bytes, size_t len)
{
	uint64_t part;

	for (size_t i = 0; i < len; i += sizeof(part)) {
		memcpy(&part, bytes + i, sizeof(part));
		h = mix(h, part);
	}
	return h;
}

uint64_t addr_hash(const struct weft_addr *addr)
{
	uint64_t h;

	if (has_nonce(addr))
		return mix_bytes(ADDR_NONCE, addr->nonce, sizeof(addr->nonce));
	h = mix(ADDR_SERVICE,
		(uint64_t)scope_meant(addr) << 32 | (uint32_t)addr->family << 16 | addr->port);
	return mix_bytes(h, addr->ip, sizeof(addr->ip));
}

void addr_to_service(struct weft_addr *addr)
{
	addr->kind = ADDR_SERVICE;
	addr->fd = 0;
	memset(addr->nonce, 0, sizeof(addr->nonce));
	addr->pid = 0;
	addr->ns_hash = 0;
}
