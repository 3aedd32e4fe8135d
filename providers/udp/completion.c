/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The completion queue object: to read an empty queue takes what has arrived for its endpoints.
 * Called by programs, on any thread. A queue grows beyond the size that was asked for while there
 * is memory. Source: fi_cq(3).
 */
#include "absent.h"
#include "report.h"
#include "wait_set.h"

static struct udp_cq *cq_of(struct fid_cq *fid)
{
	return container_of(fid, struct udp_cq, fid);
}

static ssize_t cq_readfrom(struct fid_cq *fid, void *buf, size_t cnt, fi_addr_t *src)
{
	struct udp_cq *cq = cq_of(fid);
	ssize_t ret;

	if (cnt && !buf)
		return udp_refuse(FI_LOG_CQ, -FI_EINVAL, "fi_cq_read",
				  "NULL where completions are to go");
	if (!udp_enter(cq->wait.domain))
		return -FI_EOPBADSTATE;
	if (cq_empty(&cq->queue) || !cnt)
		udp_wait_progress(&cq->wait);
	ret = cq_take(&cq->queue, cq->format, buf, cnt, src);
	udp_leave(cq->wait.domain);
	return ret;
}

static ssize_t cq_read(struct fid_cq *fid, void *buf, size_t cnt)
{
	return cq_readfrom(fid, buf, cnt, NULL);
}

static ssize_t cq_readerr(struct fid_cq *fid, struct fi_cq_err_entry *buf, uint64_t flags)
{
	struct udp_cq *cq = cq_of(fid);
	ssize_t ret;

	if (!buf)
		return udp_refuse(FI_LOG_CQ, -FI_EINVAL, "fi_cq_readerr",
				  "NULL where the error is to go");
	if (!udp_enter(cq->wait.domain))
		return -FI_EOPBADSTATE;
	if (cq_empty(&cq->queue))
		udp_wait_progress(&cq->wait);
	ret = cq_take_error(&cq->queue, buf, cq->wait.domain->fabric->fid.api_version);
	udp_leave(cq->wait.domain);
	return ret;
}

/* What a blocking read waits for. */
struct cq_want {
	size_t threshold;
	uint64_t end;
	/* signals when it began */
	uint32_t before;
	struct udp_sleeper sleeper;
};

/*
 * Reads, and the caller is no reader any more, or arms the queue for a sleep and returns -FI_EAGAIN.
 * At the end fewer than the threshold are read.
 */
static ssize_t cq_read_or_arm(struct udp_cq *cq, struct cq_want *want, void *buf, size_t cnt,
			      fi_addr_t *src)
{
	ssize_t ret = -FI_EAGAIN;
	bool over;

	if (!udp_enter(cq->wait.domain))
		return -FI_EOPBADSTATE;
	udp_wait_look(&cq->wait, &want->sleeper);
	if (!cq_reached(&cq->queue, want->threshold))
		udp_wait_progress(&cq->wait);
	over = cq->wait.signals != want->before || udp_wait_room(&cq->wait) ||
	       (want->end != UINT64_MAX && platform_now_ns() >= want->end);
	if (over || cq_reached(&cq->queue, want->threshold))
		ret = cq_take(&cq->queue, cq->format, buf, cnt, src);
	else
		udp_wait_doze(&cq->wait, &want->sleeper);
	/* From here on a signal is for the next read. */
	if (over || ret != -FI_EAGAIN)
		cq->wait.readers--;
	udp_leave(cq->wait.domain);
	return over && ret == -FI_EAGAIN ? -FI_ETIMEDOUT : ret;
}

static ssize_t cq_sreadfrom(struct fid_cq *fid, void *buf, size_t cnt, fi_addr_t *src,
			    const void *cond, int timeout)
{
	struct udp_cq *cq = cq_of(fid);
	struct cq_want want = { .threshold = 1, .end = udp_wait_end(timeout) };
	int interrupted = 0;
	ssize_t ret;

	if (cq->wait.type == FI_WAIT_NONE || cq->wait.type == FI_WAIT_SET)
		return udp_refuse(
			FI_LOG_CQ, -FI_ENOSYS, "fi_cq_sread",
			"the queue has no wait object of its own; open it with wait_obj "
			"FI_WAIT_UNSPEC or FI_WAIT_FD, or use fi_cq_read");
	if (!buf || !cnt)
		return udp_refuse(FI_LOG_CQ, -FI_EINVAL, "fi_cq_sread",
				  "no room where completions are to go");
	if (cq->cond == FI_CQ_COND_THRESHOLD && cond && *(const size_t *)cond)
		want.threshold = *(const size_t *)cond;
	if (!udp_enter(cq->wait.domain))
		return -FI_EOPBADSTATE;
	/* A signal that came before it counts as one that comes now. */
	want.before = cq->wait.signals - cq->wait.signalled;
	cq->wait.signalled = false;
	cq->wait.readers++;
	want.sleeper.reads = true;
	udp_leave(cq->wait.domain);
	while ((ret = cq_read_or_arm(cq, &want, buf, cnt, src)) == -FI_EAGAIN) {
		interrupted = udp_wait_rest(&cq->wait, &want.sleeper, want.end);
		if (interrupted)
			want.end = 0;
	}
	return ret != -FI_ETIMEDOUT ? ret : interrupted ? interrupted : -FI_EAGAIN;
}

static ssize_t cq_sread(struct fid_cq *fid, void *buf, size_t cnt, const void *cond, int timeout)
{
	return cq_sreadfrom(fid, buf, cnt, NULL, cond, timeout);
}

