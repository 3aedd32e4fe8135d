/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Completion queues that another provider owns (cq_import.h). Called by programs on any thread, by
 * the code that writes completions, and by rounds of progress.
 */
#include <rdma/fi_errno.h>
#include <rdma/providers/fi_peer.h>
#include "cq_import.h"
#include "guard.h"
#include "no_call.h"
#include "progress.h"
#include "refuse.h"
#include "tasks.h"
#include "waiting.h"

#define IMPORT "fi_cq_open with FI_PEER"

static struct engine_cq *import_of(struct fid_cq *fid)
{
	return container_of(fid, struct engine_cq, fid);
}

static ssize_t import_write(struct fid_peer_cq *owner, const struct cq_entry *e)
{
	if (e->flags & CQ_ERROR)
		return owner->owner_ops->writeerr(owner, e->error);
	return owner->owner_ops->write(owner, e->context, e->flags, e->len, e->buf, e->data,
				       e->tag, e->src);
}

/* A completion was lost for want of memory: the owner's queue reports an overrun. */
static ssize_t import_overrun(struct engine_cq *cq)
{
	const struct fi_cq_err_entry entry = { .err = FI_EOVERRUN,
					       .prov_errno = FI_EOVERRUN,
					       .src_addr = FI_ADDR_NOTAVAIL };

	return cq->owner->owner_ops->writeerr(cq->owner, &entry);
}

/* The owner refused an entry with an error other than -FI_EAGAIN: the completion is lost. */
static void import_lost(struct engine_cq *cq, ssize_t err)
{
	FI_WARN(cq->domain->family->provider, FI_LOG_CQ,
		"the owner of an imported completion queue refuses a completion (%s): it is lost\n",
		fi_strerror((int)-err));
}

/* Passes all entries in order. Returns false when the owner has no room now. */
static bool import_pass(struct engine_cq *cq)
{
	const struct cq_entry *e;
	ssize_t ret;

	while ((e = cq_first(&cq->queue))) {
		ret = import_write(cq->owner, e);
		if (ret == -FI_EAGAIN)
			return false;
		if (ret < 0)
			import_lost(cq, ret);
		cq_drop_first(&cq->queue);
	}
	if (cq->queue.overrun && import_overrun(cq) == -FI_EAGAIN)
		return false;
	cq->queue.overrun = false;
	return true;
}

/* struct cq.watcher: the first entry since all were passed. A later round passes it. */
static void import_written(struct cq *queue)
{
	struct engine_cq *cq = container_of(queue, struct engine_cq, queue);

	engine_task_due(cq->domain, &cq->pass);
	engine_wake(cq->domain);
}

/* struct engine_task.run */
static bool import_run(struct engine_task *task)
{
	struct engine_cq *cq = container_of(task, struct engine_cq, pass);

	if (!import_pass(cq))
		return false;
	cq_watch(&cq->queue, CQ_OWNER, import_written);
	return true;
}

/* Slots. The program reads the owner's queue; the owner reads this one to make progress. */

static ssize_t import_read(struct fid_cq *fid, void *buf, size_t cnt)
{
	struct engine_domain *domain = import_of(fid)->domain;

	engine_use(domain);
	engine_domain_progress(domain);
	engine_unuse(domain);
	return 0;
}

static ssize_t import_refuse(struct fid_cq *fid, const char *call)
{
	return engine_refuse(import_of(fid)->domain->family, FI_LOG_CQ, -FI_ENOSYS, call,
			     "the queue was opened with FI_PEER: read its owner's");
}

static ssize_t import_readfrom(struct fid_cq *fid, void *buf, size_t cnt, fi_addr_t *src)
{
	return import_refuse(fid, "fi_cq_readfrom");
}

static ssize_t import_readerr(struct fid_cq *fid, struct fi_cq_err_entry *buf, uint64_t flags)
{
	return import_refuse(fid, "fi_cq_readerr");
}

static ssize_t import_sread(struct fid_cq *fid, void *buf, size_t cnt, const void *cond,
			    int timeout)
{
	return import_refuse(fid, "fi_cq_sread");
}

static ssize_t import_sreadfrom(struct fid_cq *fid, void *buf, size_t cnt, fi_addr_t *src,
				const void *cond, int timeout)
{
	return import_refuse(fid, "fi_cq_sreadfrom");
}

static int import_signal(struct fid_cq *fid)
{
	return (int)import_refuse(fid, "fi_cq_signal");
}

/* Text of an error that was passed to the owner. */
static const char *import_strerror(struct fid_cq *fid, int prov_errno, const void *err_data,
				   char *buf, size_t len)
{
	return engine_strerror(prov_errno, buf, len);
}

static int import_no_export(struct fid_cq *fid, uint64_t flags, struct fid_xpu_cq *xpu_cq)
{
	return -FI_ENOSYS;
}

static struct fi_ops_cq engine_cq_import_ops = {
	.size = sizeof(struct fi_ops_cq),
	.read = import_read,
	.readfrom = import_readfrom,
	.readerr = import_readerr,
	.sread = import_sread,
	.sreadfrom = import_sreadfrom,
	.signal = import_signal,
	.strerror = import_strerror,
	.export_xpu = import_no_export,
};

int engine_cq_import_check(const struct engine_domain *domain, const void *context,
			   struct fid_peer_cq **owner)
{
	const struct fi_peer_cq_context *peer = context;
	const struct fi_ops_cq_owner *ops = NULL;

	if (peer && peer->size >= sizeof(*peer) && peer->cq)
		ops = peer->cq->owner_ops;
	if (!ops || ops->size < sizeof(*ops) || !ops->write || !ops->writeerr)
		return engine_refuse(
			domain->family, FI_LOG_CQ, -FI_EINVAL, IMPORT,
			"the context is a struct fi_peer_cq_context, and its cq has write and writeerr");
	*owner = peer->cq;
	return 0;
}

void engine_cq_import(struct engine_cq *cq, struct fid_peer_cq *owner)
{
	cq->owner = owner;
	list_init(&cq->pass.link);
	cq->pass.run = import_run;
	cq->fid.ops = &engine_cq_import_ops;
	cq_watch(&cq->queue, CQ_OWNER, import_written);
}

void engine_cq_import_end(struct engine_cq *cq)
{
	if (!cq->owner)
		return;
	engine_task_drop(&cq->pass);
	import_pass(cq);
}
