/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * FNV-1a, 64 bits: a hash of bytes, whose value is the same everywhere and forever. Any thread; it
 * needs nothing of sys/. Source: draft-eastlake-fnv.
 */
#ifndef WEFT_SYS_FNV_H
#define WEFT_SYS_FNV_H

#include <stddef.h>
#include <stdint.h>

/* The hash of no bytes */
#define FNV_START UINT64_C(0xcbf29ce484222325)

/* fnv_step - returns @hash with another byte */
static inline uint64_t fnv_step(uint64_t hash, uint8_t byte)
{
	return (hash ^ byte) * UINT64_C(0x100000001b3);
}

/* fnv_add - returns @hash with @len more bytes */
static inline uint64_t fnv_add(uint64_t hash, const void *bytes, size_t len)
{
	const uint8_t *byte = bytes;

	for (size_t i = 0; i < len; i++)
		hash = fnv_step(hash, byte[i]);
	return hash;
}

#endif
