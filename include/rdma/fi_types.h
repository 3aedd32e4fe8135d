/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The C types that the interface is written in. Every other header here
 * takes them from this one, so that a hosted program gets its own standard
 * headers, a module of Linux (__KERNEL__) the kernel's, and a freestanding build
 * (-ffreestanding -nostdinc) the same names from what the compiler itself knows. Declarations only;
 * no thread, no state. Source: ISO C, and POSIX for ssize_t and struct iovec.
 */
#ifndef FI_TYPES_H
#define FI_TYPES_H

#if defined(__KERNEL__) /* a module that includes Linux' own headers too */

#include <linux/limits.h>
#include <linux/stddef.h>
#include <linux/string.h>
#include <linux/types.h>
#include <linux/uio.h>

#ifndef UINT8_MAX
#define UINT8_MAX  U8_MAX
#define UINT16_MAX U16_MAX
#define UINT32_MAX U32_MAX
#define UINT64_MAX U64_MAX
#endif

#elif __STDC_HOSTED__

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>
#include <sys/uio.h>

#else /* freestanding, C only */

typedef __INT8_TYPE__ int8_t;
typedef __INT16_TYPE__ int16_t;
typedef __INT32_TYPE__ int32_t;
typedef __INT64_TYPE__ int64_t;
typedef __UINT8_TYPE__ uint8_t;
typedef __UINT16_TYPE__ uint16_t;
typedef __UINT32_TYPE__ uint32_t;
typedef __UINT64_TYPE__ uint64_t;
typedef __INTPTR_TYPE__ intptr_t;
typedef __UINTPTR_TYPE__ uintptr_t;
typedef __PTRDIFF_TYPE__ ptrdiff_t;
typedef __SIZE_TYPE__ size_t;
typedef __PTRDIFF_TYPE__ ssize_t; /* signed, as wide as size_t */

#define INT8_MAX    __INT8_MAX__
#define INT16_MAX   __INT16_MAX__
#define INT32_MAX   __INT32_MAX__
#define INT64_MAX   __INT64_MAX__
#define INT8_MIN    (-INT8_MAX - 1)
#define INT16_MIN   (-INT16_MAX - 1)
#define INT32_MIN   (-INT32_MAX - 1)
#define INT64_MIN   (-INT64_MAX - 1)
#define UINT8_MAX   __UINT8_MAX__
#define UINT16_MAX  __UINT16_MAX__
#define UINT32_MAX  __UINT32_MAX__
#define UINT64_MAX  __UINT64_MAX__
#define INTPTR_MAX  __INTPTR_MAX__
#define UINTPTR_MAX __UINTPTR_MAX__
#define PTRDIFF_MAX __PTRDIFF_MAX__
#define SIZE_MAX    __SIZE_MAX__
#define INT_MAX	    __INT_MAX__
#define INT_MIN	    (-INT_MAX - 1)
#define UINT_MAX    (INT_MAX * 2U + 1U)

/* The compilers name the suffixes differently; these are those of every 64-bit Linux. */
#define INT32_C(c)  c
#define INT64_C(c)  c##L
#define UINT32_C(c) c##U
#define UINT64_C(c) c##UL

#define bool _Bool
#define true 1
#define false 0

#define NULL		       ((void *)0)
#define offsetof(type, member) __builtin_offsetof(type, member)

/*
 * struct iovec - a buffer, as in <sys/uio.h>
 * @iov_base:  where it begins
 * @iov_len:   bytes
 */
struct iovec {
	void *iov_base;
	size_t iov_len;
};

/*
 * The compiler emits calls to these four even when freestanding, so whoever
 * links the objects has to supply them; they behave as in ISO C.
 */
void *memcpy(void *restrict dst, const void *restrict src, size_t len);
void *memmove(void *dst, const void *src, size_t len);
void *memset(void *dst, int byte, size_t len);
int memcmp(const void *a, const void *b, size_t len);

/* strlen, strcmp - supplied by the same environment; as in ISO C */
size_t strlen(const char *str);
int strcmp(const char *a, const char *b);

#endif

#endif /* FI_TYPES_H */
