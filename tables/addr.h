/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The 48-byte endpoint address that every wire reads its part of. It names an
 * endpoint twice: by where its memory is found on its own host (nonce, process,
 * descriptor) and by where it listens on the network (family, port, address), or, when
 * it has shared memory alone, by a service's name.
 * Address tables store it; providers translate it to the format their callers use.
 */
#ifndef WEFT_ADDR_H
#define WEFT_ADDR_H

#include "platform.h"

#define ADDR_VERSION	 2u
#define ADDR_NONCE_LEN	 8u
#define ADDR_PID_MAX	 ((1u << 22) - 1) /* of Linux, whatever its settings */
#define ADDR_NO_PLACE	 0u
#define ADDR_FAMILY_NONE 0u
#define ADDR_FAMILY_LOCAL \
	1u /* a service of this host's shared memory: ip is its name, padded with zeros */
#define ADDR_FAMILY_INET  2u /* values of AF_INET and AF_INET6 on Linux */
#define ADDR_FAMILY_INET6 10u

enum addr_kind {
	ADDR_NONCE = 1,	  /* one endpoint of one process: equal when the nonces are */
	ADDR_SERVICE = 2, /* whoever listens at family, port, address: survives a restart */
};

/*
 * Others of the process may listen at this family, port and address, which stand for one of them: this
 * endpoint is known by its nonce alone. Only with that and a port.
 */
#define ADDR_PORT_SHARED 1u

struct weft_addr {
	/* ADDR_VERSION */
	uint8_t version;
	/* enum addr_kind */
	uint8_t kind;
	/* ADDR_PORT_SHARED; the others zero, checked */
	uint16_t flags;
	/* descriptor of the inbox memory in process pid */
	uint32_t fd;
	/* random, one per endpoint; zero in a service address */
	uint8_t nonce[ADDR_NONCE_LEN];
	/* at that place; 0: no shared memory */
	uint32_t pid;
	/* hash of host and pid namespace: a hint, never a proof; or ADDR_NO_PLACE */
	uint32_t place;
	/* IPv6 scope id */
	uint32_t scope;
	/* ADDR_FAMILY_*: 0: no network */
	uint16_t family;
	/* host byte order */
	uint16_t port;
	/* network byte order; IPv4 in the first four bytes; a name ends with a zero */
	uint8_t ip[16];
};

_Static_assert(sizeof(struct weft_addr) == 48, "an address is 48 bytes");
_Static_assert(offsetof(struct weft_addr, fd) == 4, "layout");
_Static_assert(offsetof(struct weft_addr, nonce) == 8, "layout");
_Static_assert(offsetof(struct weft_addr, pid) == 16, "layout");
_Static_assert(offsetof(struct weft_addr, place) == 20, "layout");
_Static_assert(offsetof(struct weft_addr, scope) == 24, "layout");
_Static_assert(offsetof(struct weft_addr, family) == 28, "layout");
_Static_assert(offsetof(struct weft_addr, port) == 30, "layout");
_Static_assert(offsetof(struct weft_addr, ip) == 32, "layout");

/*
 * addr_valid - is this an address that some endpoint of this version can have
 * @addr: from anywhere, trusted in nothing
 *
 * The address of an enabled endpoint, by which it can be reached: what does not apply is
 * zero, a family comes with a port and a specified address. A wish to bind (port 0, any
 * address) is not one.
 */
bool addr_valid(const struct weft_addr *addr);

/*
 * addr_same - do two valid addresses name the same endpoint
 *
 * Nonces decide when both have one; otherwise family, port, address and a link-local one's scope, unless these
 * are shared.
 */
bool addr_same(const struct weft_addr *a, const struct weft_addr *b);

/* addr_hash - equal for addresses of one kind that addr_same() takes for equal */
uint64_t addr_hash(const struct weft_addr *addr);

/*
 * addr_to_service - keep what says where it listens: the address without its nonce and process
 * Where that is shared what is left names nobody: it is not valid, and the same as none.
 */
void addr_to_service(struct weft_addr *addr);

#endif
