/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The completion queue object: to read a queue makes progress on its domain. The op table is chosen
 * when the queue is opened: with the domain's lock, or without it for callers that serialize.
 *
 * A queue does not overrun while there is memory: it grows beyond the size that was asked for,
 * whatever resource_mgmt says. Without memory a completion is lost; the entries before it can
 * still be read, and every later read returns -FI_EOVERRUN.
 */
#include <rdma/fi_errno.h>
#include "cq_fid.h"
#include "cq_import.h"
#include "ep_early.h"
#include "forked.h"
#include "guard.h"
#include "no_call.h"
#include "refs.h"
#include "refuse.h"
#include "round.h"
#include "sleep.h"
#include "wait_obj.h"
#include "waiting.h"

static struct engine_cq *cq_of(struct fid_cq *fid)
{
	return container_of(fid, struct engine_cq, fid);
}

/* When a read that finds an entry makes a round of progress. */
#define FOUND_LOOK  16u	   /* reads between two looks at the clock, at least */
#define FOUND_LOOKS 64u	   /* looks after which a round is made in any case */
#define FOUND_NS    20000u /* time between looks above which the program is slow: make a round */

static __attribute__((noinline)) void engine_cq_look(struct engine_cq *cq)
{
	uint32_t rounds = atomic_load_explicit(&cq->domain->rounds, memory_order_relaxed);
	uint64_t now = platform_now_ns();
	bool slow = rounds == cq->found_rounds && now - cq->found_ns > FOUND_NS;

	/* The values from before a round made here, which takes long with many endpoints. */
	cq->found_rounds = rounds;
	cq->found_ns = now;
	if (slow)
		cq->found_step = 1;
	else if (cq->found_step < FOUND_LOOK)
		cq->found_step *= 2;
	cq->found = cq->found_step;
	if (slow || !(++cq->looks % FOUND_LOOKS))
		engine_domain_progress(cq->domain);
}

/*
 * A read found an entry and made no round. A program that works on each completion before it reads
 * the next has to make progress for its peers all the same. A program that reads quickly does not:
 * a round while messages arrive one by one fetches each line from the core that is writing it, and
 * costs a tenth of the message rate.
 */
static void engine_cq_found(struct engine_cq *cq)
{
	if (unlikely(!--cq->found))
		engine_cq_look(cq);
}

/*
 * A read of no completions makes progress and returns whether there are any; or @buf is NULL. With
 * the domain entered.
 */
static ssize_t engine_cq_read_none(struct engine_cq *cq, size_t cnt)
{
	if (cnt)
		return engine_refuse(cq->domain->family, FI_LOG_CQ, -FI_EINVAL, "fi_cq_read",
				     "NULL where completions are to go");
	engine_domain_progress(cq->domain);
	return cq_take(&cq->queue, cq->format, NULL, 0, NULL);
}

/*
 * A queue with entries is read without a round, unless a wire has packets that it gathers to send.
 * With the domain entered.
 */
static inline ssize_t engine_cq_read_entered(struct engine_cq *cq, void *buf, size_t cnt,
					     fi_addr_t *src)
{
	if (unlikely(!buf || !cnt))
		return engine_cq_read_none(cq, cnt);
	if (cq_empty(&cq->queue) || cq->domain->gathered)
		engine_domain_progress(cq->domain);
	else
		engine_cq_found(cq);
	return cq_empty(&cq->queue) && likely(!cq->queue.overrun)
		       ? -FI_EAGAIN
		       : cq_take(&cq->queue, cq->format, buf, cnt, src);
}

static ssize_t engine_cq_readfrom(struct fid_cq *fid, void *buf, size_t cnt, fi_addr_t *src)
{
	struct engine_cq *cq = cq_of(fid);
	ssize_t ret;

	engine_guard_enter(cq->domain);
	ret = engine_cq_read_entered(cq, buf, cnt, src);
	engine_guard_leave(cq->domain);
	return ret;
}

/* With the domain entered, which it leaves. */
static __attribute__((noinline)) ssize_t engine_cq_read_any(struct engine_cq *cq, void *buf,
							    size_t cnt)
{
	ssize_t ret = engine_cq_read_entered(cq, buf, cnt, NULL);

	engine_guard_leave(cq->domain);
	return ret;
}

