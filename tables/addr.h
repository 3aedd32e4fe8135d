/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The 48-byte endpoint address. Each wire uses its part of it. It names an endpoint twice: by
 * where its memory is found on its own host (nonce, process, descriptor), and by where it listens
 * on the network (family, port, address). An endpoint with shared memory only may have the name of
 * a service instead of the latter. Address tables store this form; providers translate it to the
 * format that their callers use.
 */
#ifndef WEFT_ADDR_H
#define WEFT_ADDR_H

#include "platform.h"

#define ADDR_VERSION	 2u
#define ADDR_NONCE_LEN	 8u
#define ADDR_PID_MAX	 ((1u << 22) - 1) /* Linux's PID_MAX_LIMIT */
#define ADDR_NO_NS	 0u
#define ADDR_FAMILY_NONE 0u
#define ADDR_FAMILY_LOCAL \
	1u /* a service of this host's shared memory; ip has its name, padded with zeros */
#define ADDR_FAMILY_INET  2u /* values of AF_INET and AF_INET6 on Linux */
#define ADDR_FAMILY_INET6 10u

enum addr_kind {
	ADDR_NONCE = 1, /* one endpoint of one process; compared by nonce */
	ADDR_SERVICE =
		2, /* the endpoint that listens at family, port, address; survives its restart */
};

/*
 * Flag: several endpoints of the process share this family, port and address, so that only the
 * nonce identifies the endpoint. Valid only with a nonce and a port.
 */
#define ADDR_PORT_SHARED 1u

struct weft_addr {
	/* ADDR_VERSION */
	uint8_t version;
	/* enum addr_kind */
	uint8_t kind;
	/* ADDR_PORT_SHARED; other bits are zero, checked */
	uint16_t flags;
	/* descriptor of the inbox memory in process pid */
	uint32_t fd;
	/* random, different for each endpoint; zero in a service address */
	uint8_t nonce[ADDR_NONCE_LEN];
	/* process id in the pid namespace of @ns_hash; 0: no shared memory */
	uint32_t pid;
	/* hash of host and pid namespace, which is only a hint; or ADDR_NO_NS */
	uint32_t ns_hash;
	/* IPv6 scope id */
	uint32_t scope;
	/* ADDR_FAMILY_*; ADDR_FAMILY_NONE: no network */
	uint16_t family;
	/* host byte order */
	uint16_t port;
	/* network byte order; IPv4 in the first four bytes; or a NUL-terminated name */
	uint8_t ip[16];
};

_Static_assert(sizeof(struct weft_addr) == 48, "an address is 48 bytes");
_Static_assert(offsetof(struct weft_addr, fd) == 4, "layout");
_Static_assert(offsetof(struct weft_addr, nonce) == 8, "layout");
_Static_assert(offsetof(struct weft_addr, pid) == 16, "layout");
_Static_assert(offsetof(struct weft_addr, ns_hash) == 20, "layout");
_Static_assert(offsetof(struct weft_addr, scope) == 24, "layout");
_Static_assert(offsetof(struct weft_addr, family) == 28, "layout");
_Static_assert(offsetof(struct weft_addr, port) == 30, "layout");
_Static_assert(offsetof(struct weft_addr, ip) == 32, "layout");

/*
 * addr_valid - returns true if an enabled endpoint of this version can have this address
 * @addr: untrusted
 *
 * In a valid address, fields that do not apply are zero, and a family comes with a port and a
 * specific address. An address to bind to (port 0, wildcard address) is not valid.
 */
bool addr_valid(const struct weft_addr *addr);

/*
 * addr_same - returns true if two valid addresses name the same endpoint
 *
 * If both have a nonce, the nonces are compared; otherwise family, port, address and the scope of
 * a link-local address, unless these are shared.
 */
bool addr_same(const struct weft_addr *a, const struct weft_addr *b);

/* addr_hash - a hash, equal for addresses of one kind that are addr_same() */
uint64_t addr_hash(const struct weft_addr *addr);

/*
 * addr_to_service - make a service address: remove the nonce and the process If the port is
 * shared, the result names no endpoint: it is not valid, and addr_same() as no address.
 */
void addr_to_service(struct weft_addr *addr);

#endif
