/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A hash of bytes that processes have to agree on: of names and of the host's identity. Any thread.
 */
#ifndef WEFT_SYS_HASH_H
#define WEFT_SYS_HASH_H

#include "fnv.h"

/*
 * sys_hash - returns a hash of @len bytes, all bits of which depend on each of them
 * The value is part of addresses: it is the same in every process of this version.
 * Source: FNV-1a, and two steps that spread it over all bits.
 */
static inline uint64_t sys_hash(const void *bytes, size_t len)
{
	uint64_t h = fnv_add(FNV_START, bytes, len);

	h = (h ^ h >> 32) * UINT64_C(0xd6e8feb86659fd93);
	return h ^ h >> 32;
}

#endif
