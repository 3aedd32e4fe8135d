/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The event queue object. Called by programs on any thread: it has a lock of its own. It grows as
 * needed, so that it never overruns. A read of the empty queue makes progress on the domains of
 * the objects bound to it (eq_watch.c).
 *
 * Source: fi_eq(3). Programs may write to a queue that was opened without FI_WRITE.
 */
#include <rdma/fi_errno.h>
#include "eq_fid.h"
#include "events.h"
#include "forked.h"
#include "no_call.h"
#include "refs.h"
#include "refuse.h"
#include "wait_obj.h"
#include "wait_set_fid.h"
#include "waiting.h"

static struct engine_eq *eq_of(struct fid_eq *fid)
{
	return container_of(fid, struct engine_eq, fid);
}

#define EQ_READ "fi_eq_read, fi_eq_sread or fi_eq_readerr"

static ssize_t engine_eq_read(struct fid_eq *fid, uint32_t *event, void *buf, size_t len,
			      uint64_t flags)
{
	struct engine_eq *eq = eq_of(fid);
	ssize_t ret;

	if (!event || (len && !buf))
		return engine_refuse(eq->fabric->family, FI_LOG_EQ, -FI_EINVAL, EQ_READ,
				     "NULL for the event, or where it is to go");
	if (flags & ~FI_PEEK)
		return engine_refuse_value(eq->fabric->family, FI_LOG_EQ, -FI_EBADFLAGS,
					   EQ_READ, "the only flag is FI_PEEK", flags);
	engine_eq_check(eq);
	platform_lock(&eq->lock);
	ret = eq_take(&eq->queue, event, buf, len, flags);
	engine_eq_event_read(eq);
	platform_unlock(&eq->lock);
	return ret;
}

static ssize_t engine_eq_readerr(struct fid_eq *fid, struct fi_eq_err_entry *buf, uint64_t flags)
{
	struct engine_eq *eq = eq_of(fid);
	ssize_t ret;

	if (!buf)
		return engine_refuse(eq->fabric->family, FI_LOG_EQ, -FI_EINVAL, EQ_READ,
				     "NULL where the error is to go");
	if (flags & ~FI_PEEK)
		return engine_refuse_value(eq->fabric->family, FI_LOG_EQ, -FI_EBADFLAGS,
					   EQ_READ, "the only flag is FI_PEEK", flags);
	platform_lock(&eq->lock);
	ret = eq_take_error(&eq->queue, buf, flags);
	engine_eq_event_read(eq);
	platform_unlock(&eq->lock);
	return ret;
}

static ssize_t engine_eq_write(struct fid_eq *fid, uint32_t event, const void *buf, size_t len,
			       uint64_t flags)
{
	const struct engine_family *family = eq_of(fid)->fabric->family;
	int ret;

	if (len && !buf)
		return engine_refuse(family, FI_LOG_EQ, -FI_EINVAL, "fi_eq_write",
				     "NULL for the event");
	if (flags)
		return engine_refuse_value(family, FI_LOG_EQ, -FI_EBADFLAGS, "fi_eq_write",
					   "no flags are valid", flags);
	ret = engine_eq_push(eq_of(fid), event, buf, len);
	return ret ? ret : (ssize_t)len;
}

static ssize_t engine_eq_sread(struct fid_eq *fid, uint32_t *event, void *buf, size_t len,
			       int timeout, uint64_t flags)
{
	struct engine_eq *eq = eq_of(fid);
	struct engine_sleeper sleeper;
	ssize_t ret;

	if (eq->wait == FI_WAIT_NONE)
		return engine_refuse(eq->fabric->family, FI_LOG_EQ, -FI_ENOSYS, "fi_eq_sread",
				     "the queue has no wait object; open it with wait_obj "
				     "FI_WAIT_UNSPEC or FI_WAIT_FD, or use fi_eq_read");
	engine_sleeper_init(&sleeper, &eq->channel, timeout);
	sleeper.patient = eq->wait == FI_WAIT_YIELD;
	while ((ret = engine_eq_read(fid, event, buf, len, flags)) == -FI_EAGAIN) {
		if (sleeper.interrupted)
			ret = -FI_EINTR;
		if (sleeper.interrupted || engine_sleeper_over(&sleeper))
			break;
		if (!engine_sleeper_spins(&sleeper))
			engine_eq_sleep(eq, &sleeper);
	}
	engine_sleeper_end(&sleeper);
	return ret;
}

static const char *engine_eq_strerror(struct fid_eq *fid, int prov_errno, const void *err_data,
				      char *buf, size_t len)
{
	return engine_strerror(prov_errno, buf, len);
}

