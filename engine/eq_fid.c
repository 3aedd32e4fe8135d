/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The event queue object. Called by programs on any thread: it has a lock of its own.
 */
#include <rdma/fi_errno.h>
#include "fids.h"

static struct engine_eq *eq_of(struct fid_eq *fid)
{
	return container_of(fid, struct engine_eq, fid);
}

static ssize_t engine_eq_read(struct fid_eq *fid, uint32_t *event, void *buf, size_t len, uint64_t flags)
{
	struct engine_eq *eq = eq_of(fid);
	ssize_t ret;

	if (!event || (len && !buf))
		return -FI_EINVAL;
	if (flags & ~FI_PEEK)
		return -FI_EBADFLAGS;
	platform_lock(&eq->lock);
	ret = eq_take(&eq->queue, event, buf, len, flags);
	platform_unlock(&eq->lock);
	return ret;
}

static ssize_t engine_eq_readerr(struct fid_eq *fid, struct fi_eq_err_entry *buf, uint64_t flags)
{
	struct engine_eq *eq = eq_of(fid);
	ssize_t ret;

	if (!buf)
		return -FI_EINVAL;
	if (flags & ~FI_PEEK)
		return -FI_EBADFLAGS;
	platform_lock(&eq->lock);
	ret = eq_take_error(&eq->queue, buf, flags);
	platform_unlock(&eq->lock);
	return ret;
}

static ssize_t engine_eq_write(struct fid_eq *fid, uint32_t event, const void *buf, size_t len, uint64_t flags)
{
	struct engine_eq *eq = eq_of(fid);
	int ret;

	if (len && !buf)
		return -FI_EINVAL;
	if (flags)
		return -FI_EBADFLAGS;
	platform_lock(&eq->lock);
	ret = eq_push(&eq->queue, event, buf, len);
	platform_unlock(&eq->lock);
	return ret ? ret : (ssize_t)len;
}

static ssize_t engine_eq_sread(struct fid_eq *fid, uint32_t *event, void *buf, size_t len, int timeout,
			       uint64_t flags)
{
	uint64_t end = platform_now_ns() + (uint64_t)timeout * 1000000u;
	ssize_t ret;

	while ((ret = engine_eq_read(fid, event, buf, len, flags)) == -FI_EAGAIN) {
		if (timeout >= 0 && platform_now_ns() >= end)
			return ret;
		platform_yield();
	}
	return ret;
}

static const char *engine_eq_strerror(struct fid_eq *fid, int prov_errno, const void *err_data, char *buf, size_t len)
{
	return engine_strerror(prov_errno, buf, len);
}

static int engine_eq_close(struct fid *fid)
{
	struct engine_eq *eq = container_of(fid, struct engine_eq, fid.fid);

	eq_fini(&eq->queue);
	platform_lock_fini(&eq->lock);
	engine_unref(&eq->fabric->refs);
	platform_free(eq);
	return 0;
}

static struct fi_ops engine_eq_fi_ops = {
	.size = sizeof(struct fi_ops),
	.close = engine_eq_close,
	.bind = engine_no_bind,
	.control = engine_no_control,
	.ops_open = engine_no_ops_open,
	.tostr = engine_no_tostr,
	.ops_set = engine_no_ops_set,
};

static struct fi_ops_eq engine_eq_ops = {
	.size = sizeof(struct fi_ops_eq),
	.read = engine_eq_read,
	.readerr = engine_eq_readerr,
	.write = engine_eq_write,
	.sread = engine_eq_sread,
	.strerror = engine_eq_strerror,
};

int engine_eq_open(struct fid_fabric *fid, struct fi_eq_attr *attr, struct fid_eq **out, void *context)
{
	struct engine_fabric *fabric = container_of(fid, struct engine_fabric, fid);
	struct engine_eq *eq;

	if (!out)
		return -FI_EINVAL;
	if (attr && attr->wait_obj != FI_WAIT_NONE && attr->wait_obj != FI_WAIT_UNSPEC &&
	    attr->wait_obj != FI_WAIT_YIELD)
		return -FI_ENOSYS;
	eq = platform_alloc(sizeof(*eq));
	if (!eq)
		return -FI_ENOMEM;
	eq->fid.fid.fclass = FI_CLASS_EQ;
	eq->fid.fid.context = context;
	eq->fid.fid.ops = &engine_eq_fi_ops;
	eq->fid.ops = &engine_eq_ops;
	eq->fabric = fabric;
	platform_lock_init(&eq->lock);
	eq_init(&eq->queue);
	eq->queue.api_version = fabric->fid.api_version;
	engine_ref(&fabric->refs);
	*out = &eq->fid;
	return 0;
}