/* Another call has claimed the domain. */
static __attribute__((noinline)) ssize_t engine_cq_read_waits(struct engine_cq *cq, void *buf,
							      size_t cnt)
{
	engine_guard_wait(cq->domain);
	return engine_cq_read_any(cq, buf, cnt);
}

/*
 * The straight line of a read of an empty queue, in a domain with one endpoint: most reads find
 * nothing. The round is inlined.
 */
static ssize_t engine_cq_read(struct fid_cq *fid, void *buf, size_t cnt)
{
	struct engine_cq *cq = cq_of(fid);
	ssize_t ret = -FI_EAGAIN;

	if (unlikely(!engine_guard_begin(cq->domain)))
		return engine_cq_read_waits(cq, buf, cnt);
	if (!cq_empty(&cq->queue) || unlikely(!buf || !cq->domain->single))
		return engine_cq_read_any(cq, buf, cnt);
	engine_single_poll(cq->domain);
	engine_single_rest(cq->domain);
	if (!cq_empty(&cq->queue) || unlikely(cq->queue.overrun))
		ret = cq_take(&cq->queue, cq->format, buf, cnt, NULL);
	engine_guard_leave(cq->domain);
	return ret;
}

static ssize_t engine_cq_readerr(struct fid_cq *fid, struct fi_cq_err_entry *buf, uint64_t flags)
{
	struct engine_cq *cq = cq_of(fid);
	ssize_t ret;

	if (!buf)
		return engine_refuse(cq->domain->family, FI_LOG_CQ, -FI_EINVAL, "fi_cq_readerr",
				     "NULL where the error is to go");
	engine_guard_enter(cq->domain);
	if (cq_empty(&cq->queue))
		engine_domain_progress(cq->domain);
	else
		engine_cq_found(cq);
	ret = cq_take_error(&cq->queue, buf, cq->domain->fabric->fid.api_version);
	engine_guard_leave(cq->domain);
	return ret;
}

static ssize_t engine_cq_readfrom_safe(struct fid_cq *fid, void *buf, size_t cnt, fi_addr_t *src)
{
	struct engine_cq *cq = cq_of(fid);
	ssize_t ret;

	engine_lock(cq->domain);
	ret = engine_cq_readfrom(fid, buf, cnt, src);
	engine_unlock(cq->domain);
	return ret;
}

static ssize_t engine_cq_read_safe(struct fid_cq *fid, void *buf, size_t cnt)
{
	return engine_cq_readfrom_safe(fid, buf, cnt, NULL);
}

static ssize_t engine_cq_readerr_safe(struct fid_cq *fid, struct fi_cq_err_entry *buf,
				      uint64_t flags)
{
	struct engine_cq *cq = cq_of(fid);
	ssize_t ret;

	engine_lock(cq->domain);
	ret = engine_cq_readerr(fid, buf, flags);
	engine_unlock(cq->domain);
	return ret;
}

/* Blocking reads */

/*
 * Returns true if the reader has what it waits for: @threshold entries, an error, or a lost
 * completion.
 */
static bool engine_cq_enough(struct engine_cq *cq, size_t threshold)
{
	bool enough;

	engine_use(cq->domain);
	if (!cq_reached(&cq->queue, threshold))
		engine_domain_progress(cq->domain);
	enough = cq_reached(&cq->queue, threshold);
	engine_unuse(cq->domain);
	return enough;
}

/* What a blocking read waits for. */
struct cq_want {
	struct engine_cq *cq;
	size_t threshold;
	/* Signals when the wait began */
	uint32_t before;
};

static bool engine_cq_there(void *arg)
{
	const struct cq_want *want = arg;
	struct engine_cq *cq = want->cq;

	return cq_reached(&cq->queue, want->threshold) ||
	       engine_signals_there(&cq->signals, want->before);
}

static ssize_t engine_cq_wait(struct cq_want *want, void *buf, size_t cnt, fi_addr_t *src,
			      struct engine_sleeper *s)
{
	struct fid_cq *fid = &want->cq->fid;
	ssize_t ret;

