/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Waiting for queues and counters: their wait objects, wait sets, fi_trywait. Called by programs
 * on any thread.
 */
#include <rdma/fi_errno.h>
#include "auto.h"
#include "cntr.h"
#include "eq_fid.h"
#include "fids.h"
#include "progress.h"
#include "wait.h"

static struct engine_waitset *set_of(struct fid_wait *fid)
{
	return container_of(fid, struct engine_waitset, fid);
}

/* A round of progress, if the object has nothing yet. */
static bool engine_wait_look(struct engine_wait *w)
{
	if (engine_wait_ready(w))
		return true;
	engine_domain_progress(w->domain);
	return engine_wait_ready(w);
}

/* Bells */

/* May its bell be slept on? It is armed then. 0, -FI_EAGAIN, or -FI_E* without who would ring it */
static int engine_wait_try(struct engine_wait *w)
{
	struct engine_domain *domain = w->domain;
	bool ready;

	engine_use(domain);
	ready = engine_wait_look(w);
	if (!ready && engine_wait_bell(w) >= 0 && list_empty(&w->armed))
		list_push(&domain->armed, &w->armed);
	engine_unuse(domain);
	if (ready)
		return -FI_EAGAIN;
	return engine_auto_wake(domain);
}

/* Objects */

/* The wait set that a program has named; NULL: it is none of this fabric. */
static struct engine_waitset *engine_set_named(struct fid_wait *fid,
					       const struct engine_fabric *fabric)
{
	if (!fid || fid->fid.fclass != FI_CLASS_WAIT || set_of(fid)->fabric != fabric)
		return NULL;
	return set_of(fid);
}

static int engine_wait_join(struct engine_wait *w, struct fid_wait *fid)
{
	struct engine_waitset *set = engine_set_named(fid, w->domain->fabric);

	if (!set)
		return -FI_EINVAL;
	if (set->bell >= 0) {
		int ret = engine_auto_start(w->domain);

		if (ret)
			return ret;
	}
	w->set = set;
	platform_lock(&set->lock);
	list_push(&set->members, &w->member);
	platform_unlock(&set->lock);
	return 0;
}

static int engine_wait_open_bell(struct engine_wait *w)
{
	int ret = engine_auto_start(w->domain);

	return ret ? ret : platform_bell_open(&w->bell);
}

int engine_wait_open(struct engine_wait *w, struct fid *fid, struct engine_domain *domain,
		     enum fi_wait_obj obj, struct fid_wait *set)
{
	*w = (struct engine_wait){ .fid = fid, .domain = domain, .obj = obj, .bell = -1 };
	list_init(&w->member);
	list_init(&w->armed);
	list_init(&w->polled);
	switch (obj) {
	case FI_WAIT_NONE:
	case FI_WAIT_UNSPEC:
	case FI_WAIT_YIELD:
		return 0;
	case FI_WAIT_SET:
		return engine_wait_join(w, set);
	case FI_WAIT_FD:
		return engine_wait_open_bell(w);
	case FI_WAIT_MUTEX_COND:
	case FI_WAIT_POLLFD:
		return -FI_ENOSYS;
	}
	return -FI_EINVAL;
}

void engine_wait_enter(struct engine_wait *w)
{
	if (w->set)
		platform_lock(&w->set->lock);
	engine_enter(w->domain);
}

void engine_wait_leave(struct engine_wait *w)
{
	engine_leave(w->domain);
	if (w->set)
		platform_unlock(&w->set->lock);
}

void engine_wait_forget(struct engine_wait *w)
{
	list_remove(&w->member);
	list_remove(&w->armed);
	engine_poll_forget(w);
}

void engine_wait_close(struct engine_wait *w)
{
	if (w->bell >= 0)
		platform_bell_close(w->bell);
}

static int engine_bell_control(int bell, enum fi_wait_obj obj, int command, void *arg)
{
	if (!arg)
		return -FI_EINVAL;
	if (command == FI_GETWAITOBJ) {
		*(enum fi_wait_obj *)arg = obj;
		return 0;
	}
	if (command != FI_GETWAIT)
		return -FI_ENOSYS;
	if (bell < 0)
		return -FI_ENODATA;
	*(int *)arg = bell;
	return 0;
}

int engine_wait_control(struct engine_wait *w, int command, void *arg)
{
	return engine_bell_control(w->bell, w->obj, command, arg);
}

/* Wait sets */

int engine_waitset_join(struct engine_eq *eq, struct fid_wait *fid)
{
	struct engine_waitset *set = engine_set_named(fid, eq->fabric);

	if (!set)
		return -FI_EINVAL;
	eq->set = set;
	platform_lock(&set->lock);
	list_push(&set->eqs, &eq->member);
	platform_unlock(&set->lock);
	return 0;
}

void engine_waitset_leave(struct engine_eq *eq)
{
	platform_lock(&eq->set->lock);
	list_remove(&eq->member);
	platform_unlock(&eq->set->lock);
}

/* One round over the set's domains: has a member something? A counter's change is told once. */
static bool engine_set_look(struct engine_waitset *set)
{
	struct list *node, *after;
	bool any = false;

	platform_lock(&set->lock);
	list_for_each(node, after, &set->members) {
		struct engine_wait *w = container_of(node, struct engine_wait, member);

		engine_use(w->domain);
		if (engine_wait_look(w)) {
			any = true;
			if (w->fid->fclass == FI_CLASS_CNTR)
				engine_cntr_seen(
					container_of(w->fid, struct engine_cntr, fid.fid));
		}
		engine_unuse(w->domain);
	}
	list_for_each(node, after, &set->eqs)
		any |= engine_eq_look(container_of(node, struct engine_eq, member));
	platform_unlock(&set->lock);
	return any;
}

