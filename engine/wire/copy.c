/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Copies between flat memory and iovecs. Called by the engine on the caller's thread.
 */
#include "copy.h"

typedef long long copy_16 __attribute__((vector_size(16), aligned(1), may_alias));

void copy_bulk(void *to, const void *from, size_t len)
{
	copy_16 *t = to;
	const copy_16 *f = from;

	for (; len >= 64; len -= 64, t += 4, f += 4) {
		copy_16 a = f[0], b = f[1], c = f[2], d = f[3];

		t[0] = a;
		t[1] = b;
		t[2] = c;
		t[3] = d;
	}
	memcpy(t, f, len);
}

/* A kernel is built without SSE: it may not touch these registers. */
#if defined(__x86_64__) && defined(__SSE2__)

typedef long long copy_32 __attribute__((vector_size(32), aligned(1), may_alias));

__attribute__((target("avx"))) static void copy_page_avx(void *to, const void *from, size_t len)
{
	copy_32 *t = to;
	const copy_32 *f = from;

	for (; len >= 128; len -= 128, t += 4, f += 4) {
		copy_32 a = f[0], b = f[1], c = f[2], d = f[3];

		t[0] = a;
		t[1] = b;
		t[2] = c;
		t[3] = d;
	}
	memcpy(t, f, len);
}

static inline void copy_page(void *to, const void *from, size_t len)
{
	if (likely(__builtin_cpu_supports("avx")))
		copy_page_avx(to, from, len);
	else
		copy_bulk(to, from, len);
}

#else

static inline void copy_page(void *to, const void *from, size_t len)
{
	copy_bulk(to, from, len);
}

#endif

void copy_wide(void *to, const void *from, size_t len)
{
	if (len <= COPY_PAGE_MAX)
		copy_page(to, from, len);
	else
		copy_bulk(to, from, len);
}

void copy_from_iov(void *to, const struct iovec *iov, size_t cnt, size_t skip, size_t len)
{
	for (size_t i = 0; i < cnt && len; i++) {
		size_t n = iov[i].iov_len;

		if (skip >= n) {
			skip -= n;
			continue;
		}
		n -= skip;
		if (n > len)
			n = len;
		copy_bytes(to, (const char *)iov[i].iov_base + skip, n);
		to = (char *)to + n;
		len -= n;
		skip = 0;
	}
}

static inline void scatter(const struct iovec *iov, size_t cnt, size_t skip, const void *from,
			   size_t len, bool local)
{
	for (size_t i = 0; i < cnt && len; i++) {
		size_t n = iov[i].iov_len;

		if (skip >= n) {
			skip -= n;
			continue;
		}
		n -= skip;
		if (n > len)
			n = len;
		if (local)
			memcpy((char *)iov[i].iov_base + skip, from, n);
		else
			copy_bytes((char *)iov[i].iov_base + skip, from, n);
		from = (const char *)from + n;
		len -= n;
		skip = 0;
	}
}

void copy_to_iov(const struct iovec *iov, size_t cnt, size_t skip, const void *from, size_t len)
{
	scatter(iov, cnt, skip, from, len, false);
}

void copy_local_to_iov(const struct iovec *iov, size_t cnt, size_t skip, const void *from,
		       size_t len)
{
	scatter(iov, cnt, skip, from, len, true);
}

size_t iov_slice(const struct iovec *iov, size_t cnt, size_t skip, size_t len,
		 struct iovec *out)
{
	size_t used = 0;

	for (size_t i = 0; i < cnt && len; i++) {
		size_t n = iov[i].iov_len;

		if (skip >= n) {
			skip -= n;
			continue;
		}
		n -= skip;
		if (n > len)
			n = len;
		out[used].iov_base = (char *)iov[i].iov_base + skip;
		out[used++].iov_len = n;
		len -= n;
		skip = 0;
	}
	return used;
}

size_t iov_len(const struct iovec *iov, size_t cnt, bool *ok)
{
	size_t len = 0;

	*ok = true;
	for (size_t i = 0; i < cnt; i++)
		if (__builtin_add_overflow(len, iov[i].iov_len, &len) ||
		    (!iov[i].iov_base && iov[i].iov_len))
			*ok = false;
	return len;
}
