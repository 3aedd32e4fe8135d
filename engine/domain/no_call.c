/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Slots of op tables for calls that an object does not support. Called by programs on any thread.
 */
#include <rdma/fi_errno.h>
#include "no_call.h"

int engine_no_bind(struct fid *fid, struct fid *target, uint64_t flags)
{
	return -FI_ENOSYS;
}

int engine_no_control(struct fid *fid, int command, void *arg)
{
	return -FI_ENOSYS;
}

int engine_no_ops_open(struct fid *fid, const char *name, uint64_t flags, void **ops,
		       void *context)
{
	return -FI_ENOSYS;
}

int engine_no_tostr(const struct fid *fid, char *buf, size_t len)
{
	return -FI_ENOSYS;
}

int engine_no_ops_set(struct fid *fid, const char *name, uint64_t flags, void *ops,
		      void *context)
{
	return -FI_ENOSYS;
}

const char *engine_strerror(int prov_errno, char *buf, size_t len)
{
	const char *text = fi_strerror(prov_errno);
	size_t n = 0;

	if (!buf || !len)
		return text;
	for (; n + 1 < len && text[n]; n++)
		buf[n] = text[n];
	buf[n] = '\0';
	return buf;
}
