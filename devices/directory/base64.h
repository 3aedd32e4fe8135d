/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Bytes as text, as etcd's JSON has keys and values. Pure: any thread.
 * Source: RFC 4648, section 4; texts are padded, and nothing else is in them.
 */
#ifndef WEFT_DEVICES_DIRECTORY_BASE64_H
#define WEFT_DEVICES_DIRECTORY_BASE64_H

#include <stddef.h>
#include <sys/types.h>

/* Bytes of the text of @len bytes, with the zero byte. */
#define BASE64_ROOM(len) (((len) + 2) / 3 * 4 + 1)

/* base64_encode - out: BASE64_ROOM(@len) bytes of text */
void base64_encode(const void *data, size_t len, char *text);

/*
 * base64_decode - the bytes of a text of @len characters
 * @data: out: at most @room of them
 * Returns how many, or -EILSEQ: it is no such text; -EMSGSIZE: they have no room.
 */
ssize_t base64_decode(const char *text, size_t len, void *data, size_t room);

#endif