static int engine_waitset_wait(struct fid_wait *fid, int timeout)
{
	uint64_t end = platform_now_ns() + (uint64_t)timeout * 1000000u;

	while (!engine_set_look(set_of(fid))) {
		if (timeout >= 0 && platform_now_ns() >= end)
			return -FI_ETIMEDOUT;
		platform_yield();
	}
	return 0;
}

static int engine_set_try(struct engine_waitset *set)
{
	struct list *node, *after;
	int ret = 0;

	if (set->bell >= 0)
		platform_bell_clear(set->bell);
	platform_lock(&set->lock);
	list_for_each(node, after, &set->members) {
		ret = engine_wait_try(container_of(node, struct engine_wait, member));
		if (ret)
			break;
	}
	list_for_each(node, after, &set->eqs) {
		if (ret)
			break;
		ret = engine_eq_trywait(container_of(node, struct engine_eq, member));
	}
	platform_unlock(&set->lock);
	return ret;
}

static int engine_waitset_control(struct fid *fid, int command, void *arg)
{
	struct engine_waitset *set = container_of(fid, struct engine_waitset, fid.fid);

	return engine_bell_control(set->bell, set->obj, command, arg);
}

static int engine_waitset_close(struct fid *fid)
{
	struct engine_waitset *set = container_of(fid, struct engine_waitset, fid.fid);
	bool busy;

	platform_lock(&set->lock);
	busy = !list_empty(&set->members) || !list_empty(&set->eqs);
	platform_unlock(&set->lock);
	if (busy)
		return -FI_EBUSY;
	if (set->bell >= 0)
		platform_bell_close(set->bell);
	platform_lock_fini(&set->lock);
	engine_unref(&set->fabric->refs);
	platform_free(set);
	return 0;
}

static struct fi_ops engine_waitset_fi_ops = {
	.size = sizeof(struct fi_ops),
	.close = engine_waitset_close,
	.bind = engine_no_bind,
	.control = engine_waitset_control,
	.ops_open = engine_no_ops_open,
	.tostr = engine_no_tostr,
	.ops_set = engine_no_ops_set,
};

static struct fi_ops_wait engine_waitset_ops = {
	.size = sizeof(struct fi_ops_wait),
	.wait = engine_waitset_wait,
};

static int engine_waitset_check(const struct fi_wait_attr *attr)
{
	if (attr->flags)
		return -FI_EBADFLAGS;
	switch (attr->wait_obj) {
	case FI_WAIT_UNSPEC:
	case FI_WAIT_YIELD:
	case FI_WAIT_FD:
		return 0;
	case FI_WAIT_MUTEX_COND:
	case FI_WAIT_POLLFD:
		return -FI_ENOSYS;
	case FI_WAIT_NONE:
	case FI_WAIT_SET:
		break;
	}
	return -FI_EINVAL;
}

int engine_waitset_open(struct fid_fabric *fid, struct fi_wait_attr *attr,
			struct fid_wait **out)
{
	struct engine_fabric *fabric = container_of(fid, struct engine_fabric, fid);
	struct engine_waitset *set;
	int ret;

	if (!attr || !out)
		return -FI_EINVAL;
	ret = engine_waitset_check(attr);
	if (ret)
		return ret;
	set = platform_alloc(sizeof(*set));
	if (!set)
		return -FI_ENOMEM;
	set->bell = -1;
	if (attr->wait_obj == FI_WAIT_FD)
		ret = platform_bell_open(&set->bell);
	if (ret) {
		platform_free(set);
		return ret;
	}
	set->fid.fid.fclass = FI_CLASS_WAIT;
	set->fid.fid.ops = &engine_waitset_fi_ops;
	set->fid.ops = &engine_waitset_ops;
	set->fabric = fabric;
	set->obj = attr->wait_obj;
	platform_lock_init(&set->lock);
	list_init(&set->members);
	list_init(&set->eqs);
	engine_ref(&fabric->refs);
	*out = &set->fid;
	return 0;
}

/* fi_trywait */

static int engine_own_try(struct engine_wait *w)
{
	if (w->bell >= 0)
		platform_bell_clear(w->bell);
	return engine_wait_try(w);
}

static int engine_try(struct fid *fid)
{
	switch (fid->fclass) {
	case FI_CLASS_CQ:
		return engine_own_try(&container_of(fid, struct engine_cq, fid.fid)->wait);
	case FI_CLASS_CNTR:
		return engine_own_try(&container_of(fid, struct engine_cntr, fid.fid)->wait);
	case FI_CLASS_EQ:
		return engine_eq_trywait(container_of(fid, struct engine_eq, fid.fid));
	case FI_CLASS_WAIT:
		return engine_set_try(container_of(fid, struct engine_waitset, fid.fid));
	default:
		return -FI_EINVAL;
	}
}

int engine_trywait(struct fid_fabric *fabric, struct fid **fids, int cnt)
{
	if (cnt < 0 || (cnt && !fids))
		return -FI_EINVAL;
	for (int i = 0; i < cnt; i++) {
		int ret = fids[i] ? engine_try(fids[i]) : -FI_EINVAL;

		if (ret)
			return ret;
	}
	return 0;
}