	for (;;) {
		if (want->threshold <= 1 || engine_cq_enough(want->cq, want->threshold)) {
			ret = fid->ops->readfrom(fid, buf, cnt, src);
			if (ret != -FI_EAGAIN)
				return ret;
		}
		/* At the end fewer entries than the threshold are returned. */
		if (engine_signals_obey(&want->cq->signals, want->before) || s->interrupted ||
		    engine_sleeper_over(s)) {
			ret = fid->ops->readfrom(fid, buf, cnt, src);
			return ret == -FI_EAGAIN && s->interrupted ? -FI_EINTR : ret;
		}
		engine_sleeper_wait(s);
	}
}

static ssize_t engine_cq_sreadfrom(struct fid_cq *fid, void *buf, size_t cnt, fi_addr_t *src,
				   const void *cond, int timeout)
{
	struct engine_cq *cq = cq_of(fid);
	struct cq_want want = {
		.cq = cq,
		.threshold = cq->cond == FI_CQ_COND_THRESHOLD && cond ? *(const size_t *)cond
								      : 1,
		.before = engine_signals_cnt(&cq->signals),
	};
	struct engine_sleeper sleeper;
	ssize_t ret;

	if (!want.threshold)
		want.threshold = 1;
	if (!engine_wait_obj_blocks(&cq->wait))
		return engine_refuse(cq->domain->family, FI_LOG_CQ, -FI_ENOSYS, "fi_cq_sread",
				     "the queue has no wait object; open it with wait_obj "
				     "FI_WAIT_UNSPEC or FI_WAIT_FD, or use fi_cq_read");
	engine_sleeper_init(&sleeper, &cq->domain->channel, timeout);
	sleeper.patient = cq->wait.obj == FI_WAIT_YIELD;
	sleeper.wait = &cq->wait.base;
	sleeper.there = engine_cq_there;
	sleeper.arg = &want;
	ret = engine_cq_wait(&want, buf, cnt, src, &sleeper);
	engine_sleeper_end(&sleeper);
	return ret;
}

static ssize_t engine_cq_sread(struct fid_cq *fid, void *buf, size_t cnt, const void *cond,
			       int timeout)
{
	return engine_cq_sreadfrom(fid, buf, cnt, NULL, cond, timeout);
}

static int engine_cq_signal(struct fid_cq *fid)
{
	struct engine_cq *cq = cq_of(fid);

	engine_wait_obj_signal(&cq->wait, &cq->signals);
	return 0;
}

static const char *engine_cq_strerror(struct fid_cq *fid, int prov_errno, const void *err_data,
				      char *buf, size_t len)
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
	int ret = engine_left(domain, FI_LOG_CQ, "fi_close of a completion queue");
	bool busy;

	if (ret)
		return ret;
	engine_wait_obj_enter(&cq->wait);
	engine_early_part(domain, fid, &cq->refs);
	busy = engine_in_use(&cq->refs);
	if (!busy) {
		engine_cq_import_end(cq);
		engine_wait_obj_forget(&cq->wait);
	}
	engine_wait_obj_leave(&cq->wait);
	if (busy)
		return engine_refuse(
			domain->family, FI_LOG_CQ, -FI_EBUSY, "fi_close of a completion queue",
			"an endpoint that is enabled, or a context, is bound to it; close that first");
	engine_wait_obj_close(&cq->wait);
	cq_fini(&cq->queue);
	platform_free(cq);
	engine_unref(&domain->refs);
	return 0;
}

static int engine_cq_control(struct fid *fid, int command, void *arg)
{
	return engine_wait_obj_control(&container_of(fid, struct engine_cq, fid.fid)->wait,
				       command, arg);
}