static int cq_signal(struct fid_cq *fid)
{
	struct udp_cq *cq = cq_of(fid);

	if (cq->wait.type == FI_WAIT_NONE)
		return -FI_ENOSYS;
	if (!udp_enter(cq->wait.domain))
		return -FI_EOPBADSTATE;
	cq->wait.signals++;
	cq->wait.signalled = !cq->wait.readers;
	udp_wait_notify(&cq->wait);
	udp_leave(cq->wait.domain);
	return 0;
}

static const char *cq_strerror(struct fid_cq *fid, int prov_errno, const void *err_data,
			       char *buf, size_t len)
{
	return udp_strerror(prov_errno, buf, len);
}

static int cq_no_export(struct fid_cq *fid, uint64_t flags, struct fid_xpu_cq *xpu_cq)
{
	return -FI_ENOSYS;
}

static int cq_close(struct fid *fid)
{
	struct udp_cq *cq = container_of(fid, struct udp_cq, fid.fid);

	if (udp_in_use(&cq->refs))
		return udp_refuse(FI_LOG_CQ, -FI_EBUSY, "fi_close of a completion queue",
				  "an endpoint has it; close that first");
	udp_poll_forget(&cq->wait);
	udp_set_leave(&cq->wait.member, cq->wait.epoll);
	udp_wait_close(&cq->wait);
	cq_fini(&cq->queue);
	udp_unref(&cq->wait.domain->refs);
	platform_free(cq);
	return 0;
}

static int cq_control(struct fid *fid, int command, void *arg)
{
	return udp_wait_control(&container_of(fid, struct udp_cq, fid.fid)->wait, command, arg);
}

static struct fi_ops cq_fi_ops = {
	.size = sizeof(struct fi_ops),
	.close = cq_close,
	.bind = udp_no_bind,
	.control = cq_control,
	.ops_open = udp_no_ops_open,
	.tostr = udp_no_tostr,
	.ops_set = udp_no_ops_set,
};

static struct fi_ops_cq cq_ops = {
	.size = sizeof(struct fi_ops_cq),
	.read = cq_read,
	.readfrom = cq_readfrom,
	.readerr = cq_readerr,
	.sread = cq_sread,
	.sreadfrom = cq_sreadfrom,
	.signal = cq_signal,
	.strerror = cq_strerror,
	.export_xpu = cq_no_export,
};

/* Interrupts are not directed to processors: FI_AFFINITY has no effect. */
static int cq_check(const struct fi_cq_attr *attr)
{
	if (attr->format > FI_CQ_FORMAT_TAGGED)
		return udp_refuse(FI_LOG_CQ, -FI_EINVAL, "fi_cq_open",
				  "formats go up to FI_CQ_FORMAT_TAGGED");
	if (attr->flags & ~FI_AFFINITY)
		return udp_refuse(FI_LOG_CQ, -FI_EBADFLAGS, "fi_cq_open",
				  "the only flag is FI_AFFINITY");
	if (attr->wait_obj != FI_WAIT_NONE && attr->wait_cond != FI_CQ_COND_NONE &&
	    attr->wait_cond != FI_CQ_COND_THRESHOLD)
		return udp_refuse(FI_LOG_CQ, -FI_EINVAL, "fi_cq_open",
				  "wait_cond is FI_CQ_COND_NONE or FI_CQ_COND_THRESHOLD");
	return udp_wait_type(attr->wait_obj);
}

int udp_cq_open(struct fid_domain *fid, struct fi_cq_attr *attr, struct fid_cq **out,
		void *context)
{
	struct udp_domain *domain = container_of(fid, struct udp_domain, fid);
	struct fi_cq_attr none = { 0 };
	struct udp_cq *cq;
	int ret;

	if (!out)
		return udp_refuse(FI_LOG_CQ, -FI_EINVAL, "fi_cq_open",
				  "NULL where the queue is to go");
	attr = attr ? attr : &none;
	ret = cq_check(attr);
	cq = ret ? NULL : platform_alloc(sizeof(*cq));
	if (!cq)
		return ret ? ret : -FI_ENOMEM;
	ret = cq_init(&cq->queue, attr->size);
	if (ret)
		goto err_free;
	ret = udp_wait_open(&cq->wait, domain, attr->wait_obj);
	if (ret)
		goto err_queue;
	cq->fid.fid.fclass = FI_CLASS_CQ;
	cq->fid.fid.context = context;
	cq->fid.fid.ops = &cq_fi_ops;
	cq->fid.ops = &cq_ops;
	cq->format = attr->format != FI_CQ_FORMAT_UNSPEC ? attr->format : FI_CQ_FORMAT_CONTEXT;
	cq->cond = attr->wait_obj != FI_WAIT_NONE ? attr->wait_cond : FI_CQ_COND_NONE;
	if (attr->wait_obj == FI_WAIT_SET)
		ret = udp_set_join(&cq->wait.member, &cq->fid.fid, attr->wait_set,
				   domain->fabric, cq->wait.epoll);
	if (ret)
		goto err_wait;
	if (!attr->size)
		attr->size = cq->queue.mask + 1;
	udp_ref(&domain->refs);
	*out = &cq->fid;
	return 0;

err_wait:
	udp_wait_close(&cq->wait);
err_queue:
	cq_fini(&cq->queue);
err_free:
	platform_free(cq);
	return ret;
}
