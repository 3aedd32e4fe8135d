/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What the provider's sources take of <arpa/inet.h>. */
#ifndef KOFI_ARPA_INET_H
#define KOFI_ARPA_INET_H

#include <rdma/fi_types.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
	       "the modules are built for little-endian processors");

#define htons(x) __builtin_bswap16(x)
#define ntohs(x) __builtin_bswap16(x)
#define htonl(x) __builtin_bswap32(x)
#define ntohl(x) __builtin_bswap32(x)

/* As POSIX has them. Any context */
const char *inet_ntop(int family, const void *addr, char *text, uint32_t len);
int inet_pton(int family, const char *text, void *addr);

#endif
