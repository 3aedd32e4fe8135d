/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Copies between flat memory and iovecs. Called by the engine on the caller's thread.
 */
#include "copy.h"
#include "copies.h"

void copy_bulk(void *to, const void *from, size_t len)
{
	copies_by_16(to, from, len);
}

void copy_wide(void *to, const void *from, size_t len)
{
	if (len <= COPY_PAGE_MAX)
		processor_copy_widest(to, from, len);
	else
		copies_by_16(to, from, len);
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

size_t iov_slice(const struct iovec *iov, size_t cnt, size_t skip, size_t len, struct iovec *out)
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
