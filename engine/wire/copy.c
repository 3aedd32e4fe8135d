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

/* The rest of a part of an iov: @len bytes, from @skip bytes behind the start of @iov. */
struct iov_rest {
	const struct iovec *iov;
	size_t cnt, skip, len;
};

/* Take the next contiguous piece. Returns its length, bytes; 0: the part or the iov ends here. */
static inline size_t iov_next(struct iov_rest *rest, void **piece)
{
	size_t n;

	while (rest->cnt && rest->skip >= rest->iov->iov_len) {
		rest->skip -= rest->iov->iov_len;
		rest->iov++;
		rest->cnt--;
	}
	if (!rest->cnt || !rest->len)
		return 0;
	n = rest->iov->iov_len - rest->skip;
	if (n > rest->len)
		n = rest->len;
	*piece = (char *)rest->iov->iov_base + rest->skip;
	rest->skip += n;
	rest->len -= n;
	return n;
}

void copy_from_iov(void *to, const struct iovec *iov, size_t cnt, size_t skip, size_t len)
{
	struct iov_rest rest = { iov, cnt, skip, len };
	void *piece;
	size_t n;

	while ((n = iov_next(&rest, &piece))) {
		copy_bytes(to, piece, n);
		to = (char *)to + n;
	}
}

void copy_to_iov(const struct iovec *iov, size_t cnt, size_t skip, const void *from, size_t len)
{
	struct iov_rest rest = { iov, cnt, skip, len };
	void *piece;
	size_t n;

	while ((n = iov_next(&rest, &piece))) {
		copy_bytes(piece, from, n);
		from = (const char *)from + n;
	}
}

void copy_local_to_iov(const struct iovec *iov, size_t cnt, size_t skip, const void *from,
		       size_t len)
{
	struct iov_rest rest = { iov, cnt, skip, len };
	void *piece;
	size_t n;

	while ((n = iov_next(&rest, &piece))) {
		memcpy(piece, from, n);
		from = (const char *)from + n;
	}
}

size_t iov_slice(const struct iovec *iov, size_t cnt, size_t skip, size_t len, struct iovec *out)
{
	struct iov_rest rest = { iov, cnt, skip, len };
	size_t used = 0, n;
	void *piece;

	while ((n = iov_next(&rest, &piece)))
		out[used++] = (struct iovec){ piece, n };
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
