/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Lists of message sizes as people write them: "8,64k,1M". No state; any thread.
 */
#ifndef WEFT_TOOLS_SIZES_H
#define WEFT_TOOLS_SIZES_H

#include <stddef.h>

#define SIZES_MAX      64
#define SIZE_MAX_BYTES ((size_t)1 << 30)

struct sizes {
	size_t cnt;
	size_t len[SIZES_MAX];
};

/*
 * sizes_parse - read a list of sizes
 * @text:  numbers with an optional k, m or g (powers of 1024; "KiB" too),
 *         separated by commas; "A:B" stands for A, then doubled up to B
 *
 * Returns 0; -EINVAL for anything else, -ERANGE for over 1 GiB, -E2BIG for over SIZES_MAX
 * entries; @sizes is then unchanged.
 */
int sizes_parse(const char *text, struct sizes *sizes);

/*
 * sizes_format - the short form of one size: "8", "64k", "1M"
 * @room:  at least 24 bytes
 *
 * Returns @room.
 */
char *sizes_format(size_t len, char *room);

#endif
