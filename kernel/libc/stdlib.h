/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What shared sources take of the C library's <stdlib.h>. Memory is the platform's: zeroed, and allocated where
 * sleeping is allowed.
 */
#ifndef KOFI_STDLIB_H
#define KOFI_STDLIB_H

#include <rdma/fi_types.h>

void *platform_alloc(size_t len);
void platform_free(void *ptr);

static inline void *malloc(size_t len)
{
	return platform_alloc(len);
}

static inline void *calloc(size_t cnt, size_t len)
{
	size_t all;

	return __builtin_mul_overflow(cnt, len, &all) ? NULL : platform_alloc(all);
}

/* Linux' own; in its parameters as strtoul() */
unsigned long simple_strtoul(const char *text, char **end, unsigned int base);

static inline unsigned long strtoul(const char *text, char **end, int base)
{
	return simple_strtoul(text, end, (unsigned int)base);
}

/* All memory begins with a cache line. */
static inline void *aligned_alloc(size_t align, size_t len)
{
	return platform_alloc(len);
}

static inline void free(void *ptr)
{
	platform_free(ptr);
}

#endif