static struct fi_ops engine_cq_fi_ops = {
	.size = sizeof(struct fi_ops),
	.close = engine_cq_close,
	.bind = engine_no_bind,
	.control = engine_cq_control,
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

#define CQ_OPEN "fi_cq_open"

/*
 * Interrupts are not directed to processors: FI_AFFINITY and signaling_vector are accepted without
 * effect.
 */
static int engine_cq_check(const struct engine_domain *domain, const struct fi_cq_attr *attr)
{
	const struct engine_family *family = domain->family;

	if (!attr)
		return 0;
	if (attr->format > FI_CQ_FORMAT_TAGGED)
		return engine_refuse_value(family, FI_LOG_CQ, -FI_EINVAL, CQ_OPEN,
					   "formats go up to FI_CQ_FORMAT_TAGGED", attr->format);
	if (attr->flags & ~(FI_AFFINITY | FI_PEER))
		return engine_refuse_value(family, FI_LOG_CQ, -FI_EBADFLAGS, CQ_OPEN,
					   "flags are FI_AFFINITY and FI_PEER", attr->flags);
	if (attr->wait_obj != FI_WAIT_NONE && attr->wait_cond != FI_CQ_COND_NONE &&
	    attr->wait_cond != FI_CQ_COND_THRESHOLD)
		return engine_refuse_value(
			family, FI_LOG_CQ, -FI_EINVAL, CQ_OPEN,
			"wait_cond is FI_CQ_COND_NONE or FI_CQ_COND_THRESHOLD", attr->wait_cond);
	return 0;
}

static void engine_cq_init(struct engine_cq *cq, struct engine_domain *domain,
			   const struct fi_cq_attr *attr, void *context)
{
	cq->fid.fid.fclass = FI_CLASS_CQ;
	cq->fid.fid.context = context;
	cq->fid.fid.ops = &engine_cq_fi_ops;
	cq->domain = domain;
	/*
	 * Without a format a program reads the fields that all formats have, into entries of that
	 * size.
	 */
	cq->format = attr && attr->format != FI_CQ_FORMAT_UNSPEC ? attr->format
								 : FI_CQ_FORMAT_CONTEXT;
	cq->cond = attr && attr->wait_obj != FI_WAIT_NONE ? attr->wait_cond : FI_CQ_COND_NONE;
	cq->found = cq->found_step = 1;
}

/* Make the queue that @attr, which was checked, asks for. Returns 0 or -FI_E*. */
static int engine_cq_new(struct engine_domain *domain, const struct fi_cq_attr *attr,
			 void *context, struct engine_cq **out)
{
	struct engine_cq *cq;
	int ret;

	cq = platform_alloc(sizeof(*cq));
	if (!cq)
		return -FI_ENOMEM;
	ret = cq_init(&cq->queue, attr ? attr->size : 0);
	if (ret)
		goto err_free;
	engine_cq_init(cq, domain, attr, context);
	ret = engine_wait_obj_open(&cq->wait, &cq->fid.fid, domain,
				   attr ? attr->wait_obj : FI_WAIT_NONE,
				   attr ? attr->wait_set : NULL);
	if (ret)
		goto err_queue;
	/* engine_wait_obj_open() may have given the domain its lock. */
	cq->fid.ops = engine_has_lock(domain) ? &engine_cq_safe_ops : &engine_cq_ops;
	*out = cq;
	return 0;

err_queue:
	cq_fini(&cq->queue);
err_free:
	platform_free(cq);
	return ret;
}

int engine_cq_open(struct fid_domain *fid, struct fi_cq_attr *attr, struct fid_cq **out,
		   void *context)
{
	struct engine_domain *domain = container_of(fid, struct engine_domain, fid);
	struct fid_peer_cq *owner = NULL;
	struct engine_cq *cq;
	int ret;

	if (!out)
		return engine_refuse(domain->family, FI_LOG_CQ, -FI_EINVAL, CQ_OPEN,
				     "NULL where the queue is to go");
	ret = engine_cq_check(domain, attr);
	if (!ret && attr && attr->flags & FI_PEER)
		ret = engine_cq_import_check(domain, context, &owner);
	if (!ret)
		ret = engine_cq_new(domain, attr, context, &cq);
	if (ret)
		return ret;
	if (attr && !attr->size)
		attr->size = cq->queue.mask + 1;
	if (owner)
		engine_cq_import(cq, owner);
	engine_ref(&domain->refs);
	*out = &cq->fid;
	return 0;
}
