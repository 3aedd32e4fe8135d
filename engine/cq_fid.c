/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The completion queue object: reading one makes progress on its domain. The op table is
 * chosen when it is opened: with the domain's lock, or without for callers that serialize.
 */
#include <rdma/fi_errno.h>
#include "fids.h"
#include "progress.h"

static struct engine_cq *cq_of(struct fid_cq *fid)
{
	return container_of(fid, struct engine_cq, fid);
}

static ssize_t engine_cq_readfrom(struct fid_cq *fid, void *buf, size_t cnt, fi_addr_t *src)
{
	struct engine_cq *cq = cq_of(fid);

	if (unlikely(!buf && cnt))
		return -FI_EINVAL;
	/* Completions of packets that a wire still gathers are no reason to leave those where they are. */
	if (cq_empty(&cq->queue) || !cnt || cq->domain->gathered) {
		engine_domain_progress(cq->domain);
		if (cq_empty(&cq->queue))
			return -FI_EAGAIN;
	}
	return cq_take(&cq->queue, cq->format, buf, cnt, src);
}

static ssize_t engine_cq_read(struct fid_cq *fid, void *buf, size_t cnt)
{
	return engine_cq_readfrom(fid, buf, cnt, NULL);
}

static ssize_t engine_cq_readerr(struct fid_cq *fid, struct fi_cq_err_entry *buf, uint64_t flags)
{
	struct engine_cq *cq = cq_of(fid);

	if (!buf)
		return -FI_EINVAL;
	if (cq_empty(&cq->queue))
		engine_domain_progress(cq->domain);
	return cq_take_error(&cq->queue, buf, cq->domain->fabric->fid.api_version);
}

static ssize_t engine_cq_readfrom_safe(struct fid_cq *fid, void *buf, size_t cnt, fi_addr_t *src)
{
	struct engine_cq *cq = cq_of(fid);
	ssize_t ret;

	platform_lock(&cq->domain->lock);
	ret = engine_cq_readfrom(fid, buf, cnt, src);
	platform_unlock(&cq->domain->lock);
	return ret;
}

static ssize_t engine_cq_read_safe(struct fid_cq *fid, void *buf, size_t cnt)
{
	return engine_cq_readfrom_safe(fid, buf, cnt, NULL);
}

static ssize_t engine_cq_readerr_safe(struct fid_cq *fid, struct fi_cq_err_entry *buf, uint64_t flags)
{
	struct engine_cq *cq = cq_of(fid);
	ssize_t ret;

	platform_lock(&cq->domain->lock);
	ret = engine_cq_readerr(fid, buf, flags);
	platform_unlock(&cq->domain->lock);
	return ret;
}

static ssize_t engine_cq_sreadfrom(struct fid_cq *fid, void *buf, size_t cnt, fi_addr_t *src, const void *cond,
				   int timeout)
{
	struct engine_cq *cq = cq_of(fid);
	uint64_t end = platform_now_ns() + (uint64_t)timeout * 1000000u;
	ssize_t ret;

	while ((ret = fid->ops->readfrom(fid, buf, cnt, src)) == -FI_EAGAIN) {
		if (atomic_exchange_explicit(&cq->signaled, false, memory_order_acquire))
			return -FI_EAGAIN;
		if (timeout >= 0 && platform_now_ns() >= end)
			return -FI_EAGAIN;
		platform_yield();
	}
	return ret;
}

static ssize_t engine_cq_sread(struct fid_cq *fid, void *buf, size_t cnt, const void *cond, int timeout)
{
	return engine_cq_sreadfrom(fid, buf, cnt, NULL, cond, timeout);
}

static int engine_cq_signal(struct fid_cq *fid)
{
	atomic_store_explicit(&cq_of(fid)->signaled, true, memory_order_release);
	return 0;
}

static const char *engine_cq_strerror(struct fid_cq *fid, int prov_errno, const void *err_data, char *buf, size_t len)
{
	return engine_strerror(prov_errno, buf, len);
}

static int engine_cq_no_export(struct fid_cq *fid, uint64_t flags, struct fid_xpu_cq *xpu_cq)
{
	return -FI_ENOSYS;
}

static int engine_cq_close(struct fid *fid)
{
	struct engine_cq *cq = container_of(fid, struct engine_cq, fid.fid);
	struct engine_domain *domain = cq->domain;

	if (engine_in_use(&cq->refs))
		return -FI_EBUSY;
	cq_fini(&cq->queue);
	platform_free(cq);
	engine_unref(&domain->refs);
	return 0;
}

static struct fi_ops engine_cq_fi_ops = {
	.size = sizeof(struct fi_ops),
	.close = engine_cq_close,
	.bind = engine_no_bind,
	.control = engine_no_control,
	.ops_open = engine_no_ops_open,
	.tostr = engine_no_tostr,
	.ops_set = engine_no_ops_set,
};

static struct fi_ops_cq engine_cq_ops = {
	.size = sizeof(struct fi_ops_cq),
	.read = engine_cq_read,
	.readfrom = engine_cq_readfrom,
	.readerr = engine_cq_readerr,
	.sread = engine_cq_sread,
	.sreadfrom = engine_cq_sreadfrom,
	.signal = engine_cq_signal,
	.strerror = engine_cq_strerror,
	.export_xpu = engine_cq_no_export,
};

static struct fi_ops_cq engine_cq_safe_ops = {
	.size = sizeof(struct fi_ops_cq),
	.read = engine_cq_read_safe,
	.readfrom = engine_cq_readfrom_safe,
	.readerr = engine_cq_readerr_safe,
	.sread = engine_cq_sread,
	.sreadfrom = engine_cq_sreadfrom,
	.signal = engine_cq_signal,
	.strerror = engine_cq_strerror,
	.export_xpu = engine_cq_no_export,
};

static bool engine_cq_attr_ok(const struct fi_cq_attr *attr, int *err)
{
	*err = 0;
	if (!attr)
		return true;
	if (attr->format > FI_CQ_FORMAT_TAGGED)
		*err = -FI_EINVAL;
	else if (attr->wait_obj != FI_WAIT_NONE && attr->wait_obj != FI_WAIT_UNSPEC &&
		 attr->wait_obj != FI_WAIT_YIELD)
		*err = -FI_ENOSYS;
	else if (attr->flags & ~FI_AFFINITY)
		*err = -FI_EBADFLAGS;
	return !*err;
}

int engine_cq_open(struct fid_domain *fid, struct fi_cq_attr *attr, struct fid_cq **out, void *context)
{
	struct engine_domain *domain = container_of(fid, struct engine_domain, fid);
	struct engine_cq *cq;
	int ret;

	if (!out)
		return -FI_EINVAL;
	if (!engine_cq_attr_ok(attr, &ret))
		return ret;
	cq = platform_alloc(sizeof(*cq));
	if (!cq)
		return -FI_ENOMEM;
	ret = cq_init(&cq->queue, attr ? attr->size : 0);
	if (ret) {
		platform_free(cq);
		return ret;
	}
	cq->fid.fid.fclass = FI_CLASS_CQ;
	cq->fid.fid.context = context;
	cq->fid.fid.ops = &engine_cq_fi_ops;
	cq->fid.ops = domain->safe ? &engine_cq_safe_ops : &engine_cq_ops;
	cq->domain = domain;
	cq->format = attr && attr->format != FI_CQ_FORMAT_UNSPEC ? attr->format : FI_CQ_FORMAT_TAGGED;
	engine_ref(&domain->refs);
	*out = &cq->fid;
	return 0;
}
