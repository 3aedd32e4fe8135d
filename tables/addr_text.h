/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The full address of an endpoint as text, for providers with FI_ADDR_STR. The characters are letters,
 * digits, - and _, with six bits each, high bits first; unused bits of the last one are zero. The text of all
 * addresses of one family has the same length.
 *
 *	bits	what
 *	 3, 3	ADDR_VERSION; one of the forms below
 *	64	nonce
 *	22	pid
 *	31	fd
 *	32	ns_hash
 *
 * followed, depending on the form, by nothing; '/' and the name of a service of shared memory; or 16 bits of port and
 * 32 bits of IPv4, 128 of IPv6, or 64 of IPv6 and 32 of scope for the addresses that have one
 * (fe80::/64). These fields can hold every valid address of Linux.
 *
 * Programs store addresses in 48 bytes, or in 56 if they know IPv6. With the five characters of a
 * prefix and a NUL the longest text has 56 bytes.
 */
#ifndef WEFT_ADDR_TEXT_H
#define WEFT_ADDR_TEXT_H

#include "addr.h"

#define ADDR_TEXT_BARE	26u /* characters without a network */
#define ADDR_TEXT_INET	34u
#define ADDR_TEXT_INET6 50u
#define ADDR_TEXT_MAX	ADDR_TEXT_INET6

/*
 * addr_text_write - an address as text, without a NUL
 * @addr: valid, of ADDR_NONCE
 * @text: receives at most ADDR_TEXT_MAX characters
 * Returns their number. The scope of an address outside fe80::/64 has no meaning and is left out.
 */
size_t addr_text_write(const struct weft_addr *addr, char *text);

/*
 * addr_text_read - parse the text of an address
 * @text: @len untrusted characters; needs no NUL
 * Returns 0 and a valid address of ADDR_NONCE, or -FI_EINVAL. addr_text_write() gives the same text again.
 */
int addr_text_read(const char *text, size_t len, struct weft_addr *out);

/*
 * addr_text_version - the version of an address from its text
 * Returns the version, or -1 if the text is too short or has other characters.
 */
int addr_text_version(const char *text, size_t len);

#endif
