/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The event queue object: joins and insertions that have ended. Called by programs, and by what
 * reports there, on any thread. Source: fi_eq(3).
 */
#include "absent.h"
#include "epoll.h"
#include "event.h"
#include "wait.h"
#include "wait_set.h"

static struct udp_eq *eq_of(struct fid_eq *fid)
{
	return container_of(fid, struct udp_eq, fid);
}

/* With the lock held, after events came or went: the bell follows. */
static void eq_bell(struct udp_eq *eq)
{
	bool there = !eq_empty(&eq->queue);

	if (eq->bell < 0 || eq->rung == there)
		return;
	eq->rung = there;
	if (there)
		sys_eventfd_ring(eq->bell);
	else
		sys_eventfd_clear(eq->bell);
}

/* Locks the queue for a call. Returns false, without it, in the child of a fork. */
static bool eq_enter(struct udp_eq *eq)
{
	if (platform_forks() != eq->fabric->forks)
		return false;
	platform_lock(&eq->lock);
	return true;
}

int udp_eq_there(struct udp_eq *eq)
{
	bool there;

	if (!eq_enter(eq))
		return -FI_EOPBADSTATE;
	there = !eq_empty(&eq->queue);
	platform_unlock(&eq->lock);
	return there;
}

void udp_eq_post(struct udp_eq *eq, struct eq_event *event)
{
	platform_lock(&eq->lock);
	eq_post(&eq->queue, event);
	eq_bell(eq);
	platform_unlock(&eq->lock);
}

int udp_eq_error(struct udp_eq *eq, const struct fi_eq_err_entry *err)
{
	int ret;

	platform_lock(&eq->lock);
	ret = eq_push_error(&eq->queue, err);
	eq_bell(eq);
	platform_unlock(&eq->lock);
	return ret;
}

static ssize_t eq_read(struct fid_eq *fid, uint32_t *event, void *buf, size_t len,
		       uint64_t flags)
{
	struct udp_eq *eq = eq_of(fid);
	ssize_t ret;

	if (!event || (len && !buf) || flags & ~FI_PEEK)
		return udp_refuse(FI_LOG_EQ, -FI_EINVAL, "fi_eq_read",
				  "NULL where the event is to go, or flags other than FI_PEEK");
	if (!eq_enter(eq))
		return -FI_EOPBADSTATE;
	ret = eq_take(&eq->queue, event, buf, len, flags);
	eq_bell(eq);
	platform_unlock(&eq->lock);
	return ret;
}

static ssize_t eq_readerr(struct fid_eq *fid, struct fi_eq_err_entry *buf, uint64_t flags)
{
	struct udp_eq *eq = eq_of(fid);
	ssize_t ret;

	if (!buf || flags & ~FI_PEEK)
		return udp_refuse(FI_LOG_EQ, -FI_EINVAL, "fi_eq_readerr",
				  "NULL where the error is to go, or flags other than FI_PEEK");
	if (!eq_enter(eq))
		return -FI_EOPBADSTATE;
	ret = eq_take_error(&eq->queue, buf, flags);
	eq_bell(eq);
	platform_unlock(&eq->lock);
	return ret;
}

static ssize_t eq_write(struct fid_eq *fid, uint32_t event, const void *buf, size_t len,
			uint64_t flags)
{
	struct udp_eq *eq = eq_of(fid);
	struct eq_event *e;

	if ((len && !buf) || flags)
		return udp_refuse(FI_LOG_EQ, flags ? -FI_EBADFLAGS : -FI_EINVAL, "fi_eq_write",
				  "NULL for the event, or flags");
	e = eq_event_new(event, buf, len);
	if (!e)
		return -FI_ENOMEM;
	if (!eq_enter(eq)) {
		eq_event_free(e);
		return -FI_EOPBADSTATE;
	}
	eq_post(&eq->queue, e);
	eq_bell(eq);
	platform_unlock(&eq->lock);
	return (ssize_t)len;
}

static ssize_t eq_sread(struct fid_eq *fid, uint32_t *event, void *buf, size_t len, int timeout,
			uint64_t flags)
{
	struct udp_eq *eq = eq_of(fid);
	uint64_t end = udp_wait_end(timeout), now;
	int interrupted = 0;
	ssize_t ret;

	if (eq->bell < 0 || eq->member.set)
		return udp_refuse(
			FI_LOG_EQ, -FI_ENOSYS, "fi_eq_sread",
			"the queue has no wait object of its own; open it with wait_obj "
			"FI_WAIT_UNSPEC or FI_WAIT_FD, or use fi_eq_read");
	while ((ret = eq_read(fid, event, buf, len, flags)) == -FI_EAGAIN) {
		now = platform_now_ns();
		if (interrupted)
			ret = interrupted;
		if (interrupted || now >= end)
			break;
		interrupted = sys_sleep(&eq->bell, 1, end == UINT64_MAX ? end : end - now);
	}
	return ret;
}

