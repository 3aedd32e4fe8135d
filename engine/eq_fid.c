/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The event queue object. Called by programs on any thread: it has a lock of its own. It grows
 * as needed, so that it never overruns. Reading it while it is empty makes progress on the
 * domains of what is bound to it.
 *
 * Source: fi_eq(3). A program that did not ask for FI_WRITE may write all the same.
 */
#include <rdma/fi_errno.h>
#include "auto.h"
#include "eq_fid.h"
#include "fids.h"
#include "progress.h"
#include "wait.h"

/* A domain that readers drive. */
struct engine_watch {
	struct list link; /* eq->watched */
	struct engine_domain *domain;
	uint32_t cnt;  /* objects of it that are bound */
	uint32_t seen; /* domain->rounds at the last look */
};

static struct engine_eq *eq_of(struct fid_eq *fid)
{
	return container_of(fid, struct engine_eq, fid);
}

static struct engine_watch *engine_watch_of(struct engine_eq *eq,
					    const struct engine_domain *domain)
{
	struct list *node, *after;

	list_for_each(node, after, &eq->watched) {
		struct engine_watch *watch = container_of(node, struct engine_watch, link);

		if (watch->domain == domain)
			return watch;
	}
	return NULL;
}

int engine_eq_hold(struct engine_eq *eq, struct engine_domain *domain)
{
	int ret = engine_eq_bell(eq) >= 0 ? engine_auto_start(domain) : 0;

	return ret ? ret : engine_eq_watch(eq, domain);
}

int engine_eq_watch(struct engine_eq *eq, struct engine_domain *domain)
{
	struct engine_watch *watch;

	platform_lock(&eq->watch_lock);
	watch = engine_watch_of(eq, domain);
	if (!watch) {
		watch = platform_alloc(sizeof(*watch));
		if (watch) {
			watch->domain = domain;
			watch->seen = atomic_load_explicit(&domain->rounds,
							   memory_order_relaxed);
			list_push(&eq->watched, &watch->link);
		}
	}
	if (watch)
		watch->cnt++;
	platform_unlock(&eq->watch_lock);
	return watch ? 0 : -FI_ENOMEM;
}

void engine_eq_drop(struct engine_eq *eq, struct engine_domain *domain)
{
	struct engine_watch *watch;

	platform_lock(&eq->watch_lock);
	watch = engine_watch_of(eq, domain);
	if (!--watch->cnt) {
		list_remove(&watch->link);
		platform_free(watch);
	}
	platform_unlock(&eq->watch_lock);
}

/*
 * A domain that the program has driven since the last look needs no round of ours, and to claim it
 * from its callers is dear (guard.h).
 */
static void engine_watch_drive(struct engine_watch *watch)
{
	struct engine_domain *domain = watch->domain;
	uint32_t rounds = atomic_load_explicit(&domain->rounds, memory_order_relaxed);

	if (rounds != watch->seen) {
		watch->seen = rounds;
		return;
	}
	engine_enter(domain);
	engine_domain_progress(domain);
	watch->seen = atomic_load_explicit(&domain->rounds, memory_order_relaxed);
	engine_leave(domain);
}

static void engine_eq_progress(struct engine_eq *eq)
{
	struct list *node, *after;

	platform_lock(&eq->watch_lock);
	list_for_each(node, after, &eq->watched)
		engine_watch_drive(container_of(node, struct engine_watch, link));
	platform_unlock(&eq->watch_lock);
}

static bool engine_eq_is_empty(struct engine_eq *eq)
{
	bool empty;

	platform_lock(&eq->lock);
	empty = eq_empty(&eq->queue);
	platform_unlock(&eq->lock);
	return empty;
}

/* Somebody goes to sleep on the bell. */
static int engine_eq_wake(struct engine_eq *eq)
{
	struct list *node, *after;
	int ret = 0;

	platform_lock(&eq->watch_lock);
	list_for_each(node, after, &eq->watched) {
		ret = engine_auto_wake(container_of(node, struct engine_watch, link)->domain);
		if (ret)
			break;
	}
	platform_unlock(&eq->watch_lock);
	return ret;
}

bool engine_eq_look(struct engine_eq *eq)
{
	if (!engine_eq_is_empty(eq))
		return true;
	engine_eq_progress(eq);
	return !engine_eq_is_empty(eq);
}

int engine_eq_trywait(struct engine_eq *eq)
{
	if (engine_eq_look(eq))
		return -FI_EAGAIN;
	return engine_eq_wake(eq);
}

/* Its own bell rings from the first event to the last. The caller holds the queue. */
static void engine_eq_came(struct engine_eq *eq)
{
	if (engine_eq_bell(eq) >= 0)
		platform_bell_ring(engine_eq_bell(eq));
}

static void engine_eq_went(struct engine_eq *eq)
{
	if (eq->bell >= 0 && eq_empty(&eq->queue))
		platform_bell_clear(eq->bell);
}

void engine_eq_post(struct engine_eq *eq, struct eq_event *event)
{
	platform_lock(&eq->lock);
	eq_post(&eq->queue, event);
	engine_eq_came(eq);
	platform_unlock(&eq->lock);
}

int engine_eq_push(struct engine_eq *eq, uint32_t event, const void *buf, size_t len)
{
	struct eq_event *e = eq_event_new(event, buf, len);

	if (!e)
		return -FI_ENOMEM;
	engine_eq_post(eq, e);
	return 0;
}

int engine_eq_push_error(struct engine_eq *eq, const struct fi_eq_err_entry *err)
{
	int ret;

	platform_lock(&eq->lock);
	ret = eq_push_error(&eq->queue, err);
	if (!ret)
		engine_eq_came(eq);
	platform_unlock(&eq->lock);
	return ret;
}