static int engine_eq_control(struct fid *fid, int command, void *arg)
{
	struct engine_eq *eq = container_of(fid, struct engine_eq, fid.fid);

	if (command != FI_GETWAIT && command != FI_GETWAITOBJ)
		return -FI_ENOSYS;
	if (!arg)
		return -FI_EINVAL;
	if (command == FI_GETWAIT)
		return engine_eq_get_wait(eq, arg);
	*(enum fi_wait_obj *)arg = engine_wait_obj_type(eq->wait, eq->set);
	return 0;
}

/* Bound objects keep the queue, but the program closed it: their events are dropped. */
static int engine_eq_close(struct fid *fid)
{
	struct engine_eq *eq = container_of(fid, struct engine_eq, fid.fid);
	int ret = engine_fabric_left(eq->fabric, FI_LOG_EQ, "fi_close of an event queue");

	if (ret)
		return ret;
	if (atomic_load_explicit(&eq->connections, memory_order_relaxed))
		return engine_refuse(
			eq->fabric->family, FI_LOG_EQ, -FI_EBUSY, "fi_close of an event queue",
			"connected or passive endpoints report there; close those first");
	if (eq->set)
		engine_waitset_leave(eq);
	platform_lock(&eq->lock);
	eq->closed = true;
	platform_unlock(&eq->lock);
	engine_eq_put(eq);
	return 0;
}

static struct fi_ops engine_eq_fi_ops = {
	.size = sizeof(struct fi_ops),
	.close = engine_eq_close,
	.bind = engine_no_bind,
	.control = engine_eq_control,
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

#define EQ_OPEN "fi_eq_open"

static int engine_eq_attr_check(const struct engine_fabric *fabric,
				const struct fi_eq_attr *attr)
{
	if (!attr)
		return 0;
	if (attr->flags & ~(FI_WRITE | FI_AFFINITY))
		return engine_refuse_value(fabric->family, FI_LOG_EQ, -FI_EBADFLAGS, EQ_OPEN,
					   "flags are FI_WRITE and FI_AFFINITY", attr->flags);
	return engine_wait_type_check(fabric->family, FI_LOG_EQ, EQ_OPEN, attr->wait_obj, false);
}

/* Returns an empty queue with one reference and without a wait object, owned; NULL without memory. */
static struct engine_eq *engine_eq_new(struct engine_fabric *fabric, enum fi_wait_obj wait,
				       void *context)
{
	struct engine_eq *eq = platform_alloc(sizeof(*eq));

	if (!eq)
		return NULL;
	eq->fabric = fabric;
	eq->wait = wait;
	eq->fid.fid.fclass = FI_CLASS_EQ;
	eq->fid.fid.context = context;
	eq->fid.fid.ops = &engine_eq_fi_ops;
	eq->fid.ops = &engine_eq_ops;
	platform_lock_init(&eq->lock);
	eq_init(&eq->queue);
	platform_lock_init(&eq->watch_lock);
	engine_channel_init(&eq->channel, ENGINE_CHANNEL_SET);
	list_init(&eq->watched);
	eq->queue.api_version = fabric->fid.api_version;
	engine_ref(&eq->refs);
	engine_fork_lock_open(&eq->fork_lock, &eq->lock, fabric, ENGINE_HOLD_EVENTS);
	engine_fork_lock_open(&eq->fork_watch_lock, &eq->watch_lock, fabric, ENGINE_HOLD_WATCH);
	return eq;
}

int engine_eq_open(struct fid_fabric *fid, struct fi_eq_attr *attr, struct fid_eq **out,
		   void *context)
{
	struct engine_fabric *fabric = container_of(fid, struct engine_fabric, fid);
	struct engine_eq *eq;
	int ret;

	if (!out)
		return engine_refuse(fabric->family, FI_LOG_EQ, -FI_EINVAL, EQ_OPEN,
				     "NULL where the queue is to go");
	ret = engine_eq_attr_check(fabric, attr);
	if (ret)
		return ret;
	eq = engine_eq_new(fabric, attr ? attr->wait_obj : FI_WAIT_NONE, context);
	if (!eq)
		return -FI_ENOMEM;
	if (eq->wait == FI_WAIT_FD) {
		ret = engine_channel_open(&eq->channel, NULL);
		engine_channel_export(&eq->channel);
	} else if (eq->wait == FI_WAIT_SET) {
		ret = engine_waitset_join(
			eq, attr->wait_set); /* last: makes the queue visible to others */
	}
	if (ret) {
		engine_eq_free(eq);
		return ret;
	}
	engine_ref(&fabric->refs);
	*out = &eq->fid;
	return 0;
}