static const char *eq_strerror(struct fid_eq *fid, int prov_errno, const void *err_data,
			       char *buf, size_t len)
{
	return udp_strerror(prov_errno, buf, len);
}

static int eq_control(struct fid *fid, int command, void *arg)
{
	struct udp_eq *eq = container_of(fid, struct udp_eq, fid.fid);

	if (command != FI_GETWAIT && command != FI_GETWAITOBJ)
		return -FI_ENOSYS;
	if (!arg)
		return -FI_EINVAL;
	if (command == FI_GETWAITOBJ)
		*(enum fi_wait_obj *)arg = eq->bell < 0	    ? FI_WAIT_NONE
					   : eq->member.set ? FI_WAIT_SET
							    : FI_WAIT_FD;
	else if (eq->bell < 0)
		return -FI_ENOSYS;
	else
		*(int *)arg = eq->bell;
	return 0;
}

static int eq_close(struct fid *fid)
{
	struct udp_eq *eq = container_of(fid, struct udp_eq, fid.fid);

	if (udp_in_use(&eq->refs))
		return udp_refuse(FI_LOG_EQ, -FI_EBUSY, "fi_close of an event queue",
				  "an endpoint or vector reports there; close that first");
	udp_set_leave(&eq->member, eq->bell);
	eq_fini(&eq->queue);
	if (eq->bell >= 0)
		sys_eventfd_close(eq->bell);
	if (platform_forks() == eq->fabric->forks)
		platform_lock_fini(&eq->lock);
	udp_unref(&eq->fabric->refs);
	platform_free(eq);
	return 0;
}

static struct fi_ops eq_fi_ops = {
	.size = sizeof(struct fi_ops),
	.close = eq_close,
	.bind = udp_no_bind,
	.control = eq_control,
	.ops_open = udp_no_ops_open,
	.tostr = udp_no_tostr,
	.ops_set = udp_no_ops_set,
};

static struct fi_ops_eq eq_ops = {
	.size = sizeof(struct fi_ops_eq),
	.read = eq_read,
	.readerr = eq_readerr,
	.write = eq_write,
	.sread = eq_sread,
	.strerror = eq_strerror,
};

int udp_eq_open(struct fid_fabric *fid, struct fi_eq_attr *attr, struct fid_eq **out,
		void *context)
{
	struct udp_fabric *fabric = container_of(fid, struct udp_fabric, fid);
	enum fi_wait_obj type = attr ? attr->wait_obj : FI_WAIT_NONE;
	struct udp_eq *eq;
	int ret;

	if (!out || (attr && attr->flags & ~(FI_WRITE | FI_AFFINITY)))
		return udp_refuse(FI_LOG_EQ, out ? -FI_EBADFLAGS : -FI_EINVAL, "fi_eq_open",
				  "NULL where the queue is to go, or flags other than FI_WRITE "
				  "and FI_AFFINITY");
	ret = udp_wait_type(type);
	eq = ret ? NULL : platform_alloc(sizeof(*eq));
	if (!eq)
		return ret ? ret : -FI_ENOMEM;
	eq->bell = type == FI_WAIT_NONE ? -1 : sys_eventfd_open();
	if (type != FI_WAIT_NONE && eq->bell < 0) {
		ret = eq->bell;
		platform_free(eq);
		return ret;
	}
	eq->fid.fid.fclass = FI_CLASS_EQ;
	eq->fid.fid.context = context;
	eq->fid.fid.ops = &eq_fi_ops;
	eq->fid.ops = &eq_ops;
	eq->fabric = fabric;
	platform_lock_init(&eq->lock);
	eq_init(&eq->queue);
	eq->queue.api_version = fid->api_version;
	if (type == FI_WAIT_SET)
		ret = udp_set_join(&eq->member, &eq->fid.fid, attr->wait_set, fabric, eq->bell);
	if (ret) {
		sys_eventfd_close(eq->bell);
		platform_lock_fini(&eq->lock);
		eq_fini(&eq->queue);
		platform_free(eq);
		return ret;
	}
	udp_ref(&fabric->refs);
	*out = &eq->fid;
	return 0;
}
