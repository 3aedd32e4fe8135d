/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The full address of an endpoint as text, for providers whose programs see FI_ADDR_STR: letters,
 * digits, - and _, six bits each, high bits first, the last ones zero. Of one family all have one length.
 *
 *	bits	what
 *	 3, 3	ADDR_VERSION; which of the forms below
 *	64	nonce
 *	22	pid
 *	31	fd
 *	32	place
 *
 * and then, by form: nothing; '/' and the name of a service of shared memory; or 16 bits of port and
 * 32 bits of IPv4, 128 of IPv6, or 64 of IPv6 and 32 of scope for the addresses that have one
 * (fe80::/64). Values that these fields can't hold no valid address of Linux has.
 *
 * Programs keep addresses in 48 bytes, or 56 where they know IPv6: with the five letters of a
 * prefix and a NUL the longest has 56.
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
 * Returns their number. A scope of an address outside fe80::/64 means nothing and is not told.
 */
size_t addr_text_write(const struct weft_addr *addr, char *text);

/*
 * addr_text_read - the same back
 * @text: @len characters from anywhere, trusted in nothing; needs no NUL
 * Returns 0 and a valid address of ADDR_NONCE, or -FI_EINVAL. What it takes addr_text_write() gives again.
 */
int addr_text_read(const char *text, size_t len, struct weft_addr *out);

/*
 * addr_text_version - which version of addresses begins so
 * Returns -1 for what can't be one: too short, or of other characters.
 */
int addr_text_version(const char *text, size_t len);

#endif