static ssize_t engine_eq_read(struct fid_eq *fid, uint32_t *event, void *buf, size_t len,
			      uint64_t flags)
{
	struct engine_eq *eq = eq_of(fid);
	ssize_t ret;

	if (!event || (len && !buf))
		return -FI_EINVAL;
	if (flags & ~FI_PEEK)
		return -FI_EBADFLAGS;
	if (engine_eq_is_empty(eq))
		engine_eq_progress(eq);
	platform_lock(&eq->lock);
	ret = eq_take(&eq->queue, event, buf, len, flags);
	engine_eq_went(eq);
	platform_unlock(&eq->lock);
	return ret;
}

static ssize_t engine_eq_readerr(struct fid_eq *fid, struct fi_eq_err_entry *buf,
				 uint64_t flags)
{
	struct engine_eq *eq = eq_of(fid);
	ssize_t ret;

	if (!buf)
		return -FI_EINVAL;
	if (flags & ~FI_PEEK)
		return -FI_EBADFLAGS;
	platform_lock(&eq->lock);
	ret = eq_take_error(&eq->queue, buf, flags);
	engine_eq_went(eq);
	platform_unlock(&eq->lock);
	return ret;
}

static ssize_t engine_eq_write(struct fid_eq *fid, uint32_t event, const void *buf, size_t len,
			       uint64_t flags)
{
	int ret;

	if (len && !buf)
		return -FI_EINVAL;
	if (flags)
		return -FI_EBADFLAGS;
	ret = engine_eq_push(eq_of(fid), event, buf, len);
	return ret ? ret : (ssize_t)len;
}

static ssize_t engine_eq_sread(struct fid_eq *fid, uint32_t *event, void *buf, size_t len,
			       int timeout, uint64_t flags)
{
	uint64_t end = platform_now_ns() + (uint64_t)timeout * 1000000u;
	ssize_t ret;

	if (eq_of(fid)->wait == FI_WAIT_NONE || eq_of(fid)->wait == FI_WAIT_SET)
		return -FI_ENOSYS;
	while ((ret = engine_eq_read(fid, event, buf, len, flags)) == -FI_EAGAIN) {
		if (timeout >= 0 && platform_now_ns() >= end)
			return ret;
		platform_yield();
	}
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
	if (command == FI_GETWAITOBJ) {
		*(enum fi_wait_obj *)arg = eq->wait;
		return 0;
	}
	if (eq->bell < 0)
		return -FI_ENODATA;
	*(int *)arg = eq->bell;
	return 0;
}

static void engine_eq_free(struct engine_eq *eq)
{
	eq_fini(&eq->queue);
	platform_lock_fini(&eq->lock);
	platform_lock_fini(&eq->watch_lock);
	platform_free(eq);
}

static int engine_eq_close(struct fid *fid)
{
	struct engine_eq *eq = container_of(fid, struct engine_eq, fid.fid);
	bool bound;

	platform_lock(&eq->watch_lock);
	bound = !list_empty(&eq->watched);
	platform_unlock(&eq->watch_lock);
	if (bound)
		return -FI_EBUSY;
	if (eq->set)
		engine_waitset_leave(eq);
	if (eq->bell >= 0)
		platform_bell_close(eq->bell);
	engine_unref(&eq->fabric->refs);
	engine_eq_free(eq);
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

static int engine_eq_attr_check(const struct fi_eq_attr *attr)
{
	if (!attr)
		return 0;
	if (attr->flags & ~(FI_WRITE | FI_AFFINITY))
		return -FI_EBADFLAGS;
	switch (attr->wait_obj) {
	case FI_WAIT_NONE:
	case FI_WAIT_UNSPEC:
	case FI_WAIT_YIELD:
	case FI_WAIT_FD:
	case FI_WAIT_SET:
		return 0;
	case FI_WAIT_MUTEX_COND:
	case FI_WAIT_POLLFD:
		return -FI_ENOSYS;
	}
	return -FI_EINVAL;
}

int engine_eq_open(struct fid_fabric *fid, struct fi_eq_attr *attr, struct fid_eq **out,
		   void *context)
{
	struct engine_fabric *fabric = container_of(fid, struct engine_fabric, fid);
	struct engine_eq *eq;
	int ret;

	if (!out)
		return -FI_EINVAL;
	ret = engine_eq_attr_check(attr);
	if (ret)
		return ret;
	eq = platform_alloc(sizeof(*eq));
	if (!eq)
		return -FI_ENOMEM;
	eq->fabric = fabric;
	eq->wait = attr ? attr->wait_obj : FI_WAIT_NONE;
	eq->bell = -1;
	eq->fid.fid.fclass = FI_CLASS_EQ;
	eq->fid.fid.context = context;
	eq->fid.fid.ops = &engine_eq_fi_ops;
	eq->fid.ops = &engine_eq_ops;
	platform_lock_init(&eq->lock);
	eq_init(&eq->queue);
	platform_lock_init(&eq->watch_lock);
	list_init(&eq->watched);
	eq->queue.api_version = fabric->fid.api_version;
	if (eq->wait == FI_WAIT_FD)
		ret = platform_bell_open(&eq->bell);
	else if (eq->wait == FI_WAIT_SET)
		ret = engine_waitset_join(
			eq, attr->wait_set); /* last: others look at it from here on */
	if (ret) {
		engine_eq_free(eq);
		return ret;
	}
	engine_ref(&fabric->refs);
	*out = &eq->fid;
	return 0;
}
