/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Copies between flat memory and iovecs, and the short copy of the fast paths.
 */
#ifndef WEFT_COPY_H
#define WEFT_COPY_H

#include "platform.h"

/* Least length for which copy_bytes() calls copy_wide(), bytes */
#define COPY_WIDE_MIN 2048u
/* Greatest length for which copy_wide() uses the widest loads and stores, bytes */
#define COPY_PAGE_MAX 4096u

/*
 * copy_wide - memcpy() for memory that another core has written or will read
 * copy_bulk - the same for a fragment of a large transfer
 *
 * From a few KiB on the memcpy() of libc uses a string instruction. That takes up to twice as long
 * as plain loads and stores for cache lines that come from, or have been in, another core's cache.
 * Up to COPY_PAGE_MAX, accesses are as wide as the processor has them: fewer (with AVX half), for
 * units that two threads of a core share. Large transfers are bound by memory: there wider accesses
 * gain nothing, and lose a tenth between cores without a common cache.
 */
void copy_wide(void *to, const void *from, size_t len);
void copy_bulk(void *to, const void *from, size_t len);

/* Copy 8 to 16 bytes. */
static inline void copy_words(void *to, const void *from, size_t len)
{
	uint64_t a, b;

	__builtin_memcpy(&a, from, 8);
	__builtin_memcpy(&b, (const char *)from + len - 8, 8);
	__builtin_memcpy(to, &a, 8);
	__builtin_memcpy((char *)to + len - 8, &b, 8);
}

/* Copy fewer than 8 bytes. */
static inline void copy_few(void *to, const void *from, size_t len)
{
	uint32_t a, b;

	if (len >= 4) {
		__builtin_memcpy(&a, from, 4);
		__builtin_memcpy(&b, (const char *)from + len - 4, 4);
		__builtin_memcpy(to, &a, 4);
		__builtin_memcpy((char *)to + len - 4, &b, 4);
	} else if (len) {
		((char *)to)[0] = ((const char *)from)[0];
		((char *)to)[len / 2] = ((const char *)from)[len / 2];
		((char *)to)[len - 1] = ((const char *)from)[len - 1];
	}
}

/*
 * copy_bytes - memcpy() that is inlined for up to 16 bytes, and copy_wide() from COPY_WIDE_MIN on
 */
static inline void copy_bytes(void *to, const void *from, size_t len)
{
	if (likely(len >= 8 && len <= 16))
		copy_words(to, from, len);
	else if (len >= COPY_WIDE_MIN)
		copy_wide(to, from, len);
	else if (len > 16)
		memcpy(to, from, len);
	else
		copy_few(to, from, len);
}

/* copy_brief - memcpy() of up to 32 bytes that calls nothing */
static inline void copy_brief(void *to, const void *from, size_t len)
{
	uint64_t first[2], last[2];

	if (likely(len >= 8 && len <= 16)) {
		copy_words(to, from, len);
	} else if (len > 16) {
		__builtin_memcpy(first, from, 16);
		__builtin_memcpy(last, (const char *)from + len - 16, 16);
		__builtin_memcpy(to, first, 16);
		__builtin_memcpy((char *)to + len - 16, last, 16);
	} else {
		copy_few(to, from, len);
	}
}

/*
 * copy_from_iov - gather @len bytes from an iov
 * copy_to_iov - scatter @len bytes to an iov
 * @cnt:  entries of @iov
 * @skip: offset in the iov at which the copy begins, bytes
 * Both stop at the end of the iov.
 */
void copy_from_iov(void *to, const struct iovec *iov, size_t cnt, size_t skip, size_t len);
void copy_to_iov(const struct iovec *iov, size_t cnt, size_t skip, const void *from, size_t len);

/* copy_local_to_iov - copy_to_iov() by memcpy(), which is faster from this core's own cache */
void copy_local_to_iov(const struct iovec *iov, size_t cnt, size_t skip, const void *from,
		       size_t len);

/*
 * iov_slice - get the part [skip, skip + len) of an iov, bytes
 * @out: out: room for @cnt entries
 * Returns the number of entries in @out. The part ends no later than the iov.
 */
size_t iov_slice(const struct iovec *iov, size_t cnt, size_t skip, size_t len,
		 struct iovec *out);

/*
 * iov_len - returns the length of an iov, bytes
 * @ok: out: false if the sum overflows, or if an entry with a length has the address NULL
 */
size_t iov_len(const struct iovec *iov, size_t cnt, bool *ok);

#endif
