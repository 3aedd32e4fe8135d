/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Little-endian integers of 1 to 8 bytes in what travels. */
#ifndef BTL_BYTES_H
#define BTL_BYTES_H

#include <stdint.h>

static inline void btl_bytes_put(unsigned char *at, uint64_t value, unsigned int len)
{
	for (unsigned int i = 0; i < len; i++)
		at[i] = (unsigned char)(value >> 8 * i);
}

static inline uint64_t btl_bytes_get(const unsigned char *at, unsigned int len)
{
	uint64_t value = 0;

	for (unsigned int i = 0; i < len; i++)
		value |= (uint64_t)at[i] << 8 * i;
	return value;
}

#endif
